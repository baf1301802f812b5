// Names with stars.

import { expect, it } from "vitest";
import { matches } from "./glob.ts";

it.each([
  ["abc", "abc", true],
  ["abc", "abcd", false],
  ["", "", true],
  ["*", "", true],
  ["*", "anything/at.all", true],
  ["read_*", "read_", true],
  ["read_*", "unread_x", false],
  ["*_note", "read_note", true],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["a*b*b", "ab", false],
  ["**x**", "x", true],
  ["file:///*.txt", "file:///a/b.txt", true],
  ["a?c", "abc", false],
  ["a.c", "abc", false],
])("%s and %s: %s", (glob, name, expected) => {
  expect(matches(glob, name)).toBe(expected);
});

it("takes its time from the length of the name alone", () => {
  const glob = `${"a*".repeat(50)}b`;
  expect(matches(glob, "a".repeat(100_000))).toBe(false);
});
