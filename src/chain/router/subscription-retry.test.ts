// Upstreams that refuse a subscription, fail during it, come late or come back: the others go on, and the caller is notified
// of what may have been missed.

import { expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { McpError } from "../../protocol/errors.ts";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import {
  acknowledged,
  CHANGED,
  subscribe,
  scriptedSubscriptions,
  settle,
  useFakeClock,
  UPDATED,
} from "../../../test/support/handlers/scripted-subscriptions.ts";
import { createRouter } from "./router.ts";

useFakeClock();

it("upstreams that fail during a subscription do not affect the others, and notify when they are back", async () => {
  const [a, b] = [scriptedSubscriptions(), scriptedSubscriptions(["file:///b"])];
  const caller = fakeClient(createRouter({ a: a.server, b: b.server }));
  await caller.call("resources/list");
  void subscribe(caller, { toolsListChanged: true, resourceSubscriptions: ["file:///b"] });
  await settle();
  a.subscriptions[0]?.acknowledge();
  b.subscriptions[0]?.acknowledge();
  await settle();
  b.subscriptions[0]?.fail(new ConnectionError("closed", "gone"));
  await settle();
  a.subscriptions[0]?.context.notify({ method: CHANGED });
  expect(caller.notifications.slice(1)).toEqual([{ method: CHANGED }]);
  await vi.advanceTimersByTimeAsync(999);
  expect(b.subscriptions).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(1);
  b.subscriptions[1]?.fail(new ConnectionError("refused", "not yet"));
  await vi.advanceTimersByTimeAsync(1_600);
  b.subscriptions[2]?.acknowledge();
  expect(caller.notifications.slice(2)).toEqual([
    { method: CHANGED },
    { method: UPDATED, params: { uri: "file:///b" } },
  ]);
  caller.abort();
  await settle();
  expect(vi.getTimerCount()).toBe(0);
});

it("upstreams that fail during a subscription are granted their lists when they come late, and notify only if a list lacked them", async () => {
  const [a, late] = [scriptedSubscriptions([], { prompts: { listChanged: true } }), scriptedSubscriptions()];
  const caller = fakeClient(createRouter({ a: a.server, late: late.server }));
  void subscribe(caller, { toolsListChanged: true, promptsListChanged: true });
  await settle();
  a.subscriptions[0]?.acknowledge({ promptsListChanged: true });
  await vi.advanceTimersByTimeAsync(4_999);
  expect(caller.notifications).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(caller.notifications).toEqual([acknowledged({ promptsListChanged: true, toolsListChanged: true })]);
  late.subscriptions[0]?.acknowledge({ toolsListChanged: true });
  expect(caller.notifications.slice(1)).toEqual([]);
  late.subscriptions[0]?.context.notify({ method: CHANGED });
  expect(caller.notifications.slice(1)).toEqual([{ method: CHANGED }]);
  caller.abort();
});

it("upstreams that fail during a subscription are dropped if they refuse, and opened again if they only ended it", async () => {
  const [never, ends] = [scriptedSubscriptions(), scriptedSubscriptions()];
  const caller = fakeClient(createRouter({ never: never.server, ends: ends.server }));
  void subscribe(caller, { toolsListChanged: true });
  await settle();
  never.subscriptions[0]?.fail(McpError.of("method_not_found", "No subscriptions here"));
  ends.subscriptions[0]?.acknowledge();
  await settle();
  expect(caller.notifications).toEqual([acknowledged({ toolsListChanged: true })]);
  ends.subscriptions[0]?.complete();
  await vi.advanceTimersByTimeAsync(1_000);
  ends.subscriptions[1]?.acknowledge();
  expect(caller.notifications.slice(1)).toEqual([{ method: CHANGED }]);
  // Each further pause is longer.
  ends.subscriptions[1]?.complete();
  await vi.advanceTimersByTimeAsync(1_599);
  expect(ends.subscriptions).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1);
  expect([ends.subscriptions.length, never.subscriptions.length]).toEqual([3, 1]);
  caller.abort();
});

it("upstreams that fail during a subscription fail the subscription if there is no other upstream", async () => {
  const a = scriptedSubscriptions();
  const answer = subscribe(fakeClient(createRouter({ a: a.server })), { toolsListChanged: true }).catch(
    (error: unknown) => error,
  );
  await settle();
  a.subscriptions[0]?.fail(new ConnectionError("refused", "connection refused"));
  expect(await answer).toMatchObject({ kind: "refused", message: "The upstream a failed: connection refused" });
  await settle();
  expect(vi.getTimerCount()).toBe(0);
  expect(a.subscriptions).toHaveLength(1);
});
