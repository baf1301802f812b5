// Requests that were received and are not answered yet: the table that cancellation and shutdown use, the limit on how
// many run at once, and the function that runs a request and turns its outcome into a response.

import { MAX_DELAY_MS, Semaphore } from "../../core/async.ts";
import { ChurningMap } from "../../core/collections.ts";
import { CancelToken } from "../../core/cancel.ts";
import { idKey, type Id, type ErrorBody, type RequestMessage, type ResponseMessage } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Envelope } from "../../protocol/params.ts";
import type { Inbound } from "../../transport/transport.ts";
import type { Notification, Result } from "../../core/handler.ts";

/** A request in flight. Aborting `cancelToken` stops the work; cancelling also suppresses the response. */
export interface InFlightCall {
  readonly key: string;
  /** Position in the order of arrival. */
  readonly sequence: number;
  /** Long-lived, such as a subscription: a graceful shutdown does not wait for it. */
  readonly background: boolean;
  /** False for the handshake. */
  readonly cancellable: boolean;
  readonly cancelToken: CancelToken;
  cancelled: boolean;
  /** The response is being sent, so nothing more may be sent for this call. */
  done: boolean;
  /** The `_meta` of a stateless request, if it was read before. */
  readonly envelope?: Envelope | undefined;
  /** The message, whose reply is dropped on cancellation. */
  inbound?: Inbound | undefined;
  /** Where the call has a slot. */
  limiter?: CallLimiter | undefined;
  /** Called on cancellation, whether or not the handler observes its signal. */
  onCancel?: () => void;
  /** Created with the first request to the client; aborted when the call is answered. */
  clientRequests?: AbortController;
}

function newCall(
  key: string,
  sequence: number,
  background: boolean,
  cancellable: boolean,
  envelope?: Envelope,
): InFlightCall {
  return {
    key,
    sequence,
    background,
    cancellable,
    cancelToken: new CancelToken(),
    cancelled: false,
    done: false,
    envelope,
    inbound: undefined,
    limiter: undefined,
  };
}

/** The calls in flight on one connection, by id. An id cannot be used again while its call is in flight. */
export class InFlightCalls {
  readonly #calls = new ChurningMap<string, InFlightCall>();
  #count = 0;
  #closed: { readonly reason: unknown } | undefined;
  /** Called with each call that ends, and without one if nothing may wait any longer. */
  readonly #watchers = new Set<(ended?: InFlightCall) => void>();

