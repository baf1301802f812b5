// Upstreams that are programs: who shares one, when it starts and stops, what happens to calls and subscriptions when it
// dies, and that its requests reach the call they belong to.

import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { eventually } from "../../support/waiting.ts";
import { upstream, type Upstream } from "../../../src/chain/upstream/upstream.ts";
import type { UpstreamOptions } from "../../../src/chain/upstream/options.ts";
import type { ChangeEvent, Client } from "../../../src/client/index.ts";
import type { Context } from "../../../src/core/handler.ts";
import { ConnectionError } from "../../../src/core/errors.ts";
import { fakeCaller, fakeContext } from "../../support/handlers/fake-client.ts";
import { call, caller, catalogues, echoing, STATELESS, folder, isAlive, OLDEST, program, SESSION } from "./callers.ts";

/** Another caller, without a connection. */
const stranger: Context = {
  revision: SESSION,
  caller: fakeCaller({ style: "session", principal: "eve" }),
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: async () => ({}),
};

const QUICK: UpstreamOptions = { restart: { firstMs: 10, maxFailures: 1_000 } };

function start(options: UpstreamOptions = {}, ...args: readonly string[]): Upstream {
  const one = upstream(program(...args), { name: "program", ...QUICK, ...options });
  onTestFinished(() => one.close());
  return one;
}

/** Lets the upstream ask a client once, so that it is known to ask. The client leaves. */
async function askOnce(one: Upstream): Promise<void> {
  const { client, close } = await caller(one, SESSION, echoing);
  expect(await call(client, "ask", { name: "x" })).toBe("x: Who is x?");
  await close();
  await until(one, ({ sessions }) => sessions === 0);
}

/** Waits until the status fulfils the condition. */
async function until(one: Upstream, holds: (status: ReturnType<Upstream["status"]>) => boolean): Promise<void> {
  await eventually(() => expect(holds(one.status())).toBe(true), 10);
}

let cache = "";

beforeEach(() => {
  cache = folder();
  vi.stubEnv("CATENARY_CACHE", cache);
  return () => vi.unstubAllEnvs();
});

it("sharing gives one session to all callers of a principal, if the upstream does not ask", async () => {
  const one = start();
  const callers = await Promise.all([
    caller(one, SESSION),
    caller(one, OLDEST),
    caller(one, STATELESS),
    caller(one, SESSION, echoing),
    caller(one, STATELESS, echoing),
    caller(one, SESSION, {}, { principal: "ada" }),
  ]);
  const pids = await Promise.all(callers.map(({ client }) => call(client, "pid")));
  expect(new Set(pids.slice(0, 5)).size).toBe(1);
  expect(pids[5]).not.toBe(pids[0]);
  expect(one.status()).toMatchObject({ state: "running", sessions: 2, restarts: 0 });
});

it("sharing gives a session to each client that can be asked, once the upstream has asked one", async () => {
  const one = start({}, "--revisions", SESSION);
  const quiet = await caller(one, SESSION);
  const asked = await Promise.all([
    caller(one, SESSION, echoing),
    caller(one, SESSION, echoing),
    caller(one, STATELESS, echoing),
  ]);
  const pids = (): Promise<string[]> => Promise.all([quiet, ...asked].map(({ client }) => call(client, "pid")));
  expect(new Set(await pids()).size).toBe(1);
  // The question is for the only client that has a call in flight.
  expect(await call(asked[0].client, "ask", { name: "x" })).toBe("x: Who is x?");
  expect(new Set(await pids()).size).toBe(4);
  for (const { close } of asked) await close();
  await until(one, ({ sessions }) => sessions <= 2);
});

it("sharing leaves the session to a client that used it alone when it was asked", async () => {
  const one = start({}, "--revisions", SESSION);
  const { client } = await caller(one, SESSION, echoing);
  const pid = await call(client, "pid");
  expect(await call(client, "ask", { name: "x" })).toBe("x: Who is x?");
  expect(await call(client, "pid")).toBe(pid);
  const other = await caller(one, SESSION, echoing);
  expect(await call(other.client, "pid")).not.toBe(pid);
});

it("sharing remembers that the upstream asks", async () => {
  const first = start({}, "--revisions", SESSION);
  await askOnce(first);
  await eventually(() => expect(catalogues(cache)).toMatch(/"asks":true/));
  const later = start({}, "--revisions", SESSION);
  const callers = await Promise.all([caller(later, SESSION, echoing), caller(later, SESSION, echoing)]);
  const answers = callers.map(({ client }, at) => call(client, "ask", { name: String(at) }));
  expect(await Promise.all(answers)).toEqual(["0: Who is 0?", "1: Who is 1?"]);
});

