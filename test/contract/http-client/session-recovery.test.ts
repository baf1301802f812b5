// Sessions that the server forgets, for example after a restart: the client opens a new one, restores subscriptions and the
// log level, and retries only requests that were certainly not executed.

import { describe, expect, it } from "vitest";
import { cut, respondWith, errorResponse, status } from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { expectHelpful, connectTo, startAndConnect, startServer, outcome, STYLES, textOf } from "./fixture.ts";
import { IS_LONG, sampleOf } from "../../support/thoroughness.ts";

const SESSIONS: readonly [string, FaultyServerOptions][] = [
  ["sessions", STYLES["sessions"] ?? {}],
  ["sessions with JSON", STYLES["sessions with JSON"] ?? {}],
  ["sessions without event ids", STYLES["sessions without event ids"] ?? {}],
];
const SESSION = STYLES["sessions"] ?? {};
const idOf = (request: { headers: Readonly<Record<string, string>> } | undefined): string | undefined =>
  request?.headers["mcp-session-id"];

describe.each(sampleOf(1, SESSIONS))("a forgotten session (%s)", (_, options) => {
  it("a forgotten session is replaced, and the call runs once in the new one", async () => {
    const { server, client } = await startAndConnect(options);
    // Otherwise `notifications/initialized` may detect it first.
    await server.until(() => server.count("GET") > 0);
    server.sessions.forget();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
    expect(server.sessions.opened).toBe(2);
    const calls = server.requests.filter(({ operation }) => operation === "tools/call");
    expect(calls.map(idOf)).toEqual(["session-1-of-this-server", "session-2-of-this-server"]);
    const last = server.requests.filter(({ operation }) => operation === "initialize").at(-1);
    expect(idOf(last)).toBeUndefined();
  });

  it("a forgotten session is replaced once for many concurrent calls", async () => {
    const { server, client } = await startAndConnect(options);
    server.sessions.forget();
    const keys = Array.from({ length: 20 }, (_none, n) => `k${n}`);
    const results = await Promise.all(keys.map((key) => client.callTool("run", { key })));
    expect(results.map(textOf)).toEqual(keys.map((key) => `ran ${key}`));
    for (const key of keys) expect(server.backend.runCount(key)).toBe(1);
    expect(server.sessions.opened).toBe(2);
  });

  it("a forgotten session is replaced each time", async () => {
    const { server, client } = await startAndConnect(options);
    for (const key of ["a", "b", "c"]) {
      server.sessions.forget();
      expect(textOf(await client.callTool("run", { key }))).toBe(`ran ${key}`);
    }
    expect(server.sessions.opened).toBe(4);
  });

  it("a forgotten session fails the call if the new session is unknown too, without endless attempts", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", errorResponse(404, { code: -32001, message: "Session not found" }), 50);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error?.message).toMatch(/session/i);
    expect(server.count("tools/call")).toBeLessThanOrEqual(2);
    expect(server.count("initialize")).toBeLessThanOrEqual(3);
    server.clearFaults();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("a forgotten session may be reported by 404 with a page or an empty body", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", status(404));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    server.inject("tools/call", (request) => request.answer(404));
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.sessions.opened).toBe(3);
  });

  it("a forgotten session fails the call if no other can be opened, and the next call tries again", async () => {
    const { server, client } = await startAndConnect(options);
    server.sessions.forget();
    server.inject("initialize", status(503), 10);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error).toMatchObject({ mayHaveRun: false });
    expect(server.backend.runCount("a")).toBe(0);
    server.clearFaults();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("a forgotten session during a call does not run the call again", async () => {
    const { server, client } = await startAndConnect(options);
    const call = outcome(client.callTool("hold", { key: "a" }));
    await server.until(() => server.backend.isHolding("a"));
    await server.restart();
    server.backend.release("a");
    const { error } = await call;
    expectHelpful(error);
    expect(error).toMatchObject({ mayHaveRun: true });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.backend.runCount("a")).toBe(1);
    expect(server.backend.runCount("b")).toBe(1);
  });
});

it.each([
  ["forgets it", false],
  ["restarts", true],
])("a new session receives updates of resources if the server %s", async (_, restarts) => {
  const { server, client } = await startAndConnect(SESSION);
  let wake: () => void = () => undefined;
  let updates = 0;
  await client.listen({ resourceSubscriptions: [NOTE], toolsListChanged: true }, ({ method }) => {
    if (method === "notifications/resources/updated") updates += 1;
    wake();
  });
  const untilUpdates = async (many: number): Promise<void> => {
    while (updates < many) await new Promise<void>((resolve) => (wake = resolve));
  };
  await server.untilSubscribed();
  server.updateNote();
  await untilUpdates(1);
  if (restarts) await server.restart();
  else server.sessions.forget();
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
  await server.untilSubscribed();
  const before = updates;
  server.updateNote();
  await untilUpdates(before + 1);
});

