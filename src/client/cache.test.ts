// The cache by itself and in a client: what is cached, for how long, and what invalidates it.

import { afterEach, expect, it, vi } from "vitest";
import { sampleServer } from "../../test/support/handlers/sample-server.ts";
import type { Params, Result } from "../core/handler.ts";
import { connectInMemory } from "../testing.ts";
import { Cache } from "../protocol/result-cache.ts";
import { connect } from "./connect.ts";

const list = (params: Params = {}): { method: string; params: Params } => ({ method: "tools/list", params });
const read = (uri: string): { method: string; params: Params } => ({ method: "resources/read", params: { uri } });
const fresh = (ttlMs: unknown, more: Result = {}): Result => ({
  resultType: "complete",
  ttlMs,
  cacheScope: "private",
  ...more,
});

it("Cache keeps a result until it is stale", () => {
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  const cache = new Cache();
  const result = fresh(100);
  cache.slot(list())?.store(result);
  clock.mockReturnValue(99);
  expect(cache.slot(list())?.result).toBe(result);
  expect(cache.slot(list({ cursor: "" }))?.result).toBeUndefined();
  clock.mockReturnValue(100);
  expect(cache.slot(list())?.result).toBeUndefined();
  expect(cache.size).toBe(0);
});

it("Cache stores only results that allow it", () => {
  const cache = new Cache();
  for (const ttlMs of [0, -1, Number.NaN, undefined, "100"]) cache.slot(list())?.store(fresh(ttlMs));
  cache.slot(list())?.store(fresh(100, { resultType: "input_required" }));
  expect(cache.size).toBe(0);
  expect(cache.slot({ method: "tools/call", params: {} })).toBeUndefined();
  expect(cache.slot({ method: "resources/read", params: { uri: "a:b", inputResponses: {} } })).toBeUndefined();
  expect(cache.slot({ method: "resources/read", params: { uri: "a:b", requestState: "s" } })).toBeUndefined();
});

it("Cache drops only what a change concerns", () => {
  const cache = new Cache();
  const cached = (): string[] =>
    [list(), read("x://a"), read("x://a/b"), read("x://c"), { method: "resources/list", params: {} }]
      .filter((request) => cache.slot(request)?.result !== undefined)
      .map(({ method, params }) => (params["uri"] as string | undefined) ?? method);
  for (const request of [
    list(),
    read("x://a"),
    read("x://a/b"),
    read("x://c"),
    { method: "resources/list", params: {} },
  ]) {
    cache.slot(request)?.store(fresh(1_000));
  }
  cache.invalidate({ method: "notifications/message", params: { level: "info" } });
  expect(cached()).toEqual(["tools/list", "x://a", "x://a/b", "x://c", "resources/list"]);
  cache.invalidate({ method: "notifications/tools/list_changed" });
  expect(cached()).toEqual(["x://a", "x://a/b", "x://c", "resources/list"]);
  cache.invalidate({ method: "notifications/resources/updated", params: { uri: "x://a" } });
  expect(cached()).toEqual(["x://c", "resources/list"]);
  cache.invalidate({ method: "notifications/resources/list_changed" });
  expect(cached()).toEqual(["x://c"]);
});

it("Cache does not store a result that was requested before a change", () => {
  const cache = new Cache();
  const slot = cache.slot(list());
  cache.invalidate({ method: "notifications/tools/list_changed" });
  slot?.store(fresh(1_000));
  expect(cache.size).toBe(0);
});

it("Cache drops the least recently used result", () => {
  const cache = new Cache({ maxEntries: 2 });
  for (const uri of ["x://a", "x://b"]) cache.slot(read(uri))?.store(fresh(1_000));
  expect(cache.slot(read("x://a"))?.result).toBeDefined();
  cache.slot(read("x://c"))?.store(fresh(1_000));
  expect(["x://a", "x://b", "x://c"].filter((uri) => cache.slot(read(uri))?.result !== undefined)).toEqual([
    "x://a",
    "x://c",
  ]);
});

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

it("the cache of a client saves requests until the server reports a change", async () => {
  const there = sampleServer();
  there.ttlMs = 60_000;
  const { client, close } = await connectInMemory(there.handler);
  closers.push(close);
  const requested = (): string[] => there.requests.splice(0).map(({ method }) => method);
  requested();
  const first = await client.readResource("test://a");
  expect(await client.readResource("test://a")).toBe(first);
  await client.request("server/discover");
  expect(requested()).toEqual(["resources/read"]);
  await client.listTools();
  await client.listTools();
  expect(requested()).toEqual(["tools/list", "tools/list", "tools/list"]);

  await client.listen({ toolsListChanged: true, resourceSubscriptions: ["test://a"] });
  requested();
  there.notifySubscribers({ method: "notifications/resources/updated", params: { uri: "test://a" } });
  await client.ping();
  await client.listTools();
  await client.readResource("test://a");
  expect(requested()).toEqual(["server/discover", "resources/read"]);
  there.notifySubscribers({ method: "notifications/tools/list_changed" });
  await client.ping();
  await client.listTools();
  expect(requested()).toEqual(["server/discover", "tools/list", "tools/list", "tools/list"]);
});

it("the cache of a client can be switched off, and distinguishes requests by their `meta`", async () => {
  const there = sampleServer();
  there.ttlMs = 60_000;
  const off = await connect(there.handler, { cache: false });
  const on = await connect(there.handler);
  closers.push(
    () => off.close(),
    () => on.close(),
  );
  const before = there.requests.length;
  await off.readResource("test://a");
  await off.readResource("test://a");
  expect(there.requests.length - before).toBe(2);
  await on.readResource("test://a");
  await on.readResource("test://a", { meta: { tenant: 1 } });
  await on.readResource("test://a", { meta: { tenant: 2 } });
  await on.readResource("test://a", { meta: { tenant: 2 }, onProgress: () => undefined });
  expect(there.requests.length - before).toBe(5);
  await on.close();
  await expect(on.readResource("test://a")).rejects.toMatchObject({ kind: "closed" });
});

it("the cache of a client does not store results that depend on answers", async () => {
  let reads = 0;
  const { handler } = sampleServer();
  const asking: typeof handler = async (request, context) => {
    if (request.method !== "resources/read") return handler(request, context);
    reads += 1;
    if (request.params["inputResponses"] === undefined) {
      return { resultType: "input_required", inputRequests: { who: { method: "roots/list" } } };
    }
    return fresh(60_000, { contents: [] });
  };
  const client = await connect(asking, { roots: [] });
  closers.push(() => client.close());
  await client.readResource("test://a");
  await client.readResource("test://a");
  expect(reads).toBe(4);
});

it("the identity of a request separates the results of different identities", () => {
  const cache = new Cache();
  const request = { method: "resources/read", params: { uri: "a://b" } };
  const result = { resultType: "complete", contents: [], ttlMs: 60_000, cacheScope: "private" };
  cache.slot(request, "one")?.store(result);
  expect(cache.slot(request, "one")?.result).toBe(result);
  expect(cache.slot(request, "other")?.result).toBeUndefined();
});
