// TaskWatch: how often a task is polled, which failures are tolerated, and when waiting fails. With fake timers.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { taskServer, type TaskServer, type TaskServerOptions } from "../../test/support/tasks/task-server.ts";
import type { Context, Handler } from "../core/handler.ts";
import { ConnectionError, type ConnectionErrorKind } from "../core/errors.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { initialTaskState, TaskWatch } from "./watch.ts";

const context: Context = {
  revision: NEWEST.name,
  caller: fakeCaller({ capabilities: { extensions: { [TASKS_EXTENSION]: {} } } }),
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Not asked")),
};

const never = new AbortController().signal;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  const left = vi.getTimerCount();
  vi.useRealTimers();
  expect(left).toBe(0);
});

/** A task of a fake server; `broken` decides what its next polls throw. */
async function watching(options: TaskServerOptions = {}, more: Json = {}): Promise<Watched> {
  const server = taskServer({ grantsSubscriptions: false, pollIntervalMs: 1_000, ...options });
  const made = await server.handler({ method: "tools/call", params: { name: "job" } }, context);
  const broken: Error[] = [];
  const handler: Handler = async (request, given) => {
    const answer = server.handler(request, given);
    const error = request.method === "tasks/get" ? broken.shift() : undefined;
    if (error === undefined) return answer;
    await answer.catch(() => undefined);
    throw error;
  };
  server.move("task-1", more);
  return { server, broken, watch: new TaskWatch(handler, context, { ...initialTaskState(made), ...more }) };
}

interface Watched {
  readonly server: TaskServer;
  readonly broken: Error[];
  readonly watch: TaskWatch;
}

/** Follows the task until it is finished, and returns the outcome. */
function following(watch: TaskWatch): { states: unknown[]; lost: unknown[]; stop: () => void } {
  const states: unknown[] = [];
  const lost: unknown[] = [];
  const stop = watch.follow(
    ({ status, statusMessage }) => states.push(statusMessage ?? status),
    (error) => lost.push(error),
  );
  return { states, lost, stop };
}

it.each([
  [undefined, 1_000],
  [0, 1_000],
  ["soon", 1_000],
  [1, 100],
  [250, 250],
  [120_000, 120_000],
  [1e12, 3_600_000],
])("a task that is only polled with a poll interval of %j is polled every %d ms", async (pollIntervalMs, ms) => {
  const { server, watch } = await watching({}, { pollIntervalMs, ttlMs: null });
  const { stop } = following(watch);
  await vi.advanceTimersByTimeAsync(ms * 3 - 1);
  expect(server.count("tasks/get")).toBe(2);
  await vi.advanceTimersByTimeAsync(1);
  expect(server.count("tasks/get")).toBe(3);
  stop();
});

it("a task that is only polled is polled equally often for one waiter and for ten", async () => {
  const { server, watch } = await watching();
  const all = Array.from({ length: 10 }, () => following(watch));
  const waiting = watch.changed(never);
  await vi.advanceTimersByTimeAsync(3_000);
  await waiting;
  expect(server.count("tasks/get")).toBe(3);
  server.move("task-1", { statusMessage: "half" });
  await vi.advanceTimersByTimeAsync(1_000);
  server.move("task-1", { status: "completed", result: {}, statusMessage: "done" });
  await vi.advanceTimersByTimeAsync(1_000);
  for (const { states } of all) expect(states).toEqual(["half", "done"]);
});

it("a task that is only polled is not polled without waiters", async () => {
  const { server, watch } = await watching();
  const stop = new AbortController();
  const waiting = watch.changed(stop.signal);
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(watch.changed(stop.signal)).rejects.toThrow("enough");
  expect(vi.getTimerCount()).toBe(0);
  expect(server.count("tasks/get")).toBe(0);
});

it("a task that is only polled follows changes of the poll interval", async () => {
  const { server, watch } = await watching();
  const { stop } = following(watch);
  server.move("task-1", { pollIntervalMs: 5_000 });
  await vi.advanceTimersByTimeAsync(6_000);
  expect(server.count("tasks/get")).toBe(2);
  stop();
});

it("a task with a subscription is polled once at the end of the interval if a request waits, and then rarely", async () => {
  const { server, watch } = await watching({ grantsSubscriptions: true });
  const { states, stop } = following(watch);
  server.move("task-1", { statusMessage: "missed" });
  watch.subscribe();
  await vi.advanceTimersByTimeAsync(999);
  expect(server.count("tasks/get")).toBe(0);
  await vi.advanceTimersByTimeAsync(59_000);
  expect(states).toEqual(["missed"]);
  expect(server.count("tasks/get")).toBe(1);
  stop();
});

it("a task with a subscription is polled immediately if no request waits", async () => {
  const { server, watch } = await watching({ grantsSubscriptions: true });
  watch.subscribe();
  await vi.advanceTimersByTimeAsync(0);
  expect(server.count("tasks/get")).toBe(1);
});

it("a task with a subscription is not polled if the server sends the state at once", async () => {
  const { server, watch } = await watching({ grantsSubscriptions: true });
  const { stop } = following(watch);
  watch.subscribe();
  server.move("task-1", {});
  await vi.advanceTimersByTimeAsync(59_000);
  expect(server.count("tasks/get")).toBe(0);
  stop();
});

