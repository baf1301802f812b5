// The deadline of an evaluation. While its caller is asked a question, time does not count, since people take long; but
// the processor time of the guest does, so that code cannot go on computing behind an open question. Where that is not
// known, or if nothing is answered at all, a question holds the deadline for some minutes in all.

import { MAX_DELAY_MS, unref } from "../core/async.ts";

/** How often the processor time is looked at while the deadline is held. */
const SAMPLE_MS = 250;
/** How long questions may hold the deadline of one evaluation. */
export const MAX_HELD_MS: number = 10 * 60_000;

export class Deadline {
  readonly #fire: () => void;
  readonly #cpuMs: () => number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #leftMs: number;
  #since = 0;
  #cpuBefore = 0;
  #heldMs = 0;
  #holds = 0;
  #isStopped = false;

  /** Calls `fire` after `ms` milliseconds; 0 means never. `cpuMs` is the processor time that was used, if it is known. */
  constructor(ms: number, cpuMs: () => number | undefined, fire: () => void) {
    this.#fire = fire;
    this.#cpuMs = cpuMs;
    this.#leftMs = ms;
    this.#isStopped = ms <= 0;
    this.#start();
  }

  /** Holds the deadline until the returned function is called. Several may hold it at once. */
  hold(): () => void {
    this.#holds += 1;
    if (this.#holds === 1) this.#change(() => (this.#leftMs -= performance.now() - this.#since));
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#holds -= 1;
      if (this.#holds === 0) this.#change(() => this.#countHeld());
    };
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Counts the time until now, and goes on in the other way. */
  #change(count: () => void): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    count();
    this.#start();
  }

  #start(): void {
    if (this.#isStopped) return;
    this.#since = performance.now();
    const isHeld = this.#holds > 0;
    if (isHeld) this.#cpuBefore = this.#cpuMs() ?? 0;
    const ms = isHeld ? SAMPLE_MS : Math.min(Math.max(1, this.#leftMs), MAX_DELAY_MS);
    this.#timer = setTimeout(isHeld ? this.#sample : this.#end, ms);
    if (isHeld) unref(this.#timer);
  }

  readonly #sample = (): void => {
    this.#countHeld();
    if (this.#leftMs <= 0 || this.#heldMs >= MAX_HELD_MS) this.#end();
    else this.#start();
  };

  readonly #end = (): void => {
    this.stop();
    this.#fire();
  };

  #countHeld(): void {
    this.#heldMs += performance.now() - this.#since;
    this.#leftMs -= Math.max(0, (this.#cpuMs() ?? 0) - this.#cpuBefore);
  }
}
