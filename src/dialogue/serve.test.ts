// One connection, both styles: what a caller sees on the wire.

import { afterEach, describe, expect, it } from "vitest";
import { RawPeer, stamp } from "../../test/support/raw-peer.ts";
import type { Context } from "../core/context.ts";
import type { Handler, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import { serveTransport, type ConnectionOptions, type Served } from "./serve.ts";

const BATCHING = REVISIONS.find(({ batches }) => batches)!.name;
const text = (value: string): Result => ({
  resultType: "complete",
  content: [{ type: "text", text: value }],
  isError: false,
});

/** A handler of three tools, whose running calls tests can look into. */
function stage(): { handler: Handler; running: Map<string, Context>; release(name: string): void } {
  const running = new Map<string, Context>();
  const doors = new Map<string, () => void>();
  const handler: Handler = async (request, context) => {
    switch (request.method) {
      case "server/discover":
        return {
          resultType: "complete",
          capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
          ttlMs: 0,
          cacheScope: "private",
          _meta: { "io.modelcontextprotocol/serverInfo": { name: "stage", version: "1" } },
        };
      case "tools/list":
        return { resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" };
      case "subscriptions/listen":
        context.notify({
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: request.params["notifications"] },
        });
        running.set("listen", context);
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
        return { resultType: "complete" };
      case "tools/call": {
        const name = String(request.params["name"]);
        if (name === "wait") {
          const { key } = request.params["arguments"] as { key: string };
          running.set(key, context);
          await new Promise<void>((resolve, reject) => {
            doors.set(key, resolve);
            context.signal.addEventListener("abort", () => reject(context.signal.reason));
          });
          return text(key);
        }
        if (name === "progress") {
          context.notify({ method: "notifications/progress", params: { progress: 1, total: 2, message: "half" } });
          context.notify({ method: "notifications/message", params: { level: "debug", data: "small" } });
          context.notify({ method: "notifications/message", params: { level: "error", data: "big" } });
          return text("done");
        }
        if (name === "cycle") {
          const cycle: Record<string, unknown> = { resultType: "complete" };
          cycle["self"] = cycle;
          return cycle;
        }
        throw McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
      }
    }
    throw McpError.of("method_not_found", `Method not found: ${request.method}`);
  };
  return { handler, running, release: (key) => doors.get(key)?.() };
}

const open: { peer: RawPeer; served: Served }[] = [];
async function serving(
  options: ConnectionOptions = {},
): Promise<ReturnType<typeof stage> & { peer: RawPeer; served: Served }> {
  const [ours, theirs] = memoryPair();
  const made = stage();
  const served = await serveTransport(made.handler, ours, options);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  return { ...made, peer, served };
}

afterEach(async () => {
  for (const { served } of open.splice(0)) await served.close();
});

describe("a session", () => {
  it("is refused work before initialize, but for ping", async () => {
    const { peer } = await serving();
    expect(await peer.request({ id: 1, method: "tools/list" })).toMatchObject({
      error: {
        code: -32600,
        message: "Server not initialized",
        data: { kind: "not_initialized", method: "tools/list" },
      },
    });
    expect(await peer.request({ id: 2, method: "ping" })).toEqual({ jsonrpc: "2.0", id: 2, result: {} });
  });

  it("takes what is pipelined behind initialize once that is answered", async () => {
    const { peer } = await serving();
    peer.send(
      { id: 1, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } },
      { method: "initialized" },
      { id: 2, method: "tools/list" },
    );
    expect(await peer.answerTo(2)).toMatchObject({ result: { tools: [] } });
    const order = peer.received.filter((message) => "id" in message).map((message) => message["id"]);
    expect(order).toEqual([1, 2]);
  });

  it("echoes a session revision it knows and answers any other with its newest", async () => {
    for (const { name, style } of [...REVISIONS, { name: "1999-01-01", style: "none" }]) {
      const { peer } = await serving();
      const answer = await peer.handshake(name);
      expect(answer).toMatchObject({ result: { protocolVersion: style === "session" ? name : NEWEST_SESSION.name } });
    }
  });

  it("is not initialized twice, and the first one stays", async () => {
    const { peer } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    const again = await peer.request({ id: 5, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } });
    expect(again).toMatchObject({ error: { code: -32600 } });
    expect(await peer.request({ id: 6, method: "tools/list" })).toMatchObject({ result: { tools: [] } });
  });

  it("names its revisions where it speaks none of this style", async () => {
    const { peer } = await serving({ revisions: [NEWEST.name] });
    const answer = await peer.handshake(NEWEST_SESSION.name);
    expect(answer).toMatchObject({ error: { data: { kind: "unsupported_revision", supported: [NEWEST.name] } } });
  });

  it("sends progress under the caller's token and logs from the level that was set", async () => {
    const { peer } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    await peer.request({ id: 1, method: "logging/setLevel", params: { level: "warning" } });
    await peer.request({ id: 2, method: "tools/call", params: { name: "progress", _meta: { progressToken: "t" } } });
    const sent = peer.received.filter((message) => "method" in message);
    expect(sent).toEqual([
      {
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken: "t", progress: 1, total: 2, message: "half" },
      },
      { jsonrpc: "2.0", method: "notifications/message", params: { level: "error", data: "big" } },
    ]);
    expect(await peer.request({ id: 3, method: "logging/setLevel", params: { level: "loud" } })).toMatchObject({
      error: { code: -32602 },
    });
  });

  it("answers a call with an error where its result cannot be written", async () => {
    const { peer } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    // The memory wire writes nothing, so the fault is put there by hand.
    const answer = await peer.request({ id: 1, method: "tools/call", params: { name: "missing" } });
    expect(answer).toMatchObject({
      error: { code: -32602, message: "Tool not found: missing", data: { toolName: "missing" } },
    });
  });

  it("uses the seed documents' codes in the chain profile only", async () => {
    const { peer } = await serving({ profile: "chain" });
    await peer.handshake(NEWEST_SESSION.name);
    const answer = await peer.request({ id: 1, method: "tools/call", params: { name: "missing" } });
    expect(answer).toMatchObject({ error: { code: -32001, data: { kind: "tool_not_found" } } });
    const modern = await peer.request({
      id: 2,
      method: "tools/call",
      params: { name: "missing", _meta: stamp(NEWEST.name) },
    });
    expect(modern).toMatchObject({ error: { code: -32602, data: { kind: "tool_not_found" } } });
  });

  it("shuts down when asked: finishes its work, refuses more, ends at exit", async () => {
    const { peer, served, running, release } = await serving({ mayShutDown: true });
    await peer.handshake(NEWEST_SESSION.name);
    peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "a" } } });
    await expect.poll(() => running.has("a")).toBe(true);
    peer.send({ id: 2, method: "shutdown" });
    expect(await peer.request({ id: 3, method: "tools/list" })).toMatchObject({
      error: { code: -32600, message: "Server is shutting down" },
    });
    expect(peer.received.some((message) => message["id"] === 2)).toBe(false);
    release("a");
    expect(await peer.answerTo(1)).toMatchObject({ result: { content: [{ text: "a" }] } });
    expect(await peer.answerTo(2)).toEqual({ jsonrpc: "2.0", id: 2, result: {} });
    peer.send({ method: "exit" });
    await served.closed;
    expect(peer.received.filter((message) => message["id"] === 1)).toHaveLength(1);
  });

  it("has no shutdown where it is one of many callers", async () => {
    const { peer } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    expect(await peer.request({ id: 1, method: "shutdown" })).toMatchObject({ error: { code: -32601 } });
  });
});

