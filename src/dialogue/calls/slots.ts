// A bound on what is worked on at once: who finds no slot waits in the order of arrival. A slot is held until the
// answer is out, so a caller that does not read its answers ends up waiting for itself. Work that was cancelled gives
// up its slot even if it goes on, because it may be deaf; but only as many as there are slots may go on without one,
// or a caller could start work without bound: the rest keep theirs. So twice the bound is the most that ever runs.

export class Slots {
  readonly #count: number;
  #free: number;
  /** Work that was cancelled and has not ended. */
  #cancelled = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    if (!(count > 0)) throw new TypeError("maxInFlight must be a number above 0");
    this.#count = count;
    this.#free = count;
  }

  /** False where there is none. */
  take(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Resolves with a slot taken. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** Work that has a slot was cancelled. */
  cancel(): void {
    this.#cancelled += 1;
    if (this.#cancelled <= this.#count) this.give();
  }

  /** Work that was cancelled has ended. */
  endCancelled(): void {
    if (this.#cancelled > this.#count) this.give();
    this.#cancelled -= 1;
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
