// Requests of ours that are not answered yet: their ids, promises, timeouts and cancellation. One timer serves all of a
// connection, so a request costs a map entry and no timer of its own. Deadlines use the monotonic clock. They move when
// progress comes in, but never past the total timeout.

import { deferred, onAbort, ref, unref } from "../../core/async.ts";
import { CancelToken, isCancelled, onCancel } from "../../core/cancel.ts";
import { ChurningMap } from "../../core/collections.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Result } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { plainId, type ResponseMessage } from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";

export interface Timeouts {
  /** A request fails after this long without an answer or progress. 0: never. */
  readonly idleMs: number;
  /** A request fails after this long, whatever progress it reports. 0: no limit. */
  readonly totalMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { idleMs: 60_000, totalMs: 3_600_000 };
const NO_TIMEOUTS: Timeouts = { idleMs: 0, totalMs: 0 };

export class PendingCalls {
  /** Begins error messages, such as "The server". */
  readonly peerName: string;
  /** Aborted when the connection is closed. */
  readonly closed: CancelToken = new CancelToken();
  readonly #timeouts: Timeouts;
  /** By our ids, which are numbers; what the other side sends may be any id. */
  readonly #calls = new ChurningMap<unknown, PendingCall>();
  #nextId = 1;
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Infinity;
  /** How many calls have a deadline. */
  #timed = 0;

  constructor(peerName: string, timeouts?: Partial<Timeouts>) {
    this.peerName = peerName;
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
  }

  /** Begins a call that is cancelled with its context. A subscription has no timeouts. */
  open(method: string, context: Context): PendingCall {
    const { closed } = this;
    if (closed.aborted) throw unsent(closed.reason as ConnectionError);
    if (isCancelled(context)) throw cancelled(context);
    const timeouts = context.timeouts === undefined ? this.#timeouts : { ...this.#timeouts, ...context.timeouts };
    const call = this.openWith(method, method === "subscriptions/listen" ? NO_TIMEOUTS : timeouts, context);
    call.forget = onCancel(context, () => call.stop(cancelled(context), context.signal.reason));
    return call;
  }