describe("cancellation", () => {
  it("aborts the call and leaves it without an answer, in both styles", async () => {
    const { peer, running } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    for (const [id, meta] of [
      ["old", undefined],
      ["new", stamp(NEWEST.name)],
    ] as const) {
      peer.send({ id, method: "tools/call", params: { name: "wait", arguments: { key: id }, _meta: meta } });
      await expect.poll(() => running.has(id)).toBe(true);
      const { signal } = running.get(id)!;
      peer.send({ method: "notifications/cancelled", params: { requestId: id, reason: "enough" } });
      await expect.poll(() => signal.aborted).toBe(true);
      expect(String(signal.reason)).toContain("enough");
      await peer.request({ id: `after ${id}`, method: "ping" });
      expect(peer.received.some((message) => message["id"] === id)).toBe(false);
    }
  });

  it("of an unknown id, or without one, is ignored", async () => {
    const { peer } = await serving();
    peer.send({ method: "notifications/cancelled", params: { requestId: 77 } }, { method: "notifications/cancelled" });
    expect(await peer.request({ id: 1, method: "ping" })).toMatchObject({ result: {} });
  });

  it('keeps 1 and "1" apart, and refuses an id that is in flight', async () => {
    const { peer, running, release } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "number" } } });
    peer.send({ id: "1", method: "tools/call", params: { name: "wait", arguments: { key: "string" } } });
    await expect.poll(() => running.size).toBe(3);
    expect(await peer.request({ id: 1, method: "ping" })).toMatchObject({ error: { code: -32600 } });
    peer.send({ method: "notifications/cancelled", params: { requestId: "1" } });
    await expect.poll(() => running.get("string")!.signal.aborted).toBe(true);
    expect(running.get("number")!.signal.aborted).toBe(false);
    release("number");
    expect(await peer.until((message) => message["id"] === 1 && "result" in message)).toMatchObject({
      result: { isError: false },
    });
  });
});

