// Who waits for a session: one at a time has it, and the others follow in the order in which they came. Who no longer
// wants it leaves the line.

import type { Context } from "../core/handler.ts";
import { onCancel } from "../core/cancel.ts";
import { McpError } from "../protocol/errors.ts";

/** Evaluations that may wait. */
const MOST_WAITING = 100;

export class Queue {
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

  /** Undefined where nobody has it: then there is nothing to wait for. */
  take(context: Pick<Context, "signal">): Promise<void> | undefined {
    if (this.#isTaken) return this.#turn(context);
    this.#isTaken = true;
    return undefined;
  }

  give(): void {
    const next = this.#waiting.shift();
    // It stays taken for the next in line: whoever comes between must not pass by.
    if (next === undefined) this.#isTaken = false;
    else next();
  }

  /** Nobody need wait any longer. */
  open(): void {
    for (const next of this.#waiting.splice(0)) next();
  }

  async #turn(context: Pick<Context, "signal">): Promise<void> {
    if (this.#waiting.length >= MOST_WAITING) {
      const message = `The session ${this.#session} is busy, and ${MOST_WAITING} wait for it; interrupt it, or use another`;
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

// One timer for all the deadlines of a session, of which only one holds at a time. Setting one costs no timer where that
// of an earlier one is still running: it is looked at when it fires, and set for what is left.

export class Deadline {
  readonly #act: () => void;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires. */
  #firesAt = Infinity;
  /** When the time is up; Infinity: it is not. */
  #at = Infinity;

  /** `act` is called when the time is up. */
  constructor(act: () => void) {
    this.#act = act;
  }

  set(ms: number): void {
    const now = performance.now();
    this.#at = now + ms;
    if (this.#firesAt <= this.#at) return;
    clearTimeout(this.#timer);
    this.#arm(now);
  }

  /** It holds no more; the timer may stay, and keeps nobody alive. */
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
      this.#act();
    }
  }
}
