// `context.log`: which messages are sent, and the error on a server that has not declared logging. When logging is
// declared is tested in server.test.ts.

import { describe, expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Params } from "../core/handler.ts";
import type { ToolContext } from "./call-context.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };
const call = { name: "t" };

/** A server with one tool. */
const tool = (work: (context: ToolContext) => unknown) =>
  createServer(info).tool("t", {}, (_args, context) => work(context));

describe("log", () => {
  const speak = ({ log }: ToolContext): void => {
    log("debug", "a");
    log("info", { b: 1 });
    log("error", "c", "disk");
  };
  const method = "notifications/message";

  it("sends messages at or above the level of the caller", async () => {
    const caller = fakeClient(tool(speak), { logLevel: "info" });
    await caller.call("tools/call", call);
    expect(caller.notifications).toEqual([
      { method, params: { level: "info", data: { b: 1 } } },
      { method, params: { level: "error", logger: "disk", data: "c" } },
    ]);
  });

  it("sends nothing to a caller without a level", async () => {
    const caller = fakeClient(tool(speak));
    await caller.call("tools/call", call);
    expect(caller.notifications).toEqual([]);
  });

  it("refuses an unknown level", async () => {
    const result = await fakeClient(tool(({ log }) => log("loud" as never, "x"))).call("tools/call", call);
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('"loud"') }] });
  });
});

describe("log on a server that has not declared logging", () => {
  const advice = "context.log needs the capability logging: createServer({ ..., logging: true })";
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
    ["resources/read", { uri: "a:b" }],
    ["resources/read", { uri: "t:1" }],
    ["prompts/get", { name: "p" }],
  ];

  it.each(["debug", "emergency", undefined] as const)("throws an error with advice, for level %s", async (level) => {
    const caller = fakeClient(hiding(), level === undefined ? {} : { logLevel: level });
    expect(await caller.call("tools/call", call)).toMatchObject({ isError: true, content: [{ text: advice }] });
    for (const [method, params] of requests) expect((await caller.callError(method, params)).message).toBe(advice);
    const list = (...[{ log }]: [ToolContext]) => log("debug", "x") ?? [];
    const lists = createServer(info).template("t:{id}", { list }, ({ id }) => id);
    expect((await fakeClient(lists).callError("resources/list")).message).toBe(advice);
    expect(caller.notifications).toEqual([]);
  });

  it("throws a TypeError synchronously", async () => {
    const caught: unknown[] = [];
    const server = createServer(info).tool("t", {}, (...[, { log }]) => {
      try {
        log("info", "x");
      } catch (error) {
        caught.push(error);
      }
    });
    await fakeClient(server).call("tools/call", call);
    expect(caught).toEqual([new TypeError(advice)]);
  });

  it("sends nothing with `logging: false`", async () => {
    const caller = fakeClient(hiding({ logging: false }), { logLevel: "debug" });
    expect(await caller.call("tools/call", call)).toMatchObject({ content: [{ text: "said" }], isError: false });
    for (const [method, params] of requests) await caller.call(method, params);
    expect(caller.notifications).toEqual([]);
    const open = createServer({ ...info, logging: false }).tool("t", {}, (_args, { log }) => log("info", "x"));
    const other = fakeClient(open, { logLevel: "debug" });
    expect(await other.call("tools/call", call)).toMatchObject({ isError: false });
    expect(other.notifications).toEqual([]);
  });

  it("sends messages once logging is declared by an option or another handler", async () => {
    const declaring = [hiding({ logging: true }), hiding().tool("other", {}, (_args, { log }) => log("info", "x"))];
    for (const server of declaring) {
      const caller = fakeClient(server, { logLevel: "debug" });
      await caller.call("tools/call", call);
      for (const [method, params] of requests) await caller.call(method, params);
      expect(caller.notifications).toHaveLength(4);
    }
  });
});
