// Wraps a handler in middleware, the first outermost. Middleware is user code, so a mistake in it must affect only its
// own request: an unexpected exception becomes an error that names the middleware, a promise that it does not await
// cannot end the process, and an exception in its `notify` does not reach the upstream. Middleware may call `next` any
// number of times, at any time. It is in protocol/ because server/ and chain/ both have middleware.

import { forwardAbort, ignoreRejection } from "../core/async.ts";
import { copyContext, isCancelled, isOurCopy } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { isObject, errorMessage } from "../core/values.ts";
import { McpError, withoutFolders } from "./errors.ts";
import { checkParams } from "./params.ts";

/** A middleware of a chain, with its name. */
export interface ChainEntry {
  /** Unique in its chain; `replace` and errors use it. */
  readonly name: string;
  /** The function that runs. */
  readonly middleware: Middleware;
}

/** Freezes what passes between middleware, so that a change in place fails; undefined unless `catenary/testing` is loaded. */
let freeze: (<Value>(value: Value) => Value) | undefined;

export function freezeMessages(freezeMessage: typeof freeze): void {
  freeze = freezeMessage;
}

/** The handler must return promises of results: what an upstream answers is checked before it gets here. */
export function compose(entries: readonly ChainEntry[], handler: Handler): Handler {
  return entries.reduceRight<Handler>((next, entry) => withMiddleware(entry, next), handler);
}

export function withMiddleware({ name, middleware }: ChainEntry, next: Handler): Handler {
  const run: Handler = (request, context) => {
    freeze?.(request);
    const call = new MiddlewareCall(name, request, context, next);
    let returned: unknown;
    try {
      returned = middleware(request, context, call.next);
    } catch (error) {
      returned = Promise.reject(error);
    }
    return call.finish(returned);
  };
  return (request, context) =>
    context.observer?.recorder?.record("middleware", name, request, context, run) ?? run(request, context);
}

/** One request in one middleware. It is short because every request passes here once for each middleware. */
class MiddlewareCall {
  readonly #name: string;
  readonly #request: Request;
  readonly #context: Context;
  readonly #inner: Handler;
  /** What the middleware gets as `next`. */
  readonly next: Handler;
  /** What `next` returned, if it was called before the middleware returned. Most middleware returns the same promise. */
  #first: Promise<Result> | undefined;
  /** What other calls of `next` returned. */
  #others: Promise<Result>[] | undefined;
  #hasReturned: boolean;
  /** Whether the middleware intercepts notifications, and so may fail at any time. */
  #intercepts: boolean;
  #reject: ((error: unknown) => void) | undefined;
  /** A failure in `notify` before the middleware has returned. */
  #failure: { readonly error: unknown } | undefined;

  constructor(name: string, request: Request, context: Context, inner: Handler) {
    this.#name = name;
    this.#request = request;
    this.#context = context;
    this.#inner = inner;
    this.#hasReturned = false;
    this.#intercepts = false;
    // Middleware calls it as a function.
    const next: Handler = (passed, passedContext) => this.#pass(passed, passedContext);
    this.next = next;
  }