it("sharing refuses a question that could be for several clients", async () => {
  const one = start({}, "--revisions", SESSION);
  const asked = await Promise.all([caller(one, SESSION, echoing), caller(one, SESSION, echoing)]);
  const slow = asked.map(({ client }) => client.callTool("slow", { ms: 60_000 }));
  for (const call of slow) call.catch(() => undefined);
  await expect(asked[0].client.callTool("ask", { name: "x" })).rejects.toThrow(/does not say which of them/);
  // From now on each has a session of its own.
  expect(await call(asked[1].client, "ask", { name: "y" })).toBe("y: Who is y?");
});

it("sharing follows the option `share`", async () => {
  const shared = start({ share: "shared" });
  const callers = await Promise.all([
    caller(shared, SESSION),
    caller(shared, STATELESS, echoing),
    caller(shared, SESSION, {}, { principal: "ada" }),
  ]);
  const pids = await Promise.all(callers.map(({ client }) => call(client, "pid")));
  expect(new Set(pids).size).toBe(1);

  const perSession = start({ share: "per-session" });
  const [a, b] = await Promise.all([caller(perSession, SESSION), caller(perSession, SESSION)]);
  const first = await call(a.client, "pid");
  expect(await call(a.client, "pid")).toBe(first);
  expect(await call(b.client, "pid")).not.toBe(first);
  await a.close();
  await eventually(() => expect(isAlive(Number(first))).toBe(false));

  const perCaller = start({ share: "per-caller" });
  const same = await Promise.all([
    caller(perCaller, SESSION, {}, { principal: "ada" }),
    caller(perCaller, SESSION, {}, { principal: "ada" }),
    caller(perCaller, SESSION),
    caller(perCaller, SESSION),
  ]);
  const who = await Promise.all(same.map(({ client }) => call(client, "pid")));
  expect(who[0]).toBe(who[1]);
  expect(new Set(who).size).toBe(3);
});

it("sharing: per-request starts a process for each request, which ends with it", async () => {
  const one = start({ share: "per-request", maxSessions: 3 });
  const { client } = await caller(one, SESSION);
  const pids = [await call(client, "pid"), await call(client, "pid")];
  expect(pids[0]).not.toBe(pids[1]);
  const many = await Promise.all(Array.from({ length: 6 }, () => call(client, "pid")));
  expect(new Set([...pids, ...many]).size).toBe(8);
  await eventually(() => expect(pids.filter((pid) => isAlive(Number(pid)))).toEqual([]));
});

it("sharing: per-request frees the session of a request that is cancelled at once", async () => {
  const one = start({ share: "per-request", maxSessions: 1 });
  const request = { method: "tools/call", params: { name: "pid", arguments: {} } };
  const { content } = await one(request, fakeContext().context);
  const [{ text: pid }] = content as [{ text: string }];
  await eventually(() => expect(isAlive(Number(pid))).toBe(false));
  // The slot is free a moment after the process has ended.
  await new Promise((resolve) => setTimeout(resolve, 100));
  const leaving = fakeContext();
  const cancelled = one(request, leaving.context);
  leaving.abort(new Error("gone"));
  await expect(cancelled).rejects.toThrow("gone");
  await one(request, fakeContext().context);
});

it("sharing is limited, and the least recently used session makes room", async () => {
  const one = start({ maxSessions: 2 });
  const callers = [];
  for (const principal of ["ada", "bob", "cyd"]) {
    const known = await caller(one, STATELESS, {}, { principal });
    await call(known.client, "pid");
    callers.push(known);
  }
  await until(one, ({ sessions }) => sessions === 2);
  const progress = [callers[1], callers[2]].map(
    (busy) =>
      new Promise<void>((resolve) => {
        busy?.client.callTool("slow", { ms: 60_000 }, { onProgress: () => resolve() }).catch(() => undefined);
      }),
  );
  await Promise.all(progress);
  await expect(callers[0]?.client.callTool("pid")).rejects.toThrow(
    /all 2 sessions with the upstream program are in use/,
  );
});

