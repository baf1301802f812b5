// Opens a `subscriptions/listen` again when its connection breaks, or the server ends it as it stops.

import { ConnectionError } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import { isTemporary } from "../../protocol/errors.ts";
import { isLasting, keepSubscribed, type Grant } from "../../protocol/keep-subscribed.ts";

/** How many attempts in a row may fail to open a subscription again. */
const MAX_FAILURES = 10;
/** Some proxies end every response after half a minute, which must not lengthen the pauses. */
const STABLE_MS = 10_000;

export function resubscribing(handler: Handler): Handler {
  return (request, context) => {
    const grant: Grant = { granted: undefined };
    let failures = 0;
    return keepSubscribed(context, grant, {
      open: (own) => handler(request, own),
      reopens: ({ error, granted }) => {
        failures = granted === undefined ? failures + 1 : 0;
        // A subscription that was never acknowledged fails like any other request.
        if (grant.granted === undefined || failures >= MAX_FAILURES) return false;
        return (error === undefined ? isLasting(granted) : isBroken(error)) && "later";
      },
      stableMs: STABLE_MS,
    });
  };
}

function isBroken(error: unknown): boolean {
  if (!(error instanceof ConnectionError)) return isTemporary(error);
  const { kind, status = 0, mayHaveRun } = error;
  // A connect timeout is treated like a refused connection.
  return (
    kind === "closed" || kind === "refused" || (kind === "timeout" && !mayHaveRun) || (kind === "http" && status >= 500)
  );
}
