// One interval timer for many members (silent streams, slow readers, late bodies), so that none needs a timer of its
// own. It runs only while it has members, and never keeps the process alive.

import { unref } from "../../core/async.ts";

export class SharedTimer<T> {
  readonly #tickMs: number;
  readonly #act: (member: T, now: number) => void;
  readonly #members = new Set<T>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Calls `act` for each member at each tick, with a monotonic time; a member for which it throws is removed. */
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
    // An empty timer stops at its next tick, not here: members come and go, and it would restart for each one.
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
    for (const member of this.#members) {
      try {
        this.#act(member, now);
      } catch {
        // Thrown from a timer it would end the process.
        this.#members.delete(member);
      }
    }
  }
}
