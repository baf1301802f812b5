// A `subscriptions/listen` that outlives interruptions: it is opened again, and its caller gets one acknowledgement. No
// server records the changes that were missed, so after each reopening all that is granted is reported as changed.

import { attempt, backoffMs, deferred, forwardAbort, pause } from "../core/async.ts";
import type { Context, Notification, Result } from "../core/handler.ts";
import type { SubscriptionFilter } from "./model/index.ts";
import { grantedIn, grantsNothing, possibleChanges } from "./subscription.ts";

/** What the last acknowledgement granted; undefined before the first. */
export interface Grant {
  granted: SubscriptionFilter | undefined;
}

/** Whether a subscription is opened again at once, after a pause that grows with each failure, or not at all. */
export type Reopens = "now" | "later" | false;

/** A subscription that has ended, though its caller has not ended it. */
export interface EndedSubscription {
  /** What was granted this time; undefined if there was no acknowledgement. */
  readonly granted: SubscriptionFilter | undefined;
  /** Why it ended; undefined if it ended with a result. */
  readonly error: unknown;
  /** How many times in a row it has ended too early. */
  readonly failures: number;
}

export interface SubscriptionSteps {
  /** Opens the subscription, and settles when it ends. `move` ends it, so that it is opened again elsewhere. */
  open(context: Context, move: () => void): Promise<Result>;
  /** By default a subscription is opened again only after a `move`. */
  reopens?(ended: EndedSubscription): Reopens | Promise<Reopens>;
  /** A subscription that lasted this long since its acknowledgement resets the failures. Default: 1 minute. */
  readonly stableMs?: number;
}

const STABLE_MS = 60_000;
const MOVED = new Error("The subscription moves");

/** Keeps the subscription open until it ends for good. */
export async function keepSubscribed(context: Context, grant: Grant, steps: SubscriptionSteps): Promise<Result> {
  const { signal } = context;
  for (let failures = 0; ; failures += 1) {
    let since = Infinity;
    let granted: SubscriptionFilter | undefined;
    const stop = forwardAbort(signal);
    const notify = (notification: Notification): void => {
      if (stop.signal.aborted) return;
      const acknowledged = grantedIn(notification);
      if (acknowledged === undefined) return context.notify(notification);
      const passed = grant.granted === undefined ? [notification] : possibleChanges(acknowledged);
      since = performance.now();
      // A server may grant something else when the subscription is opened again.
      granted = grant.granted = acknowledged;
      for (const notification of passed) context.notify(notification);
    };
    // What is left behind is not awaited, since it may ignore its signal.
    const moved = deferred<never>();
    const move = (): void => {
      stop.abort(MOVED);
      moved.reject(MOVED);
    };
    let [result, error]: [Result?, unknown?] = [];
    try {
      const opened = attempt(() => steps.open({ ...context, signal: stop.signal, notify }, move));
      result = await Promise.race([opened, moved.promise]);
    } catch (thrown) {
      error = thrown;
    }
    stop.forget();
    if (performance.now() - since >= (steps.stableMs ?? STABLE_MS)) failures = 0;
    const isMoved = stop.signal.reason === MOVED;
    const reopens = !signal.aborted && (isMoved ? "now" : await steps.reopens?.({ granted, error, failures }));
    if (reopens === false || reopens === undefined) {
      if (result === undefined) throw error === MOVED ? signal.reason : error;
      return result;
    }
    if (reopens === "later") await pause(backoffMs(failures), signal);
  }
}

/**
 * Whether a subscription that its server has ended with a result is opened again. A server that stops ends all of them
 * in this way (specification, basic/patterns/subscriptions, graceful closure), and the client cannot know why. A
 * subscription to tasks alone ends with the tasks, and one that grants nothing ends at once.
 */
export function isLasting(granted: SubscriptionFilter | undefined): boolean {
  const { taskIds: _tasks, ...lasting } = granted ?? {};
  return !grantsNothing(lasting);
}
