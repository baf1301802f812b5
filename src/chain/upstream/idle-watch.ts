// When has nobody used it for long enough? One timer for many uses: it looks, when it fires, how long ago the last was,
// so that a use costs no timer of its own.

import { unref } from "../../core/async.ts";

export class IdleWatch {
  readonly #idleMs: number;
  readonly #isInUse: () => boolean;
  readonly #onIdle: () => void;
  #timer: NodeJS.Timeout | undefined;
  #since = 0;

  /** 0 milliseconds: never. */
  constructor(idleMs: number, isInUse: () => boolean, onIdle: () => void) {
    this.#idleMs = idleMs;
    this.#isInUse = isInUse;
    this.#onIdle = onIdle;
  }

  /** It was used until now. */
  used(): void {
    if (this.#idleMs === 0) return;
    this.#since = performance.now();
    this.#timer ??= this.#look(this.#idleMs);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #look(afterMs: number): NodeJS.Timeout {
    return unref(
      setTimeout(() => {
        const leftMs = this.#isInUse() ? this.#idleMs : this.#since + this.#idleMs - performance.now();
        this.#timer = leftMs > 0 ? this.#look(leftMs) : undefined;
        if (leftMs <= 0) this.#onIdle();
      }, afterMs),
    );
  }
}
