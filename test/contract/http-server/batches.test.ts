// Batches: several messages in one POST, which only 2025-03-26 has (basic/transports, "Sending Messages to the Server"). The
// answers are one JSON array unless other messages must be sent too.

import { expect, it } from "vitest";
import { NEWEST, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { initialize, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { statelessMeta } from "../../support/dialogue/raw-peer.ts";
import { startServer, textOf } from "./fixture.ts";

const BATCHES = REVISIONS.find(({ batches }) => batches)?.name ?? "";
const OTHERS = REVISIONS.filter(({ batches, style }) => !batches && style === "session").map(({ name }) => name);

const ping = (id: unknown): Json => ({ id, method: "ping" });

it(`batches in ${BATCHES} answers a batch of requests with one JSON array, in their order`, async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const reply = await client.post([ping(1), toolCall("1", "echo", { text: "two" }), ping(3)]);
  expect(reply.status).toBe(200);
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  const answers = JSON.parse(reply.text) as Json[];
  expect(answers.map(({ id }) => id)).toEqual([1, "1", 3]);
  expect(textOf(answers[1] ?? {})).toBe("two");
});

it(`batches in ${BATCHES} accepts notifications and responses with 202 and no body`, async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES, { capabilities: { sampling: {} } });
  const notified = await client.post([
    { method: "notifications/roots/list_changed" },
    { method: "notifications/none" },
  ]);
  expect([notified.status, notified.text]).toEqual([202, ""]);
  const call = await client.call(5, "sample");
  const request = await call.untilMessage(({ method }) => method === "sampling/createMessage");
  const content = { type: "text", text: "something" };
  const answer = { id: request["id"], result: { role: "assistant", model: "parrot", content } };
  const answered = await client.post([answer, { id: "unknown", result: {} }]);
  expect([answered.status, answered.text]).toEqual([202, ""]);
  expect(JSON.parse(textOf(await call.answerTo(5)))).toEqual(content);
  expect(fixture.subscriptions).toHaveLength(1);
});

it(`batches in ${BATCHES} processes notifications among requests, and answers the requests`, async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const held = client.call(1, "hold", { key: "k" });
  const { signal } = await fixture.holding("k");
  const cancel = { method: "notifications/cancelled", params: { requestId: 1 } };
  const reply = await client.post([ping("a"), cancel, ping("b")]);
  expect((JSON.parse(reply.text) as Json[]).map(({ id }) => id)).toEqual(["a", "b"]);
  expect(signal.aborted).toBe(true);
  await (
    await held
  ).ended;
});

it(`batches in ${BATCHES} sends progress as an event stream, with one answer to each request`, async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const reply = await client.post([toolCall(1, "count", { to: 3 }), ping(2)]);
  expect(reply.isStream).toBe(true);
  expect(await reply.ended).toBe("complete");
  const messages = reply.messages.flat();
  const steps = messages.filter(({ method }) => method === "notifications/progress");
  expect(steps.map(({ params }) => params.progress)).toEqual([1, 2, 3]);
  const ids = messages.filter((message) => !("method" in message)).map(({ id }) => id);
  expect(new Set(ids)).toEqual(new Set([1, 2]));
  expect(ids).toHaveLength(2);
  expect(messages.findIndex(({ id }) => id === 1)).toBeGreaterThan(messages.indexOf(steps[2] ?? {}));
});

it(`batches in ${BATCHES} answers each invalid message separately`, async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const broken = [7, null, "x", {}, { jsonrpc: "1.0", id: 4, method: "ping" }, [ping(1)]] as unknown as Json[];
  const body = [...broken, { jsonrpc: "2.0", ...ping(9) }];
  const reply = await peer.post(body, { "mcp-session-id": client.session });
  const answers = JSON.parse(reply.text) as Json[];
  expect(answers).toHaveLength(7);
  for (const answer of answers.slice(0, 6)) expect(answer).toMatchObject({ error: { code: -32600 } });
  expect(answers.at(-1)).toMatchObject({ id: 9, result: {} });
});

it(`batches in ${BATCHES} refuses initialize and stateless requests inside a batch`, async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const stateless = { id: 2, method: "tools/list", params: { _meta: statelessMeta(NEWEST.name) } };
  const reply = await client.post([initialize(BATCHES), stateless, ping(3)]);
  expect(JSON.parse(reply.text)).toMatchObject([
    { id: "init", error: { code: -32600 } },
    { id: 2, error: { code: -32600 } },
    { id: 3, result: {} },
  ]);
  const first = await peer.post([initialize(BATCHES)]);
  expect(first.status).toBe(400);
  expect(first.headers["mcp-session-id"]).toBeUndefined();
  expect(first.json).toMatchObject({ error: { code: expect.any(Number) as number } });
});

it(`batches in ${BATCHES} accepts a hundred messages, and refuses more, and an empty batch`, async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const many = (count: number): Json[] => Array.from({ length: count }, (_, n) => ping(n));
  const reply = await client.post(many(100));
  expect((JSON.parse(reply.text) as Json[]).map(({ id }) => id)).toEqual(many(100).map(({ id }) => id));
  for (const refused of [await client.post(many(101)), await client.post([])]) {
    expect(refused.status).toBe(400);
    expect(refused.json).toMatchObject({ id: null, error: { code: -32600 } });
  }
});

it(`batches in ${BATCHES} refuses the second of two requests with the same id, and answers the first`, async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, BATCHES);
  const reply = await client.post([toolCall(1, "echo", { text: "a" }), toolCall(1, "echo", { text: "b" })]);
  const [first, second] = JSON.parse(reply.text) as Json[];
  expect(textOf(first ?? {})).toBe("a");
  expect(second).toMatchObject({ id: 1, error: { code: -32600 } });
});

it.each(OTHERS)("batches in other revisions are refused in %s, and nothing in them runs", async (revision) => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, revision);
  const reply = await client.post([toolCall(1, "hold", { key: "k" })]);
  expect(reply.status).toBe(400);
  expect(reply.json).toMatchObject({ error: { code: -32600 } });
  expect(fixture.runs.size).toBe(0);
});

it("batches in other revisions are refused for stateless clients", async () => {
  const { fixture, peer } = await startServer();
  const params = { name: "hold", arguments: { key: "k" }, _meta: statelessMeta(NEWEST.name) };
  const stateless = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
  const named = await peer.post([stateless], {
    "mcp-protocol-version": NEWEST.name,
    "mcp-method": "tools/call",
    "mcp-name": "hold",
  });
  expect(named.status).toBe(400);
  expect((await peer.post([stateless])).status).toBe(400);
  expect(fixture.runs.size).toBe(0);
});
