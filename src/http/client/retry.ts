// Retries requests whose connection failed, if that is harmless: requests that only read, calls of tools that declare
// themselves idempotent, and requests that have certainly not run. Any other request may have run, so its error is
// reported. Broken subscriptions are opened again. A call whose headers do not match the tool's schema is sent once more
// with the headers of the current schema.

import { ConnectionError } from "../../core/errors.ts";
import { isLasting, keepSubscribed, type Grant } from "../../protocol/keep-subscribed.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { SessionLost } from "../../transport/transport.ts";
import { pause } from "../../core/async.ts";
import { codeOf, isTemporary, McpError } from "../../protocol/errors.ts";
import { READ_ONLY_METHODS } from "../../protocol/read-only-methods.ts";
import type { Revision } from "../../protocol/revision.ts";
import type { ToolFacts } from "../../tools/facts.ts";
import { isObject } from "../../core/values.ts";

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

/**
 * Learns about tools from their lists. If calls repeat arguments in headers, the schema of a tool must be known before a
 * call, and tools with invalid declarations are removed from lists, as the specification requires of HTTP clients
 * (basic/transports/streamable-http, schema extension).
 */
export function learning(
  handler: Handler,
  tools: ToolFacts,
  revision: Revision,
  warn: (text: string) => void,
): Handler {
  return async (request, context) => {
    const { method, params } = request;
    if (method === "tools/list") return withoutInvalid(await handler(request, context), tools, warn);
    if (method !== "tools/call" || !tools.readsHeaders) return handler(request, context);
    if (tools.get(params["name"]) === undefined) await tools.find(params["name"], handler, context);
    try {
      return await handler(request, context);
    } catch (error) {
      const cause: unknown = error instanceof ConnectionError ? error.cause : error;
      if (!(cause instanceof McpError) || cause.code !== codeOf("header_mismatch", revision)) throw error;
      const before = JSON.stringify(tools.get(params["name"])?.headers);
      await tools.refresh(handler, context);
      if (JSON.stringify(tools.get(params["name"])?.headers) === before) throw error;
      return handler(request, context);
    }
  };
}

function withoutInvalid(result: Result, facts: ToolFacts, warn: (text: string) => void): Result {
  facts.learn(result);
  const { tools } = result;
  if (!Array.isArray(tools) || !facts.readsHeaders) return result;
  const kept = tools.filter((tool: unknown) => {
    const name = isObject(tool) ? tool["name"] : undefined;
    const problem = facts.get(name)?.headerProblem;
    if (problem === undefined) return true;
    warn(`The tool ${JSON.stringify(name)} is omitted because it cannot be called over HTTP: ${problem}`);
    return false;
  });
  return kept.length === tools.length ? result : { ...result, tools: kept };
}

/** How many attempts in a row may fail to open a subscription again. */
const MAX_FAILURES = 10;
/** Some proxies end every response after half a minute, which must not lengthen the pauses. */
const STABLE_MS = 10_000;

/** Opens a `subscriptions/listen` again when its connection breaks, or the server ends it as it stops. */
export function resubscribing(handler: Handler): Handler {
  return (request, context) => {
    if (request.method !== "subscriptions/listen") return handler(request, context);
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
