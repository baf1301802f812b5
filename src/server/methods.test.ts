// Methods, notifications and capabilities that the specification does not define: in memory, and over a connection of
// every revision, through our own client.

import { afterEach, describe, expect, expectTypeOf, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { z } from "zod";
import type { Notification, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { connect } from "../client/connect.ts";
import { connectInMemory, type ConnectInMemoryOptions, type InMemoryConnection } from "../testing.ts";
import { createServer, type Server } from "./server.ts";

const INFO = { name: "vendor", version: "1.0.0" };
const TICK = "notifications/acme/tick";

const open: InMemoryConnection[] = [];
afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close();
});

async function connectTo(server: Server, options: ConnectInMemoryOptions): Promise<InMemoryConnection> {
  const connection = await connectInMemory(server, options);
  open.push(connection);
  return connection;
}

describe.each(REVISIONS.map(({ name, style }) => [name, style] as const))("in revision %s", (revision, style) => {
  it("methods of one's own: a method gets its params and returns its result as it is", async () => {
    const result = { found: ["a"], ttlMs: 5, cacheScope: "mine", nested: { resultType: "x" } };
    const handler = vi.fn(() => result);
    const server = createServer(INFO).method("acme/search", handler);
    const { client } = await connectTo(server, { revision });
    expect(await client.request("acme/search", { text: "a", _meta: { "acme/trace": "1" } })).toEqual(
      style === "session" ? result : { ...result, resultType: "complete" },
    );
    expect(handler.mock.calls[0]?.slice(0, 1)).toEqual([{ text: "a" }]);
    await expect(client.request("acme/other")).rejects.toMatchObject({ code: -32601 });
  });

  it("methods of one's own: a schema checks the params", async () => {
    const server = createServer(INFO).method(
      "acme/double",
      { input: z.object({ n: z.coerce.number() }) },
      ({ n }, { caller }) => {
        expectTypeOf(n).toEqualTypeOf<number>();
        return { double: 2 * n, style: caller.style };
      },
    );
    const { client } = await connectTo(server, { revision });
    expect(await client.request("acme/double", { n: "4" })).toMatchObject({ double: 8, style });
    await expect(client.request("acme/double", { n: "x" })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^Invalid params for acme\/double: n: /),
    });
  });

  it("methods of one's own: notifications pass in both directions, within a call and outside", async () => {
    const seen: Notification[] = [];
    const opened = vi.fn();
    const server = createServer(INFO)
      .tool("tools", {}, () => "")
      .onNotification("notifications/acme/opened", opened)
      .method("acme/work", (_params, context) => {
        context.notify({ method: TICK, params: { within: true } });
      });
    const { client } = await connectTo(server, { revision, onNotification: (one) => seen.push(one) });
    await client.request("acme/work");
    expect(seen).toEqual([{ method: TICK, params: { within: true } }]);
    await client.listen({ toolsListChanged: true });
    server.notify({ method: TICK, params: { count: 1 } });
    await eventually(() => expect(seen.slice(1)).toEqual([{ method: TICK, params: { count: 1 } }]));
    await client.notify("notifications/acme/opened", { file: "a" });
    await client.notify("notifications/acme/unknown");
    await client.ping();
    expect(opened.mock.calls.map(([params, { caller }]) => [params, caller.info.name])).toEqual([
      [{ file: "a" }, "catenary"],
    ]);
  });

  it("methods of one's own: capabilities are declared in both directions", async () => {
    const capabilities = { experimental: { a: { b: 1 } }, extensions: { "com.example/ui": { c: [2] } } };
    let declared: unknown;
    const server = createServer({ ...INFO, capabilities }).method("acme/look", (_params, { caller }) => {
      declared = caller.capabilities;
    });
    const { client } = await connectTo(server, { revision, capabilities });
    expect(client.capabilities).toMatchObject(capabilities);
    await client.request("acme/look");
    expect(declared).toEqual(capabilities);
  });

  it("methods of one's own: a request to the client passes in a session, and is refused otherwise", async () => {
    const server = createServer(INFO).tool("pick", {}, async (_args, { ask }) => {
      const { picked } = await ask({ method: "acme/pick", params: { of: [1, 2] } });
      return String(picked);
    });
    const onRequest = vi.fn(async ({ params }: { params: Result }) => ({ picked: (params["of"] as number[])[0] }));
    const { client } = await connectTo(server, { revision, onRequest });
    const call = client.callTool("pick");
    if (style === "session") expect((await call).content).toMatchObject([{ text: "1" }]);
    else
      await expect(call).rejects.toMatchObject({ code: -32601, message: expect.stringContaining("within a session") });
  });
});

