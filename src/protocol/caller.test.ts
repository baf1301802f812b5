// What is known about a caller: keys are equal for the requests of one client, and different for others.

import fc from "fast-check";
import { expect, it } from "vitest";
import type { Caller } from "../core/handler.ts";
import { INTERNAL_CALLER, isSameClient, newCaller, statelessCaller } from "./caller.ts";
import { TASKS_EXTENSION } from "./tasks.ts";

const ONE = { elicitation: { form: {}, url: {} }, roots: {} };
const long = (end: string) => ({ roots: {}, experimental: { x: { text: "y".repeat(100_000) + end } } });
const keyOf = (capabilities: Caller["capabilities"], principal?: string, info?: object): string =>
  statelessCaller(info, capabilities, principal === undefined ? {} : { principal }).key;

it("the key of a stateless caller is the same for the same capabilities in any order, and with or without tasks", () => {
  expect(keyOf(ONE)).toBe(keyOf({ roots: {}, elicitation: { url: {}, form: {} } }));
  expect(keyOf({ ...ONE, extensions: { [TASKS_EXTENSION]: {} } })).toBe(keyOf(ONE));
  expect(keyOf({ ...ONE, extensions: { [TASKS_EXTENSION]: {}, "x/y": {} } })).not.toBe(keyOf(ONE));
  expect(keyOf({})).not.toBe(keyOf(ONE));
});

it("the key of a stateless caller is short for long capabilities, and still different for others", () => {
  expect(keyOf(long("1")).length).toBeLessThan(1_000);
  expect(keyOf(long("1"))).toBe(keyOf({ experimental: long("1").experimental, roots: {} }));
  expect(keyOf(long("1"))).not.toBe(keyOf(long("2")));
});

it("the key of a stateless caller differs between principals, whatever their names, and from none", () => {
  fc.assert(
    fc.property(fc.option(fc.string(), { nil: undefined }), fc.option(fc.string(), { nil: undefined }), (a, b) => {
      expect(keyOf({}, a) === keyOf({}, b)).toBe(a === b);
    }),
  );
  expect(keyOf({}, "")).not.toBe(keyOf({}));
});

it("the key of a stateless caller differs between similar capabilities, whichever came before", () => {
  const similar = [
    "{}",
    '{"x":{}}',
    '{"__proto__":{}}',
    '{"x":{},"y":{}}',
    '{"x":[]}',
    '{"x":{"y":1}}',
    '{"x":{"y":"1"}}',
  ];
  const all = [...similar, ...similar.toReversed()].map((json) => keyOf(JSON.parse(json) as Caller["capabilities"]));
  expect(all.slice(similar.length)).toEqual(all.slice(0, similar.length).toReversed());
  expect(new Set(all).size).toBe(similar.length);
});

it("the key of a stateless caller differs between clients with different info", () => {
  const one = { name: "one", version: "1" };
  expect(keyOf({}, "ada", one)).toBe(keyOf({}, "ada", { version: "1", name: "one" }));
  expect(keyOf({}, "ada", one)).not.toBe(keyOf({}, "ada", { name: "other", version: "1" }));
  expect(keyOf({}, "ada", one)).not.toBe(keyOf({}, "ada"));
});

it("a caller is certainly the same client if its session or connection is", () => {
  const session = newCaller("session", {});
  expect([isSameClient(session, { ...session }), isSameClient(session, newCaller("session", {}))]).toEqual([
    true,
    false,
  ]);
  const over = (connection: number): Caller => statelessCaller(undefined, {}, {}, connection);
  expect([isSameClient(over(3), over(3)), isSameClient(over(3), over(4))]).toEqual([true, false]);
  const overHttp = over(0);
  expect([isSameClient(overHttp, overHttp), isSameClient(overHttp, over(0))]).toEqual([true, false]);
});

it("a caller keeps its own capabilities and identity, however often equal ones were seen", () => {
  const tasks = { ...ONE, extensions: { [TASKS_EXTENSION]: {} } };
  const info = { name: "one", version: "1" };
  for (const capabilities of [ONE, tasks, ONE]) {
    const identity = { principal: "ada", scopes: ["read"], headers: { "x-a": "b" } };
    const caller = statelessCaller(info, capabilities, identity);
    expect(caller).toMatchObject({ style: "stateless", info, capabilities, ...identity });
  }
  expect(statelessCaller("no object", {}).info).toBeUndefined();
});

it("a caller has a key of its own for each session", () => {
  const keys = [newCaller("session", {}), newCaller("session", {}), newCaller("stateless", {}), INTERNAL_CALLER];
  expect(new Set([...keys.map(({ key }) => key), keyOf({})]).size).toBe(5);
});

it("a caller can be asked if it has declared elicitation, sampling or roots", () => {
  const canBeAsked = (capabilities: Caller["capabilities"]): boolean[] => [
    newCaller("session", capabilities).canBeAsked,
    statelessCaller(undefined, capabilities).canBeAsked,
  ];
  for (const name of ["roots", "sampling", "elicitation"]) expect(canBeAsked({ [name]: {} })).toEqual([true, true]);
  expect(canBeAsked({ extensions: {} })).toEqual([false, false]);
});
