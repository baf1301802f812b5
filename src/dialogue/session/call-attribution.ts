// Decides whether a message from a session-style server can be attributed to a client. On some transports, requests and
// log messages do not identify their call. CallAttribution tracks the clients that have calls in flight, or had some
// recently. If there are several, a message without a known call is passed on to none of them, so that no client gets
// another's messages.

import type { Caller } from "../../core/handler.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";

/** How long a call may still cause messages after it was answered. */
const LINGER_MS = 10_000;
/** Above this number of tracked clients, stale ones are removed. */
const MAX_TRACKED = 1_000;

/** A client: how many of its calls are in flight, and when the last one ended. */
export interface TrackedClient {
  readonly key: string;
  open: number;
  ended: number;
  isGone: boolean;
}

export class CallAttribution {
  /** By the caller's key. */
  readonly #seen = new Map<string, TrackedClient>();

  /** The caller that last gave up a call without an answer, and when. The server may go on with such a call. */
  #abandonedBy: string | undefined;
  #abandonedAt = -Infinity;
  /** When another caller last did so. */
  #otherAbandonedAt = -Infinity;

  /** Tracks a call. Pass what it returns to `end`; it is undefined if the call is not tracked. */
  begin({ key }: Caller): TrackedClient | undefined {
    if (key === INTERNAL_CALLER.key) return undefined;
    if (this.#seen.size > MAX_TRACKED) this.#sweep();
    let client = this.#seen.get(key);
    if (client === undefined) this.#seen.set(key, (client = { key, open: 0, ended: 0, isGone: false }));
    client.open += 1;
    return client;
  }

  /** Call this when the call has ended, with or without an answer. */
  end(client: TrackedClient | undefined, isAnswered: boolean): void {
    if (client === undefined) return;
    client.open -= 1;
    client.ended = performance.now();
    if (!isAnswered) this.#abandon(client.key, client.ended);
    if (client.open === 0 && client.isGone) this.#seen.delete(client.key);
  }

  /** Called when the client has disconnected. Its entry is removed once its last call has ended. */
  forget({ key }: Caller): void {
    const seen = this.#seen.get(key);
    if (seen === undefined) return;
    seen.isGone = true;
    if (seen.open === 0) this.#seen.delete(key);
  }

  /** Whether a request that arrives while only this client has calls in flight cannot be for another client. */
  isOnlyOne(key: string): boolean {
    const since = performance.now() - LINGER_MS;
    return (this.#abandonedBy === key ? this.#otherAbandonedAt : this.#abandonedAt) < since;
  }

  #abandon(key: string, now: number): void {
    if (key !== this.#abandonedBy) this.#otherAbandonedAt = this.#abandonedAt;
    this.#abandonedBy = key;
    this.#abandonedAt = now;
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
