// Ends a child and all its descendants in three steps, with a grace period after each: end of input, SIGTERM, SIGKILL.
// A budget shortens all of it, even while it is under way. If the child exits by itself, the last two steps still end
// its descendants.

import type { ProcessTree } from "./process-tree.ts";

export interface GracePeriods {
  readonly stdinMs: number;
  readonly termMs: number;
}

/** How often live processes are counted: soon at first, since most exit at once, then less often. */
const FIRST_CHECK_MS = 4;
const MAX_CHECK_MS = 100;
/** How long SIGKILL may take. A process that survives it is stuck in the kernel or belongs to another user. */
const KILL_TIMEOUT_MS = 5_000;
const MIN_KILL_TIMEOUT_MS = 250;
/** The part of a budget after which each step must be over. */
const STDIN_SHARE = 0.4;
const TERM_SHARE = 0.8;

export class Termination {
  readonly #tree: ProcessTree;
  readonly #grace: GracePeriods;
  readonly #endInput: () => void;
  #budget: { readonly from: number; readonly ms: number } | undefined;
  #running: Promise<void> | undefined;
  #wake: () => void = () => {};

  constructor(tree: ProcessTree, grace: GracePeriods, endInput: () => void) {
    this.#tree = tree;
    this.#grace = grace;
    this.#endInput = endInput;
  }

  /** Resolves when the whole tree is gone; rejects, naming the pids, if SIGKILL did not end it. */
  run(budgetMs?: number): Promise<void> {
    if (budgetMs !== undefined) this.#limit(budgetMs);
    this.#running ??= this.#steps().catch((error: unknown) => {
      this.#running = undefined;
      throw error;
    });
    return this.#running;
  }

  /** The leader has exited: stops waiting for that, and ends its descendants. */
  leaderExited(): Promise<void> {
    this.#wake();
    return this.run();
  }

  async #steps(): Promise<void> {
    if (!this.#tree.hasLeaderExited) {
      this.#endInput();
      const start = performance.now();
      while (!this.#tree.hasLeaderExited) {
        const left = this.#deadline(start, this.#grace.stdinMs, STDIN_SHARE) - performance.now();
        if (left <= 0) break;
        await this.#pause(left);
      }
    }
    if (await this.#send("SIGTERM", this.#grace.termMs, TERM_SHARE)) return;
    if (await this.#send("SIGKILL", KILL_TIMEOUT_MS, 1)) return;
    const { pids } = await this.#tree.findLive();
    if (pids.length > 0) throw new Error(`could not end ${pids.join(", ")}: still there after SIGKILL`);
  }

  /** Returns true once no process is left. SIGTERM is sent once, since handlers would run twice; SIGKILL on each check. */
  async #send(signal: "SIGTERM" | "SIGKILL", graceMs: number, share: number): Promise<boolean> {
    const start = performance.now();
    let isSent = false;
    for (let delay = FIRST_CHECK_MS; ; delay = Math.min(delay * 2, MAX_CHECK_MS)) {
      const live = await this.#tree.findLive();
      if (live.count === 0) return true;
      if (!isSent || signal === "SIGKILL") this.#tree.signal(live, signal);
      isSent = true;
      const earliest = signal === "SIGKILL" ? start + MIN_KILL_TIMEOUT_MS : 0;
      const left = Math.max(earliest, this.#deadline(start, graceMs, share)) - performance.now();
      if (left <= 0) return false;
      await this.#pause(Math.min(delay, left));
    }
  }

  #deadline(start: number, graceMs: number, share: number): number {
    const own = start + graceMs;
    return this.#budget === undefined ? own : Math.min(own, this.#budget.from + this.#budget.ms * share);
  }

  #limit(ms: number): void {
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
