// Requests to a stateless client during a call, as rounds of `input_required`.

import { queryObjects } from "node:v8";
import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { RawPeer, statelessMeta } from "../../../test/support/dialogue/raw-peer.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { memoryPair } from "../../transport/memory.ts";
import type { Inbound } from "../../transport/transport.ts";
import type { ParkedCallsOptions } from "./parked-calls.ts";
import { serveTransport, type ServedConnection } from "../connection.ts";

const CAPABILITIES = { elicitation: {}, sampling: {}, roots: {} };
const QUESTION: Request = {
  method: "elicitation/create",
  params: {
    mode: "form",
    message: "Who?",
    requestedSchema: { type: "object", properties: { name: { type: "string" } } },
  },
};
const text = (value: string): Result => ({
  resultType: "complete",
  content: [{ type: "text", text: value }],
  isError: false,
});
const accept = (name: string): Result => ({ action: "accept", content: { name } });

type Tool = (context: Context, args: Record<string, unknown>) => Promise<Result>;
interface Answer {
  readonly id: unknown;
  readonly result?: Result & {
    inputRequests?: Record<string, Request>;
    requestState?: string;
    content?: { text: string }[];
  };
  readonly error?: { code: number; message: string; data?: Record<string, unknown> };
}

const open: ServedConnection[] = [];
afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

async function setUp(tools: Record<string, Tool>, parkedCalls: ParkedCallsOptions = {}) {
  const runs: string[] = [];
  const handler: Handler = async (request, context) => {
    const name = String(request.params["name"]);
    runs.push(name);
    return tools[name]!(context, (request.params["arguments"] ?? {}) as Record<string, unknown>);
  };
  const [ours, theirs] = memoryPair();
  open.push(await serveTransport(handler, ours, { parkedCalls }));
  const peer = await new RawPeer(theirs).start();
  let id = 0;
  const call = async (
    name: string,
    more: Record<string, unknown> = {},
    meta: Record<string, unknown> = {},
  ): Promise<Answer> => {
    id += 1;
    const params = {
      name,
      arguments: { n: 1, deep: { a: 1, b: 2 } },
      ...more,
      _meta: statelessMeta(NEWEST.name, CAPABILITIES, meta),
    };
    return (await peer.request({ id, method: "tools/call", params })) as unknown as Answer;
  };
  return { peer, call, runs };
}

const asking: Tool = async (context) => {
  const answer = await context.ask(QUESTION, { key: "who" });
  return text(`Hello ${(answer["content"] as { name: string }).name}`);
};

it("an input request is sent as input_required, and the retry finishes the same call", async () => {
  const { call, runs } = await setUp({ asking });
  const first = await call("asking");
  expect(first.result).toMatchObject({ resultType: "input_required", inputRequests: { who: QUESTION } });
  const second = await call("asking", {
    requestState: first.result!.requestState,
    inputResponses: { who: accept("Ada") },
  });
  expect(second.result).toMatchObject({ resultType: "complete", content: [{ text: "Hello Ada" }] });
  expect(runs).toEqual(["asking"]);
});

it("an input request finds its call whatever the order of the arguments' keys is", async () => {
  const { call } = await setUp({ asking });
  const { result } = await call("asking", { arguments: { n: 1, deep: { a: 1, b: 2 } } });
  const again = await call("asking", {
    arguments: { deep: { b: 2, a: 1 }, n: 1 },
    requestState: result!.requestState,
    inputResponses: { who: accept("Ada") },
  });
  expect(again.result?.content?.[0]?.text).toBe("Hello Ada");
});

it("an input request goes out together with others that are made at the same time", async () => {
  const both: Tool = async (context) => {
    const [name, roots] = await Promise.all([context.ask(QUESTION), context.ask({ method: "roots/list", params: {} })]);
    return text(`${(name["content"] as { name: string }).name} ${(roots["roots"] as unknown[]).length}`);
  };
  const { call } = await setUp({ both });
  const first = await call("both");
  expect(Object.keys(first.result!.inputRequests!)).toEqual(["1", "2"]);
  const second = await call("both", {
    requestState: first.result!.requestState,
    inputResponses: { "1": accept("Ada"), "2": { roots: [] } },
  });
  expect(second.result?.content?.[0]?.text).toBe("Ada 0");
});

