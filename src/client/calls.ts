// One call from its beginning to its only outcome: the cache is looked into, the request goes to the end, what
// the end asks in between is answered round by round, and whatever ends the call first (its result, an abort,
// a time limit, the end of the connection) frees all that it held. The limit on the whole call counts all of
// its rounds; the limit on silence belongs to whoever carries the request.

import type { Context, LogLevel } from "../core/handler.ts";
import { onAbort } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { errorMessage } from "../core/text.ts";
import type { Handler, Meta, Params, Request, Result } from "../core/handler.ts";
import { drive } from "../dialogue/calls/input-required.ts";
import { DEFAULT_TIMEOUTS } from "../dialogue/calls/pending.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import { McpError } from "../protocol/errors.ts";
import { declaringTasks, saysTasksUndeclared } from "../protocol/tasks.ts";
import type { Contexts, Progress } from "./contexts.ts";

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds of silence after which the call is given up; progress starts them anew. 0: never. */
  readonly timeout?: number;
  /** Milliseconds that the whole call may take, whatever progress it reports. 0: no limit. */
  readonly maxTimeout?: number;
  /** Asks the end to report progress. */
  readonly onProgress?: (progress: Progress) => void;
  /** The least urgent log message that is wanted with this call. */
  readonly logLevel?: LogLevel;
  readonly onLog?: (message: LogMessageParams) => void;
  /** Travels in the request's `_meta`. */
  readonly meta?: Meta;
}

/** Any token will do: whoever carries the request makes its own. */
const TOKEN = { progressToken: "progress" };
/** setTimeout fires at once for longer delays. */
export const LONGEST_MS: number = 0x7fffffff;

export class Calls {
  readonly #handler: Handler;
  readonly #contexts: Contexts;
  readonly #maxTimeout: number | undefined;
  readonly #live = new Set<AbortController>();

  constructor(handler: Handler, contexts: Contexts, maxTimeout: number | undefined) {
    this.#handler = handler;
    this.#contexts = contexts;
    this.#maxTimeout = maxTimeout;
  }

