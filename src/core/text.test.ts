// The end of what a program has said: whole lines, and something in any case.

import { expect, it } from "vitest";
import { lastLines } from "./text.ts";

it.each([
  ["short\n", 10, "short"],
  ["one\ntwo\nthree\n", 8, "three"],
  ["one\ntwo\nthree\n", 9, "two\nthree"],
  ["one\ntwo\nthree\n", 11, "two\nthree"],
  ["a line without an end", 6, "an end"],
  ["  \n ", 3, ""],
])("of %j, about %i long, is %j", (text, length, last) => {
  expect(lastLines(text, length)).toBe(last);
});
