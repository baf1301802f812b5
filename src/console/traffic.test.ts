// Traffic behind its routes: pages of rows with a filter, the detail of a call, the stream of events, and figures.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { chain } from "../chain/chain.ts";
import type { Gateway } from "../chain/gateway.ts";
import { redact, rename } from "../chain/middleware/index.ts";
import { loadConfigText } from "../config/load.ts";
import type { Handler, Middleware } from "../core/handler.ts";
import { createServer } from "../server/server.ts";
import type { ConsoleHost } from "./host.ts";
import type { KeptLimits } from "./kept-calls.ts";
import { ApiError, type EventStream, type EventSink } from "./route.ts";
import { Traffic } from "./traffic.ts";
import type { CallDetail, CallPage, CallRow, LogLine } from "./types.ts";

const NOW = Date.parse("2030-05-05T12:00:30Z");

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["Date", "performance", "setTimeout", "clearTimeout", "setInterval", "clearInterval"],
    now: NOW,
  });
});
afterEach(() => void vi.useRealTimers());

const pass = (ms: number): void => void vi.advanceTimersByTime(ms);

const notes = createServer({ name: "notes", version: "1" })
  .tool("echo", {}, () => {
    pass(20);
    return "hi";
  })
  .tool("fail", {}, () => {
    throw new Error("no such note");
  });

interface Tried {
  readonly traffic: Traffic;
  readonly gateway: Gateway;
  readonly lines: LogLine[];
  get<T>(path: string, query?: string, params?: Record<string, string>): Promise<T>;
  follow(query: string, sink?: Partial<EventSink>): { events: [string, unknown][]; leave: () => void };
}

async function tried(
  middleware: readonly Middleware[] = [],
  upstreams: Record<string, Handler> = { notes, other: createServer({ name: "other", version: "1" }) },
  limits?: KeptLimits,
): Promise<Tried> {
  const text = JSON.stringify({ mcpServers: { a: { command: "x", env: { API_KEY: "very-secret-value" } } } });
  const config = await loadConfigText(text, "/nowhere/catenary.json");
  const gateway = chain(...middleware).to(upstreams);
  const lines: LogLine[] = [];
  const followers = new Set<(line: LogLine) => void>();
  const host = {
    running: { gateway, config },
    log: {
      recent: (server?: string) => lines.filter(({ upstream }) => server === undefined || upstream === server),
      follow: (onEntry: (line: LogLine) => void) => {
        followers.add(onEntry);
        return () => followers.delete(onEntry);
      },
      write: (entry: Omit<LogLine, "time">) => {
        const line = { time: new Date().toISOString(), ...entry };
        lines.push(line);
        for (const follower of followers) follower(line);
      },
    },
    info: () => ({ url: "http://127.0.0.1:7330/mcp" }),
  } as unknown as ConsoleHost;
  const traffic = new Traffic(host, { hasToken: true, ...(limits && { limits }) });
  traffic.start();
  const run = (path: string, query: string, params: Record<string, string>, signal: AbortSignal): unknown => {
    const route = traffic.routes.find((candidate) => candidate.path === path);
    return route?.run({ params, query: new URLSearchParams(query), body: {}, signal });
  };
  return {
    ...{ traffic, gateway, lines },
    get: async (path, query = "", params = {}) => {
      const { signal } = new AbortController();
      return JSON.parse(JSON.stringify(await run(path, query, params, signal))) as never;
    },
    follow: (query, given = {}) => {
      const left = new AbortController();
      const events: [string, unknown][] = [];
      const sink: EventSink = {
        send: (event, data) => events.push([event, data]),
        sendJson: (event, json) => events.push([event, JSON.parse(json)]),
        end: () => events.push(["(end)", undefined]),
        bufferedBytes: 0,
        ...given,
      };
      (run("events", query, {}, left.signal) as EventStream).open(sink);
      return { events, leave: () => left.abort() };
    },
  };
}

const summary = (rows: readonly CallRow[]): unknown => rows.map(({ id, name, status }) => `${id} ${name} ${status}`);

