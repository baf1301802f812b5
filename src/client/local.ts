// Connects a client to a handler in this process: no transport, and only the newest revision. LocalConnection does
// the work of both sides of a connection: it checks params, drops notifications that were not asked for, applies
// timeouts, and ends an aborted call on both sides at once.

import { toMcpError } from "../protocol/errors.ts";
import { onAbort } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import {
  type Context,
  type Handler,
  LOG_LEVELS,
  type Notification,
  type Request,
  type Result,
} from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { DEFAULT_TIMEOUTS, PendingCalls, type PendingCall, type Timeouts } from "../dialogue/calls/pending.ts";
import type { ServerConnection } from "../dialogue/connect.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { checkParams } from "../protocol/params.ts";
import { isVendorMethod, NEWEST } from "../protocol/revisions/index.ts";
import { cancelled } from "./calls.ts";

export interface LocalOptions {
  readonly defaultContext: Context;
  readonly timeouts?: Partial<Timeouts>;
}

/** Closing the connection does not close the handler. */
export async function openHandler(
  target: Handler,
  { defaultContext, timeouts }: LocalOptions,
): Promise<ServerConnection> {
  const connection = new LocalConnection(target, { ...DEFAULT_TIMEOUTS, ...timeouts });
  const handler: Handler = (request, context) => connection.handle(request, context);
  const discovered = await handler({ method: "server/discover", params: {} }, defaultContext);
  return {
    handler,
    revision: NEWEST,
    discovered,
    attributesRequests: true,
    ended: (signal) => connection.ended(signal),
    close: async () => connection.close(),
  };
}

class LocalConnection {
  readonly #target: Handler;
  readonly #timeouts: Timeouts;
  readonly #pending = new PendingCalls("The handler");
  readonly #active = new Set<AbortController>();
  readonly #closed = new AbortController();

  constructor(target: Handler, timeouts: Timeouts) {
    this.#target = target;
    this.#timeouts = timeouts;
  }

  async handle(request: Request, context: Context): Promise<Result> {
    const { method, params } = request;
    const { signal } = context;
    if (this.#closed.signal.aborted) throw this.#closed.signal.reason as ConnectionError;
    if (signal.aborted) throw cancelled(method, signal.reason, false);
    checkParams(method, params);
    const abort = new AbortController();
    const timeouts =
      method === "subscriptions/listen" ? { idleMs: 0, totalMs: 0 } : { ...this.#timeouts, ...context.timeouts };
    const call = this.#pending.open(method, timeouts, undefined, (error) => abort.abort(error));
    const forget = onAbort(signal, () => {
      this.#pending.fail(call, cancelled(method, signal.reason));
      abort.abort(signal.reason);
    });
    this.#active.add(abort);
    this.#call(request, this.#innerContext(call, request, context, abort.signal)).then(
      (result) => this.#pending.settle(call, { jsonrpc: "2.0", id: call.id, result }),
      (error: unknown) => this.#pending.fail(call, error as Error),
    );
    try {
      return await call.answer;
    } finally {
      forget();
      this.#active.delete(abort);
    }
  }

  async ended(signal: AbortSignal): Promise<void> {
    const closed = this.#closed.signal;
    if (!closed.aborted && !signal.aborted) {
      await new Promise<void>((resolve) => {
        onAbort(closed, resolve);
        onAbort(signal, resolve);
      });
    }
    if (closed.aborted) throw closed.reason as ConnectionError;
  }

  close(): void {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#closed.abort(reason);
    this.#pending.failAll(reason);
    for (const abort of this.#active) abort.abort(reason);
  }

  /** Turns errors into those that a client would get over a connection. */
  async #call(request: Request, context: Context): Promise<Result> {
    let result: unknown;
    try {
      result = await this.#target(request, context);
    } catch (error) {
      throw error instanceof ConnectionError ? error : toMcpError(error);
    }
    if (!isObject(result)) {
      throw new ConnectionError("protocol", `The handler's answer to ${request.method} is not an object`);
    }
    return result;
  }

  #innerContext(call: PendingCall, { params }: Request, context: Context, signal: AbortSignal): Context {
    const progressToken = params._meta?.["progressToken"];
    const minLevel = context.logLevel === undefined ? Infinity : LOG_LEVELS.indexOf(context.logLevel);
    const notify = (notification: Notification): void => {
      if (!this.#pending.calls.has(call.id)) return;
      const { method, params } = notification;
      if (method === "notifications/progress") {
        if (progressToken === undefined) return;
        this.#pending.touch(call);
        context.notify({ method, params: { ...params, progressToken } });
      } else if (method !== "notifications/message" || LOG_LEVELS.indexOf(params?.["level"] as never) >= minLevel) {
        context.notify(notification);
      }
    };
    const ask: Context["ask"] = async (request, options) => {
      if (!isVendorMethod(request.method)) checkClientRequest(request, context.caller.capabilities);
      this.#pending.hold(call);
      try {
        return await context.ask(request, options);
      } finally {
        this.#pending.release(call);
      }
    };
    const session = { ...context.session, ended: this.#closed.signal };
    return { ...context, signal, notify, ask, session };
  }
}
