// Calls that need no id to find their answer, since a function returns it: an HTTP request of the stateless style, or a
// handler in this process. Each call has timeouts, can be cancelled, and fails when the connection is closed.

import { deferred, MAX_DELAY_MS, onAbort } from "../../core/async.ts";
import { CancelToken, isCancelled, onCancel } from "../../core/cancel.ts";
import { ChurningSet } from "../../core/collections.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context } from "../../core/handler.ts";
import { errorMessage } from "../../core/values.ts";
import type { NotificationMessage, RequestMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import { DEFAULT_TIMEOUTS, timeoutError, type Timeouts, timeoutsFor } from "./timeouts.ts";

/** A transport whose requests have responses of their own. */
export interface UnaryTransport {
  /** Resolves with the response. Never throws. Ends the request when `call.stop` is aborted. */
  unary(message: RequestMessage, call: UnaryCall, receiver: NotificationReceiver): Promise<ResponseMessage>;
  /** Resolves when the server has taken the message. */
  notify(message: NotificationMessage, signal: AbortSignal): Promise<void>;
}

/** Receives the notifications that come before a response. */
export interface NotificationReceiver {
  /** Returns the response if the notification is the last of its call. */
  receive(message: NotificationMessage, call: UnaryCall): ResponseMessage | undefined;
}

/** The calls of one connection. */
export class UnaryCalls {
  /** Begins error messages, such as "The server". */
  readonly #peerName: string;
  readonly #timeouts: Timeouts;
  readonly #open = new ChurningSet<UnaryCall>();
  readonly #closed = new AbortController();
  #lastId = 0;

  constructor(peerName: string, timeouts: Partial<Timeouts> | undefined) {
    this.#peerName = peerName;
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
  }

  /** Aborted when the connection is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Begins a call. Its `answer` must follow at once. */
  open(method: string, context: Context): UnaryCall {
    const { closed } = this;
    if (closed.aborted) throw (closed.reason as ConnectionError).with({ mayHaveRun: false });
    if (isCancelled(context)) throw cancelled(context, false);
    const timeouts = timeoutsFor(method, context, this.#timeouts);
    return new UnaryCall(this.#open, (this.#lastId += 1), this.#peerName, method, context, timeouts);
  }

  /** Rejects when the connection is closed; resolves when `signal` is aborted. */
  async ended(signal: AbortSignal): Promise<void> {
    const { closed } = this;
    const ended = deferred();
    const forget = [onAbort(closed, ended.resolve), onAbort(signal, ended.resolve)];
    if (!closed.aborted && !signal.aborted) await ended.promise;
    for (const one of forget) one();
    if (closed.aborted) throw closed.reason as ConnectionError;
  }

  close(): void {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#closed.abort(reason);
    for (const call of this.#open.values()) call.fail(reason);
  }
}

export class UnaryCall {
  readonly id: number;
  readonly method: string;
  readonly context: Context;
  /** Aborted when the call has failed while the work for it goes on. */
  readonly stop: CancelToken;
  isOver: boolean;
  readonly #open: ChurningSet<UnaryCall>;
  readonly #peerName: string;
  readonly #idleMs: number;
  readonly #finalDeadline: number;
  readonly #forget: () => void;
  #reject: ((error: Error) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #deadline: number;
  #holds: number;

  constructor(
    open: ChurningSet<UnaryCall>,
    id: number,
    peerName: string,
    method: string,
    context: Context,
    { idleMs, totalMs }: Timeouts,
  ) {
    this.id = id;
    this.method = method;
    this.context = context;
    this.stop = new CancelToken();
    this.isOver = false;
    this.#open = open;
    this.#peerName = peerName;
    this.#idleMs = idleMs;
    const now = performance.now();
    this.#finalDeadline = totalMs > 0 ? now + totalMs : Infinity;
    this.#deadline = idleMs > 0 ? Math.min(now + idleMs, this.#finalDeadline) : this.#finalDeadline;
    this.#holds = 0;
    this.#arm(now);
    this.#forget = onCancel(context, () => this.fail(cancelled(context, true), context.signal.reason));
    open.add(this);
  }

  /** Headers of the HTTP request. They may be secret. */
  get headers(): Context["headers"] {
    return this.context.headers;
  }

  /** Settles as `work` does, or fails at once when the call is stopped, even if the work goes on. */
  async answer<T>(work: Promise<T>): Promise<T> {
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#reject = reject;
        work.then(resolve, reject);
      });
    } finally {
      this.isOver = true;
      clearTimeout(this.#timer);
      this.#forget();
      this.#open.delete(this);
    }
  }

  /** Rejects the answer and stops the work. The work learns of `reason`. */
  fail(error: ConnectionError, reason: unknown = error): void {
    if (this.isOver) return;
    this.isOver = true;
    this.#reject?.(error);
    this.stop.abort(reason);
  }

  /** Progress came in: the idle timeout starts again. */
  touch(): void {
    if (this.isOver || this.#idleMs === 0 || this.#holds > 0) return;
    const now = performance.now();
    const before = this.#deadline;
    this.#deadline = Math.min(now + this.#idleMs, this.#finalDeadline);
    if (this.#deadline < before) this.#arm(now);
  }

  /** The idle timeout is suspended while the call waits for something other than the server, such as a sign-in. */
  onWait(isWaiting: boolean): void {
    this.#holds += isWaiting ? 1 : -1;
    if (isWaiting) this.#deadline = this.#finalDeadline;
    else this.touch();
  }

  /** Called by the timer. The deadline may have moved further away since it was set. */
  checkDeadline(): void {
    const now = performance.now();
    if (this.#deadline > now) return this.#arm(now);
    const isFinal = this.#deadline >= this.#finalDeadline;
    this.fail(timeoutError(this.#peerName, this.method, this.#idleMs, isFinal));
  }

  #arm(now: number): void {
    clearTimeout(this.#timer);
    if (this.#deadline === Infinity) return;
    const ms = Math.min(Math.max(this.#deadline - now, 1), MAX_DELAY_MS);
    this.#timer = setTimeout(checkDeadline, ms, this);
  }
}

/** One function for the timers of all calls. */
function checkDeadline(call: UnaryCall): void {
  call.checkDeadline();
}

function cancelled({ signal }: Context, mayHaveRun: boolean): ConnectionError {
  const cause: unknown = signal.reason;
  return new ConnectionError("cancelled", `Cancelled: ${errorMessage(cause)}`, { cause, mayHaveRun });
}
