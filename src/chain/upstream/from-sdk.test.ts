// `fromSdk` with servers of both versions of the SDK: where they are served, who shares them, and what is refused.

import { Server as LowLevelServer } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { Client as SdkClient } from "@modelcontextprotocol/sdk/client/index.js";
import {
  createMcpHandler,
  McpServer as McpServer2,
  type McpServerFactory,
  Server as LowLevelServer2,
} from "@modelcontextprotocol/server";
import { PassThrough } from "node:stream";
import { afterEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { connect } from "../../client/connect.ts";
import type { Client } from "../../client/client.ts";
import { deferred } from "../../core/async.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { serve, type Closeable } from "../../serve.ts";
import { createServer } from "../../server/server.ts";
import { connectInMemory } from "../../testing.ts";
import type { CallToolResult } from "../../protocol/model/index.ts";
import { chain } from "../chain.ts";
import { fromSdk, type SdkServer } from "./from-sdk.ts";
import { upstream } from "./upstream.ts";

const text = (value: string): { content: { type: "text"; text: string }[] } => ({
  content: [{ type: "text", text: value }],
});
const textOf = ({ content: [first] }: CallToolResult): unknown => (first?.type === "text" ? first.text : first);

/** A server that counts the calls of its session. */
function counter(): McpServer {
  const server = new McpServer({ name: "counter", version: "1.0.0" });
  let count = 0;
  server.registerTool("count", {}, () => text(String(++count)));
  return server;
}

const open: { close(): Promise<void> }[] = [];
const closing = <T extends { close(): Promise<void> }>(one: T): T => {
  open.push(one);
  return one;
};
const session = async (handler: Closeable): Promise<Client> =>
  closing(await connectInMemory(handler, { revision: NEWEST_SESSION.name })).client;

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close();
});

it("fromSdk() serves a low-level server of each version", async () => {
  const first = new LowLevelServer({ name: "low", version: "1.0.0" }, { capabilities: { tools: {} } });
  first.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: "greet", inputSchema: { type: "object" } }],
  }));
  first.setRequestHandler(CallToolRequestSchema, ({ params }) => text(`hello ${String(params.arguments?.["who"])}`));
  const second = new LowLevelServer2({ name: "low", version: "2.0.0" }, { capabilities: { tools: {} } });
  second.setRequestHandler("tools/list", () => ({ tools: [{ name: "greet", inputSchema: { type: "object" } }] }));
  second.setRequestHandler("tools/call", ({ params }) => text(`hello ${String(params.arguments?.["who"])}`));
  for (const server of [first, second]) {
    const client = closing(await connect(closing(fromSdk(server))));
    expect(textOf(await client.callTool("greet", { who: "Ada" }))).toBe("hello Ada");
  }
});

it("fromSdk() serves over HTTP and on stdio", async () => {
  const front = closing(await serve(fromSdk(counter), { http: { port: 0 } }));
  const overHttp = closing(await connect(front.url));
  expect(textOf(await overHttp.callTool("count"))).toBe("1");
  const [input, output] = [new PassThrough(), new PassThrough()];
  closing(await serve(fromSdk(counter), { stdio: { input, output } }));
  const answered = deferred<string>();
  output.setEncoding("utf8").on("data", (line: string) => answered.resolve(line));
  input.write('{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{}}}\n');
  expect(await answered.promise).toContain('"id":1');
});

it("fromSdk() is an upstream of a chain, with its name", async () => {
  const gateway = closing(chain().to({ a: fromSdk(counter), b: fromSdk(counter()) }));
  const client = closing(await connect(gateway));
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["a_count", "b_count"]);
  expect(textOf(await client.callTool("b_count"))).toBe("1");
});

it("fromSdk() shares a server object among all sessions, and calls a function for each of them", async () => {
  const shared = closing(fromSdk(counter()));
  expect(textOf(await (await session(shared)).callTool("count"))).toBe("1");
  expect(textOf(await (await session(shared)).callTool("count"))).toBe("2");
  const each = closing(fromSdk(() => counter()));
  expect(textOf(await (await session(each)).callTool("count"))).toBe("1");
  expect(textOf(await (await session(each)).callTool("count"))).toBe("1");
});

