// Sessions that the end forgets, by itself or because it was started anew: the client begins another one, says again
// what the end must know (subscriptions, the level of logs), and repeats only what was surely not executed.

import { describe, expect, it } from "vitest";
import { cut, instead, refusal, status } from "../../support/faulty-server/faults.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";
import type { UpstreamOptions } from "../../support/faulty-server/server.ts";
import { expectHelpful, joined, met, opened, outcome, STYLES, textOf } from "./fixture.ts";

const SESSIONS: readonly [string, UpstreamOptions][] = [
  ["sessions", STYLES["sessions"] ?? {}],
  ["sessions of JSON", STYLES["sessions of JSON"] ?? {}],
  ["sessions without ids of events", STYLES["sessions without ids of events"] ?? {}],
];
const SESSION = STYLES["sessions"] ?? {};
const idOf = (visit: { headers: Readonly<Record<string, string>> } | undefined): string | undefined =>
  visit?.headers["mcp-session-id"];

describe.each(SESSIONS)("the end forgets one of its %s", (_, options) => {
  it("and the call that found out is made in a new one, once", async () => {
    const { end, client } = await met(options);
    // Otherwise the end of the handshake may be the first to find out.
    await end.until(() => end.count("GET") > 0);
    end.sessions.forget();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(1);
    expect(end.sessions.opened).toBe(2);
    const calls = end.visits.filter(({ what }) => what === "tools/call");
    expect(calls.map(idOf)).toEqual(["session-1-of-this-end", "session-2-of-this-end"]);
    const anew = end.visits.filter(({ what }) => what === "initialize").at(-1);
    expect(idOf(anew)).toBeUndefined();
  });

  it("while many calls are made, and there is one new session for all of them", async () => {
    const { end, client } = await met(options);
    end.sessions.forget();
    const keys = Array.from({ length: 20 }, (_none, n) => `k${n}`);
    const results = await Promise.all(keys.map((key) => client.callTool("run", { key })));
    expect(results.map(textOf)).toEqual(keys.map((key) => `ran ${key}`));
    for (const key of keys) expect(end.desk.runsOf(key)).toBe(1);
    expect(end.sessions.opened).toBe(2);
  });

  it("again and again, each time with a new one", async () => {
    const { end, client } = await met(options);
    for (const key of ["a", "b", "c"]) {
      end.sessions.forget();
      expect(textOf(await client.callTool("run", { key }))).toBe(`ran ${key}`);
    }
    expect(end.sessions.opened).toBe(4);
  });

  it("and does not know the new one either: that is said, and not tried for ever", async () => {
    const { end, client } = await met(options);
    end.lay("tools/call", refusal(404, { code: -32001, message: "Session not found" }), 50);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error?.message).toMatch(/session/i);
    expect(end.count("tools/call")).toBeLessThanOrEqual(2);
    expect(end.count("initialize")).toBeLessThanOrEqual(3);
    end.clear();
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it("by 404 with a page, or nothing, as well", async () => {
    const { end, client } = await met(options);
    end.lay("tools/call", status(404));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    end.lay("tools/call", (visit) => visit.answer(404));
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.sessions.opened).toBe(3);
  });

  it("and cannot begin another: the call says so, and the next one tries again", async () => {
    const { end, client } = await met(options);
    end.sessions.forget();
    end.lay("initialize", status(503), 10);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error).toMatchObject({ mayHaveRun: false });
    expect(end.desk.runsOf("a")).toBe(0);
    end.clear();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(1);
  });

  it("in mid-call: what was executed is not executed again", async () => {
    const { end, client } = await met(options);
    const call = outcome(client.callTool("hold", { key: "a" }, { timeoutMs: 5_000 }));
    await end.until(() => end.desk.isHolding("a"));
    await end.restart();
    end.desk.release("a");
    const { error } = await call;
    expectHelpful(error);
    expect(error).toMatchObject({ mayHaveRun: true });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.desk.runsOf("a")).toBe(1);
    expect(end.desk.runsOf("b")).toBe(1);
  });
});

