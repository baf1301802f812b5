// Legacy HTTP+SSE, on the same port as Streamable HTTP: one stream for all messages of the server, and one path for POST
// (2024-11-05, basic/transports). The session ends with its stream.

import { expect, it } from "vitest";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { LegacySseClient, SessionClient, toolCall } from "../../support/http/mcp-clients.ts";
import { startServer, textOf } from "./fixture.ts";

const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const OLDEST = SESSIONS[0] ?? "";

it.each(["/sse", "/mcp/sse"])(
  "legacy HTTP+SSE opens at %s with the event `endpoint`, and nothing before it",
  async (path) => {
    const { peer } = await startServer();
    const client = await LegacySseClient.open(peer, path);
    expect(client.stream.status).toBe(200);
    expect(client.stream.headers["content-type"]).toMatch(/^text\/event-stream/);
    expect(client.stream.headers["cache-control"]).toMatch(/no-(cache|store)/);
    expect(client.stream.events).toHaveLength(1);
    expect(client.stream.events[0]).toMatchObject({ event: "endpoint", data: client.stream.events[0]?.data });
    expect(client.endpoint).toMatch(/^\/(mcp\/)?messages\?/);
    expect(await client.handshake(OLDEST)).toMatchObject({ result: { protocolVersion: OLDEST } });
  },
);

it("legacy HTTP+SSE has endpoints that cannot be guessed", async () => {
  const { peer } = await startServer();
  const endpoints = await Promise.all(
    Array.from({ length: 5 }, async () => (await LegacySseClient.open(peer)).endpoint),
  );
  expect(new Set(endpoints).size).toBe(5);
  // 128 bits are 22 characters at 6 bits each.
  for (const endpoint of endpoints) expect(endpoint).toMatch(/=[\x21-\x7e]{22,}$/);
});

