// A subscription whose connection breaks: renewed, failed, or cancelled.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Context, Handler, Notification } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { McpError } from "../../protocol/errors.ts";
import { resubscribing } from "./retry.ts";

const request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
const granted = { toolsListChanged: true, resourceSubscriptions: ["a://b"] };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const refusal = McpError.of("access_denied", "No more subscriptions");

function staged(end: Handler) {
  const heard: string[] = [];
  const stop = new AbortController();
  const context = {
    signal: stop.signal,
    notify: ({ method }: Notification) => heard.push(method),
  } as unknown as Context;
  const outcome = resubscribing(end)(request, context).catch((error: unknown) => error);
  return { heard, stop, outcome };
}

test("a broken subscription is renewed, and everything is reported as changed", async () => {
  let count = 0;
  const { heard, outcome } = staged(async (_, { notify }) => {
    count += 1;
    notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: granted } });
    if (count === 1) throw new ConnectionError("closed", "broke");
    throw refusal;
  });
  await vi.runAllTimersAsync();
  expect(await outcome).toBe(refusal);
  expect(heard).toEqual([
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
  ]);
});

test("a subscription that was never acknowledged fails at once", async () => {
  const failure = new ConnectionError("closed", "broke");
  const { outcome } = staged(async () => {
    throw failure;
  });
  expect(await outcome).toBe(failure);
});

test("a server that stays away fails the subscription after some attempts, another error at once", async () => {
  let count = 0;
  const failure = new ConnectionError("refused", "unreachable");
  const away = staged(async (_, { notify }) => {
    count += 1;
    if (count > 1) throw failure;
    notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: granted } });
    throw new ConnectionError("closed", "broke");
  });
  await vi.runAllTimersAsync();
  expect(await away.outcome).toBe(failure);
  expect(count).toBe(11);

  const left = staged(async (_, { notify }) => {
    notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: granted } });
    throw new ConnectionError("closed", "broke");
  });
  await vi.advanceTimersByTimeAsync(0);
  left.stop.abort(new Error("enough"));
  expect(await left.outcome).toEqual(new Error("enough"));
});

test("a subscription that the server ends is renewed with growing pauses, until the server refuses or grants nothing", async () => {
  const at: number[] = [];
  let last: () => { resultType: string } = () => {
    throw refusal;
  };
  const end: Handler = async (_, { notify }) => {
    at.push(Date.now());
    if (at.length === 30) return last();
    const notifications = at.length < 30 ? granted : {};
    notify({ method: "notifications/subscriptions/acknowledged", params: { notifications } });
    return { resultType: "complete" };
  };
  const refused = staged(end);
  await vi.runAllTimersAsync();
  expect(await refused.outcome).toBe(refusal);
  const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0));
  expect(pauses[0]).toBeGreaterThanOrEqual(500);
  expect(pauses.at(-1)).toBeGreaterThan(30_000);

  at.length = 0;
  last = () => ({ resultType: "complete" });
  const ended = staged(end);
  await vi.runAllTimersAsync();
  expect(await ended.outcome).toEqual({ resultType: "complete" });
});

test("a subscription to tasks alone ends with them, and one that the server cannot open yet is tried again", async () => {
  let count = 0;
  const tasks = staged(async (_, { notify }) => {
    count += 1;
    notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: { taskIds: ["1"] } } });
    return { resultType: "complete" };
  });
  expect(await tasks.outcome).toEqual({ resultType: "complete" });
  expect(count).toBe(1);

  count = 0;
  const stopping = staged(async (_, { notify }) => {
    count += 1;
    if (count === 2) throw McpError.of("shutting_down", "The server is shutting down");
    if (count === 3) throw refusal;
    notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: granted } });
    return { resultType: "complete" };
  });
  await vi.runAllTimersAsync();
  expect(await stopping.outcome).toBe(refusal);
  expect(count).toBe(3);
});
