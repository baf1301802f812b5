// What a session keeps for its handles: small values within a budget of bytes, and nothing that no tool can show.

import { expect, it } from "vitest";
import { HandleTable } from "./handles.ts";

const DROPPED = /^The value of handle 1 was dropped: .* Evaluate the code again\.$/;

it("keeps values within a budget of bytes, and drops the oldest first", () => {
  const table = new HandleTable();
  const text = (at: number): string => String(at).repeat(900_000);
  for (let at = 1; at <= 4; at += 1) expect(table.add(text(at))).toBe(at);
  expect(table.get(1)).toEqual({ problem: expect.stringMatching(DROPPED) as string });
  expect([3, 4].map((at) => table.get(at))).toEqual([{ value: text(3) }, { value: text(4) }]);
  // The newest is kept in any case, until the next one.
  const long = "x".repeat(5_000_000);
  expect(table.get(table.add(long) ?? 0)).toEqual({ value: long });
  expect(table.get(4)).toHaveProperty("problem");
  table.add([1]);
  expect(table.get(5)).toHaveProperty("problem");
  expect(table.get(6)).toEqual({ value: [1] });
});

it("has all values as long as something else holds them, whatever their size", () => {
  const table = new HandleTable();
  const large = Array.from({ length: 30_000 }, (_, at) => ({ at }));
  const looped: unknown[] = [];
  looped.push(looped);
  const fails = {
    get bad(): never {
      throw new Error("called");
    },
  };
  const values = [
    large,
    () => large,
    new Proxy(
      {},
      {
        ownKeys: () => {
          throw new Error("called");
        },
      },
    ),
    looped,
    fails,
    new Map([[large, 1]]),
    new Set([1]),
    5n,
    undefined,
  ];
  const handles = values.map((value) => table.add(value) ?? 0);
  expect(handles.map((handle) => table.get(handle))).toEqual(values.map((value) => ({ value })));
});

it("knows the last 200 handles, and says why there is no value", () => {
  const table = new HandleTable();
  expect(table.get(1)).toEqual({ problem: "There is no handle 1: this session has given none yet." });
  for (let at = 0; at < 201; at += 1) table.add([at]);
  expect(table.get(1)).toEqual({ problem: expect.stringMatching(DROPPED) as string });
  expect(table.get(2)).toEqual({ value: [1] });
  expect(table.get(202)).toEqual({ problem: "There is no handle 202: the newest is 201." });
});

it("has none once they are turned off", () => {
  const table = new HandleTable();
  table.add([1]);
  table.turnOff();
  expect(table.add([2])).toBeUndefined();
  expect(table.get(1)).toHaveProperty("problem");
});
