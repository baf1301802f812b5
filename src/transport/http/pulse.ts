// One timer for many: whatever must be looked at about once a second (streams that keep silent, readers that lag,
// answers that are late) is a member here, and costs no timer of its own. It runs only while it has members, and
// never keeps a process alive.

export class Pulse<T> {
  readonly #tickMs: number;
  readonly #act: (member: T, now: number) => void;
  readonly #members = new Set<T>();
  #timer: ReturnType<typeof setInterval> | undefined;

  /** `act` is called for each member at each tick, with a time that never goes back. It must not throw. */
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
    this.#timer = setInterval(() => this.#tick(), this.#tickMs);
    // In some runtimes a timer is a number, which has no such method and needs none.
    (this.#timer as { unref?: () => void }).unref?.();
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
    for (const member of this.#members) this.#act(member, now);
  }
}
