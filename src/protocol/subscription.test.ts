// The rule for the URIs of updates, and what else is read from filters and grants.

import { expect, it } from "vitest";
import { changingLists, covers, filterFor, grantedIn, namesIn, possibleChanges } from "./subscription.ts";

it.each([
  ["notes://1", "notes://1"],
  ["notes://1", "notes://1/title"],
  ["notes://1", "notes://1?part=2"],
  ["notes://1", "notes://1#end"],
  ["file:///a/", "file:///a/b/c"],
  ["file:///", "file:///a"],
])("covers(): %s covers %s", (uri, updated) => {
  expect(covers(uri, updated)).toBe(true);
});

it.each([
  ["notes://1", "notes://10"],
  ["notes://1", "notes://10/x"],
  ["notes://1/title", "notes://1"],
  ["notes://1", "notes://2"],
  ["file:///a/", "file:///a"],
])("covers(): %s does not cover %s", (uri, updated) => {
  expect(covers(uri, updated)).toBe(false);
});

it("filters and grants: grantedIn reads acknowledgements only, and a missing grant is empty", () => {
  const method = "notifications/subscriptions/acknowledged";
  const cases = [{ method, params: { notifications: { a: 1 } } }, { method }, { method: "notifications/tasks" }];
  expect(cases.map(grantedIn)).toEqual([{ a: 1 }, {}, undefined]);
});

it("filters and grants: namesIn and changingLists accept what servers may send", () => {
  expect([undefined, {}, { taskIds: "a" }, { taskIds: ["a"] }].map((filter) => namesIn(filter, "taskIds"))).toEqual([
    [],
    [],
    [],
    ["a"],
  ]);
  const capabilities = { tools: { listChanged: true }, prompts: {}, resources: true };
  expect([undefined, capabilities].map(changingLists)).toEqual([[], ["tools"]]);
});

it("filters and grants: filterFor leaves out what is empty, and possibleChanges has the rest", () => {
  const filter = filterFor(["tools"], { resourceSubscriptions: ["n://1"], taskIds: [] });
  expect(filter).toEqual({ toolsListChanged: true, resourceSubscriptions: ["n://1"] });
  expect(possibleChanges({ ...filter, taskIds: ["t"] })).toEqual([
    { method: "notifications/tools/list_changed" },
    { method: "notifications/resources/updated", params: { uri: "n://1" } },
  ]);
});