  /** Begins a call that is not cancelled by anything here. */
  openWith(method: string, timeouts: Timeouts, context?: Context): PendingCall {
    const id = this.#nextId++;
    const now = performance.now();
    const call = new PendingCall(this, id, method, context as Context, timeouts, now);
    this.#calls.set(id, call);
    if (call.deadline !== Infinity) {
      this.#timed += 1;
      if (call.deadline < this.#armedFor) this.schedule(call, now);
      else if (this.#timed === 1) ref(this.#timer);
    }
    return call;
  }

  get(id: unknown): PendingCall | undefined {
    return this.#calls.get(id);
  }

  has(id: number): boolean {
    return this.#calls.has(id);
  }

  /** The call that the response is for; undefined if it is late or unknown, or its id has another type than ours. */
  find({ id }: ResponseMessage): PendingCall | undefined {
    // The other side may write our 1 as 1.0.
    return this.#calls.get(plainId(id));
  }

  values(): PendingCall[] {
    return this.#calls.values();
  }

  /** Called by a call that is over. */
  remove(call: PendingCall): void {
    this.#calls.delete(call.id);
    if (call.finalDeadline === Infinity && call.idleMs === 0) return;
    // The timer is kept for the next request, which most likely comes before it fires. Meanwhile it is unref'ed.
    this.#timed -= 1;
    if (this.#timed === 0) unref(this.#timer);
  }

  /** Called by a call whose deadline has moved. */
  schedule({ deadline }: PendingCall, now: number): void {
    if (deadline < this.#armedFor) this.#arm(deadline, now);
  }

  /** Stops all calls. Later ones fail at once. */
  close(reason: Error): void {
    this.closed.abort(reason);
    for (const call of this.#calls.values()) call.stop(reason);
    this.#disarm();
  }

  /** Resolves when the signal is aborted; rejects if the connection closes first. */
  async ended(signal: AbortSignal): Promise<void> {
    const { closed } = this;
    const either = deferred();
    const forget = [onAbort(signal, either.resolve), closed.watch(() => either.resolve())];
    if (!closed.aborted && !signal.aborted) await either.promise;
    for (const unwatch of forget) unwatch();
    if (closed.aborted) throw closed.reason;
  }

  #arm(deadline: number, now: number): void {
    clearTimeout(this.#timer);
    this.#armedFor = deadline;
    // setTimeout fires at once for delays beyond 2^31 - 1 ms.
    this.#timer = setTimeout(() => this.#sweep(), Math.min(Math.max(deadline - now, 1), 0x7fffffff));
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#armedFor = Infinity;
  }

  #sweep(): void {
    const now = performance.now();
    let earliest = Infinity;
    for (const call of this.#calls.values()) {
      if (call.deadline <= now) call.stop(timeoutError(this.peerName, call));
      else if (call.deadline < earliest) earliest = call.deadline;
    }
    if (earliest === Infinity) this.#disarm();
    else this.#arm(earliest, now);
  }
}

/** A request of ours that is not answered yet. */
export class PendingCall {
  readonly id: number;
  readonly method: string;
  /** Of the caller. Missing if the call was begun without one. */
  readonly context: Context;
  readonly answer: Promise<Result>;
  readonly idleMs: number;
  readonly finalDeadline: number;
  deadline: number;
  isOver: boolean;
  /** Called if the call is cancelled or takes too long, with the reason: tells the other side that we gave up. */
  onStop: ((reason: unknown) => void) | undefined;
  forget: (() => void) | undefined;
  readonly #calls: PendingCalls;
  #resolve!: (result: Result) => void;
  #reject!: (error: unknown) => void;
  /** For how many things other than the server it waits. */
  #waits: number;

  constructor(calls: PendingCalls, id: number, method: string, context: Context, timeouts: Timeouts, now: number) {
    const { idleMs, totalMs } = timeouts;
    this.id = id;
    this.method = method;
    this.context = context;
    this.answer = new Promise<Result>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.idleMs = idleMs;
    this.finalDeadline = totalMs > 0 ? now + totalMs : Infinity;
    this.deadline = idleMs > 0 ? Math.min(now + idleMs, this.finalDeadline) : this.finalDeadline;
    this.isOver = false;
    this.onStop = undefined;
    this.forget = undefined;
    this.#calls = calls;
    this.#waits = 0;
  }

  /** For a call that needs no id to find its answer: settles as `work` does. */
  answeredBy(work: Promise<ResponseMessage>): Promise<Result> {
    work.then(
      (response) => this.settle(response),
      (error: unknown) => this.fail(error),
    );
    return this.answer;
  }

  settle(response: ResponseMessage): void {
    if (!this.#end()) return;
    // A transport of a user may pass on what it has not checked.
    const error = "error" in response ? response.error : undefined;
    const result = "result" in response ? response.result : undefined;
    if (isObject(error)) this.#reject(McpError.fromBody(error));
    else if (isObject(result) && error === undefined) this.#resolve(result);
    else this.#reject(new ConnectionError("protocol", `${this.#calls.peerName}'s answer is not a valid message`));
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  stop(error: unknown, reason: unknown = error): void {
    if (!this.#end()) return;
    this.#reject(error);
    this.onStop?.(reason);
  }

  /** Progress came in: restarts the idle timeout. */
  touch(): void {
    if (this.isOver || this.idleMs === 0 || this.#waits > 0) return;
    const now = performance.now();
    this.deadline = Math.min(now + this.idleMs, this.finalDeadline);
    this.#calls.schedule(this, now);
  }

  /** The idle timeout is suspended while the call waits for something other than the server, such as a sign-in. */
  onWait(isWaiting: boolean): void {
    this.#waits += isWaiting ? 1 : -1;
    if (isWaiting) this.deadline = this.finalDeadline;
    else this.touch();
  }

  /** Returns false if the call is over already. */
  #end(): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.#calls.remove(this);
    this.forget?.();
    return true;
  }
}

function timeoutError(peerName: string, { method, idleMs, deadline, finalDeadline }: PendingCall): ConnectionError {
  if (deadline >= finalDeadline) {
    const message = `${peerName} did not finish ${method} within the total timeout`;
    return new ConnectionError("timeout", message, { hint: { text: "raise `maxTimeoutMs`", flags: "" } });
  }
  const message = `${peerName} did not answer ${method} in ${idleMs} ms and reported no progress`;
  const hint = { text: "raise `timeoutMs`", flags: "use --timeout to allow more" };
  return new ConnectionError("timeout", message, { hint });
}

/** A copy of the failure that closed the connection, for a later request that is not sent. */
function unsent({ kind, problem, subject, hint, diagnostics, cause }: ConnectionError): ConnectionError {
  return new ConnectionError(kind, problem, { cause, mayHaveRun: false, subject, hint, diagnostics });
}

function cancelled({ signal }: Context): ConnectionError {
  return new ConnectionError("cancelled", `Cancelled: ${errorMessage(signal.reason)}`, { cause: signal.reason });
}
