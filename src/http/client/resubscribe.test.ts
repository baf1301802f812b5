// A subscription whose connection breaks: renewed, failed, or cancelled.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Context, Handler, Notification } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { resubscribing } from "./retry.ts";

const request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
const granted = { toolsListChanged: true, resourceSubscriptions: ["a://b"] };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

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
    return { resultType: "complete" };
  });
  await vi.runAllTimersAsync();
  expect(await outcome).toEqual({ resultType: "complete" });
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
