// Two ways to do work once: `SingleFlight` lets callers share work that is running, `KeyedMutex` runs work under one
// key one at a time.

import { attempt, onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";

interface SharedWork {
  readonly outcome: Promise<void>;
  readonly controller: AbortController;
  waiting: number;
}

/** Runs one piece of work at a time for all callers. It is aborted when the last caller stops waiting. */
export class SingleFlight {
  #running: SharedWork | undefined;

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Waits for the work that is running. If there is none, starts `work`, if given. */
  async join(signal: AbortSignal, work?: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (signal.aborted) throw cancelled();
    const running = this.#running ?? (work && this.#start(work));
    if (running === undefined) return;
    running.waiting += 1;
    let forget: (() => void) | undefined;
    const left = new Promise<never>((_resolve, reject) => {
      forget = onAbort(signal, () => reject(cancelled()));
    });
    try {
      await Promise.race([running.outcome, left]);
    } finally {
      forget?.();
      running.waiting -= 1;
      if (running.waiting === 0) this.#abandon(running);
    }
  }

  /** Later callers start anew, so that they do not fail because earlier ones left. */
  #abandon(running: SharedWork): void {
    running.controller.abort();
    if (this.#running === running) this.#running = undefined;
  }

  #start(work: (signal: AbortSignal) => Promise<void>): SharedWork {
    const controller = new AbortController();
    const outcome = work(controller.signal).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    // All callers may have left before it failed.
    outcome.catch(() => undefined);
    const running: SharedWork = { outcome, controller, waiting: 0 };
    this.#running = running;
    return running;
  }
}

function cancelled(): ConnectionError {
  return new ConnectionError("cancelled", "Cancelled while waiting for a token", { mayHaveRun: false });
}

/** Runs work under the same key one at a time, in the order of the calls. A caller can leave the queue. */
export class KeyedMutex {
  /** The callers that wait behind the current one. A key without work has no queue. */
  readonly #queues = new Map<string, (() => void)[]>();

  /** Do not nest calls with the same key: the inner one would wait for the outer one. */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const queue = this.#queues.get(key);
    if (queue === undefined) this.#queues.set(key, []);
    else await waitIn(queue, signal);
    try {
      return await attempt(work);
    } finally {
      const next = this.#queues.get(key)?.shift();
      if (next === undefined) this.#queues.delete(key);
      else next();
    }
  }
}

function waitIn(queue: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => {
      // Not in the queue any more: it is this caller's turn already, which must not be lost.
      const index = queue.indexOf(next);
      if (index < 0) return;
      queue.splice(index, 1);
      forget();
      reject(signal?.reason);
    });
    const next = (): void => {
      forget();
      resolve();
    };
    queue.push(next);
  });
}
