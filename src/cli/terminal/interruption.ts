// Ctrl-C: the first cancels what is under way and lets it come to its end, the second quits at once. A child process is
// gone in either case: it is closed at the first, and the guardian ends it when we are no more. SIGTERM and SIGHUP are
// taken for the same wish.

import { EXIT } from "../exit-codes.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export class Interruption {
  /** Aborted at the first. */
  readonly signal: AbortSignal;
  /** The same while we connect; later, a connection is not broken off but closed. */
  readonly connecting: AbortSignal;
  readonly #stop = new AbortController();
  readonly #giveUp = new AbortController();
  #isConnected = false;
  readonly #say: (text: string) => void;
  readonly #quit: () => void;

  constructor(say: (text: string) => void, quit: () => void = () => process.exit(EXIT.interrupted)) {
    this.signal = this.#stop.signal;
    this.connecting = this.#giveUp.signal;
    this.#say = say;
    this.#quit = quit;
    for (const name of SIGNALS) process.on(name, this.interrupt);
  }

  /** Also for keys that are read where no signal is made of them. */
  readonly interrupt = (): void => {
    if (this.signal.aborted) {
      this.#quit();
      return;
    }
    this.#say("Cancelling; Ctrl-C once more quits at once");
    const reason = new Error("interrupted");
    this.#stop.abort(reason);
    if (!this.#isConnected) this.#giveUp.abort(reason);
  };

  connected(): void {
    this.#isConnected = true;
  }

  end(): void {
    for (const name of SIGNALS) process.off(name, this.interrupt);
  }
}
