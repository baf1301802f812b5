// Wraps a handler in middleware, the first outermost. Middleware is user code, so a mistake in it must affect only its
// own request: an unexpected exception becomes an error that names the middleware, a promise that it does not await
// cannot end the process, and an exception in its `notify` does not reach the upstream. Middleware may call `next` any
// number of times, at any time. It is in protocol/ because server/ and chain/ both have middleware.

import { attempt, forwardAbort } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { isObject, errorMessage } from "../core/values.ts";
import { McpError } from "./errors.ts";
import { checkParams } from "./params.ts";

/** A middleware of a chain, with its name. */
export interface ChainEntry {
  /** Unique in its chain; `replace` and errors use it. */
  readonly name: string;
  /** The function that runs. */
  readonly middleware: Middleware;
}

export function compose(entries: readonly ChainEntry[], handler: Handler): Handler {
  if (entries.length === 0) return handler;
  return entries.reduceRight<Handler>((next, entry) => withMiddleware(entry, next), withResultCheck(handler));
}

/** Checks the upstream's result before middleware gets it, so that an invalid result is not blamed on middleware. */
function withResultCheck(handler: Handler): Handler {
  return async (request, context) => {
    const result: unknown = await handler(request, context);
    if (isObject(result)) return result;
    throw new ConnectionError("protocol", `The upstream answered ${request.method} without a result`);
  };
}

function withMiddleware({ name, middleware }: ChainEntry, next: Handler): Handler {
  return (request, context) =>
    new Promise<Result>((resolve, reject) => {
      /** Errors and contents that came from `next`, which are not the middleware's own. */
      const passed: unknown[] = [];
      const fail = (error: unknown, notification?: string): unknown => {
        const isOwn = !passed.includes(error) && !(context.signal.aborted && context.signal.reason === error);
        const failure = isOwn ? ownError(name, error, notification) : error;
        reject(failure);
        return failure;
      };
      const callNext: Handler = (given, own) => {
        const outcome = attempt(() => {
          if (!isRequest(given) || !isContext(own)) {
            const what = `The middleware ${name} called next without a request and a context`;
            throw middlewareError(name, `${what}: next(request, context)`);
          }
          // The params were checked when the request was received, so only those that middleware changed are checked.
          if (given !== request) checkParams(given.method, given.params);
          return next(given, own.notify === context.notify ? own : withGuardedNotify(given, own, fail));
        });
        // The error is recorded before the middleware can rethrow it, and a forgotten promise cannot end the process.
        outcome.then(
          ({ content }) => content !== undefined && passed.push(content),
          (error: unknown) => passed.push(error),
        );
        return outcome;
      };
      attempt(() => middleware(request, context, callNext)).then((result: unknown) => {
        if (!isObject(result)) reject(noResult(name, request, result));
        else if (hasContent(request, result) || passed.includes(result["content"])) resolve(result);
        else reject(wrongContent(name));
      }, fail);
    });
}

/** Catches exceptions in the middleware's `notify`, so that they do not reach the upstream. */
function withGuardedNotify(
  { method }: Request,
  given: Context,
  fail: (error: unknown, notification: string) => unknown,
): Context {
  // If `notify` fails, a call ends by itself, but a subscription would stay open. So abort the subscription.
  const stop = method === "subscriptions/listen" ? forwardAbort(given.signal) : undefined;
  const notify = (notification: Notification): void => {
    const onError = (error: unknown): void => {
      const failure = fail(error, notification.method);
      stop?.abort(failure);
    };
    try {
      // `notify` may be an async function, though its type returns nothing.
      const returned: unknown = given.notify(notification);
      if (returned instanceof Promise) returned.catch(onError);
    } catch (error) {
      onError(error);
    }
  };
  return { ...given, notify, ...(stop && { signal: stop.signal }) };
}

/** Adds the middleware's name to its own errors. McpErrors stay as they are. */
function ownError(name: string, error: unknown, notification?: string): unknown {
  try {
    if (error instanceof McpError) return error;
    if (error instanceof ConnectionError) {
      return error.with({ message: `In the middleware ${name}: ${error.message}` });
    }
  } catch {
    // The thrown value may be a Proxy whose traps throw.
  }
  const during = notification === undefined ? "" : ` at ${notification}`;
  return middlewareError(name, `The middleware ${name} failed${during}: ${errorMessage(error)}`, error);
}

function noResult(name: string, { method }: Request, result: unknown): McpError {
  const hint =
    typeof result === "function"
      ? "it returned a function: call the factory and put the middleware it returns into the chain"
      : "it must return the result of next, or its own";
  return middlewareError(name, `The middleware ${name} answered ${method} without a result; ${hint}`);
}

/** Whether the content of a tool's result, if there is one, is an array of objects. Their types are the client's matter. */
function hasContent({ method }: Request, { content }: Result): boolean {
  return method !== "tools/call" || content === undefined || (Array.isArray(content) && content.every(isObject));
}

function wrongContent(name: string): McpError {
  const form = 'such as [{ type: "text", text: "..." }]';
  return middlewareError(name, `The middleware ${name} returned \`content\` that is not an array of blocks, ${form}`);
}

function middlewareError(name: string, message: string, cause?: unknown): McpError {
  return McpError.of("internal_error", message, { middlewareName: name }, { cause });
}

function isRequest(request: unknown): boolean {
  return isObject(request) && typeof request["method"] === "string" && isObject(request["params"]);
}

function isContext(context: unknown): boolean {
  return isObject(context) && typeof context["notify"] === "function" && typeof context["ask"] === "function";
}