describe("an exchange", () => {
  it("needs no handshake and stands beside a session on the same connection", async () => {
    const { peer } = await serving();
    const meta = stamp(NEWEST.name);
    expect(await peer.request({ id: 1, method: "server/discover", params: { _meta: meta } })).toMatchObject({
      result: { resultType: "complete", supportedVersions: [NEWEST.name] },
    });
    await peer.handshake(NEWEST_SESSION.name);
    expect(await peer.request({ id: 2, method: "tools/list", params: { _meta: meta } })).toMatchObject({
      result: { resultType: "complete", ttlMs: 0 },
    });
    const session = await peer.request({ id: 3, method: "tools/list" });
    expect(session).toEqual({ jsonrpc: "2.0", id: 3, result: { tools: [] } });
  });

  it("is told which keys of _meta are missing", async () => {
    const { peer } = await serving();
    expect(await peer.request({ id: 1, method: "server/discover" })).toMatchObject({
      error: {
        code: -32602,
        data: { missing: ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"] },
      },
    });
    const { "io.modelcontextprotocol/clientCapabilities": _left, ...partial } = stamp(NEWEST.name);
    expect(await peer.request({ id: 2, method: "tools/list", params: { _meta: partial } })).toMatchObject({
      error: { code: -32602, data: { missing: ["io.modelcontextprotocol/clientCapabilities"] } },
    });
  });

  it("is refused a revision that is not spoken, and methods that its revision lacks", async () => {
    const { peer } = await serving();
    expect(await peer.request({ id: 1, method: "tools/list", params: { _meta: stamp("v999.0.0") } })).toMatchObject({
      error: { code: -32022, data: { supported: [NEWEST.name], requested: "v999.0.0" } },
    });
    for (const method of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "shutdown", "no/such"]) {
      const answer = await peer.request({
        id: method,
        method,
        params: { _meta: stamp(NEWEST.name), protocolVersion: "x", level: "info", uri: "a:b" },
      });
      expect(answer, method).toMatchObject(
        method === "ping" ? { error: { code: -32601 } } : { error: { code: -32601 } },
      );
    }
  });

  it("gets logs only for the level it asks for, with that request", async () => {
    const { peer } = await serving();
    const call = (id: number, more: Record<string, unknown>): Promise<unknown> =>
      peer.request({ id, method: "tools/call", params: { name: "progress", _meta: stamp(NEWEST.name, {}, more) } });
    await call(1, {});
    expect(peer.received.filter((message) => "method" in message)).toEqual([]);
    await call(2, { "io.modelcontextprotocol/logLevel": "debug" });
    expect(peer.received.filter((message) => "method" in message)).toHaveLength(2);
  });

  it("listens with everything tagged, and is told of the end in both ways", async () => {
    const { peer, running, served } = await serving();
    peer.send({
      id: "L",
      method: "subscriptions/listen",
      params: { notifications: { toolsListChanged: true }, _meta: stamp(NEWEST.name) },
    });
    const tagged = { _meta: { "io.modelcontextprotocol/subscriptionId": "L" } };
    expect(
      await peer.until((message) => message["method"] === "notifications/subscriptions/acknowledged"),
    ).toMatchObject({
      params: { notifications: { toolsListChanged: true }, ...tagged },
    });
    running.get("listen")!.notify({ method: "notifications/tools/list_changed" });
    running.get("listen")!.notify({ method: "notifications/message", params: { level: "error", data: "not here" } });
    expect(await peer.until((message) => message["method"] === "notifications/tools/list_changed")).toMatchObject({
      params: tagged,
    });
    void served;
    expect(peer.received.some((message) => message["method"] === "notifications/message")).toBe(false);
  });

  it("of which nothing can be honoured is answered at once", async () => {
    const { peer } = await serving();
    const answer = await peer.request({
      id: 9,
      method: "subscriptions/listen",
      params: { notifications: {}, _meta: stamp(NEWEST.name) },
    });
    expect(answer).toMatchObject({
      result: { resultType: "complete", _meta: { "io.modelcontextprotocol/subscriptionId": 9 } },
    });
    expect(await peer.until((message) => message["method"] === "notifications/cancelled")).toMatchObject({
      params: { requestId: 9 },
    });
  });
});

