// One timer for many: whatever must be looked at about once a second (streams that keep silent, readers that lag,
// answers that are late) is a member here, and costs no timer of its own. It runs only while it has members, and
// never keeps a process alive.

import { unref } from "../../core/async.ts";

export class SharedTimer<T> {
  readonly #tickMs: number;
  readonly #act: (member: T, now: number) => void;
  readonly #members = new Set<T>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** `act` is called for each member at each tick, with a time that never goes back; one for which it throws is let go of. */
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
    // An idle timer ends at its next tick, not here: where members come and go, it would be started for each one.
    this.#members.delete(member);
  }

  /** Lets go of all members at once. */
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
        // Thrown out of a timer it would end the process, and with it all that the others wait for.
        this.#members.delete(member);
      }
    }
  }
}
