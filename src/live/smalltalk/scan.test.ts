// The scanner of Smalltalk source, and when a person who types code wants another line.

import { expect, it } from "vitest";
import { smalltalk } from "./entry.ts";
import { tokenize } from "./gst-tokens.ts";
import { chunks, scan } from "./scan.ts";

it.each([
  ["'abc", "The string that begins at line 1, column 1 is not closed"],
  ["x := 3.\n  'it''s", "The string that begins at line 2, column 3 is not closed"],
  ['3 "a comment', "The comment that begins at line 1, column 3 is not closed"],
  ["#(1 2) do: [:e | (e", "The parenthesis that begins at line 1, column 18 is not closed"],
  ["[:x | {x. 3]", "The ] at line 1, column 12 closes nothing"],
  ["3 + 4)", "The ) at line 1, column 6 closes nothing"],
])("scan finds what is wrong with %j", (code, problem) => {
  expect(scan(code).problem).toBe(problem);
});

it.each(["$' asString", "$( asString", "'it''s' , \"a ' in a comment\" ''", "#($a $] 3)", "{1. [:x | (x)]}"])(
  "scan accepts %j",
  (code) => {
    expect(scan(code).problem).toBeUndefined();
  },
);

it("scan finds the names that are assigned", () => {
  expect([...scan("a := b:=3. 'c := 4'. \"d := 5\" e\n:= 6. self f: g").assigned]).toEqual(["a", "b", "e"]);
  expect([...scan("constructor. toString := 3").assigned]).toEqual(["toString"]);
});

it("scan reads each character of long code once", () => {
  // A pattern that tries again at each character would take minutes, and one that remembers each fails at 16 MB.
  const word = "a".repeat(1_000_000);
  expect([...scan(`${word} := 3. b${" ".repeat(100_000)}c`).assigned]).toEqual([word]);
  const string = "a".repeat(16_000_000);
  expect(scan(`'${string}'`)).toMatchObject({ isOpen: false });
  expect(tokenize(`'${string}'`).map(({ type }) => type)).toEqual(["string"]);
});

it("chunks are separated by single exclamation marks", () => {
  expect(chunks("3 + 4!\n!Foo methodsFor: 'x'!\nsay\n  ^'hi!!'! !")).toEqual([
    "3 + 4",
    "",
    "Foo methodsFor: 'x'",
    "say\n  ^'hi!'",
    "",
    "",
  ]);
});

it.each(["[:x |", "'abc", '"abc', "#(1 2", "!Foo methodsFor: 'x'!", "!Foo methodsFor: 'x'!\nbar\n  ^3"])(
  "a person who types Smalltalk wants another line after %j",
  (code) => {
    expect(smalltalk.needsMore(code)).toBe(true);
  },
);

it.each(["3 + 4", "3 +", "]", "!Foo methodsFor: 'x'!\nbar\n  ^3! !", ""])(
  "a person who types Smalltalk wants no other line after %j",
  (code) => {
    expect(smalltalk.needsMore(code)).toBe(false);
  },
);
