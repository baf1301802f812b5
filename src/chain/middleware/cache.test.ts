// What is answered from the cache, for how long, for whom, and what is never kept.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeCaller, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { deferred } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Caller, Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import { META } from "../../protocol/model/base.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { cache, type CacheOptions } from "./cache.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

type Answer = (request: Request, context: Context, count: number) => Result | Promise<Result>;

function start(options: CacheOptions, answer: Answer) {
  const requests: Request[] = [];
  let notify: ((notification: Notification) => void) | undefined;
  const gateway = chain(cache(options)).to(async (request, context) => {
    if (request.method === "subscriptions/listen") {
      notify = context.notify;
      return new Promise(() => undefined);
    }
    requests.push(request);
    return answer(request, context, requests.length);
  });
  const { context } = fakeContext();
  const send = (request: Request, as: Context = context): Promise<Result> => gateway(request, as);
  void send({ method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } });
  return { send, requests, notify: (notification: Notification) => notify?.(notification) };
}

const list: Request = { method: "tools/list", params: {} };
const readRequest = (uri: string): Request => ({ method: "resources/read", params: { uri } });
const numbered: Answer = (_request, _context, count) => textResult(String(count));
const as = (caller: Partial<Caller>): Context => ({ ...fakeContext().context, caller: fakeCaller(caller) });
const rule = { ttlMs: 1_000 };
const tools = { a: rule };

it("what servers allow keeps lists and reads for their time, and reports what is left of it", async () => {
  const answer: Answer = (_request, _context, count) => ({ tools: [], count, ttlMs: 1_000, cacheScope: "private" });
  const { send } = start({}, answer);
  expect(await send(list)).toEqual({ tools: [], count: 1, ttlMs: 1_000, cacheScope: "private" });
  vi.advanceTimersByTime(400);
  expect(await send(list)).toEqual({ tools: [], count: 1, ttlMs: 600, cacheScope: "private" });
  expect(await send({ ...list, params: { cursor: "2" } })).toMatchObject({ count: 2 });
  vi.advanceTimersByTime(600);
  expect(await send(list)).toMatchObject({ count: 3, ttlMs: 1_000 });
  expect(await send(readRequest("a://1"))).toMatchObject({ count: 4 });
  expect(await send(readRequest("a://1"))).toMatchObject({ count: 4 });
});

it("what servers allow keeps nothing without a time, and neither calls nor prompts", async () => {
  const ttls = [0, undefined, "soon", -1, Number.NaN];
  const { send, requests } = start({}, (_request, _context, count) => ({ tools: [], ttlMs: ttls[count - 1] }));
  for (const _ttl of ttls) await send(list);
  expect(requests).toHaveLength(ttls.length);
  const calls = start({}, () => ({ ...textResult("a"), ttlMs: 1_000 }));
  for (const request of [callRequest("a"), { method: "prompts/get", params: { name: "a" } }]) {
    await calls.send(request);
    await calls.send(request);
  }
  expect(calls.requests).toHaveLength(4);
});

it("what servers allow gives a result to another caller only if it is public", async () => {
  let cacheScope: string | undefined = "private";
  const answer: Answer = (_request, _context, count) => ({ tools: [], count, ttlMs: 1_000, cacheScope });
  const { send, requests } = start({}, answer);
  const callers: Partial<Caller>[] = [
    { principal: "ada" },
    { principal: "bea" },
    { principal: "ada", endpoint: "/work" },
    { principal: "ada", scopes: ["read"] },
    { principal: "ada", claims: { org: "acme" } },
    { headers: { "x-tenant": "a" } },
    { headers: { "x-tenant": "b" } },
    { style: "session", key: "session a" },
    { style: "session", key: "session b" },
  ];
  for (const caller of callers) await send(list, as(caller));
  expect(requests).toHaveLength(callers.length);
  for (const caller of callers) await send(list, as(caller));
  expect(requests).toHaveLength(callers.length);
  for (let count = 0; count < 2; count += 1) await send(list, as({ env: {} }));
  expect(requests).toHaveLength(callers.length + 2);
  await send(list, as({ principal: "ada", headers: { "mcp-method": "tools/list", "content-length": "5" } }));
  expect(requests).toHaveLength(callers.length + 2);
  cacheScope = "public";
  const { count } = await send({ ...list, params: { cursor: "public" } }, as({ principal: "ada" }));
  for (const caller of [...callers, { env: {} }]) {
    const found = await send({ ...list, params: { cursor: "public" } }, as(caller));
    expect(found).toMatchObject({ count, cacheScope: "public" });
  }
});

