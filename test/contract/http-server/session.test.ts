// Sessions over HTTP: the id, the revision header, and the end by DELETE or by inactivity (2025-11-25, basic/transports,
// "Session Management").

import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { initialize, SessionClient } from "../../support/http/mcp-clients.ts";
import type { Json } from "../../support/http/http-peer.ts";
import { startServer, textOf } from "./fixture.ts";

/** The first of them predates Streamable HTTP. */
const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const NEWER = SESSIONS.slice(1);
const LATEST = NEWEST_SESSION.name;
const PING = { jsonrpc: "2.0", id: 1, method: "ping" };

it.each(SESSIONS)("a session over HTTP is opened by initialize in %s", async (revision) => {
  const { peer } = await startServer();
  const reply = await peer.post(initialize(revision));
  expect(reply.status).toBe(200);
  expect(reply.headers["content-type"]).toMatch(/^application\/json/);
  expect(reply.json).toMatchObject({ id: "init", result: { protocolVersion: revision } });
  expect(reply.headers["mcp-session-id"]).toMatch(/^[\x21-\x7e]+$/);
});

it("a session over HTTP is opened in the newest session-style revision if the requested one is unknown", async () => {
  const { peer } = await startServer();
  for (const requested of ["1999-01-01", "latest", NEWEST.name]) {
    const reply = await peer.post(initialize(requested));
    expect(reply.json).toMatchObject({ result: { protocolVersion: LATEST } });
  }
});

it("a session over HTTP has an id that cannot be guessed", async () => {
  const { peer } = await startServer();
  const ids = await Promise.all(
    Array.from({ length: 50 }, async () => (await peer.post(initialize(LATEST))).headers["mcp-session-id"] ?? ""),
  );
  expect(new Set(ids).size).toBe(50);
  // 128 bits are 22 characters of six bits, or 32 of four.
  for (const id of ids) expect(id.replaceAll("-", "").length).toBeGreaterThanOrEqual(22);
  // No two have a common prefix, as a counter or a clock would cause.
  expect(new Set(ids.map((id) => id.slice(0, 8))).size).toBe(50);
});

it("a session over HTTP is opened if initialize has a version header too", async () => {
  const { peer } = await startServer();
  for (const revision of NEWER) {
    const reply = await peer.post(initialize(revision), { "mcp-protocol-version": revision });
    expect(reply.json).toMatchObject({ result: { protocolVersion: revision } });
  }
});

it("a session over HTTP is not opened if initialize fails", async () => {
  const { peer } = await startServer();
  const reply = await peer.post({ ...initialize(LATEST), params: { protocolVersion: 7 } });
  expect(reply.json).toMatchObject({ id: "init", error: { code: -32602 } });
  expect(reply.headers["mcp-session-id"]).toBeUndefined();
});

it("a session over HTTP refuses requests without its id: 400", async () => {
  const { peer } = await startServer();
  const { session } = await SessionClient.open(peer, LATEST);
  for (const method of ["ping", "tools/list", "tools/call", "no/such"]) {
    const reply = await peer.post({ ...PING, method });
    expect([method, reply.status]).toEqual([method, 400]);
    expect(reply.json).toMatchObject({ jsonrpc: "2.0", error: { code: expect.any(Number) as number } });
    expect(reply.text).not.toContain(session);
  }
  expect((await peer.post({ jsonrpc: "2.0", method: "notifications/initialized" })).status).toBe(400);
  expect((await peer.post({ jsonrpc: "2.0", id: 1, result: {} })).status).toBe(400);
  expect((await peer.get()).status).toBeGreaterThanOrEqual(400);
  expect((await peer.send({ method: "DELETE" })).status).toBeGreaterThanOrEqual(400);
});

it("a session over HTTP is not found with another id: 404", async () => {
  const { peer } = await startServer();
  const { session } = await SessionClient.open(peer, LATEST);
  const ids = [
    "unknown",
    session.slice(1),
    `${session}x`,
    session.toUpperCase().toLowerCase() + "0",
    `${session}, ${session}`,
  ];
  for (const id of ids) {
    const headers = { "mcp-session-id": id };
    expect([id, (await peer.post(PING, headers)).status]).toEqual([id, 404]);
    expect([id, (await peer.get(headers)).status]).toEqual([id, 404]);
    expect([id, (await peer.send({ method: "DELETE", headers })).status]).toEqual([id, 404]);
  }
  expect((await peer.post(PING, { "mcp-session-id": session })).status).toBe(200);
});

it("a session over HTTP ends by DELETE: streams end, calls are aborted, and its id is not found", async () => {
  const { fixture, peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const other = await SessionClient.open(peer, LATEST);
  const stream = await client.listen();
  const call = client.call(1, "hold", { key: "k" });
  const { signal } = await fixture.holding("k");
  const ended = await client.end();
  expect([200, 202, 204]).toContain(ended.status);
  await stream.ended;
  expect(signal.aborted).toBe(true);
  await (
    await call
  ).ended;
  expect((await client.post({ id: 2, method: "ping" })).status).toBe(404);
  expect((await client.listen()).status).toBe(404);
  expect((await client.end()).status).toBe(404);
  expect(await other.request("ping")).toMatchObject({ result: {} });
});

it("a session over HTTP ends after sessionIdleMs, but not while a stream or a call is open", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { sessionIdleMs: 400 } } });
  const listening = await SessionClient.open(peer, LATEST);
  const stream = await listening.listen();
  const working = await SessionClient.open(peer, LATEST);
  const call = working.call(1, "hold", { key: "k" });
  await fixture.holding("k");
  const idle = await SessionClient.open(peer, LATEST);
  // The last subscription is that of the idle session and ends with it.
  const { signal } = await fixture.subscribed(2);
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  expect((await idle.post({ id: 2, method: "ping" })).status).toBe(404);
  expect(stream.isEnded).toBe(false);
  expect(await listening.request("ping")).toMatchObject({ result: {} });
  fixture.release("k");
  expect(textOf(await (await call).answerTo(1))).toBe("released k");
});

