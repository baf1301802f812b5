// Retries requests whose connection failed, if that is harmless: requests that only read, calls of tools that declare
// themselves idempotent, and requests that have certainly not run. Any other request may have run, so its error is
// reported. Also opens a `subscriptions/listen` again when its connection breaks, or the server ends it as it stops.

import { pause } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Request } from "../../core/handler.ts";
import { isTemporary } from "../../protocol/errors.ts";
import { isLasting, keepSubscribed, type Grant } from "../../protocol/keep-subscribed.ts";
import { READ_ONLY_METHODS } from "../../protocol/revisions/standard-methods.ts";
import type { ToolFacts } from "../../tools/facts.ts";
import { SessionLost } from "../../transport/transport.ts";

/** Delay before each retry. */
const RETRY_DELAYS_MS: readonly number[] = [200, 1_000];

export function retrying(handler: Handler, tools: ToolFacts): Handler {
  return async (request, context) => {
    let mayHaveRun = false;
    for (let count = 0; ; count += 1) {
      try {
        return await handler(request, context);
      } catch (error) {
        const ms = RETRY_DELAYS_MS[count];
        const canRetry = ms !== undefined && !context.signal.aborted && isTransient(error);
        if (!canRetry || !isSafeToRetry(request, error, tools)) throw mayHaveRun ? withMayHaveRun(error) : error;
        mayHaveRun ||= error.mayHaveRun;
        await pause(ms, context.signal);
      }
    }
  };
}

/** The last attempt was not sent, but an earlier one may have run. */
function withMayHaveRun(error: unknown): unknown {
  if (!(error instanceof ConnectionError) || error.mayHaveRun) return error;
  return error.with({ mayHaveRun: true });
}

function isSafeToRetry({ method, params }: Request, error: ConnectionError, tools: ToolFacts): boolean {
  if (!error.mayHaveRun || READ_ONLY_METHODS.has(method)) return true;
  return method === "tools/call" && tools.get(params["name"])?.isIdempotent === true;
}

/** Whether the connection broke or could not be opened, or a gateway could not reach the server behind it. */
function isTransient(error: unknown): error is ConnectionError {
  // A lost session has already been renewed once.
  if (!(error instanceof ConnectionError) || error instanceof SessionLost) return false;
  const { kind, status } = error;
  if (kind === "http") return status === 502 || status === 503 || status === 504;
  return kind === "closed" || (kind === "refused" && status === undefined);
}

/** How many attempts in a row may fail to open a subscription again. */
const MAX_FAILURES = 10;
/** Some proxies end every response after half a minute, which must not lengthen the pauses. */
const STABLE_MS = 10_000;

export function resubscribing(handler: Handler): Handler {
  return (request, context) => {
    const grant: Grant = { granted: undefined };
    let failures = 0;
    return keepSubscribed(context, grant, {
      open: (listenContext) => handler(request, listenContext),
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
