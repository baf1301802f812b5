// What is used again, for how long, and what drops it: the cache by itself, and a client's.

import { afterEach, describe, expect, it } from "vitest";
import { stage } from "../../test/support/stage.ts";
import type { Params, Result } from "../core/handler.ts";
import { connectAt } from "../testing.ts";
import { Cache } from "./cache.ts";
import { connect } from "./connect.ts";

const list = (params: Params = {}): { method: string; params: Params } => ({ method: "tools/list", params });
const read = (uri: string): { method: string; params: Params } => ({ method: "resources/read", params: { uri } });
const fresh = (ttlMs: unknown, more: Result = {}): Result => ({
  resultType: "complete",
  ttlMs,
  cacheScope: "private",
  ...more,
});

describe("the cache", () => {
  it("keeps a result until it is stale", () => {
    let now = 0;
    const cache = new Cache({ now: () => now });
    const result = fresh(100);
    cache.slot(list())?.keep(result);
    now = 99;
    expect(cache.slot(list())?.kept).toBe(result);
    expect(cache.slot(list({ cursor: "" }))?.kept).toBeUndefined();
    now = 100;
    expect(cache.slot(list())?.kept).toBeUndefined();
    expect(cache.size).toBe(0);
  });

  it("keeps only what may be kept", () => {
    const cache = new Cache();
    for (const ttlMs of [0, -1, Number.NaN, undefined, "100"]) cache.slot(list())?.keep(fresh(ttlMs));
    cache.slot(list())?.keep(fresh(100, { resultType: "input_required" }));
    expect(cache.size).toBe(0);
    expect(cache.slot({ method: "tools/call", params: {} })).toBeUndefined();
    expect(cache.slot({ method: "resources/read", params: { uri: "a:b", inputResponses: {} } })).toBeUndefined();
    expect(cache.slot({ method: "resources/read", params: { uri: "a:b", requestState: "s" } })).toBeUndefined();
  });

  it("drops what a change touches, and no more", () => {
    const cache = new Cache();
    const kept = (): string[] =>
      [list(), read("x://a"), read("x://a/b"), read("x://c"), { method: "resources/list", params: {} }]
        .filter((request) => cache.slot(request)?.kept !== undefined)
        .map(({ method, params }) => (params["uri"] as string | undefined) ?? method);
    for (const request of [
      list(),
      read("x://a"),
      read("x://a/b"),
      read("x://c"),
      { method: "resources/list", params: {} },
    ]) {
      cache.slot(request)?.keep(fresh(1_000));
    }
    cache.changed({ method: "notifications/message", params: { level: "info" } });
    expect(kept()).toEqual(["tools/list", "x://a", "x://a/b", "x://c", "resources/list"]);
    cache.changed({ method: "notifications/tools/list_changed" });
    expect(kept()).toEqual(["x://a", "x://a/b", "x://c", "resources/list"]);
    cache.changed({ method: "notifications/resources/updated", params: { uri: "x://a" } });
    expect(kept()).toEqual(["x://c", "resources/list"]);
    cache.changed({ method: "notifications/resources/list_changed" });
    expect(kept()).toEqual(["x://c"]);
  });

  it("does not keep what was on its way when the change came", () => {
    const cache = new Cache();
    const slot = cache.slot(list());
    cache.changed({ method: "notifications/tools/list_changed" });
    slot?.keep(fresh(1_000));
    expect(cache.size).toBe(0);
  });

  it("lets the least recently used go", () => {
    const cache = new Cache({ maxEntries: 2 });
    for (const uri of ["x://a", "x://b"]) cache.slot(read(uri))?.keep(fresh(1_000));
    expect(cache.slot(read("x://a"))?.kept).toBeDefined();
    cache.slot(read("x://c"))?.keep(fresh(1_000));
    expect(["x://a", "x://b", "x://c"].filter((uri) => cache.slot(read(uri))?.kept !== undefined)).toEqual([
      "x://a",
      "x://c",
    ]);
  });
});

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

describe("a client's cache", () => {
  it("spares the end what it allowed to be kept, until it tells of a change", async () => {
    const there = stage();
    there.ttlMs = 60_000;
    const { client, close } = await connectAt(there.handler);
    closers.push(close);
    const asked = (): string[] => there.requests.splice(0).map(({ method }) => method);
    asked();
    const first = await client.readResource("test://a");
    expect(await client.readResource("test://a")).toBe(first);
    await client.request("server/discover");
    expect(asked()).toEqual(["resources/read"]);
    await client.listTools();
    await client.listTools();
    expect(asked()).toEqual(["tools/list", "tools/list", "tools/list"]);

    await client.listen({ toolsListChanged: true, resourceSubscriptions: ["test://a"] });
    asked();
    there.change({ method: "notifications/resources/updated", params: { uri: "test://a" } });
    await client.ping();
    await client.listTools();
    await client.readResource("test://a");
    expect(asked()).toEqual(["server/discover", "resources/read"]);
    there.change({ method: "notifications/tools/list_changed" });
    await client.ping();
    await client.listTools();
    expect(asked()).toEqual(["server/discover", "tools/list", "tools/list", "tools/list"]);
  });

  it("is off where it is switched off, and keeps nothing that a `meta` of its own could have changed", async () => {
    const there = stage();
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

  it("does not keep what came of answers", async () => {
    let reads = 0;
    const { handler } = stage();
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
});

describe("whose it is", () => {
  it("keeps what was made for one identity from another", () => {
    const cache = new Cache();
    const request = { method: "resources/read", params: { uri: "a://b" } };
    const result = { resultType: "complete", contents: [], ttlMs: 60_000, cacheScope: "private" };
    cache.slot(request, "one")?.keep(result);
    expect(cache.slot(request, "one")?.kept).toBe(result);
    expect(cache.slot(request, "other")?.kept).toBeUndefined();
  });
});
