// `context.log`: which messages are sent. When logging is declared is tested in server.test.ts.

import { expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Params } from "../core/handler.ts";
import type { ToolContext } from "./call-context.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };
const call = { name: "t" };

/** A server with one tool. */
const tool = (work: (context: ToolContext) => unknown) =>
  createServer(info).tool("t", {}, (_args, context) => work(context));

const speak = ({ log }: ToolContext): void => {
  log("debug", "a");
  log("info", { b: 1 });
  log("error", "c", "disk");
};
const method = "notifications/message";

it("log sends messages at or above the level of the caller", async () => {
  const caller = fakeClient(tool(speak), { logLevel: "info" });
  await caller.call("tools/call", call);
  expect(caller.notifications).toEqual([
    { method, params: { level: "info", data: { b: 1 } } },
    { method, params: { level: "error", logger: "disk", data: "c" } },
  ]);
});

it("log sends nothing to a caller without a level", async () => {
  const caller = fakeClient(tool(speak));
  await caller.call("tools/call", call);
  expect(caller.notifications).toEqual([]);
});

it("log refuses an unknown level", async () => {
  const result = await fakeClient(tool(({ log }) => log("loud" as never, "x"))).call("tools/call", call);
  expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('"loud"') }] });
});

const hidden = (...[, context]: [unknown, ToolContext, ...unknown[]]): string => {
  context.log("debug", "x");
  return "said";
};
const hiding = (more: object = {}) =>
  createServer({ ...info, ...more })
    .tool("t", {}, hidden)
    .resource("a:b", {}, hidden)
    .template("t:{id}", {}, hidden)
    .prompt("p", {}, hidden);
const requests: readonly (readonly [string, Params])[] = [
  ["tools/call", call],
  ["resources/read", { uri: "a:b" }],
  ["resources/read", { uri: "t:1" }],
  ["prompts/get", { name: "p" }],
];

it("whether log messages are sent does not depend on how many parameters a handler declares", async () => {
  const caller = fakeClient(hiding(), { logLevel: "debug" });
  for (const [method, params] of requests) await caller.call(method, params);
  expect(caller.notifications).toHaveLength(4);
});

it("whether log messages are sent is decided by `logging: false`", async () => {
  const caller = fakeClient(hiding({ logging: false }), { logLevel: "debug" });
  for (const [method, params] of requests) await caller.call(method, params);
  expect(caller.notifications).toEqual([]);
});
