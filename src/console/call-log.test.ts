// The log of calls: what is one logical call and what is nested under it, which time is work, what is kept, and for how
// long. The gateway and its servers are real; the clock is not.

import { Session } from "node:inspector/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { taskServer } from "../../test/support/tasks/task-server.ts";
import { chain } from "../chain/chain.ts";
import type { Gateway } from "../chain/gateway.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { createServer } from "../server/server.ts";
import { CallLog, type CallLogOptions } from "./call-log.ts";
import type { Row } from "./call-row.ts";
import { estimateLength } from "./lengths.ts";
import type { CallRow } from "./types.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date", "performance"], now: 1_000_000 }));
afterEach(() => void vi.useRealTimers());

const pass = (ms: number): void => void vi.advanceTimersByTime(ms);
/** Lets work go on that waits for no time. */
const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
};

function logged(upstreams: Record<string, Handler>, options: CallLogOptions = {}): { log: CallLog; gateway: Gateway } {
  const gateway = chain().to(upstreams);
  const log = new CallLog(options);
  gateway.observe(log.reader);
  return { log, gateway };
}

/** A row as JSON shows it. */
function rowsOf(log: CallLog): CallRow[] {
  return JSON.parse(JSON.stringify(log.kept.rows())) as CallRow[];
}

const echo = createServer({ name: "echo", version: "1" }).tool("echo", {}, () => {
  pass(20);
  return "hi";
});

it("makes a row of each call: who, what, where, how long and how much", async () => {
  const { log, gateway } = logged({ notes: echo, other: createServer({ name: "other", version: "1" }) });
  const { context } = fakeContext({ name: "Ada", principal: "ada" });
  await gateway(callRequest("echo", { text: "hello" }), context);
  await gateway({ method: "tools/list", params: {} }, context);
  const [call, list] = rowsOf(log);
  expect(call).toEqual({
    ...{ id: 1, kind: "call", at: 1_000_000, ms: 20, endedAt: 1_000_020, method: "tools/call", name: "echo" },
    ...{ server: "notes", client: "Ada 1", principal: "ada", revision: context.revision, status: "ok" },
    ...{ sent: expect.any(Number) as number, received: expect.any(Number) as number },
  });
  // All servers have answered.
  expect(list).not.toHaveProperty("server");
  expect(log.hasText({ id: 1 }, "HELLO")).toBe(true);
  expect(log.hasText({ id: 1 }, "hi")).toBe(true);
  expect(log.hasText({ id: 1 }, "absent")).toBe(false);
});

it("names the only server, which the gateway does not name", async () => {
  const { log, gateway } = logged({ notes: echo }, { onlyServer: () => "notes" });
  const { context } = fakeContext();
  await gateway(callRequest("echo"), context);
  await gateway({ method: "tools/list", params: {} }, context);
  expect(rowsOf(log).map(({ server }) => server)).toEqual(["notes", "notes"]);
});

it("says why a call has failed, without secrets", async () => {
  const failing: Handler = (request) => {
    const { name } = request.params;
    if (name === "tool") return Promise.resolve({ ...textResult("no such file: hunter2"), isError: true });
    if (name === "late") {
      return Promise.reject(new ConnectionError("timeout", "took too long", { mayHaveRun: true, subject: "notes" }));
    }
    return Promise.reject(McpError.of("invalid_params", "The name is wrong"));
  };
  const { log, gateway } = logged({ notes: failing }, { hide: (text) => text.replaceAll("hunter2", "...") });
  const { context, abort } = fakeContext();
  for (const name of ["tool", "late", "other"]) await gateway(callRequest(name), context).catch(() => undefined);
  abort();
  await gateway(callRequest("cancelled"), context).catch(() => undefined);
  expect(rowsOf(log).map(({ status, error, errorText }) => [status, error, errorText])).toEqual([
    ["error", "tool_error", "no such file: ..."],
    ["error", "timeout", expect.stringContaining("took too long")],
    ["error", "invalid_params", "The name is wrong"],
    ["cancelled", undefined, undefined],
  ]);
});

