// Sessions that the end forgets, by itself or because it was started anew: the client begins another one, says again
// what the end must know (subscriptions, the level of logs), and repeats only what was surely not executed.

import { describe, expect, it } from "vitest";
import { cut, respondWith, errorResponse, status } from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { FaultyServerOptions } from "../../support/faulty-server/server.ts";
import { expectHelpful, connectTo, startAndConnect, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const SESSIONS: readonly [string, FaultyServerOptions][] = [
  ["sessions", STYLES["sessions"] ?? {}],
  ["sessions of JSON", STYLES["sessions of JSON"] ?? {}],
  ["sessions without ids of events", STYLES["sessions without ids of events"] ?? {}],
];
const SESSION = STYLES["sessions"] ?? {};
const idOf = (request: { headers: Readonly<Record<string, string>> } | undefined): string | undefined =>
  request?.headers["mcp-session-id"];

describe.each(SESSIONS)("the end forgets one of its %s", (_, options) => {
  it("and the call that found out is made in a new one, once", async () => {
    const { server, client } = await startAndConnect(options);
    // Otherwise the end of the handshake may be the first to find out.
    await server.until(() => server.count("GET") > 0);
    server.sessions.forget();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
    expect(server.sessions.opened).toBe(2);
    const calls = server.requests.filter(({ operation }) => operation === "tools/call");
    expect(calls.map(idOf)).toEqual(["session-1-of-this-end", "session-2-of-this-end"]);
    const anew = server.requests.filter(({ operation }) => operation === "initialize").at(-1);
    expect(idOf(anew)).toBeUndefined();
  });

  it("while many calls are made, and there is one new session for all of them", async () => {
    const { server, client } = await startAndConnect(options);
    server.sessions.forget();
    const keys = Array.from({ length: 20 }, (_none, n) => `k${n}`);
    const results = await Promise.all(keys.map((key) => client.callTool("run", { key })));
    expect(results.map(textOf)).toEqual(keys.map((key) => `ran ${key}`));
    for (const key of keys) expect(server.backend.runCount(key)).toBe(1);
    expect(server.sessions.opened).toBe(2);
  });

  it("again and again, each time with a new one", async () => {
    const { server, client } = await startAndConnect(options);
    for (const key of ["a", "b", "c"]) {
      server.sessions.forget();
      expect(textOf(await client.callTool("run", { key }))).toBe(`ran ${key}`);
    }
    expect(server.sessions.opened).toBe(4);
  });

  it("and does not know the new one either: that is said, and not tried for ever", async () => {
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

  it("by 404 with a page, or nothing, as well", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", status(404));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    server.inject("tools/call", (request) => request.answer(404));
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.sessions.opened).toBe(3);
  });

  it("and cannot begin another: the call says so, and the next one tries again", async () => {
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

  it("in mid-call: what was executed is not executed again", async () => {
    const { server, client } = await startAndConnect(options);
    const call = outcome(client.callTool("hold", { key: "a" }, { timeoutMs: 5_000 }));
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

describe("what a session was told is told again in the next", () => {
  it.each([
    ["forgets", false],
    ["is started anew", true],
  ])("where the end %s: an update after it is heard", async (_, restarts) => {
    const { server, client } = await startAndConnect(SESSION);
    let wake: () => void = () => undefined;
    let updates = 0;
    await client.listen({ resourceSubscriptions: [NOTE], toolsListChanged: true }, ({ method }) => {
      if (method === "notifications/resources/updated") updates += 1;
      wake();
    });
    const heard = async (many: number): Promise<void> => {
      while (updates < many) await new Promise<void>((resolve) => (wake = resolve));
    };
    await server.untilSubscribed();
    server.updateNote();
    await heard(1);
    if (restarts) await server.restart();
    else server.sessions.forget();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    await server.untilSubscribed();
    const before = updates;
    server.updateNote();
    await heard(before + 1);
  });

  it("also where nobody calls anything: the stream for changes finds out", async () => {
    const { server, client } = await startAndConnect(SESSION);
    let wake: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (wake = resolve));
    await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
    await server.untilSubscribed();
    await server.restart();
    await server.until(() => [...server.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    await server.untilSubscribed();
    server.updateNote();
    await heard;
  });

  it.each([true, false])("the level of logs too (by a call: %s)", async (calls) => {
    const { server, client } = await startAndConnect(SESSION);
    await client.setLogLevel("warning");
    await server.untilSubscribed();
    await server.restart();
    if (calls) await client.callTool("run", { key: "a" });
    await server.until(() => [...server.sessions.sessions.values()].some(({ logLevel }) => logLevel === "warning"));
  });

  it("and a listen in exchanges is opened again", async () => {
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
});

describe("the name of a session", () => {
  it("goes with every request after the handshake, and is given back at the end", async () => {
    const { server, client } = await startAndConnect(SESSION);
    await client.callTool("run", { key: "a" });
    await client.listTools();
    await server.untilSubscribed();
    await client.close();
    const [, first, ...rest] = server.requests;
    expect(idOf(first)).toBeUndefined();
    expect(new Set(rest.map(idOf))).toEqual(new Set(["session-1-of-this-end"]));
    expect(server.operations.at(-1)).toBe("DELETE");
    expect(server.sessions.sessions.size).toBe(0);
  });

  it("is not needed: no name, no farewell", async () => {
    const { server, client } = await startAndConnect(STYLES["sessions without a name"]);
    await client.callTool("run", { key: "a" });
    await client.close();
    expect(server.operations).not.toContain("DELETE");
    expect(server.requests.map(idOf).filter((id) => id !== undefined)).toEqual([]);
  });

  it("may be kept by the end: a farewell that is refused, or unheard, is no fault", async () => {
    for (const fault of [status(405), status(500), status(404), cut(0)]) {
      const { server, client } = await startAndConnect(SESSION);
      server.inject("DELETE", fault);
      await client.close();
      expect(server.count("DELETE")).toBe(1);
    }
  });

  it("is that of the handshake, whatever later answers say", async () => {
    const { server, client } = await startAndConnect({ style: "session", session: { changesIds: true, retryMs: 10 } });
    for (const key of ["a", "b", "c"]) expect(textOf(await client.callTool("run", { key }))).toBe(`ran ${key}`);
    expect(server.sessions.opened).toBe(1);
  });

  it("is not sent to another end", async () => {
    const [one, two] = [await startServer(SESSION), await startServer({ style: "session", session: { sessionIds: false } })];
    await connectTo(one);
    const client = await connectTo(two);
    await client.callTool("run", { key: "a" });
    expect(two.requests.map(idOf).filter((id) => id !== undefined)).toEqual([]);
  });
});

describe("an end with manners of its own", () => {
  it.each([200, 202, 204] as const)("answers %i to what wants no answer", async (accepted) => {
    const { client } = await startAndConnect({ style: "session", session: { accepted } });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it("answers notifications with 400: the session goes on all the same", async () => {
    const server = await startServer(SESSION);
    server.inject("notifications/initialized", status(400));
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it.each(["refused", "bad request"] as const)("has no stream for changes: %s", async (get) => {
    const { server, client } = await startAndConnect({ style: "session", session: { get } });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.count("GET")).toBe(1);
  });

  it("answers GET with a page: nothing is made of it", async () => {
    const server = await startServer(SESSION);
    server.inject("GET", respondWith("<html>Hello</html>", { "content-type": "text/html" }), 3);
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.count("GET")).toBe(1);
  });
});
