// client.listen, in process and in every revision, and with servers that are slow, silent or gone.

import { afterEach, describe, expect, it, vi } from "vitest";
import { RawPeer } from "../../test/support/dialogue/raw-peer.ts";
import { sampleServer, type SampleServer } from "../../test/support/handlers/sample-server.ts";
import type { Handler } from "../core/handler.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { connectInMemory } from "../testing.ts";
import { memoryPair } from "../transport/memory.ts";
import type { Client } from "./client.ts";
import { connect, type ConnectOptions } from "./connect.ts";
import type { ChangeEvent } from "./subscriptions.ts";

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  vi.useRealTimers();
});

const TOOLS = { method: "notifications/tools/list_changed" } as const;
const PROMPTS = { method: "notifications/prompts/list_changed" } as const;
const updated = (uri: string): ChangeEvent => ({ method: "notifications/resources/updated", params: { uri } });
const methodsOf = (events: readonly ChangeEvent[]): string[] => events.map(({ method }) => method);

describe.each([undefined, ...REVISIONS.map(({ name }) => name)])("a subscription in %s", (revision) => {
  const join = async (there: SampleServer, options: ConnectOptions = {}): Promise<Client> => {
    if (revision === undefined) {
      const client = await connect(there.handler, options);
      closers.push(() => client.close());
      return client;
    }
    const { client, close } = await connectInMemory(there.handler, { ...options, revision });
    closers.push(close);
    // The connection's own subscription is open once the server has received `initialized`.
    await client.ping();
    return client;
  };

  it("a subscription delivers what was requested, and nothing else", async () => {
    const there = sampleServer();
    const client = await join(there);
    const events: ChangeEvent[] = [];
    const all: string[] = [];
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: ["test://a"] }, (event) =>
      events.push(event),
    );
    expect(subscription.granted).toEqual({ toolsListChanged: true, resourceSubscriptions: ["test://a"] });
    const lists = await client.listen({ promptsListChanged: true }, ({ method }) => all.push(method));
    there.notifySubscribers(TOOLS);
    there.notifySubscribers(updated("test://a"));
    await client.ping();
    expect(methodsOf(events)).toEqual([TOOLS.method, "notifications/resources/updated"]);
    expect(events[1]?.params).toEqual({ uri: "test://a" });
    there.notifySubscribers(PROMPTS);
    await client.ping();
    expect(all).toContain(PROMPTS.method);
    await lists.close();
    await subscription.close();
    await subscription.ended;
    there.notifySubscribers(TOOLS);
    await client.ping();
    expect(events.filter(({ method }) => method === TOOLS.method)).toHaveLength(1);
  });

  it("a subscription can be iterated, and ends with the loop", async () => {
    const there = sampleServer();
    const client = await join(there);
    const subscription = await client.listen({ toolsListChanged: true });
    there.notifySubscribers(TOOLS);
    there.notifySubscribers(TOOLS);
    const seen: string[] = [];
    for await (const { method } of subscription) {
      seen.push(method);
      if (seen.length === 2) there.notifySubscribers(TOOLS);
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([TOOLS.method, TOOLS.method, TOOLS.method]);
    await subscription.ended;
    expect(subscription.dropped).toBe(0);
  });

  it("a subscription ends with its signal and with the client", async () => {
    const there = sampleServer();
    const client = await join(there);
    const stop = new AbortController();
    const one = await client.listen({ toolsListChanged: true }, undefined, { signal: stop.signal });
    const other = await client.listen({ toolsListChanged: true });
    stop.abort();
    await one.ended;
    await expect(client.listen({}, undefined, { signal: stop.signal })).rejects.toMatchObject({ kind: "cancelled" });
    const walked = (async () => {
      for await (const event of other) expect(event.method).toBe(TOOLS.method);
    })();
    await client.close();
    await other.ended;
    await walked;
  });
});

/** A client of a server that the test plays by hand. */
async function byHand(revision: string): Promise<{ client: Client; peer: RawPeer }> {
  const [ours, theirs] = memoryPair();
  const peer = await new RawPeer(theirs).start();
  const connecting = connect(ours, { revision });
  const { id } = await peer.until(({ method }) => method === "server/discover" || method === "initialize");
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
  peer.send({
    id,
    result: { protocolVersion: revision, supportedVersions: [revision], capabilities, resultType: "complete" },
  });
  const client = await connecting;
  closers.push(
    () => client.close(),
    () => peer.close(),
  );
  return { client, peer };
}

it("a server that is slow, silent or gone must acknowledge within the timeout", async () => {
  vi.useFakeTimers();
  const { client, peer } = await byHand(NEWEST.name);
  const failed = expect(client.listen({ toolsListChanged: true }, undefined, { timeoutMs: 500 })).rejects.toMatchObject(
    { kind: "timeout" },
  );
  const { id } = await peer.until(({ method }) => method === "subscriptions/listen");
  await vi.advanceTimersByTimeAsync(500);
  await failed;
  expect(await peer.until(({ method }) => method === "notifications/cancelled")).toMatchObject({
    params: { requestId: id },
  });
  // The connection has one timer for all its requests.
  expect(vi.getTimerCount()).toBeLessThanOrEqual(1);
  await client.close();
  expect(vi.getTimerCount()).toBe(0);
});

