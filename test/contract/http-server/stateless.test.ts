// Stateless requests over HTTP: answers and statuses, cancellation by disconnecting, input required over several
// connections, and subscriptions (2026-07-28, basic/transports/streamable-http and basic/patterns).

import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, SessionClient } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { startServer, textOf, startLimited } from "./fixture.ts";

const TAG = "io.modelcontextprotocol/subscriptionId";
const NAMED = { "mcp-protocol-version": NEWEST.name };
const aborted = async (signal: AbortSignal): Promise<void> => {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
};

it("a stateless request gets one JSON answer, and no session", async () => {
  const { peer } = await startServer();
  const reply = await new StatelessClient(peer).post(1, "tools/call", { name: "echo", arguments: { text: "hi" } });
  expect(reply.status).toBe(200);
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  expect(reply.headers["mcp-session-id"]).toBeUndefined();
  expect(reply.json).toMatchObject({ jsonrpc: "2.0", id: 1, result: { resultType: "complete" } });
});

it("a stateless request gets a stream without event ids if other messages come before the answer", async () => {
  const { peer } = await startServer();
  const client = new StatelessClient(peer);
  const params = { name: "count", arguments: { to: 3 }, _meta: { progressToken: 0 } };
  const reply = await client.post(1, "tools/call", params);
  expect(reply.isStream).toBe(true);
  expect(reply.headers["x-accel-buffering"]).toBe("no");
  expect(await reply.ended).toBe("complete");
  expect(reply.messages.map(({ params: sent }) => sent?.progress)).toEqual([1, 2, 3, undefined]);
  expect(reply.events.every(({ id, retry, message }) => id === undefined && retry === undefined && message)).toBe(true);
});

it("a stateless request gets a stream after silenceMs, with comments", async () => {
  const { fixture, peer } = await startLimited({ silenceMs: 10 }, { keepAliveMs: 20 });
  const reply = await new StatelessClient(peer).post(1, "tools/call", { name: "hold", arguments: { key: "k" } });
  await reply.untilComments(2);
  fixture.release("k");
  expect(textOf(await reply.answerTo(1))).toBe("released k");
});

it.each([
  ["an unknown tool", "tools/call", { name: "unknown" }, 200, -32602],
  ["an unknown resource", "resources/read", { uri: "nowhere://x" }, 200, -32602],
  ["an unknown prompt", "prompts/get", { name: "unknown" }, 200, -32602],
  ["an unknown method", "no/such", {}, 404, -32601],
  ["a client without the capability", "tools/call", { name: "elicit" }, 400, -32021],
] as const)("a stateless request gets a suitable status for %s", async (_title, method, params, status, code) => {
  const { peer } = await startServer();
  const reply = await new StatelessClient(peer).post("x", method, params);
  expect([reply.status, reply.json["error"]?.code, reply.json["id"]]).toEqual([status, code, "x"]);
});

it("a stateless request may not be a response, and is accepted with 202 if it is a notification", async () => {
  const { peer } = await startServer();
  const response = await peer.post({ jsonrpc: "2.0", id: 1, result: {} }, NAMED);
  expect(response.status).toBe(400);
  const notified = await peer.post({ jsonrpc: "2.0", method: "notifications/none" }, NAMED);
  expect([notified.status, notified.text]).toEqual([202, ""]);
});

it.each(["GET", "DELETE", "PUT", "PATCH", "HEAD"])("a stateless request cannot be %s: 405", async (method) => {
  const { peer } = await startServer();
  const reply = await peer.send({ method, headers: NAMED });
  expect(reply.status).toBe(405);
  expect(reply.headers["allow"]).toContain("POST");
});

it("a stateless request may have a session id and an event id, which are ignored", async () => {
  const { peer } = await startServer();
  const { session } = await SessionClient.open(peer, NEWEST_SESSION.name);
  for (const id of ["unknown", session]) {
    const more = { "mcp-session-id": id, "last-event-id": "7" };
    const reply = await new StatelessClient(peer).post(1, "tools/list", {}, more);
    expect(reply.status).toBe(200);
    expect(reply.headers["mcp-session-id"]).toBeUndefined();
  }
});

it("a stateless request gets cache hints for lists and resources, and the same list twice", async () => {
  const { peer } = await startServer();
  const client = new StatelessClient(peer);
  const requests: [string, Json][] = [
    ["server/discover", {}],
    ["tools/list", {}],
    ["prompts/list", {}],
    ["resources/list", {}],
    ["resources/templates/list", {}],
    ["resources/read", { uri: "note://one" }],
  ];
  for (const [method, params] of requests) {
    const first = await client.request(1, method, params);
    expect([method, first["result"]]).toEqual([
      method,
      expect.objectContaining({ ttlMs: expect.any(Number) as number }),
    ]);
    expect(first["result"].cacheScope).toMatch(/^(public|private)$/);
    expect(await client.request(1, method, params)).toEqual(first);
  }
});

it("a stateless request gets no progress and no logs that it did not request", async () => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  const started = client.begin(1, "tools/call", { name: "hold", arguments: { key: "k" } });
  const context = await fixture.holding("k");
  context.progress(1);
  context.log("error", "unwanted");
  fixture.release("k");
  const reply = await started.reply;
  expect(reply.isStream).toBe(false);
  expect(textOf(reply.json)).toBe("released k");
});