it("tells the time of a person from the time of work, for questions in a call", async () => {
  const asking = createServer({ name: "ask", version: "1" }).tool("book", {}, async (_args, { ask }) => {
    pass(10);
    const form = { type: "object", properties: { ok: { type: "boolean" } } } as const;
    const [{ action }] = await Promise.all([
      ask.elicit({ message: "Sure?", requestedSchema: form }),
      ask.elicit({ message: "Really?", requestedSchema: form }),
    ]);
    pass(30);
    return action;
  });
  const { log, gateway } = logged({ trips: asking, echo });
  const answers: (() => void)[] = [];
  const { context } = fakeContext({
    answer: () => new Promise<Result>((resolve) => answers.push(() => resolve({ action: "accept", content: {} }))),
  });
  const call = gateway(callRequest("book"), context);
  await settle();
  expect(answers).toHaveLength(2);
  expect(rowsOf(log).map(({ kind, status }) => [kind, status])).toEqual([
    ["call", "running"],
    ["question", "running"],
    ["question", "running"],
  ]);
  pass(2_000);
  answers[0]?.();
  await settle();
  expect(log.row(2)?.status).toBe("ok");
  pass(3_000);
  answers[1]?.();
  await call;
  const [booked, first, second] = rowsOf(log);
  expect(booked).toMatchObject({ ms: 40, waitMs: 5_000, status: "ok", endedAt: 1_005_040 });
  expect(first).toMatchObject({ parent: 1, method: "elicitation/create", waitMs: 2_000, ms: 0, server: "trips" });
  expect(second).toMatchObject({ parent: 1, kind: "question", waitMs: 5_000, status: "ok" });
  expect(log.kept.record(2)?.result).toEqual({ action: "accept", content: {} });
  expect(log.row(1)?.nested.map(({ id }) => id)).toEqual([2, 3]);
});

/** Asks twice before it answers, with its state or without. */
const stateless =
  (hasState: boolean): Handler =>
  ({ params }) => {
    pass(10);
    const answered = Object.keys((params["inputResponses"] as object | undefined) ?? {});
    const round = answered.length === 0 ? "one" : answered.includes("one") ? "two" : undefined;
    if (round === undefined) return Promise.resolve(textResult("booked"));
    const inputRequests = { [round]: { method: "elicitation/create", params: { message: round } } };
    return Promise.resolve({
      ...{ resultType: "input_required", inputRequests },
      ...(hasState && { requestState: `state of ${round}` }),
    });
  };

it.each([true, false])("retries with answers belong to their call, with a state: %s", async (hasState) => {
  const onEnded = vi.fn();
  const { log, gateway } = logged({ trips: stateless(hasState) }, { onEnded });
  const { context } = fakeContext({ name: "Ada" });
  const other = fakeContext({ name: "Bob" });
  const params = { name: "book", arguments: {} };
  const retry = (key: string, of = context): Promise<Result> => {
    const inputResponses = { [key]: { action: "accept" } };
    const state = hasState ? { requestState: `state of ${key}` } : {};
    return gateway({ method: "tools/call", params: { ...params, inputResponses, ...state } }, of);
  };
  await gateway({ method: "tools/call", params }, context);
  expect(rowsOf(log)[0]).toMatchObject({ status: "asked", ms: 10, endedAt: 1_000_010 });
  expect(onEnded).not.toHaveBeenCalled();
  pass(1_000);
  // Another client with the same state has nothing to do with it.
  await retry("two", other.context);
  await retry("one");
  pass(2_000);
  await retry("two");
  const rows = rowsOf(log).map(({ id, parent, kind, status, ms, waitMs }) => ({
    id,
    parent,
    kind,
    status,
    ms,
    waitMs,
  }));
  expect(rows).toEqual([
    { id: 1, kind: "call", status: "ok", ms: 30, waitMs: 3_010 },
    { id: 2, parent: 1, kind: "question", status: "ok", ms: 0, waitMs: 1_010 },
    { id: 3, kind: "call", status: "ok", ms: 10 },
    { id: 4, parent: 1, kind: "retry", status: "asked", ms: 10 },
    { id: 5, parent: 1, kind: "question", status: "ok", ms: 0, waitMs: 2_000 },
    { id: 6, parent: 1, kind: "retry", status: "ok", ms: 10 },
  ]);
  expect(onEnded.mock.calls.map(([row]) => (row as Row).id)).toEqual([3, 1]);
});

