// A set whose table is replaced now and then: the members stay the same, in the same order.

import { expect, it } from "vitest";
import { ChurningSet } from "./collections.ts";

it("has the same members as a set, however many have come and gone", () => {
  const churning = new ChurningSet<number>();
  const plain = new Set<number>();
  for (let n = 0; n < 5_000; n += 1) {
    for (const set of [churning, plain]) {
      set.add(n);
      if (n % 7 !== 0) set.delete(n);
      if (n > 700) set.delete(n - 700);
    }
    expect(churning.size).toBe(plain.size);
  }
  expect(churning.all()).toEqual([...plain]);
  expect([churning.has(4_998), churning.has(4_999)]).toEqual([true, false]);
  churning.clear();
  expect([churning.size, churning.all()]).toEqual([0, []]);
});