  /** Returns undefined if a request with this id is already in flight. */
  begin(id: Id, background = false, cancellable = true): InFlightCall | undefined {
    const key = idKey(id);
    if (this.#calls.has(key)) return undefined;
    return this.#add(key, background, cancellable);
  }

  /** Work that `cancel` does not reach: without a request id, or the only request of its HTTP request. */
  beginAnonymous(background = false, envelope?: Envelope): InFlightCall {
    return this.#add(`\0${this.#count + 1}`, background, false, envelope);
  }

  #add(key: string, background: boolean, cancellable: boolean, envelope?: Envelope): InFlightCall {
    const call = newCall(key, (this.#count += 1), background, cancellable, envelope);
    if (this.#closed !== undefined) call.cancelToken.abort(this.#closed.reason);
    this.#calls.set(key, call);
    return call;
  }

  /** Removes a call that has been answered, or will get no answer. */
  end(call: InFlightCall): void {
    call.done = true;
    // After a cancellation the client may have used the same id again.
    if (this.#calls.get(call.key) !== call) return;
    this.#calls.delete(call.key);
    if (this.#watchers.size > 0) for (const watcher of [...this.#watchers]) watcher(call);
  }

  cancel(id: Id, reason: unknown): void {
    const call = this.#calls.get(idKey(id));
    if (call === undefined || !call.cancellable) return;
    call.cancelled = true;
    call.cancelToken.abort(reason);
    call.limiter?.cancelled();
    call.inbound?.drop?.();
    call.onCancel?.();
    this.end(call);
  }

  all(): InFlightCall[] {
    return this.#calls.values();
  }

  /** Aborts every call, including those that begin later, and ends a `drained` that waits. */
  abortAll(reason: unknown): void {
    if (this.#closed !== undefined) return;
    this.#closed = { reason };
    for (const call of this.#calls.values()) call.cancelToken.abort(reason);
    for (const watcher of [...this.#watchers]) watcher();
  }

  /**
   * Resolves when all calls except background ones have ended, or after `graceMs`. With `before`, waits only for calls
   * that arrived before it.
   */
  drained(graceMs: number, before?: InFlightCall): Promise<void> {
    const limit = before?.sequence ?? Infinity;
    return this.#until((call) => call.background || call.sequence >= limit, graceMs);
  }

  /** Resolves when every call has ended, background calls included, or after `graceMs`. */
  settled(graceMs: number): Promise<void> {
    return this.#until(() => false, graceMs);
  }

  /** Waits only for calls that are in flight now, not for later ones. */
  async #until(ignored: (call: InFlightCall) => boolean, graceMs: number): Promise<void> {
    const awaited = new Set(this.#calls.values().filter((call) => !ignored(call)));
    if (awaited.size === 0) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(watch);
        resolve();
      };
      const watch = (ended?: InFlightCall): void => {
        if (ended === undefined || (awaited.delete(ended) && awaited.size === 0)) finish();
      };
      const timer = setTimeout(finish, Math.min(graceMs, MAX_DELAY_MS));
      this.#watchers.add(watch);
    });
  }
}

/**
 * Limits how many calls run at once; more wait in the order of arrival. A slot is held until the response is written,
 * so a client that does not read its responses slows down only itself. A cancelled call frees its slot at once, since
 * the handler may ignore its signal. At most `max` cancelled calls may keep running without a slot, so at most
 * 2 * `max` handlers run at a time.
 */
export class CallLimiter extends Semaphore {
  readonly #max: number;
  /** Cancelled calls whose handler still runs. */
  #cancelled = 0;

  constructor(max: number) {
    if (!(max > 0)) throw new TypeError("maxInFlight must be a number above 0");
    super(max);
    this.#max = max;
  }

  /** Call this when a call that has a slot is cancelled. */
  cancelled(): void {
    this.#cancelled += 1;
    if (this.#cancelled <= this.#max) this.release();
  }

  /** Call this when the handler of a cancelled call has returned. */
  cancelledEnded(): void {
    if (this.#cancelled > this.#max) this.release();
    this.#cancelled -= 1;
  }
}

/** Answers the requests of clients of one style: session or stateless. */
export interface Front {
  answer(message: RequestMessage, inbound: Inbound, call: InFlightCall): Promise<{ readonly [key: string]: unknown }>;
  errorBody(error: unknown, message: RequestMessage): ErrorBody;
}

/** The error of a request to the client if the call that makes the request has already been answered. */
export const ALREADY_ANSWERED = "The call has been answered; it can no longer send requests to the client";

/** How long aborted calls get to answer before the connection is closed. */
export const SETTLE_MS = 250;

/** Throws if what a handler returned is not a result. Handlers are user code. */
export function checkResult(method: string, result: unknown): asserts result is Result {
  if (!isObject(result)) throw McpError.of("internal_error", `The handler's result of ${method} is not an object`);
}

/** Runs a request and turns its result or error into a JSON-RPC response. */
export async function runRequest(
  front: Front,
  message: RequestMessage,
  inbound: Inbound,
  call: InFlightCall,
): Promise<ResponseMessage> {
  const { id } = message;
  try {
    return { jsonrpc: "2.0", id, result: await front.answer(message, inbound, call) };
  } catch (error) {
    return { jsonrpc: "2.0", id, error: front.errorBody(error, message) };
  } finally {
    call.done = true;
    call.cancelToken.detach();
    call.clientRequests?.abort(new Error(ALREADY_ANSWERED));
  }
}

/**
 * Returns a function that adds the client's token to progress notifications. The function returns undefined for
 * notifications to drop: if the client sent no token, or if the value does not increase. The latter happens if the call
 * is run again with the client's input.
 */
export function progressFilter(token: unknown): (notification: Notification) => Notification | undefined {
  let reached = -Infinity;
  return ({ method, params }) => {
    const progress = params?.["progress"] as number;
    if (token === undefined || !(progress > reached)) return undefined;
    reached = progress;
    return { method, params: { ...params, progressToken: token } };
  };
}
