// Schedules the calls of one session: a queue that runs one call at a time, and the deadline of the running call.

import { onCancel } from "../core/cancel.ts";
import type { Context } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";

/** How many calls may wait for one session. */
const MAX_WAITING = 100;

/** Runs calls one at a time, in order of arrival. A cancelled call leaves the queue. */
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
    // The session stays taken for the next call in the queue, so that a new call cannot overtake it.
    if (next === undefined) this.#isTaken = false;
    else next();
  }

  /** Lets all waiting calls continue at once. Used when the session is closed: each of them then fails. */
  releaseAll(): void {
    for (const next of this.#waiting.splice(0)) next();
  }

  async #wait(context: Pick<Context, "signal">): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING) {
      const advice = "interrupt the running call, or use another session";
      const message = `Session ${this.#session} is busy and ${MAX_WAITING} calls are waiting; ${advice}`;
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
 * The deadline of a session's running call. All calls share one timer, since starting one for each would cost time. A
 * timer that fires before the deadline of the current call is started again for the remaining time.
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

  /** Removes the deadline. The timer keeps running, but does not keep the process alive. */
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
