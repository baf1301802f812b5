// Links put onto a handler, the first outermost. Links are other people's code, so each is held to its part: what it
// throws by accident is an error of its one request and names the link, what it passes on stays as it was, a promise
// that it forgets ends nobody's process, and nothing that it throws while a notification goes by reaches the end that
// said it. Calling `next` not at all, twice or late is a link's right. Which links there are is not decided here.

import type { Context } from "../core/context.ts";
import { LinkError } from "../core/errors.ts";
import type { Handler, Link, Notification, Request, Result } from "../core/handler.ts";
import { attempt } from "../core/promises.ts";
import { textOf } from "../core/text.ts";
import { isObject } from "../protocol/check.ts";
import { McpError } from "../protocol/errors.ts";
import { following, type Following } from "./following.ts";

export function compose(links: readonly Link[], handler: Handler): Handler {
  return links.reduceRight<Handler>(
    (next, link) => (request, context) => new Passage(link, next, context).run(request),
    handler,
  );
}

/** One request on its way through one link. */
class Passage {
  readonly #link: Link;
  readonly #behind: Handler;
  readonly #context: Context;
  /** Failures from behind the link: they are not its own. */
  readonly #passed: unknown[] = [];
  /** Ends what is behind; there where the link wants to hear what comes from there. */
  readonly #stops = new Set<Following>();
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
    // Heard here first, so that it is known before the link throws it again.
    const hear = (error: unknown): unknown => this.#passed.push(error);
    if (context.notify === this.#context.notify)
      return forgotten(
        attempt(() => this.#behind(request, context)),
        hear,
      );
    const stop = following(context.signal);
    this.#stops.add(stop);
    const leave = (): void => {
      stop.forget();
      this.#stops.delete(stop);
    };
    const outcome = attempt(() => this.#behind(request, this.#guarded(context, stop)));
    void outcome.then(leave, leave);
    return forgotten(outcome, hear);
  }

  /** What the link hears is its own affair: an end that says something must not fail because a link did. */
  #guarded(given: Context, { signal }: Following): Context {
    const notify = (notification: Notification): void => {
      try {
        // An async function is as good as any where nothing is wanted back.
        const said: unknown = given.notify(notification);
        if (said instanceof Promise) said.catch((error: unknown) => this.#fail(error, notification));
      } catch (error) {
        this.#fail(error, notification);
      }
    };
    return { ...given, signal, notify };
  }

  /** The request is over for both sides of the link. */
  #fail(error: unknown, { method }: Notification): void {
    const failure = this.#named(error, method);
    this.#reject(failure);
    for (const stop of this.#stops) stop.abort(failure);
  }

  #named(error: unknown, what?: string): unknown {
    const { name } = this.#link;
    try {
      if (this.#passed.includes(error) || error instanceof McpError) return error;
      const { signal } = this.#context;
      if (signal.aborted && signal.reason === error) return error;
      if (error instanceof LinkError) {
        const { kind, message, mayHaveRun, status } = error;
        return new LinkError(kind, `At the link ${name}: ${message}`, {
          cause: error,
          mayHaveRun,
          ...(status === undefined ? undefined : { status }),
        });
      }
    } catch {
      // What was thrown is a user's own, and may bite.
    }
    const during = what === undefined ? "" : ` at ${what}`;
    return this.#error(`The link ${name} failed${during}: ${textOf(error)}`, error);
  }

  #noResult({ method }: Request, result: unknown): McpError {
    const { name } = this.#link;
    const hint = isObject(result)
      ? "it is a function that makes a link: call it, and put what it returns into the chain"
      : "return what next gives, or a result of its own";
    return this.#error(`The link ${name} answered ${method} with something that is no result; ${hint}`);
  }

  #error(message: string, cause?: unknown): McpError {
    return McpError.of("internal_error", message, { linkName: this.#link.name }, { cause });
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