it("polls of a task belong to the call that has started it, which ends with the task", async () => {
  const tasks = taskServer();
  const onEnded = vi.fn();
  const { log, gateway } = logged({ build: tasks.handler }, { onEnded });
  const { context } = fakeContext();
  const declaring = {
    ...context,
    caller: { ...context.caller, capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
  };
  const { taskId } = await gateway(callRequest("build"), declaring);
  expect(rowsOf(log)[0]).toMatchObject({ status: "running" });
  expect(rowsOf(log)[0]).not.toHaveProperty("ms");
  pass(700);
  await gateway({ method: "tasks/get", params: { taskId } }, declaring);
  expect(log.row(1)?.status).toBe("running");
  expect(onEnded).not.toHaveBeenCalled();
  tasks.move(String(taskId), { status: "completed", result: textResult("built") });
  pass(300);
  await gateway({ method: "tasks/get", params: { taskId } }, declaring);
  const [call, ...polls] = rowsOf(log);
  expect(call).toMatchObject({ status: "ok", ms: 1_000, endedAt: 1_001_000 });
  expect(polls.map(({ kind, parent, method, name }) => [kind, parent, method, name])).toEqual([
    ["poll", 1, "tasks/get", taskId],
    ["poll", 1, "tasks/get", taskId],
  ]);
  expect(log.kept.record(1)?.result).toEqual(textResult("built"));
  expect(onEnded).toHaveBeenCalledTimes(1);
});

it("the time in which a task waits for an answer is no work", async () => {
  const tasks = taskServer();
  const { log, gateway } = logged({ build: tasks.handler });
  const { context } = fakeContext();
  const extensions = { "io.modelcontextprotocol/tasks": {} };
  const declaring = { ...context, caller: { ...context.caller, capabilities: { extensions } } };
  const { taskId } = await gateway(callRequest("build"), declaring);
  const poll = (): Promise<Result> => gateway({ method: "tasks/get", params: { taskId } }, declaring);
  pass(100);
  tasks.move(String(taskId), { status: "input_required", inputRequests: {} });
  await poll();
  expect(log.row(1)?.status).toBe("asked");
  pass(5_000);
  tasks.move(String(taskId), { status: "working" });
  await poll();
  pass(200);
  tasks.move(String(taskId), { status: "completed", result: textResult("built") });
  await poll();
  expect(log.row(1)).toMatchObject({ status: "ok", ms: 300, waitMs: 5_000 });
});

it.each<[state: object, row: Partial<CallRow>]>([
  [
    { status: "failed", error: { code: -32_603, message: "broken" } },
    { status: "error", errorText: "broken" },
  ],
  [{ status: "cancelled" }, { status: "cancelled" }],
  [
    { status: "completed", result: { ...textResult("no"), isError: true } },
    { status: "error", error: "tool_error" },
  ],
])("a task that ends with %j ends its call", async (state, row) => {
  const tasks = taskServer();
  const { log, gateway } = logged({ build: tasks.handler });
  const { context } = fakeContext();
  const extensions = { "io.modelcontextprotocol/tasks": {} };
  const declaring = { ...context, caller: { ...context.caller, capabilities: { extensions } } };
  const { taskId } = await gateway(callRequest("build"), declaring);
  tasks.move(String(taskId), state as never);
  await gateway({ method: "tasks/get", params: { taskId } }, declaring);
  expect(rowsOf(log)[0]).toMatchObject(row);
});

it("calls that code makes belong to the call that runs it", async () => {
  const { log, gateway } = logged({ notes: echo });
  const { context } = fakeContext();
  const front: Handler = async (_request, { observer }) => {
    observer?.ran?.("run-1");
    await gateway(callRequest("echo"), { ...context, run: "run-1" });
    return gateway(callRequest("echo"), { ...context, run: "run-2" });
  };
  const outer = chain().to(front);
  outer.observe(log.reader);
  await outer(callRequest("run-code"), context);
  expect(rowsOf(log).map(({ kind, parent, name }) => [kind, parent, name])).toEqual([
    ["call", undefined, "run-code"],
    ["code", 1, "echo"],
    ["call", undefined, "echo"],
  ]);
});

it("keeps the last rows, and their bodies within a budget", async () => {
  const { log, gateway } = logged({ notes: echo }, { limits: { rows: 10, bytes: 20_000 } });
  const { context } = fakeContext();
  for (let count = 0; count < 25; count += 1) {
    await gateway(callRequest("echo", { text: "x".repeat(5_000) }), context);
  }
  await settle();
  expect(rowsOf(log).map(({ id }) => id)).toEqual([16, 17, 18, 19, 20, 21, 22, 23, 24, 25]);
  expect(log.row(15)).toBeUndefined();
  expect(log.kept.bytes).toBeLessThanOrEqual(20_000);
  expect(log.kept.record(16)).toBeUndefined();
  expect(log.kept.record(25)?.request.params["name"]).toBe("echo");
});

it("keeps no long text in memory with the row of a call that has failed", async () => {
  let calls = 0;
  const failing: Handler = () => {
    calls += 1;
    return Promise.resolve({ ...textResult(`${calls} ${"x".repeat(2_000_000)}`), isError: true });
  };
  const { log, gateway } = logged(
    { notes: failing },
    { limits: { rows: 1_000, bytes: 100_000 }, hide: (text) => text },
  );
  const { context } = fakeContext();
  const before = await heapUsed();
  for (let call = 0; call < 60; call += 1) await gateway(callRequest("fail"), context);
  expect(rowsOf(log)[0]?.errorText).toHaveLength(300);
  // The texts are 120 MB.
  expect((await heapUsed()) - before).toBeLessThan(30_000_000);
});

/** After a garbage collection. */
async function heapUsed(): Promise<number> {
  vi.useRealTimers();
  const session = new Session();
  session.connect();
  await new Promise((resolve) => setTimeout(resolve, 50));
  await session.post("HeapProfiler.collectGarbage");
  session.disconnect();
  return process.memoryUsage().heapUsed;
}

it("hides secrets of the config in the names of rows", async () => {
  const hide = (text: string): string => text.replaceAll("hunter2", "${KEY}");
  const { log, gateway } = logged({ notes: echo }, { hide });
  const { context } = fakeContext();
  const read = { method: "resources/read", params: { uri: "vault://hunter2/x" } };
  for (const _ of [1, 2]) await gateway(read, context).catch(() => undefined);
  expect(rowsOf(log).map(({ name }) => name)).toEqual(["vault://${KEY}/x", "vault://${KEY}/x"]);
});

it("a call that began before all rows that are kept ends without a trace", async () => {
  let finish = (): void => undefined;
  const slow: Handler = ({ params }) =>
    params["name"] === "slow"
      ? new Promise((resolve) => (finish = () => resolve(textResult("late"))))
      : Promise.resolve(textResult("x".repeat(500)));
  const { log, gateway } = logged({ notes: slow }, { limits: { rows: 5, bytes: 100_000 } });
  const { context } = fakeContext();
  const first = gateway(callRequest("slow"), context);
  for (let count = 0; count < 6; count += 1) await gateway(callRequest("fast"), context);
  await settle();
  const bytes = log.kept.bytes;
  finish();
  await first;
  await settle();
  expect(log.kept.bytes).toBe(bytes);
  expect(rowsOf(log)).toHaveLength(5);
});

it("tells of rows that begin and change only while someone wants to know", async () => {
  const { log, gateway } = logged({ notes: echo });
  const { context } = fakeContext();
  const seen: string[] = [];
  log.onRow = (row) => seen.push(`${row.id} ${row.status}`);
  await gateway(callRequest("echo"), context);
  log.onRow = undefined;
  await gateway(callRequest("echo"), context);
  expect(seen).toEqual(["1 running", "1 ok"]);
});

it("estimates how long a value is as JSON, in a bounded time", () => {
  const value = { content: [{ type: "text", text: "hello" }], n: 12, ok: true };
  const length = JSON.stringify(value).length;
  expect(estimateLength(value)).toBeGreaterThan(length / 2);
  expect(estimateLength(value)).toBeLessThan(length * 2);
  const long = Array.from({ length: 100_000 }, () => "0123456789");
  expect(estimateLength(long)).toBeGreaterThan(1_000_000);
  expect(estimateLength(long)).toBeLessThan(2_000_000);
  expect(estimateLength(undefined)).toBeGreaterThan(0);
});
