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