it("rules keep results of tools by name and arguments", async () => {
  const { send } = start({ tools }, numbered);
  expect(await send(callRequest("a", { x: 1 }))).toEqual(textResult("1"));
  expect(await send(callRequest("a", { x: 1 }))).toEqual(textResult("1"));
  expect(await send(callRequest("a", { x: 2 }))).toEqual(textResult("2"));
  expect(await send(callRequest("b", { x: 1 }))).toEqual(textResult("3"));
  expect(await send(callRequest("b", { x: 1 }))).toEqual(textResult("4"));
  const long = { text: "x".repeat(10_000) };
  expect(await send(callRequest("a", long))).toEqual(textResult("5"));
  expect(await send(callRequest("a", { text: `${long.text}y` }))).toEqual(textResult("6"));
  expect(await send(callRequest("a", long))).toEqual(textResult("5"));
  vi.advanceTimersByTime(1_000);
  expect(await send(callRequest("a", { x: 1 }))).toEqual(textResult("7"));
});

it("rules with a pattern concern only tools that say they are read-only", async () => {
  const listed = [{ name: "get_a", annotations: { readOnlyHint: true } }, { name: "get_b" }];
  const { send, requests } = start({ tools: { "get_*": rule, get_c: rule } }, (request, _context, count) =>
    request.method === "tools/list" ? { tools: listed } : textResult(String(count)),
  );
  for (const name of ["get_a", "get_a", "get_b", "get_b"]) await send(callRequest(name));
  expect(requests.filter(({ method }) => method === "tools/list")).toHaveLength(1);
  const called = requests.filter(({ method }) => method === "tools/call");
  expect(called.map(({ params }) => params["name"])).toEqual(["get_a", "get_b", "get_b"]);
  const named = start({ tools: { get_b: rule, "get_*": rule } }, numbered);
  for (let count = 0; count < 2; count += 1) expect(await named.send(callRequest("get_b"))).toEqual(textResult("1"));
});

it("rules keep prompts, reads and lists, for all callers if public", async () => {
  const { send, requests } = start(
    { prompts: { p: { ...rule, public: true } }, resources: { "a://*": rule }, lists: { ttlMs: 500 } },
    () => ({ messages: [], contents: [], tools: [], ttlMs: 0, cacheScope: "public" }),
  );
  const prompt: Request = { method: "prompts/get", params: { name: "p" } };
  for (const principal of ["ada", "bea"]) {
    for (const request of [prompt, readRequest("a://1"), readRequest("b://1"), list]) {
      for (let count = 0; count < 2; count += 1) await send(request, as({ principal }));
    }
  }
  const count = (wanted: Request) => requests.filter((request) => request === wanted).length;
  expect([count(prompt), count(list)]).toEqual([1, 2]);
  expect(requests.filter(({ params }) => params["uri"] === "a://1")).toHaveLength(2);
  expect(requests.filter(({ params }) => params["uri"] === "b://1")).toHaveLength(4);
  expect(await send(list, as({ principal: "ada" }))).toMatchObject({ ttlMs: 500, cacheScope: "private" });
});

it("rules ignore what is different in each request, but not the rest of `_meta`", async () => {
  const { send } = start({ tools }, numbered);
  const withMeta = (_meta: Record<string, unknown>): Request => ({
    method: "tools/call",
    params: { name: "a", _meta },
  });
  expect(await send(callRequest("a"))).toEqual(textResult("1"));
  expect(await send(withMeta({ progressToken: 5, [META.logLevel]: "info", traceparent: "x" }))).toEqual(
    textResult("1"),
  );
  expect(await send(withMeta({ "com.example/language": "de" }))).toEqual(textResult("2"));
});

