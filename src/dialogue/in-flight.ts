// Requests that came in and are not answered yet, by id: what a cancellation finds, and what has to end
// with the connection. An id that is still in flight may not be used again. The abort signal of a call is
// made only when somebody looks at it, because most calls never do.

import { idKey, type Id } from "../jsonrpc/message.ts";

/** The end of a call's work: aborted once, for one reason; its signal is made on demand. */
export class Stop {
  #controller: AbortController | undefined;
  #reason: unknown;
  aborted = false;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}

/** One request in flight. `stop` is whatever work answers it now; cancelling silences the answer. */
export interface Flight {
  readonly key: string;
  /** Long-lived by nature (a listen): nobody waits for it to finish. */
  readonly background: boolean;
  stop: Stop;
  cancelled: boolean;
  done: boolean;
}

export class InFlight {
  readonly #flights = new Map<string, Flight>();
  #working = 0;
  #idle: (() => void) | undefined;

  /** Undefined where a request with this id is in flight already. */
  begin(id: Id, background: boolean): Flight | undefined {
    const key = idKey(id);
    if (this.#flights.has(key)) return undefined;
    const flight: Flight = { key, background, stop: new Stop(), cancelled: false, done: false };
    this.#flights.set(key, flight);
    if (!background) this.#working += 1;
    return flight;
  }

  end(flight: Flight): void {
    if (flight.done) return;
    flight.done = true;
    this.#flights.delete(flight.key);
    if (flight.background) return;
    this.#working -= 1;
    if (this.#working === 0) this.#idle?.();
  }

  cancel(id: Id, reason: unknown): void {
    const flight = this.#flights.get(idKey(id));
    if (flight === undefined) return;
    flight.cancelled = true;
    flight.stop.abort(reason);
  }

  abortAll(reason: unknown): void {
    for (const flight of this.#flights.values()) flight.stop.abort(reason);
  }

  /** Resolves when no work is in flight, or after the grace. */
  async drained(graceMs: number): Promise<void> {
    if (this.#working === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#idle = undefined;
  }
}
