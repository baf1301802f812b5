// Log messages on a transport that does not say to which call they belong: when the level is sent to the server, and
// which call gets the messages.

import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { RawPeer } from "../../../test/support/dialogue/raw-peer.ts";
import type { Context, LogLevel, Notification } from "../../core/handler.ts";
import { META } from "../../protocol/model/base.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { memoryPair } from "../../transport/memory.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { openConnection, type ServerConnection } from "../connect.ts";

afterEach(() => {
  vi.useRealTimers();
});

const heard: string[] = [];
const contextOf = (name: string, logLevel?: LogLevel, key?: string): Context => ({
  revision: NEWEST.name,
  caller: fakeCaller(key === undefined ? {} : { key }),
  signal: new AbortController().signal,
  ...(logLevel === undefined ? undefined : { logLevel }),
  notify: ({ params }: Notification) => void heard.push(`${name}: ${String(params?.["data"])}`),
  ask: () => Promise.reject(new Error("Not asked")),
});

async function open(revision: string): Promise<{ server: RawPeer; opened: ServerConnection }> {
  heard.length = 0;
  const [back, side] = memoryPair();
  const server = await new RawPeer(side).start();
  const info = { name: "us", version: "1" };
  const opening = openConnection(() => back, { info, capabilities: {}, defaultContext: contextOf("home"), revision });
  const { id, method } = await server.until((message) => message["method"] !== undefined);
  const capabilities = { tools: {}, logging: {} };
  const result =
    method === "initialize"
      ? { protocolVersion: revision, capabilities, serverInfo: { name: "e", version: "1" } }
      : { supportedVersions: [revision], capabilities, resultType: "complete", ttlMs: 0, cacheScope: "private" };
  server.send({ id, result });
  return { server, opened: await opening };
}

const called = { method: "tools/call", params: { name: "any" } };
const say = (level: string, data: string): { method: string; params: object } => ({
  method: "notifications/message",
  params: { level, data },
});

it("a call waits until a session-style server has confirmed the level, since HTTP requests may overtake each other", async () => {
  const { server, opened } = await open(NEWEST_SESSION.name);
  const calls = ["one", "two"].map((name) => opened.handler(called, contextOf(name, "debug")));
  const { id } = await server.until(({ method }) => method === "logging/setLevel");
  // A call that wants no logs does not wait.
  const list = opened.handler({ method: "tools/list", params: {} }, contextOf("list"));
  server.send({ id: (await server.until(({ method }) => method === "tools/list"))["id"], result: { tools: [] } });
  await list;
  expect(server.received.filter(({ method }) => method === "tools/call")).toEqual([]);
  server.send({ id, result: {} });
  for (const at of [0, 1]) {
    await eventually(() => expect(server.received.filter(({ method }) => method === "tools/call")).toHaveLength(2));
    server.send({
      id: server.received.filter(({ method }) => method === "tools/call")[at]?.["id"],
      result: { content: [] },
    });
  }
  await Promise.all(calls);
  await opened.close();
});

it("a call does not wait for a server that never confirms the level", async () => {
  const { server, opened } = await open(NEWEST_SESSION.name);
  vi.useFakeTimers();
  const call = opened.handler(called, contextOf("one", "debug"));
  await vi.advanceTimersByTimeAsync(1_000);
  const { id } = await server.until(({ method }) => method === "tools/call");
  server.send({ id, result: { content: [] } });
  await call;
  vi.useRealTimers();
  await opened.close();
});

it("a log of a session-style server goes to the running call, not to a list request", async () => {
  const { server, opened } = await open(NEWEST_SESSION.name);
  const call = opened.handler(called, contextOf("call", "info"));
  server.send({ id: (await server.until(({ method }) => method === "logging/setLevel"))["id"], result: {} });
  const { id } = await server.until(({ method }) => method === "tools/call");
  const list = opened.handler({ method: "tools/list", params: {} }, contextOf("list", "info"));
  const listed = await server.until(({ method }) => method === "tools/list");
  server.send(say("info", "working"), { id: listed["id"], result: { tools: [] } }, { id, result: { content: [] } });
  await Promise.all([call, list]);
  expect(heard).toEqual(["call: working"]);
  await opened.close();
});

it("a log goes to no call if another client's call could have caused it", async () => {
  const { server, opened } = await open(NEWEST_SESSION.name);
  const key = "all callers of one principal";
  const wanting = opened.handler(called, contextOf("one", "info", key));
  server.send({ id: (await server.until(({ method }) => method === "logging/setLevel"))["id"], result: {} });
  const silent = opened.handler(called, contextOf("other", undefined, key));
  await eventually(() => expect(server.received.filter(({ method }) => method === "tools/call")).toHaveLength(2));
  server.send(say("info", "of one of them"));
  for (const { id } of server.received.filter(({ method }) => method === "tools/call"))
    server.send({ id, result: { content: [] } });
  await Promise.all([wanting, silent]);
  expect(heard).toEqual(["home: of one of them"]);
  await opened.close();
});

it("a log of a stateless server goes to a call of the same client that wants the level", async () => {
  const { server, opened } = await open(NEWEST.name);
  const calls = (["debug", "error"] as const).map((level) =>
    opened.handler(called, contextOf(level, level, "one client")),
  );
  await eventually(() => expect(server.received.filter(({ method }) => method === "tools/call")).toHaveLength(2));
  server.send(say("debug", "small"), say("error", "big"));
  for (const { id } of server.received.filter(({ method }) => method === "tools/call"))
    server.send({ id, result: { content: [], resultType: "complete", _meta: { [META.serverInfo]: {} } } });
  await Promise.all(calls);
  expect(heard).toEqual(["debug: small", "error: big"]);
  await opened.close();
});
