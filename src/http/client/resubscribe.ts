// Keeps a `subscriptions/listen` alive across broken connections, with backoff. A stateless server keeps nothing between
// requests, so changes in between are unknown: after a reconnect, everything subscribed to is reported as changed.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { backoffMs, pause } from "../../dialogue/calls/backoff.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
/** Consecutive failures before the subscription fails. */
const MAX_FAILURES = 10;

const LIST_CHANGES: Readonly<Record<string, string>> = {
  toolsListChanged: "notifications/tools/list_changed",
  promptsListChanged: "notifications/prompts/list_changed",
  resourcesListChanged: "notifications/resources/list_changed",
};

export function resubscribing(handler: Handler): Handler {
  return (request, context) =>
    request.method === "subscriptions/listen" ? listen(handler, request, context) : handler(request, context);
}

async function listen(handler: Handler, request: Request, context: Context): Promise<Result> {
  let isAcknowledged = false;
  let failures = 0;
  const notify = (notification: Notification): void => {
    if (notification.method !== ACKNOWLEDGED) {
      context.notify(notification);
      return;
    }
    failures = 0;
    if (isAcknowledged) notifyAllChanged(notification.params?.["notifications"], context);
    else context.notify(notification);
    isAcknowledged = true;
  };
  for (;;) {
    try {
      return await handler(request, { ...context, notify });
    } catch (error) {
      // A subscription that was never acknowledged fails like any other request.
      if (!isAcknowledged || context.signal.aborted || !isBroken(error) || failures >= MAX_FAILURES) throw error;
    }
    await pause(backoffMs(failures), context.signal);
    failures += 1;
  }
}

function isBroken(error: unknown): boolean {
  if (!(error instanceof ConnectionError)) return false;
  const { kind, status = 0, mayHaveRun } = error;
  // A connect timeout is treated like a refused connection.
  return (
    kind === "closed" || kind === "refused" || (kind === "timeout" && !mayHaveRun) || (kind === "http" && status >= 500)
  );
}

function notifyAllChanged(granted: unknown, context: Context): void {
  if (!isObject(granted)) return;
  for (const [flag, method] of Object.entries(LIST_CHANGES)) if (granted[flag] === true) context.notify({ method });
  const uris = granted["resourceSubscriptions"];
  if (!Array.isArray(uris)) return;
  for (const uri of uris as readonly unknown[]) {
    context.notify({ method: "notifications/resources/updated", params: { uri } });
  }
}