it("a task with a subscription is polled once when the subscription is granted, and then rarely", async () => {
  const { server, watch } = await watching({ grantsSubscriptions: true });
  watch.subscribe();
  watch.subscribe();
  const { states } = following(watch);
  await vi.advanceTimersByTimeAsync(59_000);
  expect(server.count("subscriptions/listen")).toBe(1);
  expect(server.count("tasks/get")).toBe(1);
  server.move("task-1", { statusMessage: "half" });
  server.move("task-1", { statusMessage: "most" });
  await vi.advanceTimersByTimeAsync(0);
  server.move("task-1", { status: "cancelled", statusMessage: "over" });
  await vi.advanceTimersByTimeAsync(0);
  expect(states).toEqual(["most", "over"]);
  expect(server.count("tasks/get")).toBe(1);
});

it("a task with a subscription is polled as usual after the subscription has ended", async () => {
  const { server, watch } = await watching({ grantsSubscriptions: true });
  watch.subscribe();
  await vi.advanceTimersByTimeAsync(0);
  expect(watch.isSubscribed).toBe(true);
  const { states, stop } = following(watch);
  watch.unsubscribe();
  server.move("task-1", { statusMessage: "half" });
  await vi.advanceTimersByTimeAsync(0);
  expect(states).toEqual([]);
  watch.wake();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(states).toEqual(["half"]);
  stop();
});

const passing = (kind: ConnectionErrorKind): ConnectionError => new ConnectionError(kind, `It was ${kind}`);

it.each(["timeout", "http", "closed"] as const)(
  "a poll that fails with %s is retried with growing pauses, up to a limit",
  async (kind) => {
    const { server, broken, watch } = await watching({}, { ttlMs: null });
    broken.push(passing(kind), passing(kind), passing(kind));
    const borne = following(watch);
    await vi.advanceTimersByTimeAsync(1_000 + 2_000 + 4_000);
    expect(server.count("tasks/get")).toBe(3);
    // A success resets the count.
    await vi.advanceTimersByTimeAsync(8_000 + 1_000);
    expect(server.count("tasks/get")).toBe(5);
    expect(borne.lost).toEqual([]);
    broken.push(passing(kind), passing(kind), passing(kind), passing(kind));
    await vi.advanceTimersByTimeAsync(1_000 + 2_000 + 4_000 + 8_000);
    expect(borne.lost).toMatchObject([{ kind }]);
    // A later waiter starts with a fresh count.
    broken.push(passing(kind));
    const again = following(watch);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(again.lost).toEqual([]);
    again.stop();
  },
);

it.each([passing("unauthorized"), passing("protocol"), new McpError(-31_000, "No")])(
  "a poll that fails with a permanent error is not retried: %s",
  async (error) => {
    const { server, broken, watch } = await watching();
    broken.push(error);
    const { lost } = following(watch);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(lost).toEqual([error]);
    expect(server.count("tasks/get")).toBe(1);
  },
);

it("a poll that fails because the server no longer knows the task says so", async () => {
  const { server, watch } = await watching();
  server.forget("task-1");
  const { lost } = following(watch);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(lost).toMatchObject([{ code: -32602, kind: "invalid_params", data: { taskId: "task-1" } }]);
  expect(String(lost[0])).toContain("no longer knows the task task-1, last seen working");
});

it("the lifetime of a task ends waiting when it is over, after one more poll", async () => {
  const { server, watch } = await watching({}, { ttlMs: 2_500 });
  const { lost, states } = following(watch);
  await vi.advanceTimersByTimeAsync(2_499);
  expect(server.count("tasks/get")).toBe(2);
  expect(lost).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(server.count("tasks/get")).toBe(3);
  expect(lost).toMatchObject([{ name: "ConnectionError", kind: "timeout" }]);
  expect(String(lost[0])).toContain("2500 ms");
  expect(states).toEqual([]);
});

it.each([0, -1])("the lifetime of a task is ignored if it is %i ms", async (ttlMs) => {
  const { server, watch } = await watching({}, { ttlMs });
  const { lost, states } = following(watch);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lost).toEqual([]);
  server.move("task-1", { status: "completed", result: {} });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(states).toEqual(["completed"]);
});

it("the lifetime of a task does not matter if the task finished in time, or the lifetime was extended", async () => {
  const { server, watch } = await watching({}, { ttlMs: 2_500 });
  const { lost, states, stop } = following(watch);
  await vi.advanceTimersByTimeAsync(2_000);
  server.move("task-1", { ttlMs: 10_000, statusMessage: "longer" });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(lost).toEqual([]);
  expect(states).toEqual(["longer"]);
  server.move("task-1", { status: "completed", result: {}, statusMessage: "done" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(states).toEqual(["longer", "done"]);
  expect(lost).toEqual([]);
  stop();
});

it("the state of a task is fresh until the poll interval has passed", async () => {
  const { watch } = await watching();
  expect(watch.isFresh).toBe(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(watch.isFresh).toBe(false);
  await watch.refresh();
  expect(watch.isFresh).toBe(true);
});

it.each([
  ["the server names no interval", { pollIntervalMs: undefined }],
  ["the input requests are missing", { status: "input_required" }],
  ["the task was created finished", { status: "completed" }],
])("the state of a task is not fresh if %s", (_, more) => {
  const state = { taskId: "x", status: "working", ttlMs: null, pollIntervalMs: 1_000, ...more };
  expect(new TaskWatch(async () => state, context, initialTaskState(state)).isFresh).toBe(false);
});

it("a finished task is not polled again", async () => {
  const { server, watch } = await watching({}, { status: "completed", result: { content: [] } });
  expect(await watch.refresh()).toMatchObject({ status: "completed" });
  await watch.changed(never);
  expect(server.count("tasks/get")).toBe(0);
});

it("the outcome of a task that was created finished is fetched", () => {
  const made = { resultType: "task", taskId: "x", status: "failed", ttlMs: 1, _meta: {} };
  expect(initialTaskState(made)).toEqual({ taskId: "x", status: "working", ttlMs: 1 });
});