it("a new session is opened by the GET stream if there are no calls", async () => {
  const { server, client } = await startAndConnect(SESSION);
  let wake: () => void = () => undefined;
  const updated = new Promise<void>((resolve) => (wake = resolve));
  await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
  await server.untilSubscribed();
  await server.restart();
  await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
  await server.untilSubscribed();
  server.updateNote();
  await updated;
});

it.each([true, false])("a new session restores the log level (after a call: %s)", async (calls) => {
  const { server, client } = await startAndConnect(SESSION);
  await client.setLogLevel("warning");
  await server.untilSubscribed();
  await server.restart();
  if (calls) await client.callTool("run", { key: "a" });
  await server.until(() => [...server.sessions.sessions.values()].some(({ logLevel }) => logLevel === "warning"));
});

it.runIf(IS_LONG)("a new session is not needed for a stateless subscription, which is opened again", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  let wake: () => void = () => undefined;
  let updates = 0;
  await client.listen({ resourceSubscriptions: [NOTE] }, () => {
    updates += 1;
    wake();
  });
  await server.untilSubscribed();
  await server.restart();
  await server.untilSubscribed();
  const before = updates;
  server.updateNote();
  while (updates <= before) await new Promise<void>((resolve) => (wake = resolve));
  expect(server.count("subscriptions/listen")).toBe(2);
});

it("the id of a session is sent with each request after the handshake, and with DELETE at the end", async () => {
  const { server, client } = await startAndConnect(SESSION);
  await client.callTool("run", { key: "a" });
  await client.listTools();
  await server.untilSubscribed();
  await client.close();
  const [, first, ...rest] = server.requests;
  expect(idOf(first)).toBeUndefined();
  expect(new Set(rest.map(idOf))).toEqual(new Set(["session-1-of-this-server"]));
  expect(server.operations.at(-1)).toBe("DELETE");
  expect(server.sessions.sessions.size).toBe(0);
});

it("the id of a session is optional; without one, there is no DELETE", async () => {
  const { server, client } = await startAndConnect(STYLES["sessions without ids"]);
  await client.callTool("run", { key: "a" });
  await client.close();
  expect(server.operations).not.toContain("DELETE");
  expect(server.requests.map(idOf).filter((id) => id !== undefined)).toEqual([]);
});

it("the id of a session may stay valid: a failed DELETE is not an error", async () => {
  for (const fault of [status(405), status(500), status(404), cut(0)]) {
    const { server, client } = await startAndConnect(SESSION);
    server.inject("DELETE", fault);
    await client.close();
    expect(server.count("DELETE")).toBe(1);
  }
});

it("the id of a session is that of the handshake, whatever later responses have", async () => {
  const { server, client } = await startAndConnect({ style: "session", session: { changesIds: true, retryMs: 10 } });
  for (const key of ["a", "b", "c"]) expect(textOf(await client.callTool("run", { key }))).toBe(`ran ${key}`);
  expect(server.sessions.opened).toBe(1);
});

it("the id of a session is not sent to another server", async () => {
  const [one, two] = [
    await startServer(SESSION),
    await startServer({ style: "session", session: { sessionIds: false } }),
  ];
  await connectTo(one);
  const client = await connectTo(two);
  await client.callTool("run", { key: "a" });
  expect(two.requests.map(idOf).filter((id) => id !== undefined)).toEqual([]);
});

it.each([200, 202, 204] as const)(
  "a server with unusual answers may answer notifications with %i",
  async (accepted) => {
    const { client } = await startAndConnect({ style: "session", session: { accepted } });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  },
);

it("a server with unusual answers may answer notifications with 400, and the session works", async () => {
  const server = await startServer(SESSION);
  server.inject("notifications/initialized", status(400));
  const client = await connectTo(server);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
});

it.each(["refused", "bad request"] as const)(
  "a server with unusual answers may have no GET stream: %s",
  async (get) => {
    const { server, client } = await startAndConnect({ style: "session", session: { get } });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.count("GET")).toBe(1);
  },
);

it("a server with unusual answers may answer GET with a page, which is ignored", async () => {
  const server = await startServer(SESSION);
  server.inject("GET", respondWith("<html>Hello</html>", { "content-type": "text/html" }), 3);
  const client = await connectTo(server);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(server.count("GET")).toBe(1);
});
