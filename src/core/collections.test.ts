// A set whose table is replaced now and then has the same members in the same order; slots are used again.

import { expect, it } from "vitest";
import { ChurningSet, SlotTable } from "./collections.ts";

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
  expect(churning.values()).toEqual([...plain]);
  expect([churning.has(4_998), churning.has(4_999)]).toEqual([true, false]);
  churning.clear();
  expect([churning.size, churning.values()]).toEqual([0, []]);
});

it("uses the slots of members that are gone again", () => {
  const table = new SlotTable<string>();
  expect([table.add("a"), table.add("b"), table.add("c")]).toEqual([0, 1, 2]);
  expect([table.remove(1), table.remove(1), table.remove(7)]).toEqual([true, false, false]);
  expect([table.size, table.entries()]).toEqual([
    2,
    [
      [0, "a"],
      [2, "c"],
    ],
  ]);
  expect(table.add("d")).toBe(1);
});