it("GET calls: pages of rows, newest first, with a filter", async () => {
  const { gateway, get } = await tried();
  const { context } = fakeContext({ name: "Ada" });
  for (const name of ["echo", "fail", "echo", "fail", "echo"]) await gateway(callRequest(name), context);
  const first = await get<CallPage>("calls", "limit=2");
  expect(summary(first.calls)).toEqual(["5 echo ok", "4 fail error"]);
  const second = await get<CallPage>("calls", `limit=2&before=${first.before}`);
  expect(summary(second.calls)).toEqual(["3 echo ok", "2 fail error"]);
  const last = await get<CallPage>("calls", `limit=2&before=${second.before}`);
  expect(summary(last.calls)).toEqual(["1 echo ok"]);
  expect(last.before).toBeUndefined();
  const failed = await get<CallPage>("calls", "filter=status:error+server:notes+text:%22no+such%22");
  expect(summary(failed.calls)).toEqual(["4 fail error", "2 fail error"]);
  const wrong = await get("calls", "filter=statu:error").catch((error: unknown) => error);
  expect(wrong).toBeInstanceOf(ApiError);
  expect(wrong).toMatchObject({ status: 400, message: expect.stringContaining("did you mean status:?") as string });
  await expect(get("calls", "limit=many")).rejects.toThrow("`limit` must be a number");
  await expect(get("calls/:id", "", { id: "99" })).rejects.toThrow("There is no call 99");
  await expect(get("calls/:id", "", { id: "x" })).rejects.toThrow("There is no call x");
});

it("GET calls/:id: request, result, steps with what each changed, stderr, and commands", async () => {
  const slow: Middleware = async (request, context, next) => {
    pass(5);
    const result = await next(request, context);
    pass(7);
    return { ...result, content: [{ type: "text", text: "HI" }] };
  };
  Object.defineProperty(slow, "name", { value: "slow" });
  const { gateway, get, lines } = await tried([
    redact({ in: ["arguments"] }),
    slow,
    rename({ tools: { echo: "say" } }),
  ]);
  const line = (ms: number, message: string): LogLine => ({
    ...{ time: new Date(NOW + ms).toISOString(), level: "info", upstream: "notes", stream: "stderr", message },
  });
  lines.push(line(-5_000, "long ago"), line(-500, "key very-secret-value"), line(9_000, "later"));
  const { context } = fakeContext({ name: "Ada" });
  const args = { body: "token ghp_abcdefghijklmnopqrstuvwxyz0123456789", password: "hunter2", "it's": 1, "\u202eb": 2 };
  await gateway(callRequest("say", args), context);
  const detail = await get<CallDetail>("calls/:id", "", { id: "1" });
  expect(JSON.stringify(detail)).not.toMatch(/ghp_|hunter2|very-secret/);
  expect(detail.row).toMatchObject({ name: "say", server: "notes", ms: 32 });
  expect(detail.request).toEqual({
    method: "tools/call",
    params: { name: "say", arguments: { ...args, body: "token [redacted]", password: "[redacted]" } },
  });
  expect(detail.result).toMatchObject({ content: [{ text: "HI" }] });
  expect(detail.dropped).toEqual([]);
  expect(detail.stderr.map(({ message }) => message)).toEqual([expect.not.stringContaining("very-secret")]);
  const [first] = detail.steps;
  expect(first).toMatchObject({ kind: "middleware", name: "redact", startMs: 0, ms: 32, ownMs: 0, result: [] });
  expect(first?.request.map(({ path }) => path)).toContain("arguments.body");
  const [second] = first?.steps ?? [];
  expect(second).toMatchObject({ name: "slow", ms: 32, ownMs: 12, request: [] });
  expect(second?.result).toEqual([{ path: "content[0].text", before: "hi", after: "HI" }]);
  const [third] = second?.steps ?? [];
  expect(third).toMatchObject({ kind: "transform", name: "rename" });
  expect(third?.request).toEqual([{ path: "name", before: "say", after: "echo" }]);
  expect(third?.steps[0]).toMatchObject({ kind: "upstream", name: "notes", startMs: 5, ms: 20 });
  // An odd key is written as JSON, and what nobody sees as an escape.
  expect(detail.commands?.catenary).toBe(
    `catenary call http://127.0.0.1:7330/mcp say --args '{"body":"token [redacted]","password":"[redacted]","it'\\''s":1,"\\u202eb":2}'`,
  );
  expect(detail.commands?.curl).toContain('-H "authorization: Bearer $CATENARY_TOKEN"');
});

