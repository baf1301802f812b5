// Requests that we sent and that are not answered yet: ids, the way back, timeouts.
// One timer serves all of them, also those that come one after the other: a request costs a map entry, not a timer.
// A deadline is monotonic, moves when progress comes in, and never moves past the hard cap. This file knows nothing of
// revisions.

import { ConnectionError } from "../../core/errors.ts";
import { Exact, type ResponseMessage } from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";

export interface Timeouts {
  /** Silence after which a request is given up; progress starts it anew. 0: never. */
  readonly idleMs: number;
  /** The longest that a request may take, whatever progress it reports. 0: no cap. */
  readonly totalMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { idleMs: 60_000, totalMs: 3_600_000 };

type Answer = { readonly [key: string]: unknown };

interface Entry {
  readonly resolve: (result: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly idleMs: number;
  readonly cap: number;
  readonly onTimeout: ((error: ConnectionError) => void) | undefined;
  readonly what: string;
  deadline: number;
  /** Questions that somebody is being asked on its behalf. */
  held: number;
}

export class Pending {
  readonly #entries = new Map<number, Entry>();
  readonly #who: string;
  #nextId = 1;
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Infinity;
  /** Entries that have a deadline. */
  #timed = 0;

  get size(): number {
    return this.#entries.size;
  }

  /** `who` is asked, for errors that tell a person what went wrong. */
  constructor(who: string) {
    this.#who = who;
  }

  /** A new id and the promise of its answer. `onTimeout` tells the other side that we gave up. */
  open(
    what: string,
    timeouts: Timeouts,
    onTimeout?: (error: ConnectionError) => void,
  ): { id: number; answer: Promise<Answer> } {
    const id = this.#nextId++;
    const now = performance.now();
    const cap = timeouts.totalMs > 0 ? now + timeouts.totalMs : Infinity;
    const deadline = timeouts.idleMs > 0 ? Math.min(now + timeouts.idleMs, cap) : cap;
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#entries.set(id, { resolve, reject, idleMs: timeouts.idleMs, cap, onTimeout, what, deadline, held: 0 });
    });
    if (deadline !== Infinity) {
      this.#timed += 1;
      if (deadline < this.#armedFor) this.#arm(deadline, now);
      else if (this.#timed === 1) this.#timer?.ref();
    }
    return { id, answer };
  }

  /** False where nobody waits for this answer: late, unknown, or of another type than the id that we sent. */
  settle(response: ResponseMessage): boolean {
    // 1.0 is our 1, written by another hand.
    const id = response.id instanceof Exact ? response.id.value : response.id;
    if (typeof id !== "number") return false;
    const entry = this.#take(id);
    if (entry === undefined) return false;
    if ("error" in response) entry.reject(McpError.fromBody(response.error));
    else entry.resolve(response.result);
    return true;
  }

  has(id: unknown): id is number {
    return typeof id === "number" && this.#entries.has(id);
  }

  /** Progress came in for this request: its silence begins anew. */
  touch(id: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.idleMs === 0 || entry.held > 0) return;
    const now = performance.now();
    entry.deadline = Math.min(now + entry.idleMs, entry.cap);
    if (entry.deadline < this.#armedFor) this.#arm(entry.deadline, now);
  }

  /** Somebody is being asked on behalf of this request: its silence does not count until all have answered. */
  hold(id: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.held += 1;
    entry.deadline = entry.cap;
  }

  release(id: number): void {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.held -= 1;
    this.touch(id);
  }

  fail(id: number, error: Error): boolean {
    const entry = this.#take(id);
    entry?.reject(error);
    return entry !== undefined;
  }

  failAll(error: Error): void {
    for (const id of [...this.#entries.keys()]) this.fail(id, error);
    this.#disarm();
  }

  #take(id: number): Entry | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    this.#entries.delete(id);
    // The timer stays for the next request, which most likely comes before it fires; but it keeps nobody alive.
    if (entry.cap !== Infinity || entry.idleMs > 0) {
      this.#timed -= 1;
      if (this.#timed === 0) this.#timer?.unref();
    }
    return entry;
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
    for (const [id, entry] of this.#entries) {
      if (entry.deadline <= now) {
        const capped = entry.deadline >= entry.cap;
        const error = new ConnectionError(
          "timeout",
          capped
            ? `${this.#who} did not finish ${entry.what} within the longest time that it may take; raise the total timeout`
            : `${this.#who} did not answer ${entry.what} in ${entry.idleMs} ms and reported no progress; raise the timeout`,
        );
        this.fail(id, error);
        entry.onTimeout?.(error);
      } else if (entry.deadline < earliest) earliest = entry.deadline;
    }
    if (earliest === Infinity) this.#disarm();
    else this.#arm(earliest, now);
  }
}
