// Requests that were sent and are not answered yet: their ids, promises and timeouts. For duplex connections, on which
// an answer is matched to its request by its id. One timer serves all requests, so that a request costs a map entry and
// no timer of its own. Deadlines use the monotonic clock. They move when progress comes in, but never past the total
// timeout.

import { ref, unref } from "../../core/async.ts";
import { ChurningMap } from "../../core/collections.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import { type ErrorMessage, plainId, type ResponseMessage, type ResultMessage } from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";
import { timeoutError, type Timeouts } from "./timeouts.ts";

type Answer = { readonly [key: string]: unknown };

/** A request of ours that is not answered yet. */
export interface PendingCall<Data = undefined> {
  readonly id: number;
  readonly method: string;
  readonly answer: Promise<Answer>;
  /** The context of the call, for those who need it. */
  readonly context: Data;
  readonly resolve: (result: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly idleMs: number;
  readonly finalDeadline: number;
  readonly onTimeout: ((error: ConnectionError) => void) | undefined;
  deadline: number;
  /** How many calls of `hold` are not released yet. */
  holds: number;
}

export class PendingCalls<Data = undefined> {
  /** By id. */
  readonly calls: Pick<ChurningMap<number, PendingCall<Data>>, "get" | "has" | "values" | "size">;
  readonly #calls = new ChurningMap<number, PendingCall<Data>>();
  readonly #peerName: string;
  #nextId = 1;
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Infinity;
  /** How many calls have a deadline. */
  #timed = 0;

  /** `peerName` is the subject of error messages, such as "The server". */
  constructor(peerName: string) {
    this.#peerName = peerName;
    this.calls = this.#calls;
  }

  /** Returns a call with a new id and the promise of its answer. `onTimeout` can tell the other side that we gave up. */
  open(
    method: string,
    { idleMs, totalMs }: Timeouts,
    context: Data,
    onTimeout?: (error: ConnectionError) => void,
  ): PendingCall<Data> {
    const id = this.#nextId++;
    const now = performance.now();
    const finalDeadline = totalMs > 0 ? now + totalMs : Infinity;
    const deadline = idleMs > 0 ? Math.min(now + idleMs, finalDeadline) : finalDeadline;
    let resolve!: (result: Answer) => void;
    let reject!: (error: Error) => void;
    const answer = new Promise<Answer>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    const call: PendingCall<Data> = {
      id,
      method,
      answer,
      context,
      resolve,
      reject,
      idleMs,
      finalDeadline,
      onTimeout,
      deadline,
      holds: 0,
    };
    this.#calls.set(id, call);
    if (deadline !== Infinity) {
      this.#timed += 1;
      if (deadline < this.#armedFor) this.#arm(deadline, now);
      else if (this.#timed === 1) ref(this.#timer);
    }
    return call;
  }

  /** The call that the response is for; undefined if it is late or unknown, or its id has another type than ours. */
  find({ id }: ResponseMessage): PendingCall<Data> | undefined {
    // The other side may write our 1 as 1.0.
    return this.#calls.get(plainId(id) as number);
  }

  /** Does nothing if the call is over. */
  settle(call: PendingCall<Data>, response: ResponseMessage): void {
    if (!this.#remove(call)) return;
    // A transport of a user may pass on what it has not checked.
    const { error, result } = response as Partial<ResultMessage & ErrorMessage>;
    if (isObject(error)) call.reject(McpError.fromBody(error));
    else if (isObject(result) && error === undefined) call.resolve(result);
    else call.reject(new ConnectionError("protocol", `${this.#peerName}'s answer is not a valid message`));
  }

  /** Progress came in for this call: restarts its idle timeout. */
  touch(call: PendingCall<Data>): void {
    if (call.idleMs === 0 || call.holds > 0 || !this.#calls.has(call.id)) return;
    const now = performance.now();
    call.deadline = Math.min(now + call.idleMs, call.finalDeadline);
    if (call.deadline < this.#armedFor) this.#arm(call.deadline, now);
  }

  /** Suspends the idle timeout until `release`, for example while the client is being asked on behalf of this call. */
  hold(call: PendingCall<Data>): void {
    call.holds += 1;
    call.deadline = call.finalDeadline;
  }

  release(call: PendingCall<Data>): void {
    call.holds -= 1;
    this.touch(call);
  }

  /** Returns false if the call was over. */
  fail(call: PendingCall<Data>, error: Error): boolean {
    const isPending = this.#remove(call);
    if (isPending) call.reject(error);
    return isPending;
  }

  failAll(error: Error): void {
    for (const call of this.#calls.values()) this.fail(call, error);
    this.#disarm();
  }

  #remove(call: PendingCall<Data>): boolean {
    if (!this.#calls.delete(call.id)) return false;
    // The timer is kept for the next request, which most likely comes before it fires. Meanwhile it is unref'ed.
    if (call.finalDeadline !== Infinity || call.idleMs > 0) {
      this.#timed -= 1;
      if (this.#timed === 0) unref(this.#timer);
    }
    return true;
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
      if (call.deadline <= now) {
        const error = timeoutError(this.#peerName, call.method, call.idleMs, call.deadline >= call.finalDeadline);
        this.fail(call, error);
        call.onTimeout?.(error);
      } else if (call.deadline < earliest) earliest = call.deadline;
    }
    if (earliest === Infinity) this.#disarm();
    else this.#arm(earliest, now);
  }
}
