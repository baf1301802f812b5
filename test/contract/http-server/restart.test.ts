// Sessions over a restart of the server: with the same key, their clients go on. Ids that are forged, expired, ended or
// of another principal are as unknown as without a key.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, expect, it, vi } from "vitest";
import type { Authenticator } from "../../../src/core/authentication.ts";
import { NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import { lastingPort } from "../../support/http/raw-server.ts";
import { closeAfterTest, startServer, textOf, type StartedServer, type StartOptions } from "./fixture.ts";

const SESSIONS = REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name);
const LATEST = NEWEST_SESSION.name;
const KEYED = { http: { sealKey: "a key that stays" } };

async function start(options: StartOptions = KEYED): Promise<StartedServer> {
  return startServer({ ...options, http: { ...options.http, port: await lastingPort() } });
}

/** Closes the server, and starts another one at the same port. */
async function restart({ front, peer }: StartedServer, options: StartOptions = KEYED): Promise<StartedServer> {
  await front.close();
  return startServer({ ...options, http: { ...options.http, port: Number(peer.url.port) } });
}

afterEach(() => {
  vi.useRealTimers();
});

it.each(SESSIONS)(
  "after a restart, a session of revision %s goes on with its revision and capabilities",
  async (revision) => {
    const started = await start();
    const client = await SessionClient.open(started.peer, revision, { capabilities: { sampling: {} } });
    const { fixture } = await restart(started);
    const [listed, called] = await Promise.all([
      client.request("tools/list"),
      client.request("tools/call", { name: "who" }),
    ]);
    expect(listed).toMatchObject({ result: { tools: expect.any(Array) as unknown[] } });
    expect(JSON.parse(textOf(called))).toMatchObject({ revision });
    const { caller } = await fixture.subscribed(0);
    expect(caller).toMatchObject({ info: { name: "raw" }, capabilities: { sampling: {} } });
    // Both requests were of one session.
    expect(fixture.subscriptions).toHaveLength(1);
  },
);

it("after a restart, a session gets one notification for each list, which may have changed", async () => {
  const started = await start();
  const client = await SessionClient.open(started.peer, LATEST);
  await restart(started);
  await client.request("ping");
  const stream = await client.listen();
  const names = ["tools", "prompts", "resources"].map((name) => `notifications/${name}/list_changed`);
  await stream.until(() => stream.messages.length >= names.length);
  expect(stream.messages.map(({ method }) => String(method))).toEqual(names);
});

it("after a restart, a session takes up its GET stream again, and not the stream of a lost call", async () => {
  const started = await start({ ...KEYED, graceMs: 0 });
  const client = await SessionClient.open(started.peer, LATEST);
  const stream = await client.listen();
  await stream.until(({ id }) => id !== undefined);
  const call = client.call(1, "hold", { key: "k" });
  const context = await started.fixture.holding("k");
  context.progress(1);
  const reply = await call;
  await reply.until(({ message }) => message !== undefined);
  const { fixture } = await restart(started);
  const back = await client.resume(stream.lastEventId);
  expect(back.status).toBe(200);
  await back.until(() => back.messages.length === 3);
  fixture.server.tool("later", {}, () => "late");
  await back.until(() => back.messages.length === 4);
  expect((await client.resume(reply.lastEventId)).status).toBe(400);
});

it("after a restart, a session goes on for a client of the official SDK", async () => {
  const started = await start();
  const client = closeAfterTest(new Client({ name: "sdk", version: "1" }, { capabilities: { elicitation: {} } }));
  const changed: string[] = [];
  client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => void changed.push(method));
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: "me" } }));
  const transport = new StreamableHTTPClientTransport(started.peer.url);
  await client.connect(transport);
  const id = transport.sessionId;
  await started.fixture.subscribed(0);
  // Its stream is open when this has come.
  started.fixture.server.tool("more", {}, () => "more");
  await expect.poll(() => changed.length).toBe(1);
  await restart(started);
  const call = async (name: string, args = {}): Promise<string> =>
    textOf({ result: await client.callTool({ name, arguments: args }) });
  // Its first request may still use a connection of before, which has just been closed.
  await expect.poll(() => call("echo", { text: "still here" }).catch(String)).toBe("still here");
  expect(await call("elicit")).toBe("accept me");
  expect(transport.sessionId).toBe(id);
  // The SDK opens its stream again by itself.
  await expect.poll(() => changed.length).toBe(2);
});

