// Whose is it? A session-style end may ask and log in mid-call, and some wires do not say to which call that
// belongs. So that no caller ever gets what is another's, it is noted whose calls are under way, and whose have
// ended only lately: only where they are all of one caller may such a message be passed on at all.

import type { Caller } from "../../core/handler.ts";

/** How long after its end a call may still have something to say. */
const LINGER_MS = 10_000;
/** Callers that are kept in mind before the first look for some to forget. */
const MOST_KEPT = 1_000;

/** Where our own housekeeping comes from: nobody stands behind it, so nobody can be taken for another because of it. */
export const NOBODY: object = Object.freeze({});

export class Origins {
  /** Calls under way, and when the last one ended, by where they come from. */
  readonly #seen = new Map<object, { open: number; ended: number; isGone: boolean }>();

  /** Returns how to say that the call has ended. */
  enter({ origin }: Caller): () => void {
    if (origin === NOBODY) return () => undefined;
    const key = origin ?? this;
    if (this.#seen.size > MOST_KEPT) this.#forget();
    const seen = this.#seen.get(key) ?? { open: 0, ended: 0, isGone: false };
    seen.open += 1;
    this.#seen.set(key, seen);
    return () => {
      seen.open -= 1;
      seen.ended = performance.now();
      if (seen.open === 0 && seen.isGone) this.#seen.delete(key);
    };
  }

  /** A caller is there no longer: it is forgotten with the last of its calls. */
  gone({ origin }: Caller): void {
    const key = origin ?? this;
    const seen = this.#seen.get(key);
    if (seen === undefined) return;
    seen.isGone = true;
    if (seen.open === 0) this.#seen.delete(key);
  }

  /** Whether all that happens, and happened lately, is of one caller. */
  get isOne(): boolean {
    if (this.#seen.size > 1) this.#forget();
    return this.#seen.size < 2;
  }

  #forget(): void {
    const since = performance.now() - LINGER_MS;
    for (const [key, { open, ended }] of this.#seen) if (open === 0 && ended < since) this.#seen.delete(key);
  }
}
