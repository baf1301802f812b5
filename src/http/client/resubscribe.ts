// A listen that outlives its connection. An exchange-style end keeps nothing between two requests, so a stream of
// changes that broke is simply asked for again, ever more slowly while the end is away. What changed in between nobody
// was told: whoever listens is told that all of it may have.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Notification, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { backoffMs, pause } from "../../dialogue/calls/backoff.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
/** Tries in a row that fail before the listen does. */
const MOST_FAILURES = 10;

const CHANGE_OF: Readonly<Record<string, string>> = {
  toolsListChanged: "notifications/tools/list_changed",
  promptsListChanged: "notifications/prompts/list_changed",
  resourcesListChanged: "notifications/resources/list_changed",
};

export function resubscribing(handler: Handler): Handler {
  return (request, context) =>
    request.method === "subscriptions/listen" ? listen(handler, request, context) : handler(request, context);
}

async function listen(handler: Handler, request: Request, context: Context): Promise<Result> {
  let acknowledged = false;
  let failures = 0;
  const notify = (notification: Notification): void => {
    if (notification.method !== ACKNOWLEDGED) {
      context.notify(notification);
      return;
    }
    failures = 0;
    if (acknowledged) tellAll(notification.params?.["notifications"], context);
    else context.notify(notification);
    acknowledged = true;
  };
  for (;;) {
    try {
      return await handler(request, { ...context, notify });
    } catch (error) {
      // One that was never granted fails like any other request.
      if (!acknowledged || context.signal.aborted || !isBroken(error) || failures >= MOST_FAILURES) throw error;
    }
    await pause(backoffMs(failures), context.signal);
    failures += 1;
  }
}

function isBroken(error: unknown): boolean {
  if (!(error instanceof ConnectionError)) return false;
  const { kind, status = 0, mayHaveRun } = error;
  // A connection that could not be made in time is as good as one that was refused.
  return (
    kind === "closed" || kind === "refused" || (kind === "timeout" && !mayHaveRun) || (kind === "http" && status >= 500)
  );
}

function tellAll(granted: unknown, context: Context): void {
  if (!isObject(granted)) return;
  for (const [flag, method] of Object.entries(CHANGE_OF)) if (granted[flag] === true) context.notify({ method });
  const uris = granted["resourceSubscriptions"];
  if (!Array.isArray(uris)) return;
  for (const uri of uris as readonly unknown[]) {
    context.notify({ method: "notifications/resources/updated", params: { uri } });
  }
}
