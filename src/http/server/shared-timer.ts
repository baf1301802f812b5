// One interval timer for many members, such as open streams and incomplete request bodies, so that none needs its own
// timer. It runs only while it has members, and never keeps the process alive.

import { unref } from "../../core/async.ts";
import { ChurningSet } from "../../core/collections.ts";

export class SharedTimer<T> {
  readonly #tickMs: number;
  readonly #act: (member: T, now: number) => void;
  readonly #members = new ChurningSet<T>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Calls `act` for each member at each tick; `now` is monotonic. Removes a member if `act` throws. */
  constructor(tickMs: number, act: (member: T, now: number) => void) {
    this.#tickMs = tickMs;
    this.#act = act;
  }

  get size(): number {
    return this.#members.size;
  }

  add(member: T): void {
    this.#members.add(member);
    if (this.#timer !== undefined) return;
    this.#timer = unref(setInterval(() => this.#tick(), this.#tickMs));
  }

  delete(member: T): void {
    // An empty timer stops at its next tick, not here. Otherwise it would restart for each member that comes and goes.
    this.#members.delete(member);
  }

  /** Removes all members and stops the timer. */
  clear(): void {
    this.#members.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    if (this.#members.size === 0) return this.clear();
    const now = performance.now();
    for (const member of this.#members.all()) {
      if (!this.#members.has(member)) continue;
      try {
        this.#act(member, now);
      } catch {
        // An exception in a timer would end the process.
        this.#members.delete(member);
      }
    }
  }
}
