// A server whose subscriptions the test controls: it acknowledges, notifies, completes and fails on demand.

import type { Context, Notification, Params, Result } from "../../../src/core/handler.ts";
import { afterEach, beforeEach, vi } from "vitest";
import type { FakeClient } from "./fake-client.ts";
import { type ScriptedServer, scriptedServer } from "./scripted-server.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
export const UPDATED = "notifications/resources/updated";
export const CHANGED = "notifications/tools/list_changed";

export function subscribe(client: FakeClient, filter: object): Promise<Result> {
  return client.call("subscriptions/listen", { notifications: filter });
}

export const acknowledged = (granted: object): Notification => ({
  method: ACKNOWLEDGED,
  params: { notifications: granted },
});

/** Fake timers for each test of a file, and a fixed Math.random. */
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

/** Runs everything that is due now. */
export const settle = async (): Promise<void> => {
  await vi.advanceTimersByTimeAsync(0);
};

export interface ScriptedSubscription {
  readonly filter: unknown;
  readonly context: Context;
  acknowledge(granted?: object): void;
  complete(): void;
  fail(error: Error): void;
}

export interface ScriptedSubscriptions {
  readonly server: ScriptedServer;
  /** In the order of their requests. */
  readonly subscriptions: ScriptedSubscription[];
}

/** The server has tools and these resources. */
export function scriptedSubscriptions(
  resources: readonly string[] = [],
  capabilities: object = {},
): ScriptedSubscriptions {
  const subscriptions: ScriptedSubscription[] = [];
  const server = scriptedServer(
    {
      "tools/list": { tools: [] },
      "resources/list": { resources: resources.map((uri) => ({ uri, name: uri })) },
      "subscriptions/listen": ({ notifications }: Params, context: Context) =>
        new Promise<Result>((resolve, reject) => {
          const acknowledge = (granted: object = notifications as object): void =>
            context.notify({ method: ACKNOWLEDGED, params: { notifications: granted } });
          const complete = (): void => resolve({ resultType: "complete" });
          context.signal.addEventListener("abort", complete);
          subscriptions.push({ filter: notifications, context, acknowledge, complete, fail: reject });
        }),
    },
    { resources: { listChanged: true, subscribe: true }, ...capabilities },
  );
  return { server, subscriptions };
}
