// A bound on what is worked on at once: who finds no slot waits in the order of arrival. A slot is held until the
// answer is out, so a caller that does not read its answers ends up waiting for itself.

export class Slots {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    if (!(count > 0)) throw new TypeError("maxInFlight must be a number above 0");
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

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}
