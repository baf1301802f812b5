// An end whose listens are in the hands of a test: it acknowledges, tells, ends and fails when it is told to.

import type { Context, Notification, Params, Result } from "../../../src/core/handler.ts";
import { afterEach, beforeEach, vi } from "vitest";
import type { FakeClient } from "./fake-client.ts";
import { type ScriptedServer, scriptedServer } from "./scripted-server.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
export const UPDATED = "notifications/resources/updated";
export const CHANGED = "notifications/tools/list_changed";

export function subscribe(caller: FakeClient, filter: object): Promise<Result> {
  return caller.call("subscriptions/listen", { notifications: filter });
}

export const acknowledged = (granted: object): Notification => ({
  method: ACKNOWLEDGED,
  params: { notifications: granted },
});

/** The clock of each test of a file is its own, and there is no chance in it. */
export function useFakeClock(): void {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.spyOn(Math, "random").mockReturnValue(0.5);
  });
  afterEach(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
}

/** Lets everything happen that needs no time. */
export const settle = async (): Promise<void> => {
  await vi.advanceTimersByTimeAsync(0);
};

/** One listen at an end, in the hands of a test. */
export interface ScriptedSubscription {
  readonly filter: unknown;
  readonly context: Context;
  acknowledge(granted?: object): void;
  complete(): void;
  fail(error: Error): void;
}

export interface ScriptedSubscriptions {
  readonly server: ScriptedServer;
  /** In the order in which they came. */
  readonly subscriptions: ScriptedSubscription[];
}

/** An end that has tools and these resources. */
export function scriptedSubscriptions(resources: readonly string[] = [], capabilities: object = {}): ScriptedSubscriptions {
  const listens: ScriptedSubscription[] = [];
  const end = scriptedServer(
    {
      "tools/list": { tools: [] },
      "resources/list": { resources: resources.map((uri) => ({ uri, name: uri })) },
      "subscriptions/listen": ({ notifications }: Params, context: Context) =>
        new Promise<Result>((resolve, reject) => {
          const acknowledge = (granted: object = notifications as object): void =>
            context.notify({ method: ACKNOWLEDGED, params: { notifications: granted } });
          const end = (): void => resolve({ resultType: "complete" });
          context.signal.addEventListener("abort", end);
          listens.push({ filter: notifications, context, acknowledge, complete, fail: reject });
        }),
    },
    { resources: { listChanged: true, subscribe: true }, ...capabilities },
  );
  return { server, subscriptions };
}