it.each(["before the head", "during the stream"])("disconnecting cancels the call %s", async (when) => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  const params = { name: "hold", arguments: { key: "k" }, _meta: { progressToken: "t" } };
  const started = client.begin(1, "tools/call", params);
  const context = await fixture.holding("k");
  if (when === "during the stream") {
    context.progress(1);
    await (await started.reply).until(({ message }) => message !== undefined);
  }
  started.hangUp();
  await aborted(context.signal);
  // Too late: it must not throw and not reach the next client.
  context.progress(2);
  fixture.release("k");
  expect(textOf(await client.request(1, "tools/call", { name: "echo", arguments: { text: "next" } }))).toBe("next");
});

it("disconnecting ends a subscription", async () => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  const stream = await client.post("l", "subscriptions/listen", { notifications: { toolsListChanged: true } });
  const { signal } = await fixture.subscribed(0);
  stream.hangUp();
  await aborted(signal);
  fixture.server.tool("later", {}, () => "late");
  expect(await client.request(1, "tools/list")).toMatchObject({ result: { resultType: "complete" } });
});

it("disconnecting does not affect other calls, even with the same id", async () => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  const one = client.begin(1, "tools/call", { name: "hold", arguments: { key: "one" } });
  const two = client.begin(1, "tools/call", { name: "hold", arguments: { key: "two" } });
  const { signal } = await fixture.holding("one");
  const other = await fixture.holding("two");
  one.hangUp();
  await aborted(signal);
  expect(other.signal.aborted).toBe(false);
  fixture.release("two");
  expect(textOf((await two.reply).json)).toBe("released two");
});

const answer = { action: "accept", content: { name: "Ada" } };

it("input required is continued over another connection", async () => {
  const { peer } = await startServer();
  const client = new StatelessClient(peer, { capabilities: { elicitation: {} } });
  const first = await client.request(1, "tools/call", { name: "elicit" });
  expect(first["result"].resultType).toBe("input_required");
  const { inputRequests, requestState } = first["result"];
  const [[key, inputRequest]] = Object.entries(inputRequests) as [[string, Json]];
  expect(inputRequest).toMatchObject({ method: "elicitation/create", params: { message: "Who are you?" } });
  const retry = { name: "elicit", inputResponses: { [key]: answer }, requestState };
  const last = await client.request("another id", "tools/call", retry);
  expect(textOf(last)).toBe("accept Ada");
  // A repeated retry gets the same answer, and the tool does not run again.
  expect(textOf(await client.request(3, "tools/call", retry))).toBe("accept Ada");
  const forged = { ...retry, requestState: `${String(requestState)}x` };
  const refused = await client.post(4, "tools/call", forged);
  expect(refused.json).toMatchObject({ error: { code: -32602 } });
});

it("input required sends no requests of the server", async () => {
  const { peer } = await startServer();
  const client = new StatelessClient(peer, { capabilities: { elicitation: {} } });
  const reply = await client.post(1, "tools/call", { name: "elicit", _meta: { progressToken: 1 } });
  const messages = reply.isStream ? reply.messages : [reply.json];
  expect(messages.filter((message) => "method" in message && "id" in message)).toEqual([]);
});

it("a subscription is acknowledged first, tags its messages, and sends only what was requested", async () => {
  const { fixture, peer } = await startServer();
  const client = new StatelessClient(peer);
  const notifications = { toolsListChanged: true, resourceSubscriptions: ["note://one"] };
  const stream = await client.post("l-1", "subscriptions/listen", { notifications });
  expect(stream.isStream).toBe(true);
  await stream.until(({ message }) => message !== undefined);
  fixture.server.prompt("unwanted", {}, () => "p");
  fixture.server.resourceUpdated("note://other");
  fixture.server.tool("later", {}, () => "late");
  fixture.server.resourceUpdated("note://one");
  await stream.untilMessage(({ method }) => method === "notifications/resources/updated");
  await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
  const [first, ...rest] = stream.messages.map(({ method }) => method as string);
  expect(first).toBe("notifications/subscriptions/acknowledged");
  expect(rest.toSorted()).toEqual(["notifications/resources/updated", "notifications/tools/list_changed"]);
  expect(stream.messages[0]).toMatchObject({ params: { notifications } });
  for (const { params } of stream.messages) expect(params._meta[TAG]).toBe("l-1");
});

it("a subscription is kept alive by comments", async () => {
  const { peer } = await startServer({ http: { limits: { keepAliveMs: 20 } } });
  const client = new StatelessClient(peer);
  const stream = await client.post(5, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  await stream.untilComments(3);
  expect(stream.messages).toHaveLength(1);
});

it("a subscription ends with its result when the server closes", async () => {
  const { fixture, peer, front } = await startServer();
  const client = new StatelessClient(peer);
  const stream = await client.post(5, "subscriptions/listen", { notifications: { toolsListChanged: true } });
  await fixture.subscribed(0);
  const closed = front.close();
  expect(await stream.answerTo(5)).toMatchObject({ result: { resultType: "complete", _meta: { [TAG]: 5 } } });
  expect(await stream.ended).toBe("complete");
  await closed;
});

it("a subscription sends each subscriber its own copy, even with the same id", async () => {
  const { fixture, peer } = await startServer();
  const clients = Array.from({ length: 10 }, () => new StatelessClient(peer));
  const params = { notifications: { toolsListChanged: true } };
  const streams = await Promise.all(clients.map((client) => client.post(1, "subscriptions/listen", params)));
  await Promise.all(streams.map((stream) => stream.until(({ message }) => message !== undefined)));
  fixture.server.tool("later", {}, () => "late");
  for (const stream of streams) {
    await stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
    expect(stream.messages).toHaveLength(2);
  }
});
