// Wraps a handler in middleware, the first outermost. Middleware is user code, so a mistake in it must affect only its
// own request: an unexpected exception becomes an error that names the middleware, a promise that it does not await
// cannot end the process, and an exception in its `notify` does not reach the upstream. Middleware may call `next` any
// number of times, at any time.

import { attempt, forwardAbort } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { isObject, errorMessage } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import { checkParams } from "../protocol/params.ts";

/** A middleware of a chain, with its name. */
export interface ChainEntry {
  /** Unique in its chain; `replace` and errors use it. */
  readonly name: string;
  readonly middleware: Middleware;
}

export function compose(entries: readonly ChainEntry[], handler: Handler): Handler {
  if (entries.length === 0) return handler;
  return entries.reduceRight<Handler>(
    (next, entry) => (request, context) => new MiddlewareCall(entry, next, request, context).run(),
    withResultCheck(handler),
  );
}

/** Checks the upstream's result before middleware gets it, so that an invalid result is not blamed on middleware. */
function withResultCheck(handler: Handler): Handler {
  return async (request, context) => {
    const result: unknown = await handler(request, context);
    if (isObject(result)) return result;
    throw new ConnectionError("protocol", `The upstream answered ${request.method} without a result`);
  };
}

/** One request that passes through one middleware. */
class MiddlewareCall {
  readonly #entry: ChainEntry;
  readonly #next: Handler;
  readonly #request: Request;
  readonly #context: Context;
  /** Errors that came from `next`, which are not the middleware's own. */
  readonly #passed: unknown[] = [];
  #reject: (error: unknown) => void = () => undefined;

  constructor(entry: ChainEntry, next: Handler, request: Request, context: Context) {
    this.#entry = entry;
    this.#next = next;
    this.#request = request;
    this.#context = context;
  }

  run(): Promise<Result> {
    const { middleware } = this.#entry;
    const request = this.#request;
    return new Promise<Result>((resolve, reject) => {
      this.#reject = reject;
      attempt(() => middleware(request, this.#context, (passed, context) => this.#callNext(passed, context))).then(
        (result: unknown) => {
          if (isObject(result)) resolve(result);
          else reject(this.#noResult(request, result));
        },
        (error: unknown) => reject(this.#ownError(error)),
      );
    });
  }

  #callNext(request: Request, context: Context): Promise<Result> {
    if (!isRequest(request) || !isContext(context)) {
      const what = `The middleware ${this.#entry.name} called next without a request and a context`;
      return handled(Promise.reject(this.#error(`${what}: next(request, context)`)), () => undefined);
    }
    const outcome = attempt(() => {
      // The params were checked when the request was received. They are checked again only if middleware changed them.
      if (request !== this.#request) checkParams(request.method, request.params);
      return this.#next(request, this.#guarded(request, context));
    });
    // The error is recorded before the middleware can rethrow it.
    return handled(outcome, (error) => this.#passed.push(error));
  }

  /** Catches exceptions in the middleware's `notify`, so that they do not reach the upstream. */
  #guarded(request: Request, given: Context): Context {
    if (given.notify === this.#context.notify) return given;
    // If `notify` fails, a call ends by itself, but a subscription would stay open. So abort the subscription.
    const stop = request.method === "subscriptions/listen" ? forwardAbort(given.signal) : undefined;
    const fail = (error: unknown, { method }: Notification): void => {
      const failure = this.#ownError(error, method);
      this.#reject(failure);
      stop?.abort(failure);
    };
    const notify = (notification: Notification): void => {
      try {
        // `notify` may be an async function, though its type returns nothing.
        const returned: unknown = given.notify(notification);
        if (returned instanceof Promise) returned.catch((error: unknown) => fail(error, notification));
      } catch (error) {
        fail(error, notification);
      }
    };
    return { ...given, notify, ...(stop === undefined ? undefined : { signal: stop.signal }) };
  }

  /** Adds the middleware's name to its own errors. Errors from `next`, McpErrors and cancellations stay as they are. */
  #ownError(error: unknown, notification?: string): unknown {
    const { name } = this.#entry;
    try {
      if (this.#passed.includes(error) || error instanceof McpError) return error;
      const { signal } = this.#context;
      if (signal.aborted && signal.reason === error) return error;
      if (error instanceof ConnectionError) {
        return error.with({ message: `In the middleware ${name}: ${error.message}` });
      }
    } catch {
      // The thrown value may be a Proxy whose traps throw.
    }
    const during = notification === undefined ? "" : ` at ${notification}`;
    return this.#error(`The middleware ${name} failed${during}: ${errorMessage(error)}`, error);
  }

  #noResult({ method }: Request, result: unknown): McpError {
    const { name } = this.#entry;
    const hint =
      typeof result === "function"
        ? "it returned a function: call the factory and put the middleware it returns into the chain"
        : "it must return the result of next, or its own";
    return this.#error(`The middleware ${name} answered ${method} without a result; ${hint}`);
  }

  #error(message: string, cause?: unknown): McpError {
    return McpError.of("internal_error", message, { middlewareName: this.#entry.name }, { cause });
  }
}

/** Returns the same promise with a rejection handler, so that it cannot become an unhandled rejection. */
function handled(promise: Promise<Result>, onError: (error: unknown) => unknown): Promise<Result> {
  promise.catch(onError);
  return promise;
}

function isRequest(request: unknown): boolean {
  return isObject(request) && typeof request["method"] === "string" && isObject(request["params"]);
}

function isContext(context: unknown): boolean {
  return isObject(context) && typeof context["notify"] === "function" && typeof context["ask"] === "function";
}