it.each<[string, Answer]>([
  ["an error", () => ({ ...textResult("wrong"), isError: true })],
  ["a question", () => ({ resultType: "input_required", inputRequests: {} })],
  ["a task", () => ({ resultType: "task", taskId: "1", status: "working", ttlMs: 1_000 })],
  ["an incomplete result", () => ({ ...textResult("some"), _meta: { "catenary/unavailable": [] } })],
  ["what JSON cannot express", () => ({ ...textResult("odd"), structuredContent: { big: 1n } })],
  [
    "a result that depends on an answer",
    async (_request, context) => {
      await context.ask({ method: "roots/list", params: {} });
      return textResult("answered");
    },
  ],
])("never keeps %s", async (_name, answer) => {
  const { send, requests } = start({ tools }, answer);
  const { context } = fakeContext({ answer: () => ({ roots: [] }) });
  await send(callRequest("a"), context);
  await send(callRequest("a"), context);
  expect(requests).toHaveLength(2);
});

it("passes answers to questions, and calls that must become tasks", async () => {
  const { send } = start({ tools }, numbered);
  const { context } = fakeContext();
  await send(callRequest("a"), context);
  const answer: Request = { method: "tools/call", params: { name: "a", requestState: "s", inputResponses: {} } };
  expect(await send(answer, context)).toEqual(textResult("2"));
  expect(await send(callRequest("a"), { ...context, task: { mode: "required" } })).toEqual(textResult("3"));
  expect(await send(callRequest("a"), context)).toEqual(textResult("1"));
});

it("drops what a notification concerns, also if it is on its way", async () => {
  const { send, requests, notify } = start({ tools, resources: { "*": rule }, lists: rule }, () => ({
    tools: [],
    contents: [],
  }));
  const all = [list, callRequest("a"), readRequest("a://1"), readRequest("b://1")];
  for (const request of all) await send(request);
  notify({ method: "notifications/tools/list_changed" });
  notify({ method: "notifications/resources/updated", params: { uri: "a://1" } });
  for (const request of all) await send(request);
  expect(requests.slice(4)).toEqual(all.slice(0, 3));
  const late = deferred<Result>();
  const slow = start({ lists: rule }, (_request, _context, count) => (count === 1 ? late.promise : { tools: [] }));
  const first = slow.send(list);
  await new Promise(setImmediate);
  slow.notify({ method: "notifications/tools/list_changed" });
  late.resolve({ tools: [] });
  await first;
  await slow.send(list);
  expect(slow.requests).toHaveLength(2);
});

it("keeps a limited number of results, of a limited size", async () => {
  const few = start({ tools: { "x*": rule, a: rule, b: rule, c: rule }, maxEntries: 2 }, numbered);
  for (const name of ["a", "b", "a", "c", "a", "b"]) await few.send(callRequest(name));
  expect(few.requests.map(({ params }) => params["name"])).toEqual(["a", "b", "c", "b"]);
  const small = start({ tools: { a: rule, b: rule }, maxBytes: 2_000 }, ({ params }) =>
    textResult("x".repeat(params["name"] === "a" ? 3_000 : 1_000)),
  );
  for (const name of ["b", "a", "b", "a"]) await small.send(callRequest(name));
  expect(small.requests.map(({ params }) => params["name"])).toEqual(["b", "a", "a"]);
});

it("equal requests at the same time wait for the first one", async () => {
  const result = deferred<Result>();
  const { send, requests } = start({ tools }, () => result.promise);
  const sent = [1, 2, 3].map(() => send(callRequest("a")));
  const { context, abort } = fakeContext();
  const cancelled = send(callRequest("a"), context);
  const other = send(callRequest("a"), as({ principal: "ada" }));
  await new Promise(setImmediate);
  expect(requests).toHaveLength(2);
  abort(new Error("No longer wanted"));
  await expect(cancelled).rejects.toThrow("No longer wanted");
  result.resolve(textResult("done"));
  expect(await Promise.all([...sent, other])).toEqual(Array(4).fill(textResult("done")));
  expect(requests).toHaveLength(2);
});

