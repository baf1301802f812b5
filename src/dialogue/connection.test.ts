// One connection as its client sees it: sessions, cancellation, and the end of input.

import { expect, it } from "vitest";
import type { Inbound, Receive, Transport } from "../transport/transport.ts";
import { createServer } from "../server/index.ts";
import type { Handler } from "../core/handler.ts";
import { memoryPair } from "../transport/memory.ts";
import { type ServedConnection, serveTransport } from "./connection.ts";
import { servePeer, serveSample } from "../../test/support/dialogue/served-connection.ts";
import { RawPeer, statelessMeta } from "../../test/support/dialogue/raw-peer.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";

it("a session refuses everything but ping before initialize", async () => {
  const { peer } = await serveSample();
  expect(await peer.request({ id: 1, method: "tools/list" })).toMatchObject({
    error: {
      code: -32600,
      message: "Server not initialized",
      data: { kind: "not_initialized", method: "tools/list" },
    },
  });
  expect(await peer.request({ id: 2, method: "ping" })).toEqual({ jsonrpc: "2.0", id: 2, result: {} });
});

it("a session reports a missing initialize before invalid params", async () => {
  const { peer } = await serveSample();
  expect(await peer.request({ id: 1, method: "tools/call", params: {} })).toMatchObject({ error: { code: -32600 } });
});

it("a session cannot cancel initialize", async () => {
  const { peer } = await serveSample();
  peer.send({ id: 1, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } });
  peer.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  expect(await peer.answerTo(1)).toMatchObject({ result: { protocolVersion: NEWEST_SESSION.name } });
});

it("a session gets increasing progress, even if the handler is run again with input", async () => {
  const peer = await servePeer(async ({ method, params }, context) => {
    if (method === "server/discover") return { capabilities: { tools: {} } };
    for (const progress of [1, 2]) context.notify({ method: "notifications/progress", params: { progress } });
    if (params["inputResponses"] !== undefined) return { content: [] };
    return { resultType: "input_required", inputRequests: { r: { method: "roots/list", params: {} } } };
  });
  await peer.handshake(NEWEST_SESSION.name, { roots: {} });
  peer.send({ id: 1, method: "tools/call", params: { name: "x", _meta: { progressToken: 7 } } });
  const asked = await peer.until((message) => message["method"] === "roots/list");
  peer.send({ id: asked["id"], result: { roots: [] } });
  await peer.answerTo(1);
  const seen = peer.received.filter(({ method }) => method === "notifications/progress").map(({ params }) => params);
  expect(seen).toEqual([1, 2].map((progress) => ({ progressToken: 7, progress })));
});

it("a session gets an error for invalid arguments in the revisions that require it", async () => {
  for (const { name, style, argumentErrors } of REVISIONS) {
    if (style !== "session") continue;
    const input = { type: "object", required: ["text"] } as const;
    const peer = await servePeer(createServer({ name: "a", version: "1" }).tool("x", { input }, () => "done"));
    await peer.handshake(name);
    const answer = await peer.request({ id: 1, method: "tools/call", params: { name: "x" } });
    expect(answer).toMatchObject(argumentErrors ? { error: { code: -32602 } } : { result: { isError: true } });
  }
  expect(REVISIONS.map(({ argumentErrors }) => argumentErrors)).toEqual([true, true, true, false, false]);
});

it("a session runs requests pipelined behind initialize once that is answered", async () => {
  const { peer } = await serveSample();
  peer.send(
    { id: 1, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } },
    { method: "initialized" },
    { id: 2, method: "tools/list" },
  );
  expect(await peer.answerTo(2)).toMatchObject({ result: { tools: [] } });
  const order = peer.received.filter((message) => "id" in message).map((message) => message["id"]);
  expect(order).toEqual([1, 2]);
});

it("a session echoes a session revision it knows and answers any other with its newest", async () => {
  for (const { name, style } of [...REVISIONS, { name: "1999-01-01", style: "none" }]) {
    const { peer } = await serveSample();
    const answer = await peer.handshake(name);
    expect(answer).toMatchObject({ result: { protocolVersion: style === "session" ? name : NEWEST_SESSION.name } });
  }
});

it("a session is subscribed if subscribe came last, after unsubscribe", async () => {
  const { peer, running } = await serveSample();
  await peer.handshake(NEWEST_SESSION.name);
  const params = { uri: "a:b" };
  peer.send({ id: 1, method: "resources/subscribe", params });
  peer.send({ id: 2, method: "resources/unsubscribe", params });
  peer.send({ id: 3, method: "resources/subscribe", params });
  expect(await peer.answerTo(2)).toMatchObject({ result: {} });
  expect(await peer.answerTo(3)).toMatchObject({ result: {} });
  await peer.answerTo(1);
  running.get("listen")!.notify({ method: "notifications/resources/updated", params });
  expect(await peer.until(({ method }) => method === "notifications/resources/updated")).toMatchObject({ params });
});

it("a session refuses a second initialize and keeps the first", async () => {
  const { peer } = await serveSample();
  await peer.handshake(NEWEST_SESSION.name);
  const again = await peer.request({ id: 5, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } });
  expect(again).toMatchObject({ error: { code: -32600 } });
  expect(await peer.request({ id: 6, method: "tools/list" })).toMatchObject({ result: { tools: [] } });
});

it("a session names its revisions if it speaks none of this style", async () => {
  const { peer } = await serveSample({ revisions: [NEWEST.name] });
  const answer = await peer.handshake(NEWEST_SESSION.name);
  expect(answer).toMatchObject({ error: { data: { kind: "unsupported_revision", supported: [NEWEST.name] } } });
});

