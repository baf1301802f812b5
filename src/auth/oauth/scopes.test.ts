// Which scopes are asked for.

import { expect, it } from "vitest";
import { covers, scopesToAsk } from "./scopes.ts";

it.each([
  ["what is challenged, not what is listed", { challenged: ["a"], listed: ["b"] }, ["a"]],
  ["what is listed where nothing is challenged", { listed: ["b", "c"] }, ["b", "c"]],
  ["nothing where nothing is said", {}, []],
  ["what was asked for before, too", { before: ["a", "b"], challenged: ["b", "c"] }, ["a", "b", "c"]],
  ["what the program wants, on top", { challenged: ["a"], wanted: ["z", "a"] }, ["a", "z"]],
  [
    "offline_access where the server knows it",
    { challenged: ["a"], known: ["offline_access"] },
    ["a", "offline_access"],
  ],
  ["no offline_access of the end's where it does not", { challenged: ["a", "offline_access"], known: ["a"] }, ["a"]],
  ["offline_access of the program's in any case", { wanted: ["offline_access"] }, ["offline_access"]],
  ["no offline_access alone, for it would replace the default", { known: ["offline_access"] }, []],
  ["nothing that is no scope", { challenged: ['a"b', "c\\d", "e\u0007", "fine"] }, ["fine"]],
])("asks for %s", (_what, sources, expected) => {
  expect(scopesToAsk({ lasting: true, ...sources })).toEqual(expected);
});

it("asks for no refresh token where it is of no use", () => {
  expect(scopesToAsk({ lasting: false, challenged: ["a"], known: ["offline_access"] })).toEqual(["a"]);
});

it("knows whether scopes cover others", () => {
  expect(covers(["a", "b"], ["b"])).toBe(true);
  expect(covers(["a"], ["a", "b"])).toBe(false);
  expect(covers([], [])).toBe(true);
});
