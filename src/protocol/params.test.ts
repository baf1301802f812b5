// References of completion, whose check is easy to get wrong, and the limits of strings. Other params are tested with the
// server.

import { describe, expect, it } from "vitest";
import type { Params } from "../core/handler.ts";
import { checkParams } from "./params.ts";
import { McpError } from "./errors.ts";

const method = "completion/complete";
const argument = { name: "a", value: "" };

it.each([
  { type: "ref/prompt", name: "p" },
  { type: "ref/prompt", name: "p", uri: 1, more: true },
  { type: "ref/resource", uri: "t:{id}" },
])("params of completion/complete accept %o", (ref) => {
  expect(() => checkParams(method, { ref, argument })).not.toThrow();
});

it.each([
  { type: "ref/prompt" },
  { type: "ref/prompt", uri: "t:{id}" },
  { type: "ref/prompt", name: 1 },
  { type: "ref/resource" },
  { type: "ref/resource", name: "p" },
  { type: "ref/other", uri: "t:{id}" },
  { type: "ref/other", name: "p" },
  { type: "prompt", name: "p" },
  { type: "REF/RESOURCE", uri: "t:{id}" },
  { type: ["ref/resource"], uri: "t:{id}" },
  { uri: "t:{id}", name: "p" },
  { type: null, uri: "t:{id}" },
])("params of completion/complete refuse %o", (ref) => {
  const refused = (): void => checkParams(method, { ref, argument });
  expect(refused).toThrow(McpError);
  expect(refused).toThrow("Invalid params for completion/complete: `ref` must name a prompt");
});

describe("long strings", () => {
  const [uri, name] = ["a:".padEnd(65_537, "b"), "n".repeat(4_097)];
  const argument = { name: "a", value: "" };
  const listen = (notifications: object): readonly [string, Params] => ["subscriptions/listen", { notifications }];

  it.each<readonly [string, Params]>([
    ["resources/read", { uri }],
    ["resources/subscribe", { uri }],
    ["resources/unsubscribe", { uri }],
    ["tasks/get", { taskId: uri }],
    ["tools/list", { cursor: uri }],
    ["completion/complete", { ref: { type: "ref/resource", uri }, argument }],
    ["completion/complete", { ref: { type: "ref/prompt", name }, argument }],
    ["completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name, value: "" } }],
    ["tools/call", { name }],
    ["prompts/get", { name }],
    listen({ resourceSubscriptions: ["a:b", uri] }),
    listen({ taskIds: [uri] }),
    listen({ resourceSubscriptions: Array.from({ length: 10_001 }, (_, at) => `a:${at}`) }),
    listen({ resourceSubscriptions: Array.from({ length: 17 }, (_, at) => `${at}`.padEnd(65_000, "b")) }),
  ])("long strings are refused by %s", (method, params) => {
    expect(() => checkParams(method, params)).toThrow(/^Invalid params for .* at most \d+/);
  });

  it("long strings pass up to the limit, and where they are only data", () => {
    checkParams("resources/read", { uri: uri.slice(1) });
    checkParams("tools/call", { name: name.slice(1), arguments: { text: "x".repeat(1_000_000) } });
    checkParams("completion/complete", {
      ref: { type: "ref/prompt", name: "p" },
      argument: { name: "a", value: "x".repeat(1_000_000) },
    });
  });
});
