// One interval timer for many members, such as open streams and incomplete request bodies, so that none needs its own
// timer. It runs only while it has members, and never keeps the process alive.

import { unref } from "../../core/async.ts";
import { ChurningSet } from "../../core/collections.ts";

export class SharedTimer<T> extends ChurningSet<T> {
  readonly #tickMs: number;
  readonly #act: (member: T, now: number) => void;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Calls `act` for each member at each tick; `now` is monotonic. Removes a member if `act` throws. */
  constructor(tickMs: number, act: (member: T, now: number) => void) {
    super();
    this.#tickMs = tickMs;
    this.#act = act;
  }

  /** After `delete`, an empty timer stops at its next tick. Otherwise it would restart for each member that comes. */
  override add(member: T): void {
    this.set(member, member);
    this.#timer ??= unref(setInterval(() => this.#tick(), this.#tickMs));
  }

  /** Removes all members and stops the timer. */
  override clear(): void {
    super.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    if (this.size === 0) return this.clear();
    const now = performance.now();
    for (const member of this.values()) {
      if (!this.has(member)) continue;
      try {
        this.#act(member, now);
      } catch {
        // An exception in a timer would end the process.
        this.delete(member);
      }
    }
  }
}
