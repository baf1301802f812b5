// One piece of work at a time that many wait for: whoever comes while it is under way waits for its outcome instead of
// beginning it again. It is given up when nobody waits any more, and not before.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";

interface Running {
  readonly outcome: Promise<void>;
  readonly controller: AbortController;
  waiting: number;
}

export class Flight {
  #running: Running | undefined;

  get isUnderWay(): boolean {
    return this.#running !== undefined;
  }

  /** Waits for what is under way; where nothing is, begins `work`, if there is any. */
  async join(signal: AbortSignal, work?: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (signal.aborted) throw givenUp();
    const running = this.#running ?? (work && this.#begin(work));
    if (running === undefined) return;
    running.waiting += 1;
    let forget: (() => void) | undefined;
    const left = new Promise<never>((_resolve, reject) => {
      forget = onAbort(signal, () => reject(givenUp()));
    });
    try {
      await Promise.race([running.outcome, left]);
    } finally {
      forget?.();
      running.waiting -= 1;
      if (running.waiting === 0) this.#leave(running);
    }
  }

  /** Whoever comes now begins anew: what ends because nobody wanted it must not be their failure. */
  #leave(running: Running): void {
    running.controller.abort();
    if (this.#running === running) this.#running = undefined;
  }

  #begin(work: (signal: AbortSignal) => Promise<void>): Running {
    const controller = new AbortController();
    const outcome = work(controller.signal).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    // Whoever waited may have left before it failed.
    outcome.catch(() => undefined);
    const running: Running = { outcome, controller, waiting: 0 };
    this.#running = running;
    return running;
  }
}

function givenUp(): ConnectionError {
  return new ConnectionError("cancelled", "Given up while a token was being got", { mayHaveRun: false });
}