it("the limit of sessions cannot be used up by callers without a principal", async () => {
  const one = start({ maxSessions: 4 }, "--revisions", SESSION);
  await askOnce(one);
  const busy = async (): Promise<void> => {
    const { client } = await caller(one, SESSION, echoing);
    await new Promise<void>((resolve) => {
      client.callTool("slow", { ms: 60_000 }, { onProgress: () => resolve() }).catch(() => undefined);
    });
  };
  for (let count = 0; count < 3; count += 1) await busy();
  const fourth = caller(one, SESSION, echoing).then(({ client }) => call(client, "pid"));
  await expect(fourth).rejects.toThrow(/all sessions that one caller may have/);
  const ada = await caller(one, SESSION, {}, { principal: "ada" });
  expect(await call(ada.client, "pid")).toMatch(/^\d+$/);
});

it("unused sessions make room, even with subscriptions, and start again when they are needed", async () => {
  const one = start({ maxSessions: 2 }, "--revisions", SESSION);
  await askOnce(one);
  const callers = [];
  const pids = [];
  for (let count = 0; count < 4; count += 1) {
    const added = await caller(one, SESSION, echoing);
    callers.push(added);
    pids.push(await call(added.client, "pid"));
  }
  expect(new Set(pids).size).toBe(4);
  await until(one, ({ sessions }) => sessions <= 2);
  expect(await call(callers[0]?.client as Client, "pid")).not.toBe(pids[0]);
  await until(one, ({ sessions }) => sessions <= 2);
  expect(one.status().restarts).toBe(0);
});

it.each([SESSION, STATELESS])("the style is the caller's if the upstream speaks both: %s", async (revision) => {
  const one = start();
  const { client } = await caller(one, revision);
  await call(client, "pid");
  expect(one.status().revision).toBe(revision);
});

it.each([
  [SESSION, STATELESS],
  [STATELESS, SESSION],
])("the style is the upstream's if it speaks one: caller %s, upstream %s", async (mine, its) => {
  const one = start({}, "--revisions", its);
  const { client } = await caller(one, mine, echoing);
  expect(await call(client, "ask", { name: "x" })).toBe("x: Who is x?");
  expect(one.status().revision).toBe(its);
});

it("requests of an upstream that does not attribute them reach their calls, which wait for each other only then", async () => {
  const one = start({}, "--revisions", SESSION);
  await askOnce(one);
  const { client } = await caller(one, STATELESS, echoing);
  const asks = ["a", "b", "c"].map((name) => call(client, "ask", { name }));
  expect(await Promise.all(asks)).toEqual(["a: Who is a?", "b: Who is b?", "c: Who is c?"]);

  const quiet = await caller(one, STATELESS);
  const slow = quiet.client.callTool("slow", { ms: 60_000 });
  slow.catch(() => undefined);
  expect(await call(quiet.client, "pid")).toMatch(/^\d+$/);
});

it("requests of an upstream that does not attribute them reach only the caller of their call, however many callers there are", async () => {
  const one = start({}, "--revisions", SESSION);
  await askOnce(one);
  const names = ["ada", "bob", "cyd", "dot"];
  const answers = await Promise.all(
    names.map(async (name) => {
      const elicit = async ({ message }: { message: string }) => ({
        action: "accept" as const,
        content: { answer: `${name} of ${message}` },
      });
      const { client } = await caller(one, STATELESS, { elicit });
      return call(client, "ask", { name });
    }),
  );
  expect(answers).toEqual(names.map((name) => `${name}: ${name} of Who is ${name}?`));
});

it("stateless callers share one session with a stateless upstream, whatever their capabilities", async () => {
  const one = start();
  const callers = await Promise.all([caller(one, STATELESS), caller(one, STATELESS, echoing)]);
  const pids = await Promise.all(callers.map(({ client }) => call(client, "pid")));
  expect(new Set(pids).size).toBe(1);
});

it("stateless callers that cannot be asked get an error if a session-style upstream asks them", async () => {
  const one = start({}, "--revisions", SESSION);
  const quiet = await caller(one, STATELESS);
  const asked = await caller(one, STATELESS, echoing);
  expect(await call(asked.client, "ask", { name: "x" })).toBe("x: Who is x?");
  await expect(quiet.client.callTool("ask", { name: "x" })).rejects.toMatchObject({
    kind: "missing_capability",
    message: expect.stringContaining("elicitation") as string,
  });
  const pids = await Promise.all([quiet, asked, quiet, asked].map(({ client }) => call(client, "pid")));
  expect(pids.slice(0, 2)).toEqual(pids.slice(2));
  expect(new Set(pids).size).toBe(2);
});

