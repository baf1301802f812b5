// Which client a message from a session-style server belongs to. Some transports do not say to which call a request or
// log message belongs. So that no client ever gets another's messages, this tracks which clients have calls in flight,
// or had some recently: only if there is a single one may such a message be passed on.

import type { Caller } from "../../core/handler.ts";

/** How long after its answer a call may still cause messages. */
const LINGER_MS = 10_000;
/** Tracked clients before stale ones are removed. */
const MAX_TRACKED = 1_000;

/** The origin of our own housekeeping requests, which are made for no client and so never make a message ambiguous. */
export const INTERNAL_ORIGIN: object = Object.freeze({});

export class CallAttribution {
  /** By origin: calls in flight, and when the last one ended. */
  readonly #seen = new Map<object, { open: number; ended: number; isGone: boolean }>();

  /** Tracks a call; returns a function to call when it has ended. */
  begin({ origin }: Caller): () => void {
    if (origin === INTERNAL_ORIGIN) return () => undefined;
    const key = origin ?? this;
    if (this.#seen.size > MAX_TRACKED) this.#sweep();
    const seen = this.#seen.get(key) ?? { open: 0, ended: 0, isGone: false };
    seen.open += 1;
    this.#seen.set(key, seen);
    return () => {
      seen.open -= 1;
      seen.ended = performance.now();
      if (seen.open === 0 && seen.isGone) this.#seen.delete(key);
    };
  }

  /** The client has disconnected: it is forgotten with its last call. */
  forget({ origin }: Caller): void {
    const key = origin ?? this;
    const seen = this.#seen.get(key);
    if (seen === undefined) return;
    seen.isGone = true;
    if (seen.open === 0) this.#seen.delete(key);
  }

  /** Whether all current and recent calls are from one client. */
  get isUnambiguous(): boolean {
    if (this.#seen.size > 1) this.#sweep();
    return this.#seen.size < 2;
  }

  #sweep(): void {
    const since = performance.now() - LINGER_MS;
    for (const [key, { open, ended }] of this.#seen) if (open === 0 && ended < since) this.#seen.delete(key);
  }
}
