// Requests that failed on their way to the end, sent again, ever more slowly, where that can do no harm: those with
// which the end has surely not begun, those that only read, and calls of tools that say of themselves that they only
// read or that a second call does no more than the first. A tool that says it destroys is never among them. What an
// end answered, be it an error, is an answer and is passed on.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Link, Request, Result } from "../../core/handler.ts";
import { READ_ONLY_METHODS } from "../../http/client/retry.ts";
import { backoffMs, pause } from "../../dialogue/calls/backoff.ts";
import { isObject } from "../../core/objects.ts";
import { TASK_WANTED } from "../../protocol/tasks.ts";
import { OptionReader } from "../../core/options.ts";
import { methodsOption } from "../method-names.ts";

export interface RetryOptions {
  /** How often a request is sent at most; 3. */
  readonly attempts?: number;
  /** The first pause; each is 1.6 times the one before, give or take a fifth; 1 s. */
  readonly firstMs?: number;
  /** The longest pause; 60 s. */
  readonly maxMs?: number;
  /** Only requests of these methods. */
  readonly methods?: readonly string[];
}

const ATTEMPTS = 3;
/** Tools that are remembered; those named first go first. */
const MOST_TOOLS = 10_000;

export function retry(options: RetryOptions = {}): Link {
  const read = new OptionReader("retry", options, ["attempts", "firstMs", "maxMs", "methods"]);
  const attempts = read.count("attempts") ?? ATTEMPTS;
  const firstMs = read.ms("firstMs");
  const maxMs = read.ms("maxMs");
  const methods = methodsOption(read);
  const pacing = { ...(firstMs === undefined ? {} : { firstMs }), ...(maxMs === undefined ? {} : { maxMs }) };
  const tools = new SafeTools();
  return {
    name: "retry",
    run: async (request, context, next) => {
      if (request.method === "subscriptions/listen") return next(request, tools.listening(context));
      if (methods?.has(request.method) === false) return tools.note(request, await next(request, context));
      const call = new Repeated(request, context, tools);
      for (let count = 1; ; count += 1) {
        try {
          return tools.note(request, await call.run(next));
        } catch (error) {
          if (count >= attempts || !call.mayRepeat(error)) throw call.admitting(error);
        }
        await pause(backoffMs(count - 1, pacing), context.signal);
      }
    },
  };
}

/** One request, however often it is sent. */
class Repeated {
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

  mayRepeat(error: unknown): error is ConnectionError {
    if (!isPassing(error) || this.#context.signal.aborted) return false;
    this.#mayHaveRun ||= error.mayHaveRun;
    // Nobody is asked the same thing twice.
    if (this.#hasAsked) return false;
    return this.#isSafe() || !(error.mayHaveRun || this.#hasReported);
  }

  /** What failed at last was perhaps never sent, but one of the tries before it was. */
  admitting(error: unknown): unknown {
    if (!this.#mayHaveRun || !isPassing(error) || error.mayHaveRun) return error;
    const { kind, message, status } = error;
    return new ConnectionError(kind, message, { cause: error, ...(status === undefined ? undefined : { status }) });
  }

  #isSafe(): boolean {
    const { method, params } = this.#request;
    if (method !== "tools/call") return READ_ONLY_METHODS.has(method);
    // A second task would be one that nobody knows of; answers to a question are given once.
    if (TASK_WANTED in params || params["inputResponses"] !== undefined) return false;
    return this.#tools.has(params["name"]);
  }
}

/** What the lists that go by say of tools. */
class SafeTools {
  readonly #names = new Set<string>();

  has(name: unknown): boolean {
    return typeof name === "string" && this.#names.has(name);
  }

  note({ method }: Request, result: Result): Result {
    const { tools } = result;
    if (method !== "tools/list" || !Array.isArray(tools)) return result;
    for (const tool of tools as readonly unknown[]) {
      if (!isObject(tool) || typeof tool["name"] !== "string") continue;
      this.#names.delete(tool["name"]);
      if (saysSafe(tool["annotations"])) this.#names.add(tool["name"]);
      const [oldest] = this.#names;
      if (this.#names.size > MOST_TOOLS && oldest !== undefined) this.#names.delete(oldest);
    }
    return result;
  }

  /** Forgets what it knows as soon as somebody hears that it has changed. */
  listening(context: Context): Context {
    return {
      ...context,
      notify: (notification) => {
        if (notification.method === "notifications/tools/list_changed") this.#names.clear();
        context.notify(notification);
      },
    };
  }
}

function saysSafe(annotations: unknown): boolean {
  if (!isObject(annotations) || annotations["destructiveHint"] === true) return false;
  return annotations["readOnlyHint"] === true || annotations["idempotentHint"] === true;
}

/** Trouble that may be over in a moment. Who has no right now, or does not speak MCP, will not in a second either. */
function isPassing(error: unknown): error is ConnectionError {
  if (!(error instanceof ConnectionError)) return false;
  const { kind, status } = error;
  if (kind === "http") return status === undefined || status === 429 || status >= 500;
  return kind === "closed" || kind === "timeout" || kind === "spawn" || (kind === "refused" && status === undefined);
}
