// Places that several principals take: no principal gets all of them, and freed places can be taken again.

import { expect, it } from "vitest";
import { FairLimit, shareOfOne } from "./fair-limit.ts";

it("a fair limit gives three quarters to one principal, and at least one place", () => {
  expect([1, 2, 3, 4, 100, 1024].map(shareOfOne)).toEqual([1, 2, 3, 3, 75, 768]);
});

it("a fair limit refuses a principal that has its share, and gives the rest to others", () => {
  const limit = new FairLimit(4);
  expect(["bob", "bob", "bob", "bob", "ada", "ada"].map((name) => limit.take(name))).toEqual([
    undefined,
    undefined,
    undefined,
    "share",
    undefined,
    "full",
  ]);
  limit.release("bob");
  expect([limit.take("ada"), limit.take("bob")]).toEqual([undefined, "full"]);
});

it("a fair limit counts callers without a principal as one", () => {
  const limit = new FairLimit(4);
  expect([1, 2, 3, 4].map(() => limit.take(undefined))).toEqual([undefined, undefined, undefined, "share"]);
  expect(limit.take("ada")).toBeUndefined();
});

it("a fair limit gives more places than there are only to the first", () => {
  const limit = new FairLimit(4);
  expect(limit.take("bob", 9)).toBeUndefined();
  expect(limit.take("ada")).toBe("full");
  limit.release("bob", 9);
  expect([limit.take("ada"), limit.take("bob", 4), limit.take("bob", 3)]).toEqual([undefined, "full", undefined]);
});