it("a server that is slow, silent or gone does not delay an abort before a session has subscribed", async () => {
  const { client, peer } = await byHand(NEWEST_SESSION.name);
  const stop = new AbortController();
  const listening = client.listen({ resourceSubscriptions: ["test://a"] }, undefined, { signal: stop.signal });
  const failed = expect(listening).rejects.toMatchObject({ kind: "cancelled" });
  await peer.until(({ method }) => method === "resources/subscribe");
  stop.abort();
  await failed;
});

it("a server that is slow, silent or gone may refuse with its own error", async () => {
  const { client, peer } = await byHand(NEWEST.name);
  const failed = expect(client.listen({ toolsListChanged: true })).rejects.toMatchObject({
    name: "McpError",
    code: -32601,
  });
  const { id } = await peer.until(({ method }) => method === "subscriptions/listen");
  peer.send({ id, error: { code: -32601, message: "Method not found" } });
  await failed;
});

it.each(["result", "cancelled"])(
  "a server that is slow, silent or gone may end the subscription with a %s message",
  async (how) => {
    const { client, peer } = await byHand(NEWEST.name);
    const listening = client.listen({ toolsListChanged: true });
    const { id } = await peer.until(({ method }) => method === "subscriptions/listen");
    const _meta = { "io.modelcontextprotocol/subscriptionId": id };
    peer.send({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { toolsListChanged: true }, _meta },
    });
    const subscription = await listening;
    if (how === "result") peer.send({ id, result: { resultType: "complete", _meta } });
    else peer.send({ method: "notifications/cancelled", params: { requestId: id } });
    await subscription.ended;
  },
);

it("a server that is slow, silent or gone breaks the subscription when it disconnects", async () => {
  const { client, peer } = await byHand(NEWEST.name);
  const listening = client.listen({ toolsListChanged: true });
  const { id } = await peer.until(({ method }) => method === "subscriptions/listen");
  const _meta = { "io.modelcontextprotocol/subscriptionId": id };
  peer.send({
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: { toolsListChanged: true }, _meta },
  });
  const subscription = await listening;
  peer.send({ ...TOOLS, params: { _meta } });
  const seen: string[] = [];
  const walk = (async () => {
    for await (const { method } of subscription) seen.push(method);
  })();
  const failed = expect(walk).rejects.toMatchObject({ kind: "closed" });
  await peer.close();
  await failed;
  await expect(subscription.ended).rejects.toMatchObject({ kind: "closed" });
  expect(seen).toEqual([TOOLS.method]);
});

it("buffered events are limited to the newest ones", async () => {
  const { handler } = sampleServer();
  let send: (uri: string) => void = () => undefined;
  const busy: Handler = (request, context) => {
    if (request.method === "subscriptions/listen") send = (uri) => context.notify(updated(uri));
    return handler(request, context);
  };
  const client = await connect(busy);
  closers.push(() => client.close());
  const subscription = await client.listen({ resourceSubscriptions: ["x://"] });
  for (let count = 1; count <= 1_005; count += 1) send(`x://${count}`);
  expect(subscription.dropped).toBe(5);
  const first = await subscription[Symbol.asyncIterator]().next();
  expect(first.value).toMatchObject({ params: { uri: "x://6" } });
});

it("log messages of a session outside any call are filtered by the present level", async () => {
  const logs: unknown[] = [];
  const there = sampleServer();
  const { client, close } = await connectInMemory(there.handler, {
    revision: NEWEST_SESSION.name,
    logLevel: "error",
    onLog: ({ data }) => logs.push(data),
  });
  closers.push(close);
  await client.listen({ toolsListChanged: true });
  const log = (data: string): void =>
    there.notifySubscribers({ method: "notifications/message", params: { level: "debug", data } });
  log("before");
  await client.setLogLevel("debug");
  log("then");
  await client.ping();
  expect(logs).toEqual(["then"]);
});

it("log messages of a session outside any call are delivered once, however many subscriptions there are", async () => {
  const logs: unknown[] = [];
  const [ours, theirs] = memoryPair();
  const peer = await new RawPeer(theirs).start();
  const connecting = connect(ours, { revision: NEWEST_SESSION.name, onLog: ({ data }) => logs.push(data) });
  const { id } = await peer.until(({ method }) => method === "initialize");
  peer.send({ id, result: { protocolVersion: NEWEST_SESSION.name, capabilities: { tools: { listChanged: true } } } });
  const client = await connecting;
  closers.push(
    () => client.close(),
    () => peer.close(),
  );
  const log = (data: string): void => peer.send({ method: "notifications/message", params: { level: "info", data } });
  const pong = async (): Promise<void> => {
    const pinged = client.ping();
    const { id } = await peer.until(({ method, id }) => method === "ping" && !answered.has(id));
    answered.add(id);
    peer.send({ id, result: {} });
    await pinged;
  };
  const answered = new Set<unknown>();
  log("before");
  const one = await client.listen({ toolsListChanged: true });
  await client.listen({ toolsListChanged: true });
  log("both");
  await pong();
  await one.close();
  log("one");
  await pong();
  expect(logs).toEqual(["before", "both", "one"]);
});