it("fromSdk() closes the servers, and connects a server object again that has closed itself", async () => {
  const server = counter();
  let closes = 0;
  server.server.onclose = () => (closes += 1);
  const handler = fromSdk(server);
  const client = closing(await connect(handler));
  expect(textOf(await client.callTool("count"))).toBe("1");
  await server.close();
  expect(closes).toBe(1);
  expect(textOf(await client.callTool("count"))).toBe("2");
  await handler.close();
  expect(closes).toBe(2);
  expect(handler.status().state).toBe("closed");
});

it("fromSdk() keeps the session of a server object that asks before its first call", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const asked = deferred();
  const server = counter();
  let closes = 0;
  server.server.onclose = () => (closes += 1);
  server.server.oninitialized = () => {
    void server.server.listRoots().catch(() => undefined);
    asked.resolve();
  };
  const handler = closing(fromSdk(server));
  const client = closing(await connect(handler, { roots: [{ uri: "file:///work" }] }));
  await asked.promise;
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  expect(closes).toBe(0);
  expect(textOf(await client.callTool("count"))).toBe("1");
});

it("fromSdk() tells which call a question belongs to, if the server does", async () => {
  const all = deferred();
  let waiting = 0;
  const server = new McpServer({ name: "asks", version: "1.0.0" });
  server.registerTool("ask", {}, async ({ requestId }) => {
    waiting += 1;
    if (waiting === 2) all.resolve();
    await all.promise;
    const form = { message: "Who?", requestedSchema: { type: "object" as const, properties: {} } };
    const { content } = await server.server.elicitInput(form, { relatedRequestId: requestId });
    return text(String(content?.["who"]));
  });
  const handler = closing(fromSdk(server));
  const callAs = async (who: string): Promise<unknown> => {
    const elicit = () => ({ action: "accept" as const, content: { who } });
    const { client } = closing(await connectInMemory(handler, { revision: NEWEST_SESSION.name, elicit }));
    return textOf(await client.callTool("ask"));
  };
  expect(await Promise.all([callAs("Ada"), callAs("Bob")])).toEqual(["Ada", "Bob"]);
});

it("fromSdk() passes on what JSON can express, and fails a call whose result it cannot", async () => {
  const server = new LowLevelServer({ name: "values", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: [{ name: "date", title: undefined, inputSchema: { type: "object" } }],
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [],
    structuredContent: { value: params.name === "date" ? new Date(0) : 1n, none: undefined },
  }));
  const client = closing(await connect(closing(fromSdk(server))));
  expect((await client.listTools()).tools.map((tool) => Object.keys(tool))).toEqual([["name", "inputSchema"]]);
  const { structuredContent } = await client.callTool("date");
  expect(structuredContent).toStrictEqual({ value: "1970-01-01T00:00:00.000Z" });
  await expect(client.callTool("big")).rejects.toThrow(/not a valid message: .*BigInt/);
});

it("fromSdk() gives the server a copy of the arguments", async () => {
  const server = new LowLevelServer({ name: "changes", version: "1.0.0" }, { capabilities: { tools: {} } });
  let kept: { list?: unknown[] } = {};
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    kept = params.arguments ?? {};
    kept.list?.push(2);
    return text("changed");
  });
  const client = closing(await connect(closing(fromSdk(server))));
  const given = { list: [1] };
  await client.callTool("change", given);
  expect([given, kept]).toEqual([{ list: [1] }, { list: [1, 2] }]);
  await expect(client.callTool("change", { big: 1n })).rejects.toThrow("cannot be written as JSON");
});

