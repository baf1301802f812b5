// One at a time: an exchange-style caller that is asked something in mid-call gets the question as the result of one
// of its calls, so it must be known of which. Where neither the wire nor the session says so, calls that may be asked
// take turns. A call that waits for its caller's answer may wait for a person, or for ever: when it has waited for a
// while nobody waits for it any longer, and all others are sent elsewhere, to a session that does not know what the
// calls before them did.

import { onAbort, unref } from "../../core/async.ts";
import { McpError } from "../../protocol/errors.ts";

/** How long a call waits for those before it. */
const PATIENCE_MS = 60_000;
/** How long a caller may take to answer before others are sent elsewhere: a program answers at once, a person does not. */
const GRACE_MS = 2_000;

/** Thrown to the pool, and to nobody else: this session cannot take the call, another must. It was not sent. */
export const ELSEWHERE: Error = new Error("The session cannot take the call");

export class Turns {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** Questions to its caller that the call whose turn it is waits for. */
  #asked = 0;
  #grace: NodeJS.Timeout | undefined;
  #isParked = false;
  readonly #leaving = new Set<() => void>();

  /** Whether the call whose turn it is has waited for its caller for so long that nobody should wait for it. */
  get isParked(): boolean {
    return this.#isParked;
  }

  /** The call whose turn it is asks its caller. */
  async asking<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#asked === 0) this.#grace = unref(setTimeout(() => this.#park(), GRACE_MS));
    this.#asked += 1;
    try {
      return await ask();
    } finally {
      this.#asked -= 1;
      if (this.#asked === 0) {
        clearTimeout(this.#grace);
        this.#isParked = false;
      }
    }
  }

  #park(): void {
    this.#isParked = true;
    for (const leave of [...this.#leaving]) leave();
  }

  /** Does the work when all before it is done; throws what the signal says if that comes first. */
  async take<T>(signal: AbortSignal, whose: string, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.isParked) throw ELSEWHERE;
    const before = this.#last;
    let done = (): void => undefined;
    const turn = new Promise<void>((resolve) => {
      done = resolve;
    });
    // Whoever gives up leaves its place to those before and behind it.
    this.#last = before.then(() => turn);
    this.#waiting += 1;
    try {
      if (this.#waiting > 1) await this.#patiently(before, signal, whose);
      return await work();
    } finally {
      this.#waiting -= 1;
      done();
    }
  }

  async #patiently(before: Promise<void>, signal: AbortSignal, whose: string): Promise<void> {
    let forget = (): void => undefined;
    let timer: NodeJS.Timeout | undefined;
    let leave = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      leave = () => reject(ELSEWHERE);
      this.#leaving.add(leave);
      forget = onAbort(signal, () => reject(signal.reason as Error));
      timer = setTimeout(() => {
        const why = "it works on another call, and cannot tell whom it asks";
        const advice = "try again later, or set `share` to per-request";
        reject(McpError.of("rate_limited", `${whose} was busy for ${PATIENCE_MS / 1_000} s: ${why}; ${advice}`));
      }, PATIENCE_MS);
    });
    try {
      await Promise.race([before, late]);
    } finally {
      clearTimeout(timer);
      forget();
      this.#leaving.delete(leave);
    }
  }
}