it("an input request after another one is a new round with a new state", async () => {
  const twice: Tool = async (context) => {
    const one = await context.ask(QUESTION);
    const two = await context.ask(QUESTION);
    return text([one, two].map((answer) => (answer["content"] as { name: string }).name).join(" "));
  };
  const { call } = await setUp({ twice });
  const first = await call("twice");
  const second = await call("twice", {
    requestState: first.result!.requestState,
    inputResponses: { "1": accept("Ada") },
  });
  expect(second.result).toMatchObject({ resultType: "input_required" });
  expect(Object.keys(second.result!.inputRequests!)).toEqual(["2"]);
  expect(second.result!.requestState).not.toBe(first.result!.requestState);
  const third = await call("twice", {
    requestState: second.result!.requestState,
    inputResponses: { "2": accept("Bea") },
  });
  expect(third.result?.content?.[0]?.text).toBe("Ada Bea");
});

it("an input request that is not answered with an object is sent again", async () => {
  const { call } = await setUp({ asking });
  let { result } = await call("asking");
  for (const inputResponses of [{}, { other: accept("x") }, { who: 7 }, { who: null }, { who: ["a"] }, undefined]) {
    const next = await call("asking", { requestState: result!.requestState, inputResponses });
    expect(next.result).toMatchObject({ resultType: "input_required", inputRequests: { who: QUESTION } });
    result = next.result;
  }
  const last = await call("asking", {
    requestState: result!.requestState,
    inputResponses: { who: accept("Ada"), extra: accept("x") },
  });
  expect(last.result?.content?.[0]?.text).toBe("Hello Ada");
});

it("an input request is answered by its key if the answer comes with a new call and no state", async () => {
  const { call, runs } = await setUp({ asking });
  const answer = await call("asking", { inputResponses: { who: accept("Ada") } });
  expect(answer.result?.content?.[0]?.text).toBe("Hello Ada");
  expect(runs).toEqual(["asking"]);
});

it("an input request without a key is asked, whatever came with the first request, and then answered by its number", async () => {
  const counted: Tool = async (context) => text(String((await context.ask(QUESTION))["action"]));
  const { call } = await setUp({ counted });
  const inputResponses = { "1": accept("Ada") };
  const { result } = await call("counted", { inputResponses });
  expect(result).toMatchObject({ resultType: "input_required", inputRequests: { "1": QUESTION } });
  const last = await call("counted", { inputResponses, requestState: result!.requestState });
  expect(last.result?.content?.[0]?.text).toBe("accept");
});

it("an input request is refused if the client cannot answer it, with the missing capability", async () => {
  const { peer } = await setUp({ asking });
  const answer = await peer.request({
    id: 1,
    method: "tools/call",
    params: { name: "asking", _meta: statelessMeta(NEWEST.name, { sampling: {} }) },
  });
  expect(answer).toMatchObject({ error: { code: -32021, data: { requiredCapabilities: { elicitation: {} } } } });
});

it("an input request cannot be made during a request that does not allow input", async () => {
  const [ours, theirs] = memoryPair();
  const handler: Handler = async (_request, context) => context.ask(QUESTION);
  open.push(await serveTransport(handler, ours));
  const peer = await new RawPeer(theirs).start();
  const answer = await peer.request({
    id: 1,
    method: "tools/list",
    params: { _meta: statelessMeta(NEWEST.name, CAPABILITIES) },
  });
  expect(answer).toMatchObject({ error: { code: -32600 } });
});

it("a requestState that is repeated gets the stored result and runs nothing", async () => {
  const { call, runs } = await setUp({ asking });
  const first = await call("asking");
  const retry = { requestState: first.result!.requestState, inputResponses: { who: accept("Ada") } };
  const [one, two] = await Promise.all([call("asking", retry), call("asking", retry)]);
  const later = await call("asking", { ...retry, inputResponses: { who: accept("Mallory") } });
  for (const answer of [one, two, later]) expect(answer.result?.content?.[0]?.text).toBe("Hello Ada");
  expect(runs).toEqual(["asking"]);
});