it("hides secrets in every field of a request", async () => {
  const { gateway, get } = await tried();
  const { context } = fakeContext();
  const _meta = { "x/authorization": "Bearer abcdefghijk", traceparent: "00-1" };
  const uri = "notes://inbox?q=ada&access_token=abcdefghijk&code=abcdefghijk";
  await gateway({ method: "resources/read", params: { uri, _meta } }, context).catch(() => undefined);
  const detail = await get<CallDetail>("calls/:id", "", { id: "1" });
  expect(JSON.stringify(detail)).not.toContain("abcdefghijk");
  expect(detail.request?.params).toMatchObject({
    uri: "notes://inbox?q=ada&access_token=[redacted]&code=[redacted]",
    _meta: { traceparent: "00-1" },
  });
});

it("commands quote values for a shell", async () => {
  const { gateway, get } = await tried();
  const { context } = fakeContext();
  await gateway(
    callRequest("echo", { text: "a b", n: 1, list: ["x"], at: "@file", plain: "x", line: "a\nb" }),
    context,
  );
  const { commands } = await get<CallDetail>("calls/:id", "", { id: "1" });
  expect(commands?.catenary).toBe(
    `catenary call http://127.0.0.1:7330/mcp echo 'text=a b' n:=1 'list:=["x"]' 'at:="@file"' plain=x 'line:="a\\nb"'`,
  );
  await gateway({ method: "tools/list", params: {} }, context);
  expect(await get("calls/:id", "", { id: "2" })).not.toHaveProperty("commands");
});

it("a step says who asked, and what answered without the upstream", async () => {
  const consent: Middleware = async (request, context, next) => {
    if (request.params["name"] === "fail") return textResult("no");
    await context.ask({ method: "elicitation/create", params: { message: "Sure?" } });
    return next(request, context);
  };
  Object.defineProperty(consent, "name", { value: "consent" });
  const { gateway, get } = await tried([consent]);
  const { context } = fakeContext({
    answer: () => {
      pass(2_500);
      return { action: "accept" };
    },
  });
  await gateway(callRequest("echo"), context);
  await gateway(callRequest("fail"), context);
  const asked = await get<CallDetail>("calls/:id", "", { id: "1" });
  expect(asked.steps[0]?.note).toBe("asked the client (elicitation/create), 2.5 s");
  expect(asked.steps[0]?.steps[0]).not.toHaveProperty("note");
  expect(asked.nested).toMatchObject([{ kind: "question", waitMs: 2_500 }]);
  const question = await get<CallDetail>("calls/:id", "", { id: "2" });
  expect(question).toMatchObject({
    request: { method: "elicitation/create" },
    result: { action: "accept" },
    dropped: [],
  });
  const refused = await get<CallDetail>("calls/:id", "", { id: "3" });
  expect(refused.steps[0]?.note).toBe("answered without the upstream");
});

it("says what was dropped, and what is too long", async () => {
  const long = (): Promise<never> => Promise.resolve(textResult("x".repeat(9_000_000)) as never);
  const { gateway, get, traffic } = await tried([], { notes: long }, { rows: 100, bytes: 20_000_000 });
  const { context } = fakeContext();
  for (let count = 0; count < 3; count += 1) await gateway(callRequest("any"), context);
  await new Promise((resolve) => setImmediate(resolve));
  const first = await get<CallDetail>("calls/:id", "", { id: "1" });
  expect(first.dropped).toEqual(["request", "result", "steps", "wire"]);
  expect(first).not.toHaveProperty("request");
  expect(traffic.stepsOf(1)).toBeUndefined();
  expect(traffic.requestOf(1)).toBe("dropped");
  const last = await get<CallDetail>("calls/:id", "", { id: "3" });
  expect(last.dropped).toEqual(["result"]);
  expect(last).not.toHaveProperty("result");
  expect(traffic.requestOf(3)).toMatchObject({ method: "tools/call" });
  expect(traffic.requestOf(99)).toBeUndefined();
  // Messages on the wire are no longer than a result that is shown, and what has too many values is no request again.
  const wide = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`k${at}`, at]));
  await gateway(callRequest("any", wide), context);
  await new Promise((resolve) => setImmediate(resolve));
  expect(traffic.requestOf(4)).toBe("dropped");
  const fourth = await get<CallDetail>("calls/:id", "", { id: "4" });
  expect(fourth.dropped).toEqual(["request", "result"]);
  expect(JSON.stringify(fourth).length).toBeLessThan(10_000);
});

