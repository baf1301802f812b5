// Requests that were sent and are not answered yet: their ids, promises and timeouts.
// One timer serves all of them, so a request costs a map entry and no timer of its own. Deadlines use the monotonic
// clock. They move when progress comes in, but never past the total timeout.

import { ConnectionError } from "../../core/errors.ts";
import { ExactId, type ResponseMessage } from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";

export interface Timeouts {
  /** A request fails after this long without an answer or progress. 0: never. */
  readonly idleMs: number;
  /** A request fails after this long, whatever progress it reports. 0: no limit. */
  readonly totalMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { idleMs: 60_000, totalMs: 3_600_000 };

type Answer = { readonly [key: string]: unknown };

interface PendingCall {
  readonly resolve: (result: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly idleMs: number;
  readonly finalDeadline: number;
  readonly onTimeout: ((error: ConnectionError) => void) | undefined;
  readonly method: string;
  deadline: number;
  /** How many calls of `hold` are not released yet. */
  holds: number;
}

export class PendingCalls {
  readonly #calls = new Map<number, PendingCall>();
  readonly #peerName: string;
  #nextId = 1;
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Infinity;
  /** How many calls have a deadline. */
  #timed = 0;

  get size(): number {
    return this.#calls.size;
  }

  /** `peerName` is the subject of error messages, such as "The server". */
  constructor(peerName: string) {
    this.#peerName = peerName;
  }

  /** Returns a new id and the promise of its answer. `onTimeout` can notify the other side that we gave up. */
  open(
    method: string,
    timeouts: Timeouts,
    onTimeout?: (error: ConnectionError) => void,
  ): { id: number; answer: Promise<Answer> } {
    const id = this.#nextId++;
    const now = performance.now();
    const finalDeadline = timeouts.totalMs > 0 ? now + timeouts.totalMs : Infinity;
    const deadline = timeouts.idleMs > 0 ? Math.min(now + timeouts.idleMs, finalDeadline) : finalDeadline;
    const answer = new Promise<Answer>((resolve, reject) => {
      const { idleMs } = timeouts;
      this.#calls.set(id, { resolve, reject, idleMs, finalDeadline, onTimeout, method, deadline, holds: 0 });
    });
    if (deadline !== Infinity) {
      this.#timed += 1;
      if (deadline < this.#armedFor) this.#arm(deadline, now);
      else if (this.#timed === 1) this.#timer?.ref();
    }
    return { id, answer };
  }

  /** Returns false if no call waits for this response: it is late, unknown, or its id has another type than ours. */
  settle(response: ResponseMessage): boolean {
    // The other side may write our 1 as 1.0.
    const id = response.id instanceof ExactId ? response.id.value : response.id;
    if (typeof id !== "number") return false;
    const call = this.#take(id);
    if (call === undefined) return false;
    if ("error" in response) call.reject(McpError.fromBody(response.error));
    else call.resolve(response.result);
    return true;
  }

  has(id: unknown): id is number {
    return typeof id === "number" && this.#calls.has(id);
  }

  /** Progress came in for this call: restarts its idle timeout. */
  touch(id: number): void {
    const call = this.#calls.get(id);
    if (call === undefined || call.idleMs === 0 || call.holds > 0) return;
    const now = performance.now();
    call.deadline = Math.min(now + call.idleMs, call.finalDeadline);
    if (call.deadline < this.#armedFor) this.#arm(call.deadline, now);
  }

  /** Suspends the idle timeout until `release`, for example while the client is being asked on behalf of this call. */
  hold(id: number): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    call.holds += 1;
    call.deadline = call.finalDeadline;
  }

  release(id: number): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    call.holds -= 1;
    this.touch(id);
  }

  fail(id: number, error: Error): boolean {
    const call = this.#take(id);
    call?.reject(error);
    return call !== undefined;
  }

  failAll(error: Error): void {
    for (const id of [...this.#calls.keys()]) this.fail(id, error);
    this.#disarm();
  }

  #take(id: number): PendingCall | undefined {
    const call = this.#calls.get(id);
    if (call === undefined) return undefined;
    this.#calls.delete(id);
    // The timer is kept for the next request, which most likely comes before it fires. Meanwhile it is unref'ed.
    if (call.finalDeadline !== Infinity || call.idleMs > 0) {
      this.#timed -= 1;
      if (this.#timed === 0) this.#timer?.unref();
    }
    return call;
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
    for (const [id, call] of this.#calls) {
      if (call.deadline <= now) {
        const isFinal = call.deadline >= call.finalDeadline;
        const error = new ConnectionError(
          "timeout",
          isFinal
            ? `${this.#peerName} did not finish ${call.method} within the total timeout; raise \`maxTimeoutMs\``
            : `${this.#peerName} did not answer ${call.method} in ${call.idleMs} ms and reported no progress; raise \`timeoutMs\``,
        );
        this.fail(id, error);
        call.onTimeout?.(error);
      } else if (call.deadline < earliest) earliest = call.deadline;
    }
    if (earliest === Infinity) this.#disarm();
    else this.#arm(earliest, now);
  }
}