it("after a restart, a session counts among the sessions", async () => {
  const started = await start();
  const [one, two] = [await SessionClient.open(started.peer, LATEST), await SessionClient.open(started.peer, LATEST)];
  await restart(started, { http: { ...KEYED.http, limits: { sessions: 1 } } });
  expect(await one.request("ping")).toMatchObject({ result: {} });
  expect((await two.post({ id: 1, method: "ping" })).status).toBe(503);
  await one.end();
  expect(await two.request("ping")).toMatchObject({ result: {} });
});

const status = async (client: SessionClient, headers = {}): Promise<number> =>
  (await client.post({ id: 1, method: "ping" }, headers)).status;

it("an id is unknown after a restart without a key, or with another one", async () => {
  const started = await start();
  const client = await SessionClient.open(started.peer, LATEST);
  const other = await restart(started, { http: { sealKey: "another" } });
  expect(await status(client)).toBe(404);
  await restart(other, {});
  expect(await status(client)).toBe(404);
});

it("an id is unknown after a restart without the revision of the session", async () => {
  const started = await start();
  const client = await SessionClient.open(started.peer, SESSIONS[0] ?? "");
  await restart(started, { ...KEYED, revisions: [LATEST] });
  expect(await status(client, { "mcp-protocol-version": LATEST })).toBe(404);
});

it("an id is unknown if any character of it is changed", async () => {
  const started = await start();
  const client = await SessionClient.open(started.peer, LATEST);
  await restart(started);
  const { session } = client;
  expect(session).toMatch(/^[\x21-\x7e]{1,2048}$/);
  for (const at of [0, 2, 20, session.length >> 1, session.length - 1]) {
    const forged = `${session.slice(0, at)}${session[at] === "A" ? "B" : "A"}${session.slice(at + 1)}`;
    expect([at, await status(client, { "mcp-session-id": forged })]).toEqual([at, 404]);
  }
  expect(await status(client)).toBe(200);
});

it("an id is unknown if it has expired", async () => {
  const started = await start();
  const client = await SessionClient.open(started.peer, LATEST);
  await restart(started);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 8 * 24 * 60 * 60 * 1_000 });
  expect(await status(client)).toBe(404);
});

it("an id is unknown for another principal", async () => {
  const auth: Authenticator = {
    authenticate: async ({ headers }) => ({ principal: headers["authorization"] ?? "anonymous" }),
  };
  const options = { http: { ...KEYED.http, auth } };
  const started = await start(options);
  const ada = await SessionClient.open(started.peer, LATEST, { headers: { authorization: "ada" } });
  await restart(started, options);
  expect(await status(ada, { authorization: "bob" })).toBe(404);
  expect(await status(ada)).toBe(200);
  expect(await status(ada, { authorization: "bob" })).toBe(404);
});

it("an id is unknown after DELETE, also of a session that was opened again", async () => {
  const started = await start();
  const [one, two] = [await SessionClient.open(started.peer, LATEST), await SessionClient.open(started.peer, LATEST)];
  await one.end();
  expect(await status(one)).toBe(404);
  await restart(started);
  expect((await two.end()).status).toBe(204);
  expect(await status(two)).toBe(404);
  expect((await two.listen()).status).toBe(404);
});

it("a handshake that is too long for a header gets a short id", async () => {
  const { peer } = await startServer(KEYED);
  const client = await SessionClient.open(peer, LATEST, {
    capabilities: { experimental: { long: "x".repeat(3_000) } },
  });
  expect(client.session).toMatch(/^[0-9a-f]{32}$/);
  expect(await client.request("ping")).toMatchObject({ result: {} });
});
