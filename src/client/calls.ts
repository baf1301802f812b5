// Runs the calls of a client. A call may be answered from the cache, and requests from the server are answered during
// the call. A call ends with its result, an abort, a timeout or the end of the connection, whichever comes first, and
// then releases what it holds. `maxTimeoutMs` is measured here, over the whole call. The connection measures
// `timeoutMs`, the time without progress.

import { MAX_DELAY_MS, onAbort } from "../core/async.ts";
import { CancelToken } from "../core/cancel.ts";
import { ChurningSet } from "../core/collections.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Context, Handler, LogLevel, Meta, Params, Request, Result } from "../core/handler.ts";
import { checkOptions, type OptionNames, optionNames } from "../core/options.ts";
import { defined, errorMessage } from "../core/values.ts";
import { callWithInput } from "../dialogue/calls/input-required.ts";
import { DEFAULT_TIMEOUTS } from "../dialogue/calls/pending-calls.ts";
import { McpError } from "../protocol/errors.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import type { Json } from "../protocol/revision.ts";
import { isTasksNotDeclared, withTasksExtension } from "../protocol/tasks.ts";
import type { Contexts, Progress } from "./contexts.ts";

/** Options of a single call. */
export interface CallOptions {
  /** Cancels the call. */
  readonly signal?: AbortSignal | undefined;
  /** Longest time without progress, in milliseconds. 0 means no limit. */
  readonly timeoutMs?: number | undefined;
  /** Longest duration of the whole call in milliseconds, whatever progress it reports. 0 means no limit. */
  readonly maxTimeoutMs?: number | undefined;
  /** Asks the server to report progress. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** The least urgent level of log messages to receive with this call. */
  readonly logLevel?: LogLevel | undefined;
  /** Called with each log message of this call. */
  readonly onLog?: ((message: LogMessageParams) => void) | undefined;
  /** Sent as `_meta` of the request. */
  readonly meta?: Meta | undefined;
}

const OPTION_NAMES: OptionNames<CallOptions> = optionNames(
  "signal timeoutMs maxTimeoutMs onProgress logLevel onLog meta",
);

/** The value does not matter: the connection replaces it. */
const PROGRESS_TOKEN = { progressToken: "progress" };

type Work<T> = (context: Context, token: CancelToken) => Promise<T>;

export class Calls {
  readonly #handler: Handler;
  readonly #contexts: Contexts;
  readonly #maxTimeoutMs: number | undefined;
  readonly #active = new ChurningSet<CancelToken>();

  constructor(handler: Handler, contexts: Contexts, maxTimeoutMs: number | undefined) {
    this.#handler = handler;
    this.#contexts = contexts;
    this.#maxTimeoutMs = maxTimeoutMs;
  }

