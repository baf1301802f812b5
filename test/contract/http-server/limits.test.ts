// The limits of the HTTP server: a client over a limit gets a suitable status, and other clients are not affected.

import { connect as connectSocket } from "node:net";
import { expect, it } from "vitest";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import {
  StatelessClient,
  initialize,
  LegacySseClient,
  SessionClient,
  toolCall,
} from "../../support/http/mcp-clients.ts";
import type { HttpPeer, Reply } from "../../support/http/http-peer.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import type { Authenticator } from "../../../src/core/authentication.ts";
import { startServer, textOf } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;
const BATCHES = REVISIONS.find(({ batches }) => batches)?.name ?? "";
const INITIALIZE = initialize(LATEST);

function head(peer: HttpPeer, ...more: readonly string[]): string {
  const lines = ["POST /mcp HTTP/1.1", `Host: ${peer.url.host}`, "Content-Type: application/json", ...more];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

const busy = (reply: Reply): unknown[] => [reply.status, Number(reply.headers["retry-after"]) > 0];

it.runIf(IS_LONG)("a body with a Content-Length over the limit is refused before it arrives", async () => {
  const { peer } = await startServer({ limits: { messageBytes: 1_000 } });
  // None of the body is ever sent.
  const answer = await peer.raw(head(peer, "Content-Length: 1073741824", "Connection: close"));
  expect(answer).toMatch(/^HTTP\/1\.1 413/);
});

it.runIf(IS_LONG)("a body in chunks is refused when it exceeds the limit", async () => {
  const { peer } = await startServer({ limits: { messageBytes: 1_000 } });
  const chunk = `200\r\n${"x".repeat(512)}\r\n`;
  const answer = await peer.raw(head(peer, "Transfer-Encoding: chunked", "Connection: close"), chunk, chunk, chunk);
  expect(answer).toMatch(/^HTTP\/1\.1 413/);
});

it("a body of exactly the limit is accepted, and one byte more is not", async () => {
  const { peer } = await startServer({ limits: { messageBytes: 1_000 } });
  const filled = (length: number): string => {
    const bare = JSON.stringify({ ...INITIALIZE, fill: "" });
    return JSON.stringify({ ...INITIALIZE, fill: "x".repeat(length - bare.length) });
  };
  expect((await peer.post(filled(1_000))).status).toBe(200);
  expect((await peer.post(filled(1_001))).status).toBe(413);
});

it("a body that does not arrive times out", async () => {
  const { peer } = await startServer({ http: { limits: { bodyMs: 300 } } });
  const answer = await peer.raw(head(peer, "Content-Length: 100"), '{"jsonrpc":');
  expect(answer).toMatch(/^HTTP\/1\.1 408/);
  expect((await peer.post(INITIALIZE)).status).toBe(200);
});

it("a body of an aborted request leaves no session behind", async () => {
  const { peer } = await startServer({ http: { limits: { sessions: 1 } } });
  const socket = connectSocket(Number(peer.url.port), peer.url.hostname);
  await new Promise((resolve) => socket.write(`${head(peer, "Content-Length: 100")}{"jsonrpc"`, resolve));
  socket.destroy();
  expect((await peer.post(INITIALIZE)).status).toBe(200);
});

it("a head that does not arrive times out", async () => {
  const { peer } = await startServer({ http: { limits: { headerMs: 300 } } });
  const answer = await peer.raw("POST /mcp HTTP/1.1\r\nHost: ");
  expect(answer === "" || answer.startsWith("HTTP/1.1 408")).toBe(true);
  expect((await peer.post(INITIALIZE)).status).toBe(200);
});

it("a head that is too long is refused", async () => {
  const { peer } = await startServer({ http: { limits: { headerBytes: 4 * 1024 } } });
  const answer = await peer.raw(head(peer, `X-Long: ${"x".repeat(8 * 1024)}`, "Content-Length: 0"));
  expect(answer).toMatch(/^HTTP\/1\.1 431/);
});

it("too many: sessions: 503 until one has ended", async () => {
  const { peer } = await startServer({ http: { limits: { sessions: 2 } } });
  const first = await SessionClient.open(peer, LATEST);
  const second = await SessionClient.open(peer, LATEST);
  expect(busy(await peer.post(INITIALIZE))).toEqual([503, true]);
  expect(await first.request("ping")).toMatchObject({ result: {} });
  expect(await new StatelessClient(peer).request(1, "tools/list")).toMatchObject({ result: {} });
  await second.end();
  expect((await peer.post(INITIALIZE)).status).toBe(200);
});

it("too many: legacy SSE sessions: 503 until one has ended", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { sessions: 1 } } });
  const first = await LegacySseClient.open(peer);
  await first.handshake(LATEST);
  expect(busy(await peer.get({}, "/sse"))).toEqual([503, true]);
  const { signal } = await fixture.subscribed(0);
  const ended = new Promise((resolve) => signal.addEventListener("abort", resolve));
  first.stream.hangUp();
  await ended;
  await LegacySseClient.open(peer);
});

it("too many requests in flight: 503 until one is answered, in both styles", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { requests: 2 } } });
  const session = await SessionClient.open(peer, LATEST);
  const stateless = new StatelessClient(peer);
  const one = session.call(1, "hold", { key: "one" });
  const two = stateless.begin(2, "tools/call", { name: "hold", arguments: { key: "two" } });
  await Promise.all([fixture.holding("one"), fixture.holding("two")]);
  expect(busy(await session.call(3, "echo", { text: "x" }))).toEqual([503, true]);
  expect(busy(await stateless.post(4, "tools/list"))).toEqual([503, true]);
  // Notifications are always accepted.
  const cancel = { method: "notifications/cancelled", params: { requestId: 1 } };
  expect((await session.post(cancel)).status).toBe(202);
  await (
    await one
  ).ended;
  expect(textOf(await (await session.call(5, "echo", { text: "again" })).answerTo(5))).toBe("again");
  two.hangUp();
});

