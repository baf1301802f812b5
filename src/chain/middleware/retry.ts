// Sends a request again, with backoff, if the connection to the upstream failed and a retry is safe: the request has
// certainly not run, or only reads, or calls a tool that declares itself read-only or idempotent and not destructive.
// An answer of the upstream is passed on, even if it is an error.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { OptionReader } from "../../core/options.ts";
import { backoffMs, pause } from "../../core/async.ts";
import { READ_ONLY_METHODS } from "../../http/client/retry.ts";
import { methodsOption } from "../method-names.ts";

export interface RetryOptions {
  /** How many times a request is sent at most. Default: 3. */
  readonly attempts?: number;
  /** The first pause, in milliseconds. Each further pause is about 1.6 times as long. Default: 1,000. */
  readonly firstMs?: number;
  /** The longest pause, in milliseconds. Default: 60,000. */
  readonly maxMs?: number;
  /** Only requests of these methods are sent again. Default: all. */
  readonly methods?: readonly string[];
}

const ATTEMPTS = 3;
const MAX_TOOLS = 10_000;

export function retry(options: RetryOptions = {}): Middleware {
  const read = new OptionReader("retry", options, ["attempts", "firstMs", "maxMs", "methods"]);
  const attempts = read.count("attempts") ?? ATTEMPTS;
  const firstMs = read.ms("firstMs");
  const maxMs = read.ms("maxMs");
  const methods = methodsOption(read);
  const pauses = { ...(firstMs === undefined ? {} : { firstMs }), ...(maxMs === undefined ? {} : { maxMs }) };
  const tools = new SafeTools();
  return async function retry(request, context, next) {
    if (request.method === "subscriptions/listen") return next(request, tools.forgetOnChange(context));
    if (methods?.has(request.method) === false) return tools.learn(request, await next(request, context));
    const call = new RetriedCall(request, context, tools);
    for (let count = 1; ; count += 1) {
      try {
        return tools.learn(request, await call.run(next));
      } catch (error) {
        if (count >= attempts || !call.mayRetry(error)) throw call.withMayHaveRun(error);
      }
      await pause(backoffMs(count - 1, pauses), context.signal);
    }
  };
}

/** One request with all its attempts. */
class RetriedCall {
  readonly #request: Request;
  readonly #context: Context;
  readonly #tools: SafeTools;
  #mayHaveRun = false;
  #hasReported = false;
  #hasAsked = false;

  constructor(request: Request, context: Context, tools: SafeTools) {
    this.#request = request;
    this.#context = context;
    this.#tools = tools;
  }

  run(next: Handler): Promise<Result> {
    return next(this.#request, {
      ...this.#context,
      notify: (notification) => {
        this.#hasReported ||= notification.method === "notifications/progress";
        this.#context.notify(notification);
      },
      ask: (question, options) => {
        this.#hasAsked = true;
        return this.#context.ask(question, options);
      },
    });
  }

  mayRetry(error: unknown): error is ConnectionError {
    if (!isTemporary(error) || this.#context.signal.aborted) return false;
    this.#mayHaveRun ||= error.mayHaveRun;
    // A retry would ask the caller the same thing again.
    if (this.#hasAsked) return false;
    return this.#isSafe() || !(error.mayHaveRun || this.#hasReported);
  }

  /** Sets `mayHaveRun` if an earlier attempt may have run, even if the last one has not. */
  withMayHaveRun(error: unknown): unknown {
    if (!this.#mayHaveRun || !isTemporary(error) || error.mayHaveRun) return error;
    return error.with({ mayHaveRun: true });
  }

  #isSafe(): boolean {
    const { method, params } = this.#request;
    if (method !== "tools/call") return READ_ONLY_METHODS.has(method);
    // A second attempt would create a task that nothing refers to, or send the caller's answers twice.
    if (this.#context.session?.task !== undefined || params["inputResponses"] !== undefined) return false;
    return this.#tools.has(params["name"]);
  }
}

/** The tools that are safe to call twice, according to the tool lists that callers have requested. */
class SafeTools {
  readonly #names = new Set<string>();

  has(name: unknown): boolean {
    return typeof name === "string" && this.#names.has(name);
  }

  learn({ method }: Request, result: Result): Result {
    const { tools } = result;
    if (method !== "tools/list" || !Array.isArray(tools)) return result;
    for (const tool of tools as readonly unknown[]) {
      if (!isObject(tool) || typeof tool["name"] !== "string") continue;
      this.#names.delete(tool["name"]);
      if (isSafe(tool["annotations"])) this.#names.add(tool["name"]);
      const [oldest] = this.#names;
      if (this.#names.size > MAX_TOOLS && oldest !== undefined) this.#names.delete(oldest);
    }
    return result;
  }

  /** Returns a context that forgets the tools when the upstream notifies that they have changed. */
  forgetOnChange(context: Context): Context {
    return {
      ...context,
      notify: (notification) => {
        if (notification.method === "notifications/tools/list_changed") this.#names.clear();
        context.notify(notification);
      },
    };
  }
}

function isSafe(annotations: unknown): boolean {
  if (!isObject(annotations) || annotations["destructiveHint"] === true) return false;
  return annotations["readOnlyHint"] === true || annotations["idempotentHint"] === true;
}

/** Whether a retry may succeed. It cannot if rights are missing, or if the server does not speak MCP. */
function isTemporary(error: unknown): error is ConnectionError {
  if (!(error instanceof ConnectionError)) return false;
  const { kind, status } = error;
  if (kind === "http") return status === undefined || status === 429 || status >= 500;
  return kind === "closed" || kind === "timeout" || kind === "spawn" || (kind === "refused" && status === undefined);
}