describe("what a session was told is told again in the next", () => {
  it.each([
    ["forgets", false],
    ["is started anew", true],
  ])("where the end %s: an update after it is heard", async (_, restarts) => {
    const { end, client } = await met(SESSION);
    let wake: () => void = () => undefined;
    let updates = 0;
    await client.listen({ resourceSubscriptions: [NOTE], toolsListChanged: true }, ({ method }) => {
      if (method === "notifications/resources/updated") updates += 1;
      wake();
    });
    const heard = async (many: number): Promise<void> => {
      while (updates < many) await new Promise<void>((resolve) => (wake = resolve));
    };
    await end.untilHeard();
    end.touch();
    await heard(1);
    if (restarts) await end.restart();
    else end.sessions.forget();
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    await end.until(() => [...end.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    await end.untilHeard();
    const before = updates;
    end.touch();
    await heard(before + 1);
  });

  it("also where nobody calls anything: the stream for changes finds out", async () => {
    const { end, client } = await met(SESSION);
    let wake: () => void = () => undefined;
    const heard = new Promise<void>((resolve) => (wake = resolve));
    await client.listen({ resourceSubscriptions: [NOTE] }, () => wake());
    await end.untilHeard();
    await end.restart();
    await end.until(() => [...end.sessions.sessions.values()].some(({ subscriptions }) => subscriptions.has(NOTE)));
    await end.untilHeard();
    end.touch();
    await heard;
  });

  it.each([true, false])("the level of logs too (by a call: %s)", async (calls) => {
    const { end, client } = await met(SESSION);
    await client.setLogLevel("warning");
    await end.untilHeard();
    await end.restart();
    if (calls) await client.callTool("run", { key: "a" });
    await end.until(() => [...end.sessions.sessions.values()].some(({ level }) => level === "warning"));
  });

  it("and a listen in exchanges is opened again", async () => {
    const { end, client } = await met({ style: "stateless" });
    let wake: () => void = () => undefined;
    let updates = 0;
    await client.listen({ resourceSubscriptions: [NOTE] }, () => {
      updates += 1;
      wake();
    });
    await end.untilHeard();
    await end.restart();
    await end.untilHeard();
    const before = updates;
    end.touch();
    while (updates <= before) await new Promise<void>((resolve) => (wake = resolve));
    expect(end.count("subscriptions/listen")).toBe(2);
  });
});

describe("the name of a session", () => {
  it("goes with every request after the handshake, and is given back at the end", async () => {
    const { end, client } = await met(SESSION);
    await client.callTool("run", { key: "a" });
    await client.listTools();
    await end.untilHeard();
    await client.close();
    const [, first, ...rest] = end.visits;
    expect(idOf(first)).toBeUndefined();
    expect(new Set(rest.map(idOf))).toEqual(new Set(["session-1-of-this-end"]));
    expect(end.asked.at(-1)).toBe("DELETE");
    expect(end.sessions.sessions.size).toBe(0);
  });

  it("is not needed: no name, no farewell", async () => {
    const { end, client } = await met(STYLES["sessions without a name"]);
    await client.callTool("run", { key: "a" });
    await client.close();
    expect(end.asked).not.toContain("DELETE");
    expect(end.visits.map(idOf).filter((id) => id !== undefined)).toEqual([]);
  });

  it("may be kept by the end: a farewell that is refused, or unheard, is no fault", async () => {
    for (const fault of [status(405), status(500), status(404), cut(0)]) {
      const { end, client } = await met(SESSION);
      end.lay("DELETE", fault);
      await client.close();
      expect(end.count("DELETE")).toBe(1);
    }
  });

  it("is that of the handshake, whatever later answers say", async () => {
    const { end, client } = await met({ style: "session", session: { changing: true, retryMs: 10 } });
    for (const key of ["a", "b", "c"]) expect(textOf(await client.callTool("run", { key }))).toBe(`ran ${key}`);
    expect(end.sessions.opened).toBe(1);
  });

  it("is not sent to another end", async () => {
    const [one, two] = [await opened(SESSION), await opened({ style: "session", session: { sessionIds: false } })];
    await joined(one);
    const client = await joined(two);
    await client.callTool("run", { key: "a" });
    expect(two.visits.map(idOf).filter((id) => id !== undefined)).toEqual([]);
  });
});

describe("an end with manners of its own", () => {
  it.each([200, 202, 204] as const)("answers %i to what wants no answer", async (accepted) => {
    const { client } = await met({ style: "session", session: { accepted } });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it("answers notifications with 400: the session goes on all the same", async () => {
    const end = await opened(SESSION);
    end.lay("notifications/initialized", status(400));
    const client = await joined(end);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it.each(["refused", "bad request"] as const)("has no stream for changes: %s", async (get) => {
    const { end, client } = await met({ style: "session", session: { get } });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(end.count("GET")).toBe(1);
  });

  it("answers GET with a page: nothing is made of it", async () => {
    const end = await opened(SESSION);
    end.lay("GET", instead("<html>Hello</html>", { "content-type": "text/html" }), 3);
    const client = await joined(end);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.count("GET")).toBe(1);
  });
});
