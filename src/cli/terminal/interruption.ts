// Handles Ctrl-C: the first one cancels the work and waits for it to end, the second one exits at once. No child
// process survives: the first Ctrl-C closes the connection and with it the child; after the second, a guardian process
// (src/process/guardian.ts) ends the child when we have exited. SIGTERM and SIGHUP count as Ctrl-C.

import { EXIT } from "../command.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** Aborted at the first interrupt. */
  readonly signal: AbortSignal;
  /** Aborted by an interrupt while connecting. After `connected()`, the caller closes the connection itself. */
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