  /** A request that may be answered from the cache. */
  async cached(method: string, params: Params, options: CallOptions = {}): Promise<Result> {
    const request: Request = { method, params: withMeta(params, options.meta) };
    const { cache, identity } = this.#contexts;
    const who = cache?.slot(request) === undefined ? undefined : await identity?.();
    const slot = cache?.slot(request, who);
    if (slot === undefined) return this.#run(request, options).then(({ result }) => result);
    if (options.signal?.aborted === true) throw cancelled(method, options.signal.reason, false);
    if (slot.kept !== undefined) return slot.kept;
    const { result, rounds } = await this.#run(request, options).catch((error: unknown) => {
      // A cursor that the end no longer knows came from a page that we kept too long.
      if (params["cursor"] !== undefined && error instanceof McpError) this.#contexts.cache?.forget(method);
      throw error;
    });
    // What came of answers is for whoever gave them; and who asks may have become another meanwhile.
    if (rounds === 1 && (await identity?.()) === who) slot.keep(result);
    return result;
  }

  /** A request that goes to the end in any case. */
  async fresh(method: string, params: Params, options: CallOptions = {}): Promise<Result> {
    return (await this.#run({ method, params: withMeta(params, options.meta) }, options)).result;
  }

  /** Ends all calls, also those that wait for an answer of ours. */
  endAll(reason: ConnectionError): void {
    for (const stop of this.#live) stop.abort(reason);
  }

  /**
   * A call of a tool. Where the end makes a task of it, it is driven to its end, and cancelled with the call. A task
   * tells neither progress nor logs: who wants them gets a call without one, where the end can give that.
   */
  async tool(params: Params, options: CallOptions = {}): Promise<Result> {
    const request = this.asking("tools/call", params, options);
    return this.work(request.method, options, async (context, stop) => {
      const declared = declaringTasks(context);
      const isPlain = this.#wantsProgress(options) || context.logLevel !== undefined;
      const first = await drive(this.#handler, request, isPlain ? context : declared).catch((error: unknown) => {
        // The end has surely not begun with it.
        if (isPlain && saysTasksUndeclared(error)) return drive(this.#handler, request, declared);
        throw error;
      });
      if (first.resultType !== "task") return first;
      const { toEnd } = await import("./tasks.ts");
      // No single request takes that long any more, but the call as a whole still may not.
      const limit = (options.maxTimeout ?? this.#maxTimeout) === undefined ? DEFAULT_TIMEOUTS.totalMs : 0;
      const timer = limit > 0 ? setTimeout(() => stop.abort(tooLong(request.method, limit)), limit) : undefined;
      return toEnd(this.#handler, first, request, declared).finally(() => clearTimeout(timer));
    });
  }

  /** A request with all that its options put into it. */
  asking(method: string, params: Params, options: CallOptions): Request {
    return this.#withToken({ method, params: withMeta(params, options.meta) }, options);
  }

  async #run({ method, params }: Request, options: CallOptions): Promise<{ result: Result; rounds: number }> {
    let rounds = 0;
    const counted: Handler = (request, context) => {
      rounds += 1;
      return this.#handler(request, context);
    };
    return this.work(method, options, async (context) => {
      const asked = method.startsWith("tasks/") ? declaringTasks(context) : context;
      const result = await drive(counted, this.#withToken({ method, params }, options), asked);
      return { result, rounds };
    });
  }

  /** What belongs to one call: it is over as soon as its caller, its time or the connection says so. */
  async work<T>(
    what: string,
    options: CallOptions,
    run: (context: Context, stop: AbortController) => Promise<T>,
  ): Promise<T> {
    const { signal } = options;
    if (signal?.aborted === true) throw cancelled(what, signal.reason, false);
    const stop = new AbortController();
    const forget = onAbort(signal, () => stop.abort(signal?.reason));
    const cap = options.maxTimeout ?? this.#maxTimeout;
    const timer =
      cap === undefined || cap === 0
        ? undefined
        : setTimeout(() => stop.abort(tooLong(what, cap)), Math.min(cap, LONGEST_MS));
    this.#live.add(stop);
    try {
      return await run(this.#contexts.call(stop.signal, options, timeoutsOf(options.timeout, cap)), stop);
    } catch (error) {
      if (!stop.signal.aborted) throw error;
      const reason: unknown = stop.signal.reason;
      throw reason instanceof ConnectionError ? reason : cancelled(what, reason);
    } finally {
      clearTimeout(timer);
      forget();
      this.#live.delete(stop);
    }
  }

  #wantsProgress({ onProgress }: CallOptions): boolean {
    return onProgress !== undefined || this.#contexts.wantsProgress;
  }

  #withToken(request: Request, options: CallOptions): Request {
    return this.#wantsProgress(options) ? { ...request, params: withMeta(request.params, TOKEN) } : request;
  }
}

export function withMeta(params: Params, meta: Meta | undefined): Params {
  return meta === undefined ? params : { ...params, _meta: { ...params._meta, ...meta } };
}

/** With a limit of the whole call, no round needs one of its own. */
function timeoutsOf(idleMs: number | undefined, cap: number | undefined): Context["timeouts"] {
  if (idleMs === undefined && cap === undefined) return undefined;
  return { ...(idleMs === undefined ? undefined : { idleMs }), ...(cap === undefined ? undefined : { totalMs: 0 }) };
}

export function cancelled(method: string, reason: unknown, mayHaveRun: boolean = true): ConnectionError {
  return new ConnectionError("cancelled", `${method} was cancelled by its caller: ${errorMessage(reason)}`, {
    cause: reason,
    mayHaveRun,
  });
}

function tooLong(method: string, cap: number): ConnectionError {
  return new ConnectionError(
    "timeout",
    `${method} was not finished within ${cap} ms; a longer \`maxTimeout\` would let it go on`,
  );
}
