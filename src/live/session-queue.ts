// Scheduling within one session: the queue of calls, of which one runs at a time, and the deadline of the one that
// runs.

import { onCancel } from "../core/cancel.ts";
import type { Context } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";

/** Calls that may wait for one session. */
const MAX_WAITING = 100;

/** Runs calls one at a time, in order of arrival. A call that is cancelled leaves the queue. */
export class SessionQueue {
  readonly #session: string;
  readonly #waiting: (() => void)[] = [];
  #isTaken = false;

  constructor(session: string) {
    this.#session = session;
  }

  get isTaken(): boolean {
    return this.#isTaken;
  }

  get length(): number {
    return this.#waiting.length;
  }

  /** Returns undefined if the session is free, so that the usual case awaits nothing. */
  acquire(context: Pick<Context, "signal">): Promise<void> | undefined {
    if (this.#isTaken) return this.#wait(context);
    this.#isTaken = true;
    return undefined;
  }

  release(): void {
    const next = this.#waiting.shift();
    // It stays taken for the next in the queue, so that a new call cannot overtake it.
    if (next === undefined) this.#isTaken = false;
    else next();
  }

  /** Lets every waiting call go on at once, for example to learn that the session is closed. */
  releaseAll(): void {
    for (const next of this.#waiting.splice(0)) next();
  }

  async #wait(context: Pick<Context, "signal">): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING) {
      const message = `Session ${this.#session} is busy and ${MAX_WAITING} calls wait for it; interrupt it, or use another session`;
      throw McpError.of("rate_limited", message, { session: this.#session });
    }
    await new Promise<void>((resolve, reject) => {
      const next = (): void => {
        forget();
        resolve();
      };
      const forget = onCancel(context, () => {
        const at = this.#waiting.indexOf(next);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(context.signal.reason as Error);
      });
      this.#waiting.push(next);
    });
  }
}

/**
 * One timer for all deadlines of a session, of which only one holds at a time. A new deadline needs no new timer while
 * an earlier timer runs: when that fires, it is set again for the rest.
 */
export class Deadline {
  readonly #onExpire: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires. */
  #firesAt = Infinity;
  /** When the deadline expires; Infinity if there is none. */
  #at = Infinity;

  constructor(onExpire: () => void) {
    this.#onExpire = onExpire;
  }

  set(ms: number): void {
    const now = performance.now();
    this.#at = now + ms;
    if (this.#firesAt <= this.#at) return;
    clearTimeout(this.#timer);
    this.#arm(now);
  }

  /** Removes the deadline. The timer may run on; it does not keep the process alive. */
  clear(): void {
    this.#at = Infinity;
  }

  close(): void {
    this.clear();
    clearTimeout(this.#timer);
    this.#firesAt = Infinity;
  }

  #arm(now: number): void {
    this.#firesAt = this.#at;
    // setTimeout fires at once for delays beyond 2^31 - 1 ms.
    this.#timer = setTimeout(() => this.#fire(), Math.min(Math.max(this.#at - now, 1), 0x7fffffff));
    this.#timer.unref();
  }

  #fire(): void {
    const now = performance.now();
    this.#firesAt = Infinity;
    if (this.#at === Infinity) return;
    if (this.#at > now) this.#arm(now);
    else {
      this.#at = Infinity;
      this.#onExpire();
    }
  }
}
