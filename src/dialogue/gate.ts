// Whose question is it? A session-style end may ask in mid-call, and some wires do not say which call a question
// belongs to. So that no caller is ever asked what is another's, calls during which the end may ask are let
// through for one caller at a time: any number of calls of the same caller together, those of others in turn.

import { onAbort } from "../core/abort.ts";

interface Waiting {
  readonly owner: object;
  go(): void;
}

export class Gate {
  #owner: object | undefined;
  #inside = 0;
  #waiting: Waiting[] = [];

  /** Resolves, to the way out, when the gate is the owner's. Rejects when the signal is aborted before. */
  async enter(owner: object, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    // Who comes late does not overtake those of others who wait already.
    if (this.#inside > 0 && (owner !== this.#owner || this.#waiting.length > 0)) await this.#turn(owner, signal);
    else {
      this.#owner = owner;
      this.#inside += 1;
    }
    return () => this.#leave();
  }

  #turn(owner: object, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        owner,
        go: () => {
          forget();
          resolve();
        },
      };
      const forget = onAbort(signal, () => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting);
        reject(signal.reason as Error);
      });
      this.#waiting.push(waiting);
    });
  }

  #leave(): void {
    this.#inside -= 1;
    if (this.#inside > 0) return;
    const next = this.#waiting[0]?.owner;
    // Claimed here and now: between a wake-up and its turn nobody else may slip in.
    const mine = this.#waiting.filter(({ owner }) => owner === next);
    this.#waiting = this.#waiting.filter(({ owner }) => owner !== next);
    this.#owner = next;
    this.#inside = mine.length;
    for (const one of mine) one.go();
  }
}
