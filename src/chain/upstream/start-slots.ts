// How many programs start at once, of all ends together: each may be a package manager's whole work. A program that
// takes its time, or never comes to speak, must not keep others from starting: it has its place for a while only. Who
// starts what, and what a start is, is the supervisor's affair.

import { onAbort, unref } from "../../core/async.ts";

const MOST = 8;
/** A start that takes longer than this no longer counts. */
const HELD_MS = 3_000;

export class StartSlots {
  readonly #heldMs: number;
  #free: number;
  /** In the order of arrival. */
  readonly #waiting = new Set<() => void>();

  constructor(most: number = MOST, heldMs: number = HELD_MS) {
    this.#free = most;
    this.#heldMs = heldMs;
  }

  /** Resolves with how to give the place back, which may be done more than once; rejects with the signal's reason. */
  async take(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#next(signal);
    let isGiven = false;
    const give = (): void => {
      clearTimeout(timer);
      if (isGiven) return;
      isGiven = true;
      this.#give();
    };
    const timer = unref(setTimeout(give, this.#heldMs));
    return give;
  }

  #next(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const come = (): void => {
        forget();
        resolve();
      };
      const forget = onAbort(signal, () => {
        this.#waiting.delete(come);
        reject(signal.reason as Error);
      });
      this.#waiting.add(come);
    });
  }

  #give(): void {
    for (const come of this.#waiting) {
      this.#waiting.delete(come);
      come();
      return;
    }
    this.#free += 1;
  }
}