it("a requestState is refused when any part of it was altered", async () => {
  const { call, runs } = await setUp({ asking });
  const state = (await call("asking")).result!.requestState!;
  const secret = state.lastIndexOf(".") + 1;
  for (let at = secret; at < state.length; at += 7) {
    const altered = state.slice(0, at) + (state[at] === "A" ? "B" : "A") + state.slice(at + 1);
    const answer = await call("asking", { requestState: altered, inputResponses: { who: accept("x") } });
    expect(answer.error?.code).toBe(-32602);
  }
  expect((await call("asking", { requestState: `${state}-TAMPERED`, inputResponses: {} })).error?.code).toBe(-32602);
  expect(runs).toEqual(["asking"]);
});

it("a requestState belongs to its method and arguments", async () => {
  const { call, peer } = await setUp({ asking, other: asking });
  const requestState = (await call("asking")).result!.requestState;
  const inputResponses = { who: accept("x") };
  expect((await call("other", { requestState, inputResponses })).error?.message).toContain("another call");
  expect((await call("asking", { requestState, inputResponses, arguments: { n: 2 } })).error?.message).toContain(
    "another call",
  );
  const params = {
    name: "asking",
    arguments: { n: 1, deep: { a: 1, b: 2 } },
    requestState,
    inputResponses,
    _meta: statelessMeta(NEWEST.name, CAPABILITIES),
  };
  expect(await peer.request({ id: "p", method: "prompts/get", params })).toMatchObject({ error: { code: -32602 } });
});

it("a requestState that was sealed elsewhere is passed on to the handler", async () => {
  const seen: unknown[] = [];
  const [ours, theirs] = memoryPair();
  const handler: Handler = async (request) => {
    seen.push(request.params["requestState"], request.params["inputResponses"]);
    return text("passed");
  };
  open.push(await serveTransport(handler, ours));
  const peer = await new RawPeer(theirs).start();
  const params = {
    name: "x",
    requestState: "round.other.abc",
    inputResponses: { a: {} },
    _meta: statelessMeta(NEWEST.name),
  };
  await peer.request({ id: 1, method: "tools/call", params });
  expect(seen).toEqual(["round.other.abc", { a: {} }]);
});

it("a requestState is bound to the principal", async () => {
  const [ours, theirs] = memoryPair();
  let principal = "ada";
  const named: typeof ours = {
    start: (receive) => ours.start((inbound) => receive({ ...inbound, caller: { principal } } as Inbound)),
    send: (message) => ours.send(message),
    close: () => ours.close(),
  };
  open.push(await serveTransport(async (_request, context) => asking(context, {}), named));
  const peer = await new RawPeer(theirs).start();
  const params = { name: "asking", _meta: statelessMeta(NEWEST.name, CAPABILITIES) };
  const first = (await peer.request({ id: 1, method: "tools/call", params })) as unknown as Answer;
  principal = "mallory";
  const retry = { ...params, requestState: first.result!.requestState, inputResponses: { who: accept("x") } };
  expect(await peer.request({ id: 2, method: "tools/call", params: retry })).toMatchObject({
    error: { code: -32602 },
  });
  principal = "ada";
  expect(await peer.request({ id: 3, method: "tools/call", params: retry })).toMatchObject({
    result: { resultType: "complete" },
  });
});

it("a parked call keeps the newest progress and the logs for the retry", async () => {
  let again: () => void = () => undefined;
  const chatty: Tool = async (context) => {
    const answer = context.ask(QUESTION, { key: "who" });
    await new Promise<void>((resolve) => (again = resolve));
    for (const progress of [1, 2, 3]) context.notify({ method: "notifications/progress", params: { progress } });
    context.notify({ method: "notifications/message", params: { level: "error", data: "while waiting" } });
    await answer;
    return text("done");
  };
  const { call, peer } = await setUp({ chatty });
  const meta = { progressToken: "first", "io.modelcontextprotocol/logLevel": "debug" };
  const { result } = await call("chatty", {}, meta);
  again();
  await new Promise((resolve) => setImmediate(resolve));
  await call(
    "chatty",
    { requestState: result!.requestState, inputResponses: { who: accept("x") } },
    { ...meta, progressToken: "second" },
  );
  const sent = peer.received.filter((message) => "method" in message).map((message) => message["params"]);
  expect(sent).toEqual([
    { progressToken: "second", progress: 3 },
    { level: "error", data: "while waiting" },
  ]);
});