it("a session over HTTP ends soon after its last stream closed, unless the client comes back, a call runs, or it never had one", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { sessionDisconnectedMs: 400 } } });
  const posting = await SessionClient.open(peer, LATEST);
  const working = await SessionClient.open(peer, LATEST);
  const call = working.call(1, "hold", { key: "k" });
  await fixture.holding("k");
  const returning = await SessionClient.open(peer, LATEST);
  const left = await SessionClient.open(peer, LATEST);
  const { signal } = await fixture.subscribed(3);
  const ended = new Promise((resolve) => signal.addEventListener("abort", resolve));
  for (const client of [left, working, returning]) {
    const stream = await client.listen();
    stream.hangUp();
    await stream.ended;
  }
  const again = await returning.listen();
  await ended;
  expect((await left.post({ id: 2, method: "ping" })).status).toBe(404);
  expect(again.isEnded).toBe(false);
  for (const client of [posting, returning]) expect(await client.request("ping")).toMatchObject({ result: {} });
  fixture.release("k");
  expect(textOf(await (await call).answerTo(1))).toBe("released k");
});

it("a session over HTTP never has an id that the client chose", async () => {
  const { peer } = await startServer();
  const chosen = "0123456789abcdef0123456789abcdef";
  const reply = await peer.post(initialize(LATEST), { "mcp-session-id": chosen });
  expect(reply.headers["mcp-session-id"]).not.toBe(chosen);
  expect((await peer.post(PING, { "mcp-session-id": chosen })).status).toBe(404);
});

it("a session over HTTP is initialized once", async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const again = await client.post(initialize(SESSIONS[0] ?? ""));
  expect(again.json).toMatchObject({ error: { code: -32600 } });
  expect(again.headers["mcp-session-id"] ?? client.session).toBe(client.session);
  expect(await client.request("tools/list")).toMatchObject({ result: { tools: expect.any(Array) as Json[] } });
});

it.each(NEWER)("a session over HTTP accepts the version header of %s, or none", async (revision) => {
  const { peer } = await startServer();
  const { session } = await SessionClient.open(peer, revision);
  const own = { "mcp-session-id": session };
  expect((await peer.post(PING, own)).status).toBe(200);
  expect((await peer.post(PING, { ...own, "mcp-protocol-version": revision })).status).toBe(200);
  for (const wrong of ["1999-01-01", "2025-6-18", "", "v1", `${revision}, ${revision}`]) {
    const reply = await peer.post(PING, { ...own, "mcp-protocol-version": wrong });
    expect([wrong, reply.status]).toEqual([wrong, 400]);
    expect([wrong, (await peer.get({ ...own, "mcp-protocol-version": wrong })).status]).toEqual([wrong, 400]);
  }
});

it("a session over HTTP answers JSON-RPC errors with 200", async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const cases: [string, Json, number][] = [
    ["no/such", {}, -32601],
    ["tools/call", { name: "unknown" }, -32602],
    ["resources/read", { uri: "nowhere://x" }, -32002],
    ["prompts/get", { name: "greet", arguments: {} }, -32602],
  ];
  for (const [method, params, code] of cases) {
    const reply = await client.post({ id: 1, method, params });
    expect([method, reply.status, reply.json["error"]?.code]).toEqual([method, 200, code]);
  }
});

it("a session over HTTP refuses invalid messages with 400, and still works", async () => {
  const { peer } = await startServer();
  const client = await SessionClient.open(peer, LATEST);
  const own = { "mcp-session-id": client.session };
  for (const [body, code] of [
    ["{", -32700],
    ['"text"', -32600],
    ['{"jsonrpc":"2.0"}', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
  ] as const) {
    const reply = await peer.post(body, own);
    expect([body, reply.status, reply.json["error"]?.code]).toEqual([body, 400, code]);
  }
  expect(await client.request("ping")).toMatchObject({ result: {} });
});

it('a session over HTTP echoes ids byte for byte, and distinguishes 1 from "1"', async () => {
  const { peer } = await startServer();
  const { session } = await SessionClient.open(peer, LATEST);
  for (const id of ["1", '"1"', "0", "-7", "9007199254740993", '""', '"\\u00e4"']) {
    const reply = await peer.post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`, { "mcp-session-id": session });
    const [, echoed] = /"id":\s*("(?:[^"\\]|\\.)*"|[^,}]+)/.exec(reply.text) ?? [];
    expect([id, JSON.parse(echoed ?? "null")]).toEqual([id, JSON.parse(id)]);
    if (!id.startsWith('"')) expect(echoed).toBe(id);
  }
});
