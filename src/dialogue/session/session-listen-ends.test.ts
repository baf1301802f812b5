// A listen that the end takes back in good order, while the session that stands behind it lives on: it is opened again,
// ever more slowly where it does not last, and the caller is told what may have changed. Time is the test's own.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Context, Handler, Notification, Result } from "../../core/handler.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { SessionListen } from "./subscriptions-front.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const CHANGED = { method: "notifications/tools/list_changed" };
const UPDATED = { method: "notifications/resources/updated", params: { uri: "r:1" } };

/** An end whose listens the test ends. */
class Upstream {
  readonly listens: { readonly context: Context; end(): void }[] = [];
  /** What it honours of any filter; undefined: all. */
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

function listening(end: Upstream): { listen: SessionListen; told: Notification[] } {
  const told: Notification[] = [];
  const listen = new SessionListen(end.handler);
  const context = {
    revision: NEWEST_SESSION.name,
    caller: { capabilities: {} },
    ask: () => Promise.reject(new Error("Nobody is asked")),
  };
  listen.start(
    { context, deliver: (notification) => told.push(notification) },
    { tools: { listChanged: true }, resources: { subscribe: true } },
  );
  return { listen, told };
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("is opened again, and the caller is told of what may have been missed", async () => {
  const end = new Upstream();
  const { listen, told } = listening(end);
  await listen.subscribe("r:1", { capabilities: {} });
  for (const { end: finish } of [...end.listens]) finish();
  await vi.advanceTimersByTimeAsync(0);
  expect(told).toEqual([]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(end.listens).toHaveLength(4);
  expect(told).toEqual(expect.arrayContaining([CHANGED, UPDATED]));
  // Which of the two was opened first is chance; each carries its own kind.
  for (const { context } of end.listens.slice(2)) for (const event of [CHANGED, UPDATED]) context.notify(event);
  expect(told).toHaveLength(4);
  listen.close();
});

it("is opened ever more slowly where it does not last, and at once again where it did", async () => {
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

it("is not opened again where nothing was granted, nor after the session", async () => {
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
