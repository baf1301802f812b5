// A `subscriptions/listen` that outlives interruptions: it is opened again, and its caller gets one acknowledgement. No
// server records the changes that were missed, so after each reopening all that is granted is reported as changed.

import { attempt, backoffMs, forwardAbort, pause } from "../core/async.ts";
import type { Context, Notification, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { changedFlag, changedMethod, LIST_CAPABILITIES, RESOURCE_UPDATED, SUBSCRIPTION_ACKNOWLEDGED } from "./lists.ts";
import type { Json } from "./revision.ts";

/** What the last acknowledgement granted; undefined before the first. */
export interface Grant {
  granted: Json | undefined;
}

/** Whether a subscription is opened again at once, after a pause that grows with each attempt, or not at all. */
export type Reopens = "now" | "later" | false;

export interface SubscriptionSteps {
  /** Opens the subscription, and settles when it ends. `move` ends it, so that it is opened again elsewhere. */
  open(context: Context, move: () => void): Promise<Result>;
  /** Called when it has ended, or has failed with this error. By default it is opened again only after a `move`. */
  reopens?(error: unknown): Reopens | Promise<Reopens>;
}

/** After this long without an interruption, the pauses are short again. */
const STABLE_MS = 60_000;
const MOVED = new Error("The subscription moves");

/** Keeps the subscription open until it ends for good. */
export async function keepSubscribed(context: Context, grant: Grant, steps: SubscriptionSteps): Promise<Result> {
  const { signal } = context;
  for (let failures = 0; ; failures += 1) {
    const since = performance.now();
    const stop = forwardAbort(signal);
    const own: Context = {
      ...context,
      signal: stop.signal,
      notify: (notification) => (stop.signal.aborted ? undefined : receive(notification, context, grant)),
    };
    const ended = await attempt(() => steps.open(own, () => stop.abort(MOVED))).then(
      (result) => ({ result }),
      (error: unknown) => ({ error }),
    );
    stop.forget();
    const [error, isMoved] = ["error" in ended ? ended.error : undefined, stop.signal.reason === MOVED];
    const reopens = signal.aborted ? false : isMoved ? "now" : ((await steps.reopens?.(error)) ?? false);
    if (reopens === false) {
      if ("error" in ended) throw ended.error;
      return ended.result;
    }
    if (performance.now() - since > STABLE_MS) failures = 0;
    if (reopens === "later") await pause(backoffMs(failures), signal);
  }
}

function receive(notification: Notification, context: Context, grant: Grant): void {
  if (notification.method !== SUBSCRIPTION_ACKNOWLEDGED) {
    context.notify(notification);
    return;
  }
  const isFirst = grant.granted === undefined;
  const granted = notification.params?.["notifications"];
  // A server may grant something else when the subscription is opened again.
  grant.granted = isObject(granted) ? { ...granted } : {};
  if (isFirst) context.notify(notification);
  else for (const change of possibleChanges(grant.granted)) context.notify(change);
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
