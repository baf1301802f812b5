// Handles Ctrl-C: the first one cancels the work and waits for it to end, the second one exits at once. No child
// process survives: the first Ctrl-C closes the connection and with it the child; after the second, a guardian process
// (src/process/child.ts) ends the child when we have exited. SIGTERM and SIGHUP count as Ctrl-C.

import { EXIT } from "../command.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** Aborted at the first interrupt. */
  readonly signal: AbortSignal;
  readonly #work = new AbortController();
  readonly #onInterrupt: (text: string) => void;

  constructor(onInterrupt: (text: string) => void) {
    this.signal = this.#work.signal;
    this.#onInterrupt = onInterrupt;
    for (const name of SIGNALS) process.on(name, this.interrupt);
  }

  /** Also called for Ctrl-C in raw mode, where the terminal sends no signal. */
  readonly interrupt = (): void => {
    if (this.signal.aborted) process.exit(EXIT.interrupted);
    this.#onInterrupt("Cancelling; press Ctrl-C again to quit at once");
    this.#work.abort(new Error("interrupted"));
  };

  dispose(): void {
    for (const name of SIGNALS) process.off(name, this.interrupt);
  }
}