describe("batches", () => {
  it("are answered as one array in the order of the requests", async () => {
    const { peer, release, running } = await serving();
    await peer.handshake(BATCHING);
    peer.sendBatch([
      { id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "slow" } } },
      { method: "notifications/whatever" },
      { id: 2, method: "ping" },
      { id: 3, method: "initialize", params: { protocolVersion: BATCHING } },
    ]);
    await expect.poll(() => running.has("slow")).toBe(true);
    release("slow");
    const { batch } = (await peer.until((message) => "batch" in message)) as {
      batch: { id: number; error?: { code: number } }[];
    };
    expect(batch.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(batch[2]?.error?.code).toBe(-32600);
  });

  it("of notifications only get no answer", async () => {
    const { peer } = await serving();
    await peer.handshake(BATCHING);
    peer.sendBatch([{ method: "notifications/one" }, { method: "notifications/two" }]);
    await peer.request({ id: 1, method: "ping" });
    expect(peer.received.some((message) => "batch" in message)).toBe(false);
  });

  it("are refused where the revision has none, and before initialize", async () => {
    for (const revision of REVISIONS.filter(({ batches, style }) => !batches && style === "session")) {
      const { peer } = await serving();
      peer.sendBatch([{ id: 1, method: "ping" }]);
      expect(await peer.until((message) => message["id"] === null)).toMatchObject({ error: { code: -32600 } });
      await peer.handshake(revision.name);
      peer.sendBatch([{ id: 2, method: "ping" }]);
      await expect.poll(() => peer.received.filter((message) => message["id"] === null).length).toBe(2);
    }
  });
});

describe("order", () => {
  it("is that of completion by default", async () => {
    const { peer, running, release } = await serving();
    await peer.handshake(NEWEST_SESSION.name);
    peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "slow" } } });
    await expect.poll(() => running.has("slow")).toBe(true);
    await peer.request({ id: 2, method: "tools/list" });
    expect(peer.received.some((message) => message["id"] === 1)).toBe(false);
    release("slow");
    await peer.answerTo(1);
  });

  it("is that of arrival with sequential ordering, while a ping still gets through a stuck call", async () => {
    const { peer, running, release } = await serving({ ordering: "sequential" });
    await peer.handshake(NEWEST_SESSION.name);
    peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "slow" } } });
    peer.send({ id: 2, method: "tools/call", params: { name: "wait", arguments: { key: "next" } } });
    peer.send({ id: 3, method: "tools/list" });
    expect(await peer.request({ id: 4, method: "ping" })).toMatchObject({ result: {} });
    expect(running.has("slow")).toBe(true);
    expect(running.has("next")).toBe(false);
    release("slow");
    await expect.poll(() => running.has("next")).toBe(true);
    release("next");
    await peer.answerTo(3);
    expect(peer.received.filter(({ id }) => id === 1 || id === 2 || id === 3).map(({ id }) => id)).toEqual([1, 2, 3]);
  });
});

describe("the end of input", () => {
  it("lets work in flight finish within the grace, then aborts the rest", async () => {
    const { peer, running, served } = await serving({ graceMs: 20 });
    await peer.handshake(NEWEST_SESSION.name);
    peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "stuck" } } });
    await expect.poll(() => running.has("stuck")).toBe(true);
    await peer.close();
    await served.closed;
    expect(running.get("stuck")!.signal.aborted).toBe(true);
  });
});
