// Keeps a `subscriptions/listen` open: when it ends too early, it is opened again with backoff. Nobody records the
// changes that were missed meanwhile, so everything that is granted again is then reported as changed.

import { attempt, backoffMs, pause } from "../../core/async.ts";
import type { Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import {
  changedFlag,
  changedMethod,
  LIST_CAPABILITIES,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
} from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";

/** A subscription that has ended, though its caller has not ended it. */
export interface EndedListen {
  /** What was granted this time; undefined if there was no acknowledgement. */
  readonly granted: Json | undefined;
  /** Whether there was an acknowledgement this time or earlier. */
  readonly wasAcknowledged: boolean;
  /** Why it ended; undefined if it ended with a result. */
  readonly error: unknown;
  /** How many times in a row it has ended too early. */
  readonly failures: number;
}

/** `stableMs`: a subscription that lasted this long since its acknowledgement resets the backoff. */
export async function keepListening(
  handler: Handler,
  request: Request,
  context: Context,
  mayReopen: (ended: EndedListen) => boolean,
  stableMs = 0,
): Promise<Result> {
  let wasAcknowledged = false;
  for (let failures = 0; ; failures += 1) {
    let since = Infinity;
    let granted: Json | undefined;
    const notify = (notification: Notification): void => {
      if (notification.method !== SUBSCRIPTION_ACKNOWLEDGED) {
        context.notify(notification);
        return;
      }
      since = performance.now();
      granted = (notification.params?.["notifications"] as Json | undefined) ?? {};
      if (wasAcknowledged) notifyAllChanged(granted, context);
      else context.notify(notification);
      wasAcknowledged = true;
    };
    let result: Result | undefined;
    let error: unknown;
    try {
      result = await attempt(() => handler(request, { ...context, notify }));
    } catch (thrown) {
      error = thrown;
    }
    if (performance.now() - since >= stableMs) failures = 0;
    if (context.signal.aborted || !mayReopen({ granted, wasAcknowledged, error, failures })) {
      if (result === undefined) throw error;
      return result;
    }
    await pause(backoffMs(failures), context.signal);
  }
}

function notifyAllChanged(granted: Json, context: Context): void {
  for (const capability of LIST_CAPABILITIES)
    if (granted[changedFlag(capability)] === true) context.notify({ method: changedMethod(capability) });
  const uris = granted["resourceSubscriptions"];
  for (const uri of Array.isArray(uris) ? (uris as readonly unknown[]) : [])
    context.notify({ method: RESOURCE_UPDATED, params: { uri } });
}