it("stateless callers are not blocked by a parked call", async () => {
  const one = start({}, "--revisions", SESSION);
  await askOnce(one);
  let answer = (): void => undefined;
  const elicit = async ({ message }: { message: string }) => {
    if (message === "Who is first?") await new Promise<void>((resolve) => (answer = resolve));
    return { action: "accept" as const, content: { answer: message } };
  };
  const { client } = await caller(one, STATELESS, { elicit });
  const first = call(client, "ask", { name: "first" });
  const second = call(client, "ask", { name: "second" });
  expect(await second).toBe("second: Who is second?");
  expect(await call(client, "ask", { name: "third" })).toBe("third: Who is third?");
  answer();
  expect(await first).toBe("first: Who is first?");
  expect(one.status().sessions).toBe(2);
});

it("two callers with sessions that can be asked have a session each if the upstream does not attribute its requests", async () => {
  const one = start({}, "--revisions", SESSION);
  await askOnce(one);
  const callers = await Promise.all(
    ["ada", "bob"].map(async (name) => {
      const elicit = async ({ message }: { message: string }) => ({
        action: "accept" as const,
        content: { answer: `${name} of ${message}` },
      });
      return { name, ...(await caller(one, SESSION, { elicit })) };
    }),
  );
  const answers = await Promise.all(callers.map(({ client, name }) => call(client, "ask", { name })));
  expect(answers).toEqual(["ada: ada of Who is ada?", "bob: bob of Who is bob?"]);
  expect(one.status().sessions).toBe(2);
  await Promise.all(callers.map(({ close }) => close()));
  await until(one, ({ sessions }) => sessions === 0);
});

it("a process starts once for all callers that come at once", async () => {
  const one = start();
  const { client } = await caller(one, STATELESS);
  const pids = await Promise.all(Array.from({ length: 20 }, () => call(client, "pid")));
  expect(new Set(pids).size).toBe(1);
  expect(one.status().sessions).toBe(1);
});

it("a process starts only for what the catalogue of an earlier run cannot answer", async () => {
  const first = start();
  const before = await caller(first, SESSION);
  const tools = await before.client.listTools();
  await call(before.client, "pid");
  // The catalogue is read some time after the start, and closing does not wait for it.
  await eventually(async () => {
    const again = start();
    const { client, close } = await caller(again, SESSION);
    expect(await client.listTools()).toEqual(tools);
    expect(again.status().state).toBe("idle");
    await close();
  });
  const later = start();
  const { client } = await caller(later, SESSION);
  expect(await client.listTools()).toEqual(tools);
  expect(later.status()).toMatchObject({ state: "idle", sessions: 0 });
  expect(await call(client, "pid")).toBe(String(later.status().pids[0]));
});

it("a process stops when it is idle, and callers see no difference", async () => {
  const one = start({ idleMs: 50 });
  const { client } = await caller(one, SESSION);
  const pid = await call(client, "pid");
  const tools = await client.listTools();
  await until(one, ({ state }) => state === "idle");
  await eventually(() => expect(isAlive(Number(pid))).toBe(false));
  expect(await client.listTools()).toEqual(tools);
  expect(one.status().state).toBe("idle");
  expect(await call(client, "pid")).not.toBe(pid);
});

it("a process keeps running while a resource is subscribed to", async () => {
  const one = start({ idleMs: 30 });
  const { client } = await caller(one, SESSION);
  const listening = await client.listen({ resourceSubscriptions: ["board://one"] }, () => undefined);
  const pid = await call(client, "pid");
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(await call(client, "pid")).toBe(pid);
  await listening.close();
  await until(one, ({ state }) => state === "idle");
});

it("a crash fails running calls with an error that names the upstream, and the next call restarts it", async () => {
  const one = start();
  const { client } = await caller(one, STATELESS);
  const pid = await call(client, "pid");
  const slow = client.callTool("slow", { ms: 60_000 });
  await expect(client.callTool("exit")).rejects.toThrow(
    /The upstream program failed and the call may have run: .* exited with code 7/,
  );
  await expect(slow).rejects.toThrow(/The upstream program failed/);
  expect(await call(client, "pid")).not.toBe(pid);
  expect(one.status()).toMatchObject({ state: "running", restarts: 1 });
});