it("a client without onRequest does not know the request", async () => {
  const server = createServer(INFO).method("acme/ask", (_params, { ask }) => ask({ method: "acme/pick", params: {} }));
  const { client } = await connectTo(server, { revision: NEWEST_SESSION.name });
  await expect(client.request("acme/ask")).rejects.toMatchObject({ code: -32601 });
});

it("a session with a server that has no lists still gets its notifications, once", async () => {
  const server = createServer(INFO).method("acme/none", () => undefined);
  const { client, received } = await connectTo(server, { revision: NEWEST_SESSION.name });
  await client.ping();
  await client.request("acme/none");
  server.notify({ method: TICK });
  await client.ping();
  expect(received.filter((message) => "method" in message)).toEqual([{ jsonrpc: "2.0", method: TICK }]);
});

it("a client that notifies without end can have a thousand notifications that wait or run, and the rest is dropped", async () => {
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  const opened = vi.fn(() => gate);
  const server = createServer(INFO).onNotification("acme/opened", opened);
  const { client } = await connectTo(server, { revision: NEWEST_SESSION.name });
  for (let count = 0; count < 3_000; count += 1) await client.notify("acme/opened");
  await client.ping();
  expect(opened).toHaveBeenCalledTimes(256);
  release();
  await eventually(() => expect(opened).toHaveBeenCalledTimes(1_000));
  await client.ping();
  await client.notify("acme/opened");
  await eventually(() => expect(opened).toHaveBeenCalledTimes(1_001));
});

it("in memory, methods and notifications need no connection", async () => {
  const opened = vi.fn();
  const server = createServer(INFO)
    .method("acme/search", () => ({ a: 1 }))
    .onNotification("acme/opened", opened);
  const client = await connect(server);
  expect(await client.request("acme/search")).toEqual({ a: 1 });
  await client.notify("acme/opened", { a: 1 });
  await client.notify("acme/closed");
  expect(opened).toHaveBeenCalledTimes(1);
  await client.close();
});

const server = createServer(INFO);

it.each(["tools/call", "ping", "initialize", "roots/list", "notifications/progress", "shutdown"])(
  "mistakes: the name %s is refused",
  (name) => {
    const problem = "the name is a method of the protocol; choose another";
    expect(() => server.method(name, () => ({}))).toThrow(`Method ${name}: ${problem}`);
    expect(() => server.onNotification(name, () => ({}))).toThrow(`Notification ${name}: ${problem}`);
    expect(() => server.notify({ method: name })).toThrow(`${name} is a method of the protocol`);
  },
);

it("mistakes wrong options and handlers are named", () => {
  expect(() => server.method("a/b", { inputs: {} } as never, () => ({}))).toThrow("did you mean `input`?");
  expect(() => server.method("a/b", {} as never)).toThrow("Method a/b: the handler is missing");
  expect(() => server.onNotification("a/b", undefined as never)).toThrow("Notification a/b: the handler is missing");
  expect(() => createServer({ ...INFO, capabilities: { tools: {} } as never })).toThrow("capabilities.tools");
  expect(() => createServer({ ...INFO, capabilities: { experimental: 1 } as never })).toThrow(
    "createServer(): `capabilities.experimental` must be an object",
  );
});

it("mistakes: a client cannot send a notification of the protocol itself", async () => {
  const client = await connect(createServer(INFO));
  await expect(client.notify("notifications/initialized")).rejects.toThrow(TypeError);
  await client.close();
});

it("mistakes: a handler's error and a result that is not an object are errors of the request", async () => {
  const failing = createServer(INFO)
    .method("acme/throw", () => {
      throw new Error("broken");
    })
    .method("acme/refuse", () => {
      throw new McpError(-31_000, "no", { a: 1 });
    })
    .method("acme/text", () => "text" as never);
  const { client } = await connectTo(failing, { revision: NEWEST.name });
  await expect(client.request("acme/throw")).rejects.toMatchObject({ code: -32603, message: "broken" });
  await expect(client.request("acme/refuse")).rejects.toMatchObject({ code: -31_000, message: "no", data: { a: 1 } });
  await expect(client.request("acme/text")).rejects.toMatchObject({
    code: -32603,
    message: "The result of acme/text must be an object",
  });
});
