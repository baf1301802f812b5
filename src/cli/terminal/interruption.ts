// Ctrl-C: the first cancels the work and lets it finish, the second exits at once. A child process ends in either case:
// it is closed at the first, and the guardian ends it once we are gone. SIGTERM and SIGHUP count as Ctrl-C.

import { EXIT } from "../command.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** Aborted at the first interrupt. */
  readonly signal: AbortSignal;
  /** Aborted at the first interrupt until `connected()` is called: an open connection is closed, not broken off. */
  readonly connectSignal: AbortSignal;
  readonly #work = new AbortController();
  readonly #connecting = new AbortController();
  #isConnected = false;
  readonly #onInterrupt: (text: string) => void;
  readonly #quit: () => void;

  constructor(onInterrupt: (text: string) => void, quit: () => void = () => process.exit(EXIT.interrupted)) {
    this.signal = this.#work.signal;
    this.connectSignal = this.#connecting.signal;
    this.#onInterrupt = onInterrupt;
    this.#quit = quit;
    for (const name of SIGNALS) process.on(name, this.interrupt);
  }

  /** Also called for Ctrl-C in raw mode, where the terminal sends no signal. */
  readonly interrupt = (): void => {
    if (this.signal.aborted) {
      this.#quit();
      return;
    }
    this.#onInterrupt("Cancelling; press Ctrl-C again to quit at once");
    const reason = new Error("interrupted");
    this.#work.abort(reason);
    if (!this.#isConnected) this.#connecting.abort(reason);
  };

  connected(): void {
    this.#isConnected = true;
  }

  dispose(): void {
    for (const name of SIGNALS) process.off(name, this.interrupt);
  }
}