it("a session sends progress under the client's token, and logs from the level that was set", async () => {
  const { peer } = await serveSample();
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

it("a session answers a call with an error if its result cannot be written", async () => {
  const { peer } = await serveSample();
  await peer.handshake(NEWEST_SESSION.name);
  // The in-memory transport encodes nothing, so the failure is simulated.
  const answer = await peer.request({ id: 1, method: "tools/call", params: { name: "missing" } });
  expect(answer).toMatchObject({
    error: { code: -32602, message: "Tool not found: missing", data: { toolName: "missing" } },
  });
});

it.each([
  ["mcp", -32602, "Tool not found: missing", { kind: "tool_not_found", toolName: "missing" }],
  ["cl-mcp", -32602, "Invalid params", "Tool not found: missing"],
  ["llm-pharo", -32602, "Tool not found: missing", undefined],
  ["reference", -32602, "Invalid params", { details: "Tool not found: missing" }],
  ["chain", -32001, "Tool not found", "Tool 'missing' does not exist"],
] as const)(
  "a session gets the errors of the compat %s, unless the caller is stateless",
  async (compat, code, message, data) => {
    const { peer } = await serveSample({ compat });
    await peer.handshake(NEWEST_SESSION.name);
    const answer = await peer.request({ id: 1, method: "tools/call", params: { name: "missing" } });
    expect(answer).toEqual({ jsonrpc: "2.0", id: 1, error: { code, message, data } });
    const modern = await peer.request({
      id: 2,
      method: "tools/call",
      params: { name: "missing", _meta: statelessMeta(NEWEST.name) },
    });
    expect(modern).toMatchObject({ error: { code: -32602, data: { kind: "tool_not_found" } } });
  },
);

it("a session refuses a compat that does not exist", async () => {
  await expect(serveSample({ compat: "chains" as never })).rejects.toThrow(
    'compat: "chains" is not valid; did you mean `chain`?',
  );
});

it("a session shuts down on request: finishes its calls, refuses new ones, closes at exit", async () => {
  const { peer, served, running, release } = await serveSample({ mayShutDown: true });
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

it("a session has no shutdown if there may be several clients", async () => {
  const { peer } = await serveSample();
  await peer.handshake(NEWEST_SESSION.name);
  expect(await peer.request({ id: 1, method: "shutdown" })).toMatchObject({ error: { code: -32601 } });
});

it("cancellation aborts the call and suppresses its response, in both styles", async () => {
  const { peer, running } = await serveSample();
  await peer.handshake(NEWEST_SESSION.name);
  for (const [id, meta] of [
    ["old", undefined],
    ["new", statelessMeta(NEWEST.name)],
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

it("cancellation of an unknown id, or without one, is ignored", async () => {
  const { peer } = await serveSample();
  peer.send({ method: "notifications/cancelled", params: { requestId: 77 } }, { method: "notifications/cancelled" });
  expect(await peer.request({ id: 1, method: "ping" })).toMatchObject({ result: {} });
});

it('cancellation keeps 1 and "1" apart, and refuses an id that is in flight', async () => {
  const { peer, running, release } = await serveSample();
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

it("the end of input lets calls in flight finish within the grace period, then aborts the rest", async () => {
  const { peer, running, served } = await serveSample({ graceMs: 20 });
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "stuck" } } });
  await expect.poll(() => running.has("stuck")).toBe(true);
  await peer.close();
  await served.closed;
  expect(running.get("stuck")!.signal.aborted).toBe(true);
});

it("the end of input lets close end the grace period at once, also if a handler ignores its signal", async () => {
  const { peer, running, served } = await serveSample({ graceMs: 600_000 });
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "stuck" } } });
  await expect.poll(() => running.has("stuck")).toBe(true);
  await peer.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(running.get("stuck")!.signal.aborted).toBe(false);
  await served.close();
  expect(running.get("stuck")!.signal.aborted).toBe(true);
});

/** A peer of a server, and the connection. */
async function serveOne(handler: Handler): Promise<{ peer: RawPeer; served: ServedConnection }> {
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(handler, theirs);
  return { peer: await new RawPeer(ours).start(), served };
}

it("a call that the shutdown ends is answered so, and not with what its handler throws", async () => {
  const { peer, served } = await serveOne(
    createServer({ name: "s", version: "1", maskErrors: true }).tool("wait", {}, async (_args, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw new Error("a secret");
    }),
  );
  peer.send({ id: 1, method: "tools/call", params: { name: "wait", _meta: statelessMeta(NEWEST.name) } });
  await new Promise((resolve) => setImmediate(resolve));
  await served.close();
  const error = { message: "The server was shut down before the request was answered", data: { kind: "unreachable" } };
  expect(await peer.answerTo(1)).toMatchObject({ error });
});

it.each([{ jsonrpc: "2.0", id: 1, method: "ping" }, { kind: "msg" }, undefined])(
  "receive() throws if a transport calls it with %j, which is no event",
  async (inbound) => {
    let receive: Receive = () => undefined;
    const transport: Transport = {
      start: async (listener) => void (receive = listener),
      send: async () => undefined,
      close: async () => undefined,
    };
    const served = await serveTransport(async () => ({}), transport);
    expect(() => receive(inbound as unknown as Inbound)).toThrow("receive() takes { kind, ... }");
    await served.close();
  },
);