it("equal requests at the same time wait for the next one if the first one is cancelled", async () => {
  const result = deferred<Result>();
  const { send, requests } = start({ tools }, (_request, { signal }, count) =>
    count > 1
      ? result.promise
      : new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  const { context, abort } = fakeContext();
  const cancelled = send(callRequest("a"), context);
  const others = [1, 2, 3].map(() => send(callRequest("a")));
  await new Promise(setImmediate);
  abort(new Error("No longer wanted"));
  await expect(cancelled).rejects.toThrow("No longer wanted");
  await new Promise(setImmediate);
  expect(requests).toHaveLength(2);
  result.resolve(textResult("done"));
  expect(await Promise.all(others)).toEqual(Array(3).fill(textResult("done")));
  expect(requests).toHaveLength(2);
});

it("equal requests at the same time are sent by themselves if the first one fails or asks its caller", async () => {
  const failing = start({ tools }, async (_request, _context, count) => {
    await new Promise(setImmediate);
    if (count === 1) throw new ConnectionError("closed", "Gone");
    return textResult(String(count));
  });
  const [first, second] = [failing.send(callRequest("a")), failing.send(callRequest("a"))];
  await expect(first).rejects.toThrow("Gone");
  expect(await second).toEqual(textResult("2"));
  const asking = start({ tools }, async (_request, context, count) => {
    if (count === 1) await context.ask({ method: "roots/list", params: {} });
    return textResult(String(count));
  });
  const { context } = fakeContext({ answer: () => new Promise<never>(() => undefined) });
  void asking.send(callRequest("a"), context);
  expect(await asking.send(callRequest("a"), context)).toEqual(textResult("2"));
});

it("keeps a copy that callers cannot change", async () => {
  const structuredContent = { list: [1] };
  const { send } = start({ tools }, () => ({ ...textResult("a"), structuredContent }));
  const first = await send(callRequest("a"));
  expect(Object.isFrozen(structuredContent)).toBe(false);
  structuredContent.list.push(2);
  expect(first["structuredContent"]).toBe(structuredContent);
  const second = await send(callRequest("a"));
  expect(second["structuredContent"]).toEqual({ list: [1] });
  expect(() => (second["structuredContent"] as typeof structuredContent).list.push(3)).toThrow(TypeError);
});

const handlerOf = (own: string) => (_name: string, handler: Handler) => filterOf(own, handler);
const filterOf =
  (own: string, handler: Handler): Handler =>
  async (request, context) => {
    if (request.method === "tools/call" && request.params["name"] !== own) throw new Error("not in this part");
    return handler(request, context);
  };
const server = (): Handler =>
  createServer({ name: "a", version: "1", cache: { ttlMs: 1_000, cacheScope: "public" } }).tool("a", {}, () => "a");
const shared = { ttlMs: 60_000, public: true };
const gateway = () =>
  chain(cache({ lists: shared, tools: { a: shared } })).to(
    { one: server() },
    {
      select: ({ principal = "" }) => {
        if (principal === "removed") throw new Error("You are not among the callers");
        return principal === "" ? undefined : { key: principal, handlerOf: handlerOf(principal) };
      },
    },
  );

it("callers of different parts of a gateway never share a result, even a public one", async () => {
  const all = gateway();
  const answer = { content: [{ type: "text", text: "a" }] };
  expect(await all(callRequest("a"), as({ principal: "a" }))).toMatchObject(answer);
  expect(await all(callRequest("a"), as({ principal: "a", key: "other" }))).toMatchObject(answer);
  await expect(all(callRequest("a"), as({ principal: "b" }))).rejects.toThrow("not in this part");
  expect(await all(callRequest("a"), as({}))).toMatchObject(answer);
  await expect(all(callRequest("a"), as({ principal: "b" }))).rejects.toThrow("not in this part");
  await expect(all(callRequest("a"), as({ principal: "removed" }))).rejects.toThrow("You are not among the callers");
});

it("callers of different parts of a gateway see that the result is private", async () => {
  const all = gateway();
  expect(await all(list, as({ principal: "a" }))).toMatchObject({ cacheScope: "private" });
  expect(await all(list, as({}))).toMatchObject({ cacheScope: "public" });
});

it("forgets everything when the gateway has other upstreams or other middleware", async () => {
  const server = (name: string) => createServer({ name, version: "1" }).tool("same", {}, () => name);
  const kept = cache({ lists: rule, tools: { same: rule } });
  const gateway = chain(kept).to({ one: server("one") });
  const { context } = fakeContext();
  const use = () => gateway(callRequest("same"), context);
  expect(await use()).toMatchObject({ content: [{ text: "one" }] });
  await gateway.update(chain(kept).to({ two: server("two") }));
  expect(await use()).toMatchObject({ content: [{ text: "two" }] });
});
