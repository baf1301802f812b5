// Log messages of handlers, as they leave the server: which go out, and what becomes of them where the server has
// not promised any. Which registrations are such a promise is tested with the server.

import { describe, expect, it } from "vitest";
import { desk } from "../../test/support/desk.ts";
import type { Params } from "../core/handler.ts";
import type { ToolContext } from "./call-context.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };
const call = { name: "t" };

/** A server with one tool, whose work each test gives. */
const tool = (work: (context: ToolContext) => unknown) =>
  createServer(info).tool("t", {}, (_args, context) => work(context));

describe("log", () => {
  const speak = ({ log }: ToolContext): void => {
    log("debug", "a");
    log("info", { b: 1 });
    log("error", "c", "disk");
  };
  const method = "notifications/message";

  it("goes out from the caller's level on", async () => {
    const caller = desk(tool(speak), { logLevel: "info" });
    await caller.call("tools/call", call);
    expect(caller.told).toEqual([
      { method, params: { level: "info", data: { b: 1 } } },
      { method, params: { level: "error", logger: "disk", data: "c" } },
    ]);
  });

  it("is dropped where the caller named no level", async () => {
    const caller = desk(tool(speak));
    await caller.call("tools/call", call);
    expect(caller.told).toEqual([]);
  });

  it("knows its levels", async () => {
    const result = await desk(tool(({ log }) => log("loud" as never, "x"))).call("tools/call", call);
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('"loud"') }] });
  });
});

describe("log of a server that promised no log messages", () => {
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

  it.each(["debug", "emergency", undefined] as const)("says what to do, to a caller of level %s", async (level) => {
    const caller = desk(hiding(), level === undefined ? {} : { logLevel: level });
    expect(await caller.call("tools/call", call)).toMatchObject({ isError: true, content: [{ text: advice }] });
    for (const [method, params] of requests) expect((await caller.refused(method, params)).message).toBe(advice);
    const list = (...[{ log }]: [ToolContext]) => log("debug", "x") ?? [];
    const lists = createServer(info).template("t:{id}", { list }, ({ id }) => id);
    expect((await desk(lists).refused("resources/list")).message).toBe(advice);
    expect(caller.told).toEqual([]);
  });

  it("is a TypeError, there and then", async () => {
    const caught: unknown[] = [];
    const server = createServer(info).tool("t", {}, (...[, { log }]) => {
      try {
        log("info", "x");
      } catch (error) {
        caught.push(error);
      }
    });
    await desk(server).call("tools/call", call);
    expect(caught).toEqual([new TypeError(advice)]);
  });

  it("is dropped where log messages were refused", async () => {
    const caller = desk(hiding({ logging: false }), { logLevel: "debug" });
    expect(await caller.call("tools/call", call)).toMatchObject({ content: [{ text: "said" }], isError: false });
    for (const [method, params] of requests) await caller.call(method, params);
    expect(caller.told).toEqual([]);
    const open = createServer({ ...info, logging: false }).tool("t", {}, (_args, { log }) => log("info", "x"));
    const other = desk(open, { logLevel: "debug" });
    expect(await other.call("tools/call", call)).toMatchObject({ isError: false });
    expect(other.told).toEqual([]);
  });

  it("goes out once they are promised, by an option or by another handler", async () => {
    const promised = [hiding({ logging: true }), hiding().tool("other", {}, (_args, { log }) => log("info", "x"))];
    for (const server of promised) {
      const caller = desk(server, { logLevel: "debug" });
      await caller.call("tools/call", call);
      for (const [method, params] of requests) await caller.call(method, params);
      expect(caller.told).toHaveLength(4);
    }
  });
});
