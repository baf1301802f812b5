// The last lines of a program's output: whole lines, and never nothing if there is output. Messages without the paths of
// a server.

import { expect, it } from "vitest";
import { hidePaths, lastLines } from "./values.ts";

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

it.each([
  ["https://h/s3cr3t/mcp refused it", "https://h refused it"],
  ["a https://h/s3cr3t/mcp?key=x: no; b https://h/k, c", "a https://h: no; b https://h, c"],
  [
    "https://h/.well-known/oauth-protected-resource/s3cr3t/mcp: 404",
    "https://h/.well-known/oauth-protected-resource: 404",
  ],
  ['"https://h/s3cr3t" (https://h/s3cr3t)', '"https://h" (https://h)'],
  ["https://other/path and https://h.other/path", "https://other/path and https://h.other/path"],
])("hidePaths(%j) is %j", (text, shown) => {
  expect(hidePaths(text, new URL("https://h/s3cr3t/mcp"))).toBe(shown);
});

it("hides a path of many dots in linear time", () => {
  const dots = ".".repeat(500_000);
  expect(hidePaths(`https://h/${dots}a`, new URL("https://h/"))).toBe("https://h");
});
