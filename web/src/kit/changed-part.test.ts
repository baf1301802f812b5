// Tests of the part in which two texts differ.

import { expect, it } from "vitest";
import { changedPart } from "./changed-part.ts";

const long = "The quick brown fox jumps over the lazy dog. ".repeat(5);

it("shows the changed part alone, with a little on both sides", () => {
  expect(changedPart(`${long}secret=abc${long}`, `${long}secret=[hidden]${long}`)).toEqual({
    head: `…${`${long}secret=`.slice(-24)}`,
    removed: "abc",
    added: "[hidden]",
    tail: `${long.slice(0, 24)}…`,
  });
});

it("tells what was only added or only removed", () => {
  expect(changedPart(long, `${long}more`)).toMatchObject({ removed: "", added: "more", tail: "" });
  expect(changedPart(`${long}${long}`, long)).toMatchObject({ removed: long, added: "" });
});

it("shows short texts, and those with little in common, whole", () => {
  expect(changedPart("one", "two")).toBeUndefined();
  expect(changedPart("a".repeat(50), "b".repeat(50))).toBeUndefined();
  expect(changedPart(long, long)).toBeUndefined();
});

it("keeps both halves of a character together", () => {
  const [one, other] = ["\u{1f600}", "\u{1f601}"];
  expect(changedPart(`${long}${one}${long}`, `${long}${other}${long}`)).toMatchObject({ removed: one, added: other });
  // The same second half.
  const [left, right] = ["\ud83d\ude00", "\ud83c\ude00"];
  expect(changedPart(`${long}${left}${long}`, `${long}${right}${long}`)).toMatchObject({ removed: left, added: right });
});
