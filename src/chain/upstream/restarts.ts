// When may an end that has failed be started again? After a pause that grows with each failure; and after too many of
// them in a short while not at all, until they have become old. Only time is reckoned here; who starts and who waits
// is the supervisor's affair.

import { backoffMs } from "../../dialogue/calls/backoff.ts";

export interface RestartOptions {
  /** So many failures within the window, and the end is left alone; 5. */
  readonly most?: number;
  /** Milliseconds; 3 minutes. */
  readonly windowMs?: number;
  /** The first pause; each is 1.6 times the one before, give or take a fifth; 1 s. */
  readonly firstMs?: number;
  /** The longest pause; 60 s. */
  readonly maxMs?: number;
}

const MOST = 5;
const WINDOW_MS = 180_000;

export class Restarts {
  readonly #most: number;
  readonly #windowMs: number;
  readonly #options: RestartOptions;
  #failures: number[] = [];
  #notBefore = 0;
  #count = 0;

  constructor(options: RestartOptions = {}) {
    this.#most = options.most ?? MOST;
    this.#windowMs = options.windowMs ?? WINDOW_MS;
    this.#options = options;
  }

  /** How often it has failed in all. */
  get count(): number {
    return this.#count;
  }

  failed(now: number = performance.now()): void {
    this.#count += 1;
    this.#failures = [...this.#recent(now), now];
    this.#notBefore = now + backoffMs(this.#failures.length - 1, this.#options);
  }

  /** Milliseconds until it may be started; Infinity is for `isStopped`. */
  waitMs(now: number = performance.now()): number {
    if (this.#count === 0) return 0;
    return Math.max(0, this.#notBefore - now);
  }

  /** Too many failures in too short a while. */
  isStopped(now: number = performance.now()): boolean {
    return this.#count > 0 && this.#recent(now).length >= this.#most;
  }

  /** Milliseconds until the oldest failure that counts is old enough. */
  stoppedMs(now: number = performance.now()): number {
    const recent = this.#recent(now);
    const oldest = recent[recent.length - this.#most];
    return oldest === undefined ? 0 : Math.max(0, oldest + this.#windowMs - now);
  }

  /** In words: "5 times in 3 minutes". */
  get rule(): string {
    const minutes = this.#windowMs / 60_000;
    const window = Number.isInteger(minutes) ? `${minutes} minutes` : `${this.#windowMs / 1_000} seconds`;
    return `${this.#most} times in ${window}`;
  }

  #recent(now: number): number[] {
    return this.#failures.filter((at) => at > now - this.#windowMs);
  }
}