it("a parked call is aborted when its retry is cancelled", async () => {
  let signal: AbortSignal | undefined;
  const stuck: Tool = async (context) => {
    await context.ask(QUESTION, { key: "who" });
    ({ signal } = context);
    await new Promise<void>((_resolve, reject) =>
      context.signal.addEventListener("abort", () => reject(context.signal.reason)),
    );
    return text("never");
  };
  const { call, peer } = await setUp({ stuck });
  const { result } = await call("stuck");
  const params = {
    name: "stuck",
    arguments: { n: 1, deep: { a: 1, b: 2 } },
    requestState: result!.requestState,
    inputResponses: { who: accept("x") },
  };
  peer.send({
    id: "retry",
    method: "tools/call",
    params: { ...params, _meta: statelessMeta(NEWEST.name, CAPABILITIES) },
  });
  await expect.poll(() => signal !== undefined).toBe(true);
  peer.send({ method: "notifications/cancelled", params: { requestId: "retry" } });
  await expect.poll(() => signal!.aborted).toBe(true);
});

it("a parked call expires with its state when the client does not come back", async () => {
  let gone: unknown;
  const patient: Tool = async (context) => {
    await context.ask(QUESTION, { key: "who" }).catch((error: unknown) => (gone = error));
    return text("late");
  };
  const { call } = await setUp({ patient }, { ttlMs: 30 });
  const { result } = await call("patient");
  await expect.poll(() => String(gone)).toContain("did not come back");
  const late = await call("patient", { requestState: result!.requestState, inputResponses: { who: accept("x") } });
  expect(late.error?.code).toBe(-32602);
});

it("a parked call does not expire once its client is back", async () => {
  const slow: Tool = async (context) => {
    await context.ask(QUESTION, { key: "who" });
    await vi.advanceTimersByTimeAsync(150);
    return text(context.signal.aborted ? "aborted" : "done");
  };
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance", "Date"] });
  try {
    const { call } = await setUp({ slow }, { ttlMs: 40 });
    const { result } = await call("slow");
    const done = await call("slow", { requestState: result!.requestState, inputResponses: { who: accept("x") } });
    expect(done.result?.content?.[0]?.text).toBe("done");
  } finally {
    vi.useRealTimers();
  }
});

it.each([
  [{}, 100],
  [{ maxParked: 2 }, 2],
])("a parked call counts toward the limits: %j", async (limits, max) => {
  const { call } = await setUp({ asking }, limits);
  const first = await call("asking");
  for (let waiting = 1; waiting < max; waiting += 1) await call("asking");
  const refused = await call("asking");
  expect(refused.error?.data?.["kind"]).toBe("rate_limited");
  const finished = await call("asking", {
    requestState: first.result!.requestState,
    inputResponses: { who: accept("Ada") },
  });
  expect(finished.result?.content?.[0]?.text).toBe("Hello Ada");
  expect((await call("asking")).result).toMatchObject({ resultType: "input_required" });
});

it("the memory of a parked call does not keep the client's params once it is finished", async () => {
  class Sent {
    readonly bytes = "many";
  }
  const { call } = await setUp({
    ask: async (context, args) => {
      Object.defineProperty(args, "sent", { value: new Sent() });
      return asking(context, args);
    },
  });
  const first = await call("ask");
  const { inputRequests = {}, requestState } = first.result ?? {};
  const [key = ""] = Object.keys(inputRequests);
  expect(queryObjects(Sent)).toBe(1);
  const answer = await call("ask", { requestState, inputResponses: { [key]: accept("Ada") } });
  expect(answer.result?.resultType).toBe("complete");
  // Messages being delivered are still referenced by the transport.
  await eventually(() => expect(queryObjects(Sent)).toBe(0));
});