it.each([
  ["an error that is null", (id: unknown) => ({ jsonrpc: "2.0", id, error: null }), "error must be an object"],
  ["an error that is a string", (id: unknown) => ({ jsonrpc: "2.0", id, error: "boo" }), "error must be an object"],
  ["null", () => null, "A message must be an object"],
  ["a number", () => 5, "A message must be an object"],
  ["a string", () => "x", "A message must be an object"],
  ["nothing", () => undefined, "A message must be an object"],
])("fromSdk() survives a server that sends %s", async (_what, make, problem) => {
  const server = new LowLevelServer({ name: "broken", version: "1.0.0" }, { capabilities: { tools: {} } });
  const reported: string[] = [];
  server.onerror = (error) => reported.push(error.message);
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
    if (params.name === "break") await server.transport?.send(make(requestId) as never);
    return text("done");
  });
  const client = closing(await connect(closing(fromSdk(server))));
  const outcome = await client.callTool("break").then(textOf, (error: Error) => error.message);
  expect(outcome).toMatch(make(1) instanceof Object ? `not a valid message: Invalid field: ${problem}` : "done");
  expect(reported).toEqual([expect.stringContaining(problem)]);
  expect(textOf(await client.callTool("go on"))).toBe("done");
});

it("fromSdk() takes the functions that version 2 of the SDK takes", async () => {
  const factory: McpServerFactory = async ({ era }) => {
    const server = new McpServer2({ name: "era", version: "2.0.0" });
    server.registerTool("era", { inputSchema: z.object({}) }, () => text(era));
    return server;
  };
  const client = closing(await connect(closing(fromSdk(factory))));
  expect(textOf(await client.callTool("era"))).toBe("legacy");
});

it("fromSdk() has no part in a handler of version 2, which `fetch` of an upstream reaches", async () => {
  const handler = createMcpHandler(() => {
    const server = new McpServer2({ name: "greeter", version: "2.0.0" });
    server.registerTool("greet", {}, () => text("hello"));
    return server;
  });
  const send = (url: string | URL | Request, init?: RequestInit) => handler.fetch(new Request(url, init));
  const client = closing(await connect(closing(upstream("http://localhost/mcp", { fetch: send }))));
  expect(textOf(await client.callTool("greet"))).toBe("hello");
  await handler.close();
});

it.each([
  ["a string", "server.js", "not a string"],
  ["an object", { fetch: () => undefined }, "not an object"],
  ["nothing", undefined, "not undefined"],
  ["a server of ours", createServer({ name: "a", version: "1" }), "createServer(), which is a handler already"],
  ["a client", new SdkClient({ name: "a", version: "1" }), "not a client"],
])("fromSdk() refuses %s", (_what, value, problem) => {
  expect(() => fromSdk(value as never)).toThrow(problem);
  expect(() => fromSdk(value as never)).toThrow("a server of the official SDK, with `connect` and `close`");
});

it("fromSdk() refuses options that it does not know, and sharing that one server object does not have", () => {
  expect(() => fromSdk(counter(), { idle: 1 } as never)).toThrow("idle");
  expect(() => fromSdk(counter(), { share: "per-session" })).toThrow("pass a function that makes a server");
});

it("fromSdk() says why a server cannot be connected, to the operator but not to callers", async () => {
  const taken = counter();
  const [, other] = InMemoryTransport.createLinkedPair();
  await taken.connect(other);
  const failing: readonly [() => Closeable, RegExp][] = [
    [() => fromSdk(taken), /did not accept a connection; .*pass a function.*Already connected/s],
    [() => fromSdk(() => taken), /did not accept a connection; the function .* must make a new server each time/],
    [() => fromSdk(() => Promise.reject(new Error("no database"))), /that makes the server failed: no database/],
    [() => fromSdk(() => ({}) as SdkServer), /must return a server of the official SDK.*, not an object/],
  ];
  for (const [create, problem] of failing) {
    await expect(connect(create())).rejects.toThrow(problem);
    await expect(session(create())).rejects.not.toThrow(/database|Already/);
  }
  // It is still connected with the other side.
  expect(taken.isConnected()).toBe(true);
});
