// Stateless requests on a connection, beside sessions; batches; and the order of answers.

import { expect, it } from "vitest";
import { servePeer, serveSample } from "../../../test/support/dialogue/served-connection.ts";
import { statelessMeta } from "../../../test/support/dialogue/raw-peer.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../protocol/revisions/index.ts";

const BATCHING = REVISIONS.find(({ batches }) => batches)!.name;

it("a stateless request needs no handshake, and can share a connection with a session", async () => {
  const { peer } = await serveSample();
  const meta = statelessMeta(NEWEST.name);
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

it("a stateless request gets an error that names the missing keys of _meta", async () => {
  const { peer } = await serveSample();
  expect(await peer.request({ id: 1, method: "server/discover" })).toMatchObject({
    error: {
      code: -32602,
      data: { missing: ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"] },
    },
  });
  const { "io.modelcontextprotocol/clientCapabilities": _left, ...partial } = statelessMeta(NEWEST.name);
  expect(await peer.request({ id: 2, method: "tools/list", params: { _meta: partial } })).toMatchObject({
    error: { code: -32602, data: { missing: ["io.modelcontextprotocol/clientCapabilities"] } },
  });
});

it("a stateless request gets an error for an unsupported revision, and for methods that its revision lacks", async () => {
  const { peer } = await serveSample();
  expect(
    await peer.request({ id: 1, method: "tools/list", params: { _meta: statelessMeta("v999.0.0") } }),
  ).toMatchObject({
    error: { code: -32022, data: { supported: [NEWEST.name], requested: "v999.0.0" } },
  });
  for (const method of ["initialize", "ping", "logging/setLevel", "resources/subscribe", "shutdown", "no/such"]) {
    const answer = await peer.request({
      id: method,
      method,
      params: { _meta: statelessMeta(NEWEST.name), protocolVersion: "x", level: "info", uri: "a:b" },
    });
    expect(answer, method).toMatchObject(method === "ping" ? { error: { code: -32601 } } : { error: { code: -32601 } });
  }
});

it("a stateless request gets logs only from the level that it asks for", async () => {
  const { peer } = await serveSample();
  const call = (id: number, more: Record<string, unknown>): Promise<unknown> =>
    peer.request({
      id,
      method: "tools/call",
      params: { name: "progress", _meta: statelessMeta(NEWEST.name, {}, more) },
    });
  await call(1, {});
  expect(peer.received.filter((message) => "method" in message)).toEqual([]);
  await call(2, { "io.modelcontextprotocol/logLevel": "debug" });
  expect(peer.received.filter((message) => "method" in message)).toHaveLength(2);
});

it("a stateless request subscribes with tagged notifications, and gets both messages at the end", async () => {
  const { peer, running, served } = await serveSample();
  peer.send({
    id: "L",
    method: "subscriptions/listen",
    params: { notifications: { toolsListChanged: true }, _meta: statelessMeta(NEWEST.name) },
  });
  const tagged = { _meta: { "io.modelcontextprotocol/subscriptionId": "L" } };
  expect(await peer.until((message) => message["method"] === "notifications/subscriptions/acknowledged")).toMatchObject(
    {
      params: { notifications: { toolsListChanged: true }, ...tagged },
    },
  );
  running.get("listen")!.notify({ method: "notifications/tools/list_changed" });
  running.get("listen")!.notify({ method: "notifications/message", params: { level: "error", data: "not here" } });
  expect(await peer.until((message) => message["method"] === "notifications/tools/list_changed")).toMatchObject({
    params: tagged,
  });
  void served;
  expect(peer.received.some((message) => message["method"] === "notifications/message")).toBe(false);
});

it("a stateless request is answered at once if its subscription grants nothing", async () => {
  const { peer } = await serveSample();
  const answer = await peer.request({
    id: 9,
    method: "subscriptions/listen",
    params: { notifications: {}, _meta: statelessMeta(NEWEST.name) },
  });
  expect(answer).toMatchObject({
    result: { resultType: "complete", _meta: { "io.modelcontextprotocol/subscriptionId": 9 } },
  });
  expect(await peer.until((message) => message["method"] === "notifications/cancelled")).toMatchObject({
    params: { requestId: 9 },
  });
});

it("a stateless client gets the end of its subscriptions when the server closes", async () => {
  const { peer, served } = await serveSample();
  const params = { notifications: { toolsListChanged: true }, _meta: statelessMeta(NEWEST.name) };
  peer.send({ id: 5, method: "subscriptions/listen", params });
  await peer.until((message) => message["method"] === "notifications/subscriptions/acknowledged");
  await served.close();
  const tag = { "io.modelcontextprotocol/subscriptionId": 5 };
  expect(await peer.answerTo(5)).toMatchObject({ result: { resultType: "complete", _meta: tag } });
  expect(await peer.until((message) => message["method"] === "notifications/cancelled")).toMatchObject({
    params: { requestId: 5, _meta: tag },
  });
});

it("a stateless client gets nothing more from a refused subscription", async () => {
  const { peer } = await serveSample();
  const refused = await peer.request({
    id: 1,
    method: "subscriptions/listen",
    params: { _meta: statelessMeta(NEWEST.name) },
  });
  expect(refused).toMatchObject({ error: { code: -32602 } });
  await peer.handshake(NEWEST_SESSION.name);
  const unknown = await peer.request({ id: 2, method: "subscriptions/listen", params: { notifications: {} } });
  expect(unknown).toMatchObject({ error: { code: -32601 } });
  await peer.request({ id: 3, method: "ping" });
  expect(peer.received.some((message) => message["method"] === "notifications/cancelled")).toBe(false);
});

it("a stateless client gets complete results, even if the handler left fields out", async () => {
  const peer = await servePeer(async ({ method }) => (method === "tools/list" ? { tools: [] } : { content: [] }));
  const list = await peer.request({ id: 1, method: "tools/list", params: { _meta: statelessMeta(NEWEST.name) } });
  expect(list["result"]).toEqual({ tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" });
  const call = await peer.request({
    id: 2,
    method: "tools/call",
    params: { name: "x", _meta: statelessMeta(NEWEST.name) },
  });
  expect(call["result"]).toEqual({ content: [], resultType: "complete" });
});

it("a stateless client never gets input_required for a request that does not allow it", async () => {
  const peer = await servePeer(async () => ({ resultType: "input_required", inputRequests: {} }));
  const answer = await peer.request({ id: 1, method: "tools/list", params: { _meta: statelessMeta(NEWEST.name) } });
  expect(answer).toMatchObject({ error: { code: -32603 } });
});

it("a stateless client never gets reserved error codes from a handler, but gets the defined ones", async () => {
  const codes: number[] = [];
  for (const code of [-32002, -32042, -32050, -32021, -32001, 4711]) {
    const peer = await servePeer(async () => {
      throw new McpError(code, "chosen", { mine: true });
    });
    const { error } = (await peer.request({
      id: 1,
      method: "tools/list",
      params: { _meta: statelessMeta(NEWEST.name) },
    })) as {
      error: { code: number; data: unknown };
    };
    codes.push(error.code);
    if (error.code === -32603) expect(error.data).toMatchObject({ upstream: { code, data: { mine: true } } });
  }
  expect(codes).toEqual([-32603, -32603, -32603, -32021, -32001, 4711]);
});

it("a stateless client gets the code of an upstream error that only shares the name of a kind", async () => {
  const peer = await servePeer(async () => {
    throw new McpError(4711, "theirs", { kind: "timeout" });
  });
  const answer = await peer.request({ id: 1, method: "tools/list", params: { _meta: statelessMeta(NEWEST.name) } });
  expect(answer).toMatchObject({ error: { code: 4711, data: { kind: "timeout" } } });
});

it("a stateless client is the only kind if only stateless revisions are allowed", async () => {
  const { peer } = await serveSample({ revisions: [NEWEST.name] });
  expect(await peer.request({ id: 1, method: "tools/list" })).toMatchObject({ error: { code: -32602 } });
  expect(await peer.request({ id: 2, method: "ping", params: { _meta: statelessMeta(NEWEST.name) } })).toMatchObject({
    error: { code: -32601 },
  });
});

it("batches are answered with one array in the order of the requests", async () => {
  const { peer, release, running } = await serveSample();
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

it("batches lose only the response that cannot be encoded", async () => {
  const peer = await servePeer(async ({ method, params }) => {
    if (method === "server/discover") return { capabilities: { tools: {} } };
    return params["name"] === "bad" ? { content: [], big: 1n } : { content: [] };
  });
  await peer.handshake(BATCHING);
  peer.sendBatch([
    { id: 1, method: "tools/call", params: { name: "bad" } },
    { id: 2, method: "tools/call", params: { name: "good" } },
  ]);
  const { batch } = (await peer.until((message) => "batch" in message)) as { batch: object[] };
  expect(batch).toMatchObject([
    { id: 1, error: { code: -32603 } },
    { id: 2, result: { content: [] } },
  ]);
});

it("batches of notifications only get no answer", async () => {
  const { peer } = await serveSample();
  await peer.handshake(BATCHING);
  peer.sendBatch([{ method: "notifications/one" }, { method: "notifications/two" }]);
  await peer.request({ id: 1, method: "ping" });
  expect(peer.received.some((message) => "batch" in message)).toBe(false);
});

it("batches are refused if the revision has none, and before initialize", async () => {
  for (const revision of REVISIONS.filter(({ batches, style }) => !batches && style === "session")) {
    const { peer } = await serveSample();
    peer.sendBatch([{ id: 1, method: "ping" }]);
    expect(await peer.until((message) => message["id"] === null)).toMatchObject({ error: { code: -32600 } });
    await peer.handshake(revision.name);
    peer.sendBatch([{ id: 2, method: "ping" }]);
    await expect.poll(() => peer.received.filter((message) => message["id"] === null).length).toBe(2);
  }
});

it("order is that of completion by default", async () => {
  const { peer, running, release } = await serveSample();
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "slow" } } });
  await expect.poll(() => running.has("slow")).toBe(true);
  await peer.request({ id: 2, method: "tools/list" });
  expect(peer.received.some((message) => message["id"] === 1)).toBe(false);
  release("slow");
  await peer.answerTo(1);
});

it("order is not blocked by a cancelled call that ignores its signal", async () => {
  const { peer, running } = await serveSample({ ordering: "sequential" });
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "stuck", arguments: { key: "stuck" } } });
  await expect.poll(() => running.has("stuck")).toBe(true);
  peer.send({ id: 2, method: "tools/list" });
  peer.send({ method: "notifications/cancelled", params: { requestId: 1 } });
  expect(await peer.answerTo(2)).toMatchObject({ result: { tools: [] } });
});

