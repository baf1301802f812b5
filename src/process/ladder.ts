// The ladder by which a child and all its family are brought to their end: end of input, SIGTERM, SIGKILL,
// with a grace after each. A budget shortens all of it, also while it is being walked. A child that ends by
// itself leaves the rest of its family to the lower rungs. How the family is found is not known here.

import type { Family } from "./family.ts";

export interface Graces {
  readonly stdinMs: number;
  readonly termMs: number;
}

/** How often the living are counted: soon at first, since most obey at once, then more rarely. */
const FIRST_LOOK_MS = 4;
const LAST_LOOK_MS = 100;
/** How long SIGKILL may take: what survives it waits inside the kernel or belongs to another user. */
const KILL_PATIENCE_MS = 5_000;
const LEAST_KILL_PATIENCE_MS = 250;
/** The part of a budget after which each rung must be left. */
const STDIN_SHARE = 0.4;
const TERM_SHARE = 0.8;

export class Ladder {
  readonly #family: Family;
  readonly #graces: Graces;
  readonly #endInput: () => void;
  #budget: { readonly from: number; readonly ms: number } | undefined;
  #walk: Promise<void> | undefined;
  #wake: () => void = () => {};

  constructor(family: Family, graces: Graces, endInput: () => void) {
    this.#family = family;
    this.#graces = graces;
    this.#endInput = endInput;
  }

  /** Resolves when the whole family is gone; rejects, naming who is left, when SIGKILL did not end them. */
  descend(budgetMs?: number): Promise<void> {
    if (budgetMs !== undefined) this.#hurry(budgetMs);
    this.#walk ??= this.#rungs().catch((error: unknown) => {
      this.#walk = undefined;
      throw error;
    });
    return this.#walk;
  }

  /** The leader has ended: whoever waits for that need not wait longer. */
  leaderEnded(): Promise<void> {
    this.#wake();
    return this.descend();
  }

  async #rungs(): Promise<void> {
    if (!this.#family.leaderGone) {
      this.#endInput();
      const begun = performance.now();
      while (!this.#family.leaderGone) {
        const left = this.#end(begun, this.#graces.stdinMs, STDIN_SHARE) - performance.now();
        if (left <= 0) break;
        await this.#pause(left);
      }
    }
    if (await this.#press("SIGTERM", this.#graces.termMs, TERM_SHARE)) return;
    if (await this.#press("SIGKILL", KILL_PATIENCE_MS, 1)) return;
    const { pids } = await this.#family.living();
    if (pids.length > 0) throw new Error(`could not end ${pids.join(", ")}: still there after SIGKILL`);
  }

  /** One rung: true when nobody is left. SIGKILL goes to newcomers too; SIGTERM once, or handlers would run twice. */
  async #press(signal: "SIGTERM" | "SIGKILL", graceMs: number, share: number): Promise<boolean> {
    const begun = performance.now();
    let sent = false;
    for (let look = FIRST_LOOK_MS; ; look = Math.min(look * 2, LAST_LOOK_MS)) {
      const living = await this.#family.living();
      if (living.count === 0) return true;
      if (!sent || signal === "SIGKILL") this.#family.signal(living, signal);
      sent = true;
      const least = signal === "SIGKILL" ? begun + LEAST_KILL_PATIENCE_MS : 0;
      const left = Math.max(least, this.#end(begun, graceMs, share)) - performance.now();
      if (left <= 0) return false;
      await this.#pause(Math.min(look, left));
    }
  }

  #end(begun: number, graceMs: number, share: number): number {
    const own = begun + graceMs;
    return this.#budget === undefined ? own : Math.min(own, this.#budget.from + this.#budget.ms * share);
  }

  #hurry(ms: number): void {
    const from = performance.now();
    if (this.#budget !== undefined && this.#budget.from + this.#budget.ms <= from + ms) return;
    this.#budget = { from, ms };
    this.#wake();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