it("too many requests in flight: a batch counts as many as it contains", async () => {
  const { peer } = await startServer({ http: { limits: { requests: 3 } } });
  const client = await SessionClient.open(peer, BATCHES);
  const held = client.call("held", "hold", { key: "held" });
  const batch = (size: number) => Array.from({ length: size }, (_, id) => toolCall(id, "echo", { text: "x" }));
  await expect.poll(async () => (await client.post(batch(3))).status).toBe(503);
  expect((await client.post(batch(2))).status).toBe(200);
  await client.post({ method: "notifications/cancelled", params: { requestId: "held" } });
  await (
    await held
  ).ended;
});

it("too many requests in flight over legacy HTTP+SSE: 503, and the others are answered", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { requests: 2 } } });
  const client = await LegacySseClient.open(peer);
  await client.handshake(LATEST);
  const statuses: number[] = [];
  for (let id = 1; id <= 4; id += 1) statuses.push((await client.post(toolCall(id, "hold", { key: `${id}` }))).status);
  expect(statuses).toEqual([202, 202, 503, 503]);
  expect((await client.post({ method: "notifications/cancelled", params: { requestId: 1 } })).status).toBe(202);
  fixture.release("2");
  expect(textOf(await client.stream.answerTo(2))).toBe("released 2");
  expect((await client.post({ id: 5, method: "ping" })).status).toBe(202);
});

it("too many: subscriptions: 503 until one has ended, and calls work", async () => {
  const { fixture, peer } = await startServer({ http: { limits: { listens: 1 } } });
  const client = new StatelessClient(peer);
  const listen = { notifications: { toolsListChanged: true } };
  const stream = await client.post(1, "subscriptions/listen", listen);
  const { signal } = await fixture.subscribed(0);
  expect(busy(await client.post(2, "subscriptions/listen", listen))).toEqual([503, true]);
  expect(await client.request(3, "tools/list")).toMatchObject({ result: {} });
  const ended = new Promise((resolve) => signal.addEventListener("abort", resolve));
  stream.hangUp();
  await ended;
  const again = async (): Promise<number> => (await client.post(4, "subscriptions/listen", listen)).status;
  await expect.poll(again).toBe(200);
});

/** The token is the name of the principal. */
const auth: Authenticator = {
  authenticate: async ({ headers }) => ({ principal: headers["authorization"] ?? "anonymous" }),
};
const ADA = { headers: { authorization: "ada" } };
const BOB = { headers: { authorization: "bob" } };

it("one principal cannot have all requests in flight", async () => {
  const { fixture, peer } = await startServer({ http: { auth, limits: { requests: 4 } } });
  const bob = new StatelessClient(peer, BOB);
  const held = ["1", "2", "3"].map((key) => bob.begin(key, "tools/call", { name: "hold", arguments: { key } }));
  await Promise.all(["1", "2", "3"].map((key) => fixture.holding(key)));
  const refused = await bob.post(4, "tools/list");
  expect(busy(refused)).toEqual([503, true]);
  expect(refused.text).toContain("Too many requests of yours");
  expect(await new StatelessClient(peer, ADA).request(5, "tools/list")).toMatchObject({ result: {} });
  for (const call of held) call.hangUp();
  await expect.poll(async () => (await bob.post(6, "tools/list")).status).toBe(200);
});

it("one principal cannot have all requests in flight with handlers that ignore a disconnect", async () => {
  const { fixture, peer } = await startServer({ http: { auth, limits: { requests: 4 } } });
  const bob = new StatelessClient(peer, BOB);
  const statuses: number[] = [];
  for (const key of ["1", "2", "3", "4", "5", "6"]) {
    const call = bob.begin(key, "tools/call", { name: "ignore", arguments: { key } });
    const { signal } = await fixture.holding(key);
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
    call.hangUp();
    await aborted;
    statuses.push((await new StatelessClient(peer, ADA).post(1, "tools/list")).status);
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
  expect(busy(await bob.post(7, "tools/list"))).toEqual([503, true]);
});

it("one principal cannot have all sessions", async () => {
  const { peer } = await startServer({ http: { auth, limits: { sessions: 4 } } });
  const bobs = [1, 2, 3].map(() => SessionClient.open(peer, LATEST, BOB));
  await Promise.all(bobs);
  expect(busy(await peer.post(INITIALIZE, BOB.headers))).toEqual([503, true]);
  expect(busy(await peer.get(BOB.headers, "/sse"))).toEqual([503, true]);
  const ada = await SessionClient.open(peer, LATEST, ADA);
  expect(await ada.request("ping")).toMatchObject({ result: {} });
  expect((await peer.post(INITIALIZE, ADA.headers)).status).toBe(503);
  await (await bobs[0])?.end();
  expect((await peer.post(INITIALIZE, BOB.headers)).status).toBe(200);
});

it("one principal cannot have all subscriptions", async () => {
  const { fixture, peer } = await startServer({ http: { auth, limits: { listens: 4 } } });
  const listen = { notifications: { toolsListChanged: true } };
  const bob = new StatelessClient(peer, BOB);
  for (const index of [0, 1, 2]) {
    await bob.post(index, "subscriptions/listen", listen);
    await fixture.subscribed(index);
  }
  expect(busy(await bob.post(3, "subscriptions/listen", listen))).toEqual([503, true]);
  expect((await new StatelessClient(peer, ADA).post(4, "subscriptions/listen", listen)).status).toBe(200);
});
