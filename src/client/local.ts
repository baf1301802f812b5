// A handler in this process as an end: no wire, no ids, no revision but the newest. What a front and a back do
// for a call over a wire is done here in one step: params are checked, what the caller did not ask for is
// dropped, time limits run, and an aborted or late call is over for both sides at once.

import { onAbort } from "../core/async.ts";
import type { Context } from "../core/handler.ts";
import { LOG_LEVELS } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Notification, Request, Result } from "../core/handler.ts";
import { checkAsk } from "../protocol/asks.ts";
import { toMcpError } from "../dialogue/calls/errors.ts";
import type { Opened } from "../dialogue/connect.ts";
import { DEFAULT_TIMEOUTS, Pending, type Timeouts } from "../dialogue/calls/pending.ts";
import { checkParams } from "../protocol/check.ts";
import { isObject } from "../core/objects.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { cancelled } from "./calls.ts";

export interface LocalOptions {
  readonly home: Context;
  readonly timeouts?: Partial<Timeouts>;
}

/** The handler itself stays open when the connection to it is closed: it is not ours. */
export async function openHandler(target: Handler, { home, timeouts }: LocalOptions): Promise<Opened> {
  const local = new Local(target, { ...DEFAULT_TIMEOUTS, ...timeouts });
  const handler: Handler = (request, context) => local.handle(request, context);
  const discovered = await handler({ method: "server/discover", params: {} }, home);
  return {
    handler,
    revision: NEWEST,
    discovered,
    saysWhose: true,
    ended: (signal) => local.ended(signal),
    close: async () => local.close(),
  };
}

class Local {
  readonly #target: Handler;
  readonly #timeouts: Timeouts;
  readonly #pending = new Pending("The handler");
  readonly #stops = new Set<AbortController>();
  readonly #over = new AbortController();

  constructor(target: Handler, timeouts: Timeouts) {
    this.#target = target;
    this.#timeouts = timeouts;
  }

  async handle(request: Request, context: Context): Promise<Result> {
    const { method, params } = request;
    const { signal } = context;
    if (this.#over.signal.aborted) throw this.#over.signal.reason as ConnectionError;
    if (signal.aborted) throw cancelled(method, signal.reason, false);
    checkParams(method, params);
    const stop = new AbortController();
    const timeouts =
      method === "subscriptions/listen" ? { idleMs: 0, totalMs: 0 } : { ...this.#timeouts, ...context.timeouts };
    const { id, answer } = this.#pending.open(method, timeouts, (error) => stop.abort(error));
    const abort = (): void => {
      this.#pending.fail(id, cancelled(method, signal.reason));
      stop.abort(signal.reason);
    };
    const forget = onAbort(signal, abort);
    this.#stops.add(stop);
    this.#call(request, this.#inner(id, request, context, stop.signal)).then(
      (result) => this.#pending.settle({ jsonrpc: "2.0", id, result }),
      (error: unknown) => this.#pending.fail(id, error as Error),
    );
    try {
      return await answer;
    } finally {
      forget();
      this.#stops.delete(stop);
    }
  }

  async ended(signal: AbortSignal): Promise<void> {
    const over = this.#over.signal;
    if (!over.aborted && !signal.aborted) {
      await new Promise<void>((resolve) => {
        onAbort(over, resolve);
        onAbort(signal, resolve);
      });
    }
    if (over.aborted) throw over.reason as ConnectionError;
  }

  close(): void {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#over.abort(reason);
    this.#pending.failAll(reason);
    for (const stop of this.#stops) stop.abort(reason);
  }

  /** What a handler throws by accident looks as it would at the far side of a wire. */
  async #call(request: Request, context: Context): Promise<Result> {
    let result: unknown;
    try {
      result = await this.#target(request, context);
    } catch (error) {
      throw error instanceof ConnectionError ? error : toMcpError(error);
    }
    if (!isObject(result))
      throw new ConnectionError("protocol", `The handler answered ${request.method} with something that is no result`);
    return result;
  }

  #inner(id: number, { params }: Request, context: Context, signal: AbortSignal): Context {
    const progress = params._meta?.["progressToken"];
    const least = context.logLevel === undefined ? Infinity : LOG_LEVELS.indexOf(context.logLevel);
    const notify = (notification: Notification): void => {
      if (!this.#pending.has(id)) return;
      const { method, params } = notification;
      if (method === "notifications/progress") {
        if (progress === undefined) return;
        this.#pending.touch(id);
        context.notify({ method, params: { ...params, progressToken: progress } });
      } else if (method !== "notifications/message" || LOG_LEVELS.indexOf(params?.["level"] as never) >= least) {
        context.notify(notification);
      }
    };
    const ask: Context["ask"] = async (question, options) => {
      checkAsk(question, context.caller.capabilities);
      this.#pending.hold(id);
      try {
        return await context.ask(question, options);
      } finally {
        this.#pending.release(id);
      }
    };
    return { ...context, signal, notify, ask };
  }
}