  async cached(method: string, params: Params, options: CallOptions = {}): Promise<Result> {
    checkOptions(method, options, OPTION_NAMES);
    const { cache, identity } = this.#contexts;
    const request: Request = { method, params: withMeta(params, options.meta) };
    const identityKey = cache?.slot(request) === undefined ? undefined : await identity?.();
    const slot = cache?.slot(request, identityKey);
    if (slot === undefined) return this.uncached(method, params, options);
    if (options.signal?.aborted === true) throw cancelled(method, options.signal.reason, false);
    if (slot.result !== undefined) return slot.result;
    const { result, timesSent } = await this.#send(method, params, options).catch((error: unknown) => {
      // The server may no longer know the cursor because the page it came from was cached for too long.
      if (params["cursor"] !== undefined && error instanceof McpError) this.#contexts.cache?.forget(method);
      throw error;
    });
    // Do not cache a result that depends on the user's answers, or if the identity has changed during the call.
    if (timesSent === 1 && (await identity?.()) === identityKey) slot.store(result);
    return result;
  }

  async uncached(method: string, params: Params, options: CallOptions = {}): Promise<Result> {
    return (await this.#send(method, params, options)).result;
  }

  /** Ends all calls, including those that wait for one of our handlers. */
  endAll(reason: ConnectionError): void {
    for (const token of this.#active.values()) token.abort(reason);
  }

  /**
   * Calls a tool. If the server answers with a task, waits for the task, and cancels it if the call is aborted. Tasks
   * report neither progress nor logs, so a call that wants them does not declare tasks, unless the server requires it.
   */
  callTool(params: Params, options: CallOptions = {}): Promise<Result> {
    const request = this.createRequest("tools/call", params, options);
    const declaresTasks = !this.#wantsProgress(options) && this.#contexts.levelFor(options) === undefined;
    const work: Work<Result> = (context, token) => this.#runTool(request, options, context, token, declaresTasks);
    return this.run(request.method, options, work, declaresTasks);
  }

  async #runTool(
    request: Request,
    options: CallOptions,
    context: Context,
    token: CancelToken,
    declaresTasks: boolean,
  ): Promise<Result> {
    let declared = context;
    let first: Result;
    try {
      first = await callWithInput(this.#handler, request, context);
    } catch (error) {
      // The server refused the call with this error, so the tool has not been started.
      if (declaresTasks || !isTasksNotDeclared(error)) throw error;
      declared = withTasksExtension(context);
      first = await callWithInput(this.#handler, request, declared);
    }
    if (first.resultType !== "task") return first;
    // The default limit applies to each request. A task takes many short requests, so limit the whole call here.
    const limit = (options.maxTimeoutMs ?? this.#maxTimeoutMs) === undefined ? DEFAULT_TIMEOUTS.totalMs : 0;
    const timer = abortAfter(token, limit, () => timedOut(request.method, limit));
    // Loaded on first use, since most servers have no tasks.
    const { completeTask } = await import("../tasks/completion.ts");
    const task = completeTask(this.#handler, first, request, declared).finally(() => clearTimeout(timer));
    return resultOfTask(await task);
  }

  createRequest(method: string, params: Params, options: CallOptions): Request {
    const { meta } = options;
    if (this.#wantsProgress(options)) return { method, params: withMeta(params, { ...meta, ...PROGRESS_TOKEN }) };
    return { method, params: meta === undefined ? params : withMeta(params, meta) };
  }

  async #send(
    method: string,
    params: Params,
    options: CallOptions,
  ): Promise<{ readonly result: Result; readonly timesSent: number }> {
    let timesSent = 0;
    const counted: Handler = (request, context) => {
      timesSent += 1;
      return this.#handler(request, context);
    };
    const request = this.createRequest(method, params, options);
    const work: Work<Result> = (context) => callWithInput(counted, request, context);
    const result = await this.run(method, options, work, method.startsWith("tasks/"));
    return { result, timesSent };
  }

  /** Runs a call until it is done, or until its signal, its timeout or the connection ends it. */
  async run<T>(what: string, options: CallOptions, work: Work<T>, declaresTasks = false): Promise<T> {
    checkOptions(what, options, OPTION_NAMES);
    const { signal, timeoutMs } = options;
    if (signal?.aborted === true) throw cancelled(what, signal.reason, false);
    this.#contexts.throwIfEnded();
    const token = new CancelToken();
    const forget = signal && onAbort(signal, () => token.abort(signal.reason));
    const maxMs = options.maxTimeoutMs ?? this.#maxTimeoutMs;
    const timer = maxMs === undefined ? undefined : abortAfter(token, maxMs, () => timedOut(what, maxMs));
    // If the whole call has a limit, its single requests need none.
    const totalMs = maxMs === undefined ? undefined : 0;
    const timeouts = timeoutMs === undefined && totalMs === undefined ? undefined : { idleMs: timeoutMs, totalMs };
    this.#active.add(token);
    try {
      return await work(this.#contexts.forCall(token, options, declaresTasks, timeouts && defined(timeouts)), token);
    } catch (error) {
      if (!token.aborted) throw error;
      const { reason } = token;
      throw reason instanceof ConnectionError ? reason : cancelled(what, reason);
    } finally {
      if (timer !== undefined) clearTimeout(timer);
      forget?.();
      this.#active.delete(token);
    }
  }

  #wantsProgress({ onProgress }: CallOptions): boolean {
    return onProgress !== undefined || this.#contexts.wantsProgress;
  }
}

export function withMeta(params: Params, meta: Meta | undefined): Params {
  return meta === undefined ? params : { ...params, _meta: { ...params._meta, ...meta } };
}

/** Without a limit (undefined or 0), there is no timer. */
export function abortAfter(
  token: CancelToken,
  ms: number | undefined,
  reason: () => ConnectionError,
): NodeJS.Timeout | undefined {
  return ms ? setTimeout(() => token.abort(reason()), Math.min(ms, MAX_DELAY_MS)) : undefined;
}

export function cancelled(method: string, reason: unknown, mayHaveRun: boolean = true): ConnectionError {
  return new ConnectionError("cancelled", `${method} was cancelled by its caller: ${errorMessage(reason)}`, {
    cause: reason,
    mayHaveRun,
  });
}

function timedOut(method: string, maxMs: number): ConnectionError {
  const hint = { text: "raise `maxTimeoutMs`", flags: "" };
  return new ConnectionError("timeout", `${method} did not finish within ${maxMs} ms`, { hint });
}

/** Returns the result of a finished task. Throws the error that ended it, with the status message of the task. */
export async function resultOfTask(state: Json): Promise<Result> {
  const { taskOutcome } = await import("../tasks/completion.ts");
  const { status, taskId, statusMessage } = state;
  const message = typeof statusMessage === "string" ? statusMessage : "";
  if (status === "cancelled") {
    const reason = message === "" ? "" : `: ${message}`;
    throw new ConnectionError("cancelled", `The task ${String(taskId)} was cancelled${reason}`);
  }
  try {
    return taskOutcome(state);
  } catch (error) {
    if (!(error instanceof McpError) || error.message.includes(message)) throw error;
    throw new McpError(error.code, `${error.message} (${message})`, error.data, { cause: error });
  }
}