  #pass(passed: Request, passedContext: Context): Promise<Result> {
    let outcome: Promise<Result>;
    try {
      outcome = this.#run(passed, passedContext);
    } catch (error) {
      outcome = Promise.reject(error);
    }
    if (freeze !== undefined) outcome = outcome.then(freeze);
    if (this.#first === undefined && !this.#hasReturned) this.#first = outcome;
    else (this.#others ??= []).push(ignoreRejection(outcome));
    return outcome;
  }

  #run(passed: Request, passedContext: Context): Promise<Result> {
    const request = this.#request;
    // The params were checked when the request was received, so only those that middleware changed are checked.
    if (passed !== request) {
      if (!isRequest(passed)) throw wrongNext(this.#name);
      checkParams(passed.method, passed.params);
    }
    if (passedContext === this.#context) return this.#inner(passed, passedContext);
    if (!isContext(passedContext)) throw wrongNext(this.#name);
    // A subscription goes on for long, so not even the `notify` of built-in middleware may fail it unnoticed.
    const isGuarded =
      passedContext.notify === this.#context.notify ||
      (isOurCopy(passedContext) && passed.method !== "subscriptions/listen");
    if (isGuarded) return this.#inner(passed, passedContext);
    this.#intercepts = true;
    return this.#inner(
      passed,
      withGuardedNotify(passed, passedContext, (error, notification) => this.#fail(error, notification)),
    );
  }

  /** The outcome of the call, given what the middleware returned. */
  finish(returned: unknown): Promise<Result> {
    const first = this.#first;
    this.#hasReturned = true;
    const isPlain = first !== undefined && !this.#intercepts;
    // What came from `next` was checked there, and is returned as it is.
    if (isPlain && returned === first) return first;
    // The middleware may not await it.
    if (first !== undefined) void ignoreRejection(first);
    const outcome = Promise.resolve(returned).then(
      (result) => this.#check(result),
      (error: unknown) => this.#rethrow(error),
    );
    if (isPlain) return outcome;
    return new Promise<Result>((resolve, reject) => {
      this.#reject = reject;
      if (this.#failure !== undefined) reject(this.#failure.error);
      outcome.then(resolve, reject);
    });
  }

  #check(result: unknown): Result | Promise<Result> {
    if (this.#failure !== undefined) throw this.#failure.error;
    if (!isObject(result)) throw noResult(this.#name, this.#request, result);
    if (hasContent(this.#request, result)) return result;
    return this.#hasPassed(result["content"]).then((isPassed) => {
      if (isPassed) return result;
      throw middlewareError(this.#name, "returned `content` that is not an array of content blocks");
    });
  }

  async #rethrow(error: unknown): Promise<never> {
    throw this.#isReason(error) || (await this.#hasPassed(error)) ? error : errorIn(this.#name, error);
  }

  /** Whether the content or error came from `next`, so that it is not the middleware's own. */
  async #hasPassed(value: unknown): Promise<boolean> {
    for (const outcome of [this.#first, ...(this.#others ?? [])]) {
      // One that is not settled is not waited for.
      const isThis = await Promise.race([outcome, UNSETTLED]).then(
        (result) => result?.["content"] === value && value !== undefined,
        (error: unknown) => Object.is(error, value) || isSameFailure(error, value),
      );
      if (isThis) return true;
    }
    return false;
  }

  /** Whether the call was cancelled for this reason. */
  #isReason(error: unknown): boolean {
    return isCancelled(this.#context) && this.#context.signal.reason === error;
  }

  /** Fails the call because of an error in `notify`. */
  #fail(error: unknown, notification: string): unknown {
    const failure = this.#isReason(error) ? error : errorIn(this.#name, error, notification);
    this.#failure ??= { error: failure };
    this.#reject?.(failure);
    return failure;
  }
}

const UNSETTLED = Promise.resolve(undefined);

/** Whether a middleware has said in other words why the connection failed, for example without secrets. */
function isSameFailure(error: unknown, other: unknown): boolean {
  try {
    return error instanceof ConnectionError && other instanceof ConnectionError && error.kind === other.kind;
  } catch {
    // The thrown value may be a Proxy whose traps throw.
    return false;
  }
}

/** Catches exceptions in the middleware's `notify`, so that they do not reach the upstream. */
function withGuardedNotify(
  { method }: Request,
  context: Context,
  fail: (error: unknown, notification: string) => unknown,
): Context {
  // If `notify` fails, a call ends by itself, but a subscription would stay open. So abort the subscription.
  const stop = method === "subscriptions/listen" ? forwardAbort(context.signal) : undefined;
  const notify = (notification: Notification): void => {
    const onError = (error: unknown): void => {
      const failure = fail(error, notification.method);
      stop?.abort(failure);
    };
    try {
      // `notify` may be an async function, though its type returns nothing.
      const returned: unknown = context.notify(notification);
      if (returned instanceof Promise) returned.catch(onError);
    } catch (error) {
      onError(error);
    }
  };
  return stop === undefined ? copyContext(context, { notify }) : { ...context, notify, signal: stop.signal };
}

/** Adds the middleware's name to its own errors. McpErrors stay as they are. */
export function errorIn(name: string, error: unknown, notification?: string): unknown {
  try {
    if (error instanceof McpError) return error;
    if (error instanceof ConnectionError) {
      return error.with({ problem: `In the middleware ${name}: ${error.problem}` });
    }
  } catch {
    // The thrown value may be a Proxy whose traps throw.
  }
  const where = notification === undefined ? "" : ` at ${notification}`;
  return middlewareError(name, `failed${where}: ${withoutFolders(errorMessage(error))}`, error);
}

function noResult(name: string, { method }: Request, result: unknown): McpError {
  const hint =
    typeof result === "function"
      ? "it returned a function: use what that returns"
      : "it must return the result of next, or its own";
  return middlewareError(name, `answered ${method} without a result; ${hint}`);
}

/** Whether the content of a tool's result, if there is one, is an array of objects. Their types are the client's matter. */
function hasContent({ method }: Request, { content }: Result): boolean {
  return method !== "tools/call" || content === undefined || (Array.isArray(content) && content.every(isObject));
}

function wrongNext(name: string): McpError {
  return middlewareError(name, "must call next(request, context)");
}

function middlewareError(name: string, what: string, cause?: unknown): McpError {
  return McpError.of("internal_error", `The middleware ${name} ${what}`, { middlewareName: name }, { cause });
}

function isRequest(request: unknown): boolean {
  return isObject(request) && typeof request["method"] === "string" && isObject(request["params"]);
}

function isContext(context: unknown): boolean {
  return isObject(context) && typeof context["notify"] === "function" && typeof context["ask"] === "function";
}
