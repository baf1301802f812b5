// Sends a request again, with backoff, if the connection to the upstream failed and a retry is safe: the request has
// certainly not run, or only reads, or calls a tool that declares itself read-only or idempotent and not destructive.
// An answer of the upstream is passed on, even if it is an error.

import { copyContext } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { count, ms, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { backoffMs, pause } from "../../core/async.ts";
import { READ_ONLY_METHODS } from "../../protocol/revisions/standard-methods.ts";
import { calledTool } from "../item.ts";
import { define, type ActingMiddleware, type DefinedMiddleware } from "../define.ts";
import { methodNames } from "../method-names.ts";

const OPTIONS = {
  attempts: count("How many times a request is sent at most.").or(3),
  firstMs: ms("The first pause; each further one is 1.6 times as long.").or(1_000),
  maxMs: ms("The longest pause.").or(60_000),
  methods: methodNames("Only requests of these methods are sent again. Default: all."),
};

/** Options of `retry()`. */
export type RetryOptions = OptionsOf<typeof OPTIONS>;

/**
 * Sends a request again after a failure of the connection, but only if that cannot make it run twice.
 *
 * @example
 * retry({ attempts: 5 })
 */
export const retry: DefinedMiddleware<[options?: RetryOptions]> = define({
  name: "retry",
  summary: "Sends a request again after a failure of the connection, if that cannot make it run twice.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createRetry,
});

function createRetry({ attempts, methods: names, ...pauses }: ValuesOf<typeof OPTIONS>): ActingMiddleware {
  const methods = names && new Set(names);
  const run = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const call = new RetriedCall(request, context);
    for (let count = 1; ; count += 1) {
      try {
        return await call.run(next);
      } catch (error) {
        if (count >= attempts || !call.mayRetry(error)) throw call.withMayHaveRun(error);
      }
      await pause(backoffMs(count - 1, pauses), context.signal);
    }
  };
  const middleware: ActingMiddleware = (request, context, next) => {
    const { method } = request;
    const isRetried = methods?.has(method) !== false && method !== "subscriptions/listen";
    return isRetried ? run(request, context, next) : next(request, context);
  };
  // What the lists that the caller has got say about a tool is enough. They are not read for it.
  middleware.needs = () => false;
  return middleware;
}

/** One request with all its attempts. */
class RetriedCall {
  readonly #request: Request;
  readonly #context: Context;
  #mayHaveRun = false;
  #hasReported = false;
  #hasAsked = false;

  constructor(request: Request, context: Context) {
    this.#request = request;
    this.#context = context;
  }

  run(next: Handler): Promise<Result> {
    const notify: Context["notify"] = (notification) => {
      this.#hasReported ||= notification.method === "notifications/progress";
      this.#context.notify(notification);
    };
    const ask: Context["ask"] = (question, options) => {
      this.#hasAsked = true;
      return this.#context.ask(question, options);
    };
    return next(this.#request, copyContext(this.#context, { notify, ask }));
  }

  mayRetry(error: unknown): error is ConnectionError {
    if (!(error instanceof ConnectionError) || !error.isTemporary || this.#context.signal.aborted) return false;
    this.#mayHaveRun ||= error.mayHaveRun;
    // A retry would ask the caller the same thing again.
    if (this.#hasAsked) return false;
    return this.#isSafe() || !(error.mayHaveRun || this.#hasReported);
  }

  /** Sets `mayHaveRun` if an earlier attempt may have run, even if the last one has not. */
  withMayHaveRun(error: unknown): unknown {
    if (!this.#mayHaveRun || !(error instanceof ConnectionError) || error.mayHaveRun) return error;
    return error.with({ mayHaveRun: true });
  }

  #isSafe(): boolean {
    const { method, params } = this.#request;
    if (method !== "tools/call") return READ_ONLY_METHODS.has(method);
    // A second attempt would create a task that nothing refers to, or send the caller's answers twice.
    if (this.#context.task !== undefined || params["inputResponses"] !== undefined) return false;
    const tool = calledTool(this.#context);
    return tool?.isIdempotent === true && !tool.isDestructive;
  }
}
