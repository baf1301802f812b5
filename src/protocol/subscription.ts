// A `subscriptions/listen` that outlives interruptions: it is opened again, and its caller gets one acknowledgement. No
// server records the changes that were missed, so after each reopening all that is granted is reported as changed.

import { attempt, backoffMs, deferred, forwardAbort, pause } from "../core/async.ts";
import type { Context, Notification, Result } from "../core/handler.ts";
import {
  changedFlag,
  changedMethod,
  grantsNothing,
  LIST_CAPABILITIES,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
} from "./lists.ts";
import type { Json } from "./revision.ts";

/** What the last acknowledgement granted; undefined before the first. */
export interface Grant {
  granted: Json | undefined;
}

/** Whether a subscription is opened again at once, after a pause that grows with each failure, or not at all. */
export type Reopens = "now" | "later" | false;

/** A subscription that has ended, though its caller has not ended it. */
export interface EndedSubscription {
  /** What was granted this time; undefined if there was no acknowledgement. */
  readonly granted: Json | undefined;
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
    let granted: Json | undefined;
    const stop = forwardAbort(signal);
    const notify = (notification: Notification): void => {
      if (stop.signal.aborted) return;
      if (notification.method !== SUBSCRIPTION_ACKNOWLEDGED) {
        context.notify(notification);
        return;
      }
      since = performance.now();
      granted = (notification.params?.["notifications"] as Json | undefined) ?? {};
      const isFirst = grant.granted === undefined;
      // A server may grant something else when the subscription is opened again.
      grant.granted = granted;
      if (isFirst) context.notify(notification);
      else for (const change of possibleChanges(granted)) context.notify(change);
    };
    const own: Context = { ...context, signal: stop.signal, notify };
    // What is left behind is not awaited, since it may ignore its signal.
    const moved = deferred<never>();
    const move = (): void => {
      stop.abort(MOVED);
      moved.reject(MOVED);
    };
    const ended = await Promise.race([attempt(() => steps.open(own, move)), moved.promise]).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
    stop.forget();
    if (performance.now() - since >= (steps.stableMs ?? STABLE_MS)) failures = 0;
    const error = "error" in ended ? ended.error : undefined;
    const isMoved = stop.signal.reason === MOVED;
    const reopens = signal.aborted
      ? false
      : isMoved
        ? "now"
        : ((await steps.reopens?.({ granted, error, failures })) ?? false);
    if (reopens === false) {
      if ("error" in ended) throw ended.error === MOVED ? signal.reason : ended.error;
      return ended.result;
    }
    if (reopens === "later") await pause(backoffMs(failures), signal);
  }
}

/**
 * Whether a subscription that its server has ended with a result is opened again. A server that stops ends all of them
 * in this way (specification, basic/patterns/subscriptions, graceful closure), and the client cannot know why. A
 * subscription to tasks alone ends with the tasks, and one that grants nothing ends at once.
 */
export function isLasting(granted: Json | undefined): boolean {
  const { taskIds: _tasks, ...lasting } = granted ?? {};
  return !grantsNothing(lasting);
}

/** Notifications of everything that a subscription with this grant would report. Tasks report their state themselves. */
export function possibleChanges(granted: Json): Notification[] {
  const uris = granted["resourceSubscriptions"];
  const lists = LIST_CAPABILITIES.filter((capability) => granted[changedFlag(capability)] === true);
  return [
    ...lists.map((capability) => ({ method: changedMethod(capability) })),
    ...(Array.isArray(uris) ? uris : []).map((uri: unknown) => ({ method: RESOURCE_UPDATED, params: { uri } })),
  ];
}
