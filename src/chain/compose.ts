// Links put onto a handler, the first outermost. Links are other people's code, so each is held to its part: what it
// throws by accident is an error of its one request and names the link, what it passes on stays as it was, a promise
// that it forgets ends nobody's process, and nothing that it throws while a notification goes by reaches the end that
// said it. Calling `next` not at all, twice or late is a link's right. Which links there are is not decided here.

import type { Context } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Link, Notification, Request, Result } from "../core/handler.ts";
import { attempt } from "../core/async.ts";
import { errorMessage } from "../core/text.ts";
import { isObject } from "../core/objects.ts";
import { McpError } from "../protocol/errors.ts";
import { following } from "./upstream/following.ts";

export function compose(links: readonly Link[], handler: Handler): Handler {
  if (links.length === 0) return handler;
  return links.reduceRight<Handler>(
    (next, link) => (request, context) => new Passage(link, next, context).run(request),
    answering(handler),
  );
}

/** Links may rely on a result where one comes: what an end does wrong is no fault of the link that trips over it. */
function answering(handler: Handler): Handler {
  return async (request, context) => {
    const result: unknown = await handler(request, context);
    if (isObject(result)) return result;
    throw new ConnectionError("protocol", `The end answered ${request.method} with something that is no result`);
  };
}

/** One request on its way through one link. */
class Passage {
  readonly #link: Link;
  readonly #behind: Handler;
  readonly #context: Context;
  /** Failures from behind the link: they are not its own. */
  readonly #passed: unknown[] = [];
  #reject: (error: unknown) => void = () => undefined;

  constructor(link: Link, behind: Handler, context: Context) {
    this.#link = link;
    this.#behind = behind;
    this.#context = context;
  }

  run(request: Request): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#reject = reject;
      attempt(() => this.#link.run(request, this.#context, (passed, context) => this.#next(passed, context))).then(
        (result: unknown) => {
          if (isResult(result)) resolve(result);
          else reject(this.#noResult(request, result));
        },
        (error: unknown) => reject(this.#named(error)),
      );
    });
  }

  #next(request: Request, context: Context): Promise<Result> {
    if (!isRequest(request) || !isContext(context)) {
      const message = `The link ${this.#link.name} called next without a request and a context: next(request, context)`;
      return forgotten(Promise.reject(this.#error(message)), () => undefined);
    }
    const outcome = attempt(() => this.#behind(request, this.#guarded(request, context)));
    // Heard here first, so that it is known before the link throws it again.
    return forgotten(outcome, (error) => this.#passed.push(error));
  }

  /** What the link hears is its own affair: an end that says something must not fail because a link did. */
  #guarded(request: Request, given: Context): Context {
    if (given.notify === this.#context.notify) return given;
    // A call comes to its end in any case; a listen that nobody hears any more would stand for ever.
    const stop = request.method === "subscriptions/listen" ? following(given.signal) : undefined;
    const fail = (error: unknown, { method }: Notification): void => {
      const failure = this.#named(error, method);
      this.#reject(failure);
      stop?.abort(failure);
    };
    const notify = (notification: Notification): void => {
      try {
        // An async function is as good as any where nothing is wanted back.
        const said: unknown = given.notify(notification);
        if (said instanceof Promise) said.catch((error: unknown) => fail(error, notification));
      } catch (error) {
        fail(error, notification);
      }
    };
    return { ...given, notify, ...(stop === undefined ? undefined : { signal: stop.signal }) };
  }

  #named(error: unknown, what?: string): unknown {
    const { name } = this.#link;
    try {
      if (this.#passed.includes(error) || error instanceof McpError) return error;
      const { signal } = this.#context;
      if (signal.aborted && signal.reason === error) return error;
      if (error instanceof ConnectionError) {
        const { kind, message, mayHaveRun, status } = error;
        return new ConnectionError(kind, `At the link ${name}: ${message}`, {
          cause: error,
          mayHaveRun,
          ...(status === undefined ? undefined : { status }),
        });
      }
    } catch {
      // What was thrown is a user's own, and may bite.
    }
    const during = what === undefined ? "" : ` at ${what}`;
    return this.#error(`The link ${name} failed${during}: ${errorMessage(error)}`, error);
  }

  #noResult({ method }: Request, result: unknown): McpError {
    const { name } = this.#link;
    const hint = isObject(result)
      ? "it is a function that makes a link: call it, and put what it returns into the chain"
      : "return what next gives, or a result of its own";
    return this.#error(`The link ${name} answered ${method} with something that is no result; ${hint}`);
  }

  #error(message: string, cause?: unknown): McpError {
    return McpError.of("internal_error", message, { middlewareName: this.#link.name }, { cause });
  }
}

/** The same promise; its failure is heard, and no unhandled one where the link forgets it. */
function forgotten(promise: Promise<Result>, hear: (error: unknown) => unknown): Promise<Result> {
  promise.catch(hear);
  return promise;
}

function isRequest(request: unknown): boolean {
  return isObject(request) && typeof request["method"] === "string" && isObject(request["params"]);
}

function isContext(context: unknown): boolean {
  return isObject(context) && typeof context["notify"] === "function" && typeof context["ask"] === "function";
}

function isResult(result: unknown): result is Result {
  // No result has a function in it: `run` is that of a link, from a maker of links that nobody has called.
  return isObject(result) && typeof result["run"] !== "function";
}