it("a crash does not end a subscription, and notifies of what may have been missed", async () => {
  const one = start();
  const { client } = await caller(one, SESSION);
  const events: string[] = [];
  const record = (event: ChangeEvent): void => {
    const isUpdate = event.method === "notifications/resources/updated";
    events.push(isUpdate ? `${event.method} ${event.params.uri}` : event.method);
  };
  await client.listen({ toolsListChanged: true, resourceSubscriptions: ["board://one"] }, record);
  await client.callTool("exit").catch(() => undefined);
  await until(one, ({ state, restarts }) => state === "running" && restarts === 1);
  const missed = ["notifications/tools/list_changed", "notifications/resources/updated board://one"];
  await eventually(() => expect(events).toEqual(expect.arrayContaining(missed)));
  events.length = 0;
  await call(client, "write", { text: "again" });
  await eventually(() => expect(events).toEqual(["notifications/resources/updated board://one"]));
});

it("a crash ends the restarts after five times in three minutes, and the errors say so", async () => {
  const fail = join(folder(), "fail");
  writeFileSync(fail, "");
  const one = start({ restart: { firstMs: 5 } }, "--fail", fail);
  const context = await caller(async (request, given) => {
    if (request.method === "server/discover") return { capabilities: { tools: {} }, supportedVersions: [STATELESS] };
    return one(request, given);
  }, STATELESS);
  for (let time = 0; time < 5; time += 1) {
    await expect(context.client.callTool("pid")).rejects.toThrow(/exited with code 3: the program was told to fail$/);
  }
  // Callers are told one line of its stderr, and the operator all of it.
  expect(one.status()).toMatchObject({ state: "failed", problem: expect.stringMatching(/told to fail/) });
  // Failed starts count for all callers.
  await expect(one({ method: "tools/call", params: { name: "pid" } }, stranger)).rejects.toThrow(
    /will not be restarted for/,
  );
  rmSync(fail);
  const left =
    /The upstream program failed 5 times in 3 minutes and will not be restarted for \d+ s; .* exited with code 3: the program was told to fail$/;
  await expect(context.client.callTool("pid")).rejects.toThrow(left);
});

it("an upstream may be a handler, which is called as it is", async () => {
  let closed = 0;
  const handler = async (): Promise<{ ok: true }> => ({ ok: true });
  const one = upstream(Object.assign(handler, { close: () => void (closed += 1) }));
  expect(one.status()).toMatchObject({ state: "running", target: "in this process" });
  await one.close();
  expect([closed, one.status().state]).toEqual([1, "closed"]);
});

it("an upstream refuses wrong options", async () => {
  expect(() => upstream(program(), { share: "all" as never })).toThrow(/`share` must be "shared", "per-session"/);
  expect(() => upstream(program(), { revision: 2020 as never })).toThrow(/`revision`/);
  await expect(caller(upstream(program(), { revision: "2020-01-01" }), SESSION)).rejects.toThrow(
    /2020-01-01; supported:/,
  );
  expect(() => upstream(program(), { idleMs: -1 })).toThrow(/`idleMs`/);
});

it("an upstream describes its target without secrets", () => {
  const shown = (target: Parameters<typeof upstream>[0]): string => upstream(target).status().target;
  expect(shown({ command: "/usr/bin/npx", args: ["-y", "@scope/server", "--token", "secret"] })).toBe(
    "npx @scope/server",
  );
  expect(shown({ command: "notes-server", args: ["secret"] })).toBe("notes-server");
  expect(shown({ command: "node", args: ["-e", "console.log('secret')"] })).toBe("node");
  expect(shown({ command: "node", args: ["--api-key", "secret", "server.js"] })).toBe("node");
  expect(shown("https://example.com/mcp?key=secret")).toBe("https://example.com");
  expect(shown("https://example.com/k/8f14e45fceea167a5a36/mcp")).toBe("https://example.com");
});

it("an upstream reports a program that cannot be started without its arguments", async () => {
  const one = upstream({ command: "/there/is/no/such-program", args: ["--token", "secret"] });
  const offline = await caller(async (request, context) => {
    if (request.method === "server/discover") return { capabilities: { tools: {} }, supportedVersions: [STATELESS] };
    return one(request, context);
  }, STATELESS);
  const failure = await offline.client.callTool("pid").catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(Error);
  expect(String(failure)).toMatch(/such-program/);
  expect(String(failure)).not.toMatch(/secret/);
  expect(failure).not.toBeInstanceOf(ConnectionError);
});
