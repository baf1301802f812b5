// The last lines of a program's output: whole lines, and never nothing if there is output.

import { expect, it } from "vitest";
import { lastLines } from "./values.ts";

it.each([
  ["short\n", 10, "short"],
  ["one\ntwo\nthree\n", 8, "three"],
  ["one\ntwo\nthree\n", 9, "two\nthree"],
  ["one\ntwo\nthree\n", 11, "two\nthree"],
  ["a line without an end", 6, "an end"],
  ["  \n ", 3, ""],
])("lastLines(%j, %i) is %j", (text, length, last) => {
  expect(lastLines(text, length)).toBe(last);
});
