// A subscription that the server ends while the session goes on: it is opened again with backoff, and the client is
// notified of what it may have missed. With fake timers.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Context, Handler, Notification, Result } from "../../core/handler.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { ClientSubscriptions } from "./subscriptions-front.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const CHANGED = { method: "notifications/tools/list_changed" };
const UPDATED = { method: "notifications/resources/updated", params: { uri: "r:1" } };

/** A server whose subscriptions the test ends. */
class Upstream {
  readonly listens: { readonly context: Context; end(): void }[] = [];
  /** What it grants of any filter; undefined: all. */
  grants: object | undefined;

  readonly handler: Handler = ({ params }, context) =>
    new Promise<Result>((resolve) => {
      const end = (): void => {
        context.signal.removeEventListener("abort", end);
        resolve({ resultType: "complete" });
      };
      this.listens.push({ context, end });
      context.signal.addEventListener("abort", end);
      const notifications = this.grants ?? params["notifications"];
      context.notify({ method: ACKNOWLEDGED, params: { notifications } });
    });

  endLast(): Promise<unknown> {
    this.listens.at(-1)!.end();
    return vi.advanceTimersByTimeAsync(0);
  }
}

function listening(end: Upstream): { listen: ClientSubscriptions; told: Notification[] } {
  const told: Notification[] = [];
  const listen = new ClientSubscriptions(end.handler);
  const context = {
    revision: NEWEST_SESSION.name,
    caller: fakeCaller(),
    ask: () => Promise.reject(new Error("Not asked")),
  };
  listen.start(
    { context, deliver: (notification) => told.push(notification) },
    { tools: { listChanged: true }, resources: { subscribe: true } },
  );
  return { listen, told };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("a subscription is opened again, and the client is notified of what it may have missed", async () => {
  const end = new Upstream();
  const { listen, told } = listening(end);
  await listen.subscribe("r:1", fakeCaller());
  for (const { end: finish } of [...end.listens]) finish();
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(end.listens).toHaveLength(4);
  expect(told).toEqual(expect.arrayContaining([CHANGED, UPDATED]));
  // The order of the two is not defined; each carries its own kind.
  for (const { context } of end.listens.slice(2)) for (const event of [CHANGED, UPDATED]) context.notify(event);
  expect(told).toHaveLength(4);
  listen.close();
});

it("a subscription is opened again with backoff, which resets after a long one", async () => {
  const end = new Upstream();
  const { listen } = listening(end);
  const waits: number[] = [];
  const reopened = async (): Promise<number> => {
    const [since, count] = [Date.now(), end.listens.length];
    await end.endLast();
    while (end.listens.length === count) await vi.advanceTimersByTimeAsync(100);
    return Date.now() - since;
  };
  for (let count = 0; count < 12; count += 1) waits.push(await reopened());
  expect(waits[0]).toBeLessThanOrEqual(1_300);
  expect(waits.at(-1)).toBeGreaterThan(45_000);
  await vi.advanceTimersByTimeAsync(61_000);
  expect(await reopened()).toBeLessThanOrEqual(1_300);
  listen.close();
});

it("a subscription is not opened again if nothing was granted, nor after the session", async () => {
  const end = new Upstream();
  end.grants = {};
  const { listen, told } = listening(end);
  await end.endLast();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(end.listens).toHaveLength(1);
  listen.close();

  const other = new Upstream();
  const { listen: closed } = listening(other);
  closed.close();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(other.listens).toHaveLength(1);
  expect(told).toEqual([]);
});