it("GET events: changed rows come together, once for all pages with the same filter", async () => {
  const { gateway, follow, traffic } = await tried();
  const { context } = fakeContext();
  expect(traffic.log.onRow).toBeUndefined();
  const all = follow("topics=calls");
  const failed = follow("topics=calls&filter=status:error");
  await gateway(callRequest("echo"), context);
  await gateway(callRequest("fail"), context);
  expect(all.events).toEqual([]);
  pass(250);
  expect(all.events.map(([event, rows]) => [event, summary(rows as CallRow[])])).toEqual([
    ["calls", ["1 echo ok", "2 fail error"]],
  ]);
  expect(failed.events.map(([event, rows]) => [event, summary(rows as CallRow[])])).toEqual([
    ["calls", ["2 fail error"]],
  ]);
  pass(250);
  expect(all.events).toHaveLength(1);
  all.leave();
  failed.leave();
  expect(traffic.log.onRow).toBeUndefined();
  const later = follow("topics=calls&after=1");
  expect(later.events.map(([event, rows]) => [event, summary(rows as CallRow[])])).toEqual([
    ["calls", ["2 fail error"]],
  ]);
  expect(() => follow("topics=nothing")).toThrow("There is no topic nothing; there are info, calls,");
});

it("a row that no longer matches is sent once more, so that the page can remove it", async () => {
  const { gateway, follow } = await tried([], {
    notes: () => new Promise((resolve) => setTimeout(() => resolve(textResult("late")), 600)),
  });
  const { context } = fakeContext();
  const running = follow("topics=calls&filter=status:running");
  const call = gateway(callRequest("any"), context);
  await new Promise((resolve) => setImmediate(resolve));
  pass(250);
  pass(600);
  await call;
  pass(250);
  expect(running.events.map(([, rows]) => summary(rows as CallRow[]))).toEqual([["1 any running"], ["1 any ok"]]);
});

it("a page that does not read is cut, and the others go on", async () => {
  const { gateway, follow } = await tried();
  const { context } = fakeContext();
  const slow = follow("topics=calls,log", { bufferedBytes: 5_000_000 });
  const fast = follow("topics=calls");
  await gateway(callRequest("echo"), context);
  pass(250);
  expect(slow.events).toEqual([
    ["cut", {}],
    ["(end)", undefined],
  ]);
  expect(fast.events).toHaveLength(1);
  // An open stream hears something now and then.
  pass(15_000);
  expect(fast.events.at(-1)).toEqual(["alive", {}]);
});

it("sends lines of the log together while a page wants them", async () => {
  const { follow, traffic } = await tried();
  const page = follow("topics=log");
  expect(traffic.feed.isWatched("log")).toBe(true);
  expect(traffic.feed.isWatched("calls")).toBe(false);
  page.leave();
  expect(traffic.feed.isWatched("log")).toBe(false);
});

it("counts calls by minute, server and client", async () => {
  const local: Middleware = (request, context, next) =>
    request.params["name"] === "local" ? Promise.resolve(textResult("here")) : next(request, context);
  const { gateway, traffic } = await tried([local]);
  const { context } = fakeContext({ name: "Ada", principal: "ada" });
  await gateway({ method: "tools/list", params: {} }, context);
  for (const name of ["echo", "echo", "fail"]) await gateway(callRequest(name), context);
  pass(60_000);
  await gateway(callRequest("echo"), context);
  await gateway(callRequest("local"), context);
  const { stats } = traffic;
  expect(stats.server("notes")).toEqual({ calls: 4, errors: 1, p50: 20, p95: 20, lastAt: NOW + 60_060 });
  expect(stats.server("other")).toBeUndefined();
  const { last, calls, errors } = stats.minutes();
  expect(last).toBe(Date.parse("2030-05-05T12:01:00Z"));
  expect(calls["notes"]?.slice(-3)).toEqual([0, 3, 1]);
  expect(errors["notes"]?.slice(-3)).toEqual([0, 1, 0]);
  expect(calls[""]?.slice(-2)).toEqual([0, 1]);
  expect(stats.clients()).toEqual([
    {
      ...{ key: "1", name: "Ada", version: "1", principal: "ada", revision: context.revision, since: NOW },
      ...{ calls: 6, errors: 1, lastAt: NOW + 60_060, last: "local", isConnected: false },
    },
  ]);
  // An hour later, nothing of that is left.
  pass(3_600_000);
  expect(stats.minutes().calls).toEqual({});
});
