// The changes between two values: what is added, removed and replaced, at which path, and within which limits.

import { expect, it } from "vitest";
import { valueChanges } from "./value-diff.ts";

it("names added, removed and replaced values by their paths", () => {
  const before = { name: "a", arguments: { body: "x", keep: 1, old: null }, content: [{ text: "1" }, { text: "2" }] };
  const after = { name: "a", arguments: { body: "y", keep: 1, "new key": [] }, content: [{ text: "3" }] };
  expect(valueChanges(before, after)).toEqual([
    { path: "arguments.body", before: "x", after: "y" },
    { path: "arguments.old", before: null },
    { path: 'arguments["new key"]', after: [] },
    { path: "content[0].text", before: "1", after: "3" },
    { path: "content[1]", before: { text: "2" } },
  ]);
});

it("items of a list that has become shorter or longer are compared by their names", () => {
  const tools = (...names: string[]): object[] => names.map((name) => ({ name, description: `Does ${name}` }));
  expect(valueChanges({ tools: tools("a", "b", "c") }, { tools: tools("a", "c") })).toEqual([
    { path: 'tools["b"]', before: { name: "b", description: "Does b" } },
  ]);
  const changed = [{ name: "a", description: "Other" }, ...tools("new")];
  expect(valueChanges(tools("a"), changed)).toEqual([
    { path: '["a"].description', before: "Does a", after: "Other" },
    { path: '["new"]', after: { name: "new", description: "Does new" } },
  ]);
  // Renamed, all are there in the same order.
  expect(valueChanges(tools("a", "b"), [tools("a")[0], { name: "c", description: "Does b" }])).toEqual([
    { path: "[1].name", before: "b", after: "c" },
  ]);
});

it("what is equal, or undefined on both sides, is no change", () => {
  expect(valueChanges({ a: [1, { b: "c" }], gone: undefined }, { a: [1, { b: "c" }] })).toEqual([]);
  expect(valueChanges(undefined, undefined)).toEqual([]);
  expect(valueChanges(1, [1])).toEqual([{ path: "", before: 1, after: [1] }]);
  expect(valueChanges([1], { 0: 1 })).toEqual([{ path: "", before: [1], after: { 0: 1 } }]);
});

it("does not look into values that are the same object", () => {
  const shared = new Proxy({}, { ownKeys: () => expect.unreachable() });
  expect(valueChanges({ shared, a: 1 }, { shared, a: 2 })).toEqual([{ path: "a", before: 1, after: 2 }]);
});

it("keys of the prototype are keys like others", () => {
  const before = JSON.parse('{"__proto__": 1, "x": 1}') as unknown;
  const after = JSON.parse('{"__proto__": 2, "x": 1, "constructor": 3}') as unknown;
  expect(valueChanges(before, after)).toEqual([
    { path: "__proto__", before: 1, after: 2 },
    { path: "constructor", after: 3 },
  ]);
});

it("lists a limited number of changes, and looks only so deep", () => {
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`k${at}`, at]));
  expect(valueChanges({}, many)).toHaveLength(100);
  const long = Array.from({ length: 1_000 }, (_, at) => at);
  expect(valueChanges({ long }, { long: [...long, 1] })).toEqual([{ path: "long", before: long, after: [...long, 1] }]);
  const deep = (leaf: unknown): unknown => Array.from({ length: 50 }).reduce<unknown>((inner) => ({ inner }), leaf);
  const [change, ...others] = valueChanges(deep(1), deep(2));
  expect(others).toEqual([]);
  expect(change?.path).toBe(Array.from({ length: 12 }, () => "inner").join("."));
  expect(valueChanges(deep(1), deep(1))).toEqual([]);
});