it("order includes refusals, and a shutdown does not wait for later requests", async () => {
  const { peer, release, running } = await serveSample({ ordering: "sequential", mayShutDown: true });
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "a" } } });
  peer.send({ id: 4, method: "tools/call", params: {} });
  peer.send({ id: 2, method: "shutdown" }, { id: 3, method: "tools/list" });
  await expect.poll(() => running.has("a")).toBe(true);
  release("a");
  expect(await peer.answerTo(3)).toMatchObject({ error: { message: "Server is shutting down" } });
  const order = peer.received
    .filter(({ id }) => typeof id === "number")
    .map(({ id, error }) => [id, error === undefined]);
  expect(order).toEqual([
    [1, true],
    [4, false],
    [2, true],
    [3, false],
  ]);
});

it("order is that of arrival with sequential ordering, also for a ping", async () => {
  const { peer, running, release } = await serveSample({ ordering: "sequential" });
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "wait", arguments: { key: "slow" } } });
  peer.send({ id: 2, method: "tools/call", params: { name: "wait", arguments: { key: "next" } } });
  peer.send({ id: 3, method: "ping" });
  peer.send({ id: 4, method: "tools/list" });
  await expect.poll(() => running.has("slow")).toBe(true);
  expect(running.has("next")).toBe(false);
  release("slow");
  await expect.poll(() => running.has("next")).toBe(true);
  release("next");
  await peer.answerTo(4);
  expect(peer.received.slice(-4).map(({ id }) => id)).toEqual([1, 2, 3, 4]);
});
