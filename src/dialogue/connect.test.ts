// Connecting to a server: how its style is found, and what a server can and cannot do to its client.

import { afterEach, expect, it } from "vitest";
import { RawPeer } from "../../test/support/dialogue/raw-peer.ts";
import { deferred } from "../core/async.ts";
import type { Context, Notification, Request } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { openConnection, type ServerConnection, type ServerConnectionOptions } from "./connect.ts";

const DISCOVERED = { resultType: "complete", capabilities: { tools: {} }, ttlMs: 0, cacheScope: "private" };
const found = (versions: readonly string[] = [NEWEST.name]): object => ({ ...DISCOVERED, supportedVersions: versions });
const initialized = {
  protocolVersion: NEWEST_SESSION.name,
  capabilities: { tools: {} },
  serverInfo: { name: "e", version: "1" },
};

const opened: ServerConnection[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function context(more: Partial<Context> = {}): Context {
  return {
    revision: NEWEST.name,
    caller: fakeCaller(),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: async ({ method }: Request) => {
      throw McpError.of("missing_capability", `cannot answer ${method}`);
    },
    ...more,
  };
}

async function connectTo(
  options: Partial<ServerConnectionOptions> = {},
): Promise<{ server: RawPeer; connecting: Promise<ServerConnection> }> {
  const [ours, theirs] = memoryPair();
  const server = await new RawPeer(theirs).start();
  const connecting = openConnection(() => ours, {
    info: { name: "us", version: "1" },
    capabilities: {},
    defaultContext: context(),
    ...options,
  });
  connecting.then((one) => opened.push(one)).catch(() => undefined);
  return { server, connecting };
}

const asked =
  (method: string) =>
  (message: { readonly [key: string]: unknown }): boolean =>
    message["method"] === method;

async function statelessServer(): Promise<{ server: RawPeer; handler: ServerConnection["handler"] }> {
  const { server, connecting } = await connectTo();
  const { id } = await server.until(asked("server/discover"));
  server.send({ id, result: found() });
  return { server, handler: (await connecting).handler };
}

async function sessionServer(): Promise<{ server: RawPeer; handler: ServerConnection["handler"] }> {
  const { server, connecting } = await connectTo({ revision: NEWEST_SESSION.name });
  const { id } = await server.until(asked("initialize"));
  server.send({ id, result: initialized });
  return { server, handler: (await connecting).handler };
}

const CALL: Request = { method: "tools/call", params: { name: "x" } };

it.each(["server/discover", "initialize"])(
  "finding the style of a server opens a session if the server answers initialize and, late, the probe; first %s",
  async (first) => {
    const { server, connecting } = await connectTo({ probeTimeoutMs: 10 });
    const probe = await server.until(asked("server/discover"));
    const handshake = await server.until(asked("initialize"));
    const answers = [
      { id: probe["id"], result: found() },
      { id: handshake["id"], result: initialized },
    ];
    server.send(...(first === "initialize" ? answers.toReversed() : answers));
    const { revision, handler } = await connecting;
    expect(revision).toBe(NEWEST_SESSION);
    const listing = handler({ method: "tools/list", params: {} }, context());
    server.send({ id: (await server.until(asked("tools/list")))["id"], result: { tools: [] } });
    expect(await listing).toMatchObject({ tools: [] });
  },
);

it.each([
  ["refuses initialize", { error: { code: -32601, message: "Method not found" } }],
  ["does not answer initialize", undefined],
])("finding the style of a server takes a late answer to the probe if the server %s", async (_, answer) => {
  const { server, connecting } = await connectTo({ probeTimeoutMs: 10 });
  const probe = await server.until(asked("server/discover"));
  const handshake = await server.until(asked("initialize"));
  if (answer !== undefined) server.send({ id: handshake["id"], ...answer });
  server.send({ id: probe["id"], result: found() });
  expect((await connecting).revision).toBe(NEWEST);
});

it("finding the style of a server does not take a program for silent before it has written something", async () => {
  const output = deferred();
  const { server, connecting } = await connectTo({ probeTimeoutMs: 0, firstOutput: () => output.promise });
  const probe = await server.until(asked("server/discover"));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(server.received.filter(asked("initialize"))).toEqual([]);
  server.send({ id: probe["id"], result: found() });
  expect((await connecting).revision).toBe(NEWEST);
});

it("finding the style of a server sends initialize if a program has started and does not answer the probe", async () => {
  const output = deferred();
  const { server, connecting } = await connectTo({ probeTimeoutMs: 10, firstOutput: () => output.promise });
  await server.until(asked("server/discover"));
  output.resolve();
  server.send({ id: (await server.until(asked("initialize")))["id"], result: initialized });
  expect((await connecting).revision).toBe(NEWEST_SESSION);
});

it("finding the style of a server takes the answer to initialize if the probe is never answered", async () => {
  const { server, connecting } = await connectTo({ probeTimeoutMs: 10 });
  server.send({ id: (await server.until(asked("initialize")))["id"], result: initialized });
  expect((await connecting).revision).toBe(NEWEST_SESSION);
});

it("finding the style of a server fails if the server names only unknown revisions", async () => {
  const { server, connecting } = await connectTo();
  const failed = expect(connecting).rejects.toMatchObject({ kind: "protocol" });
  server.send({ id: (await server.until(asked("server/discover")))["id"], result: found(["2099-01-01"]) });
  await failed;
});

it("finding the style of a server survives revision names that are not strings, also in a late answer", async () => {
  const { server, connecting } = await connectTo({ probeTimeoutMs: 5 });
  const probe = await server.until(asked("server/discover"));
  const handshake = await server.until(asked("initialize"));
  server.send({ id: probe["id"], result: { ...DISCOVERED, supportedVersions: [{ toString: 5 }, null, 7] } });
  server.send({ id: handshake["id"], result: initialized });
  expect((await connecting).revision).toBe(NEWEST_SESSION);
});

it("finding the style of a server answers pings during the probe and refuses other requests", async () => {
  const { server, connecting } = await connectTo();
  expect(await server.request({ id: "p", method: "ping" })).toMatchObject({ result: {} });
  expect(await server.request({ id: "r", method: "roots/list" })).toMatchObject({ error: { code: -32601 } });
  server.send({ id: (await server.until(asked("server/discover")))["id"], result: found() });
  await connecting;
});

it("finding the style of a server says how long it waited, and which option to change", async () => {
  const { connecting } = await connectTo({ probeTimeoutMs: 5, startTimeoutMs: 20 });
  await expect(connecting).rejects.toMatchObject({
    kind: "timeout",
    message: expect.stringContaining("startTimeoutMs") as string,
  });
});

it("a stateless server can end a call only by answering it", async () => {
  const { server, handler } = await statelessServer();
  const answer = handler(CALL, context());
  const { id } = await server.until(asked("tools/call"));
  server.send(
    { method: "notifications/cancelled", params: { requestId: id } },
    { id, result: { content: [], resultType: "complete" } },
  );
  expect(await answer).toMatchObject({ content: [] });
});

it("a stateless server can end a subscription", async () => {
  const { server, handler } = await statelessServer();
  const listen = handler({ method: "subscriptions/listen", params: { notifications: {} } }, context());
  const { id } = await server.until(asked("subscriptions/listen"));
  server.send({ method: "notifications/cancelled", params: { requestId: id } });
  expect(await listen).toMatchObject({ resultType: "complete" });
});

it("a stateless server cannot answer with a result type that the caller did not declare or the request does not allow", async () => {
  const { server, handler } = await statelessServer();
  for (const [request, resultType] of [
    [CALL, "task"],
    [CALL, "unheard"],
    [{ method: "tools/list", params: {} }, "input_required"],
  ] as const) {
    server.received.length = 0;
    const refused = expect(handler(request, context())).rejects.toMatchObject({ kind: "protocol" });
    server.send({ id: (await server.until(asked(request.method)))["id"], result: { resultType } });
    await refused;
  }
});

it("a stateless server reaches only the subscription that a notification is tagged for", async () => {
  const { server, handler } = await statelessServer();
  const received: Notification[][] = [[], []];
  for (const events of received) {
    void handler(
      { method: "subscriptions/listen", params: { notifications: {} } },
      context({ notify: (event) => events.push(event) }),
    ).catch(() => undefined);
  }
  await expect.poll(() => server.received.filter(asked("subscriptions/listen")).length).toBe(2);
  const [, second] = server.received.filter(asked("subscriptions/listen"));
  const _meta = { "io.modelcontextprotocol/subscriptionId": second!["id"] };
  server.send({ method: "notifications/tools/list_changed", params: { _meta } });
  server.send({
    method: "notifications/tools/list_changed",
    params: { _meta: { ..._meta, "io.modelcontextprotocol/subscriptionId": 999 } },
  });
  await expect.poll(() => received[1]!.length).toBe(1);
  expect(received).toEqual([[], [{ method: "notifications/tools/list_changed", params: {} }]]);
});

it("a session-style server gets the error codes of the specification for what the client cannot answer", async () => {
  const { server, handler } = await sessionServer();
  const answer = handler(CALL, context());
  const { id } = await server.until(asked("tools/call"));
  const elicit = { message: "m", mode: "url", url: "https://example.com", elicitationId: "1" };
  expect(await server.request({ id: "r", method: "roots/list" })).toMatchObject({ error: { code: -32601 } });
  expect(await server.request({ id: "e", method: "elicitation/create", params: elicit })).toMatchObject({
    error: { code: -32602 },
  });
  expect(await server.request({ id: "u", method: "un/known" })).toMatchObject({ error: { code: -32601 } });
  server.send({ id, result: { content: [] } });
  expect(await answer).toMatchObject({ resultType: "complete", content: [] });
});

it("a session-style server may cancel its requests", async () => {
  const { server, handler } = await sessionServer();
  let signal: AbortSignal | undefined;
  const call = handler(
    CALL,
    context({
      ask: async (_question, options) => {
        ({ signal } = options ?? {});
        return new Promise(() => undefined);
      },
    }),
  );
  const { id } = await server.until(asked("tools/call"));
  server.send({ id: 7.5, method: "roots/list" });
  await expect.poll(() => signal !== undefined).toBe(true);
  server.send({ method: "notifications/cancelled", params: { requestId: 7.5, reason: "no longer" } });
  await expect.poll(() => signal!.aborted).toBe(true);
  server.send({ id, result: { content: [] } });
  await call;
  expect(server.received.some((message) => message["id"] === 7.5)).toBe(false);
});