it.each(SESSIONS)("legacy HTTP+SSE serves %s", async (revision) => {
  const { peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  expect(await client.handshake(revision)).toMatchObject({ result: { protocolVersion: revision } });
  expect(await client.request("ping")).toMatchObject({ result: {} });
  const { result } = await client.request("tools/list");
  expect(result.tools[0]).toMatchObject({ name: "echo" });
  const echoed = await client.request("tools/call", { name: "echo", arguments: { text: revision } });
  expect(textOf(echoed)).toBe(revision);
  // Each message is an event of its own.
  for (const { event, data } of client.stream.events.slice(1)) {
    expect(event ?? "message").toBe("message");
    expect(JSON.parse(data ?? "")).toMatchObject({ jsonrpc: "2.0" });
  }
});

it("legacy HTTP+SSE answers each POST with 202, and sends the answer on the stream", async () => {
  const { peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  const accepted = await client.post({ id: "a", method: "ping" });
  expect(accepted.status).toBe(202);
  expect(accepted.headers["mcp-session-id"]).toBeUndefined();
  expect(await client.stream.answerTo("a")).toEqual({ jsonrpc: "2.0", id: "a", result: {} });
  expect((await client.post({ method: "notifications/nothing" })).status).toBe(202);
  await client.post({ id: "b", method: "no/such" });
  expect(await client.stream.answerTo("b")).toMatchObject({ error: { code: -32601 } });
});

it("legacy HTTP+SSE sends progress in order before the answer", async () => {
  const { peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  await client.post(toolCall(7, "count", { to: 4 }));
  await client.stream.answerTo(7);
  const about = client.stream.messages.filter(({ id, method }) => id === 7 || method === "notifications/progress");
  expect(about.map(({ params }) => params?.progress)).toEqual([1, 2, 3, 4, undefined]);
  expect(about.slice(0, 4).map(({ params }) => params.progressToken)).toEqual(Array(4).fill("t-7"));
});

it("legacy HTTP+SSE does not answer a call that is cancelled by a notification", async () => {
  const { fixture, peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  await client.post(toolCall(8, "hold", { key: "k" }));
  const { signal } = await fixture.holding("k");
  await client.post({ method: "notifications/cancelled", params: { requestId: 8, reason: "enough" } });
  expect(signal.aborted).toBe(true);
  expect(await client.request("ping")).toMatchObject({ result: {} });
  expect(client.stream.messages.filter(({ id }) => id === 8)).toEqual([]);
});

it("legacy HTTP+SSE sends requests during a call and accepts the responses by POST", async () => {
  const { peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST, { sampling: {} });
  await client.post(toolCall(9, "sample"));
  const request = await client.stream.untilMessage(({ method }) => method === "sampling/createMessage");
  const content = { type: "text", text: "something" };
  const answer = { id: request["id"], result: { role: "assistant", model: "parrot", content } };
  expect((await client.post(answer)).status).toBe(202);
  expect(JSON.parse(textOf(await client.stream.answerTo(9)))).toEqual(content);
});

it("legacy HTTP+SSE sends change notifications on the stream", async () => {
  const { fixture, peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  await fixture.subscribed(0);
  await client.request("resources/subscribe", { uri: "note://one" });
  fixture.server.tool("later", {}, () => "late");
  fixture.server.resourceUpdated("note://one");
  await client.stream.untilMessage(({ method }) => method === "notifications/tools/list_changed");
  const { params } = await client.stream.untilMessage(({ method }) => method === "notifications/resources/updated");
  expect(params).toEqual({ uri: "note://one" });
});

it("legacy HTTP+SSE ends the session with its stream: calls are aborted, and the endpoint is not found", async () => {
  const { fixture, peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  await client.post(toolCall(1, "hold", { key: "k" }));
  const { signal } = await fixture.holding("k");
  const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
  client.stream.hangUp();
  await aborted;
  const late = await client.post({ id: 2, method: "ping" });
  expect(late.status).toBe(404);
});

it("legacy HTTP+SSE accepts only endpoints that it returned", async () => {
  const { peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  const { session } = await SessionClient.open(peer, SESSIONS.at(-1) ?? "");
  const [path, query = ""] = client.endpoint.split("?");
  const [name] = query.split("=");
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };
  const last = query.at(-1) === "x" ? "y" : "x";
  for (const foreign of [`${path}?${query.slice(0, -1)}${last}`, `${path}?${name}=${session}`, `${path}?${name}=`]) {
    const { status } = await peer.post(ping, {}, foreign);
    expect([foreign, [400, 404].includes(status)]).toEqual([foreign, true]);
  }
  expect([400, 404]).toContain((await peer.post(ping, {}, path)).status);
  // Its session does not exist over Streamable HTTP.
  const own = decodeURIComponent(query.split("=")[1] ?? "");
  expect((await peer.post(ping, { "mcp-session-id": own })).status).toBe(404);
  expect(client.stream.messages.filter(({ id }) => id === 1)).toEqual([]);
});

it("legacy HTTP+SSE separates many clients", async () => {
  const { peer } = await startServer();
  const clients = await Promise.all(Array.from({ length: 20 }, () => LegacySseClient.open(peer)));
  await Promise.all(clients.map((client) => client.handshake(OLDEST)));
  const answers = await Promise.all(
    clients.map((client, n) => client.request("tools/call", { name: "echo", arguments: { text: `secret-${n}-` } })),
  );
  expect(answers.map(textOf)).toEqual(clients.map((_, n) => `secret-${n}-`));
  clients.forEach(({ stream }, n) => {
    expect(stream.text.match(/secret-\d+-/g)?.every((found) => found === `secret-${n}-`)).toBe(true);
  });
});

it("legacy HTTP+SSE refuses invalid messages with a status, and the session works", async () => {
  const { peer } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  const broken = await peer.post("{no json", {}, client.endpoint);
  expect(broken.status).toBe(400);
  expect(broken.json).toMatchObject({ error: { code: -32700 } });
  expect((await peer.post("{}", { "content-type": "text/plain" }, client.endpoint)).status).toBe(415);
  expect(await client.request("ping")).toMatchObject({ result: {} });
});

it("legacy HTTP+SSE can be disabled", async () => {
  const { peer } = await startServer({ http: { legacySse: false } });
  expect((await peer.get({}, "/sse")).status).toBe(404);
  expect((await peer.get({}, "/mcp/sse")).status).toBe(404);
  expect((await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" }, {}, "/messages")).status).toBe(404);
});

it("legacy HTTP+SSE allows only GET and POST at its paths", async () => {
  const { peer } = await startServer();
  const posted = await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" }, {}, "/sse");
  expect(posted.status).toBe(405);
  expect(posted.headers["allow"]).toMatch(/^GET\b/);
  const got = await peer.get({}, "/messages");
  expect(got.status).toBe(405);
  expect(got.headers["allow"]).toMatch(/^POST\b/);
});

it("legacy HTTP+SSE ends its streams when the server closes", async () => {
  const { peer, front } = await startServer();
  const client = await LegacySseClient.open(peer);
  await client.handshake(OLDEST);
  await front.close();
  await client.stream.ended;
  expect(client.stream.isEnded).toBe(true);
});
