// Requests that came in and are not answered yet, by id: what a cancellation finds, and what has to end
// with the connection. An id that is still in flight may not be used again.

import { Stop } from "../../core/stop.ts";
import { idKey, type Id } from "../../jsonrpc/message.ts";

/** One request in flight. `stop` ends the work for it; cancelling silences the answer as well. */
export interface Flight {
  readonly key: string;
  /** Its place in the order of arrival. */
  readonly number: number;
  /** Long-lived by nature (a listen): nobody waits for it to finish. */
  readonly background: boolean;
  /** The handshake cannot be taken back. */
  readonly cancellable: boolean;
  readonly stop: Stop;
  cancelled: boolean;
  /** Its answer is on its way: nothing more may follow. */
  done: boolean;
  /** Told of a cancellation, whether or not the work heeds its signal. */
  onCancel?: () => void;
  /** Made when its caller is asked something; aborted when it is answered, whatever came of the questions. */
  asking?: AbortController;
}

/** A request that nobody can name: it comes alone on its way, and is cancelled by whoever holds that way. */
export function loneFlight(background: boolean): Flight {
  return { key: "", number: 0, background, cancellable: true, stop: new Stop(), cancelled: false, done: false };
}

export class InFlight {
  readonly #flights = new Map<string, Flight>();
  #count = 0;
  #over: { readonly reason: unknown } | undefined;
  /** Who waits for some of the flights to end. */
  readonly #watchers = new Set<(ended: Flight) => void>();

  /** Undefined where a request with this id is in flight already. */
  begin(id: Id, background = false, cancellable = true): Flight | undefined {
    const key = idKey(id);
    if (this.#flights.has(key)) return undefined;
    return this.#add(key, background, cancellable);
  }

  /** Work without an id: nobody can cancel it, and the end waits for it. */
  beginNameless(): Flight {
    return this.#add(`\0${this.#count + 1}`, false, false);
  }

  #add(key: string, background: boolean, cancellable: boolean): Flight {
    const number = (this.#count += 1);
    const flight: Flight = { key, number, background, cancellable, stop: new Stop(), cancelled: false, done: false };
    if (this.#over !== undefined) flight.stop.abort(this.#over.reason);
    this.#flights.set(key, flight);
    return flight;
  }

  /** Its answer is out, or it gets none. */
  end(flight: Flight): void {
    flight.done = true;
    // After a cancellation the same id may have come again.
    if (this.#flights.get(flight.key) !== flight) return;
    this.#flights.delete(flight.key);
    if (this.#watchers.size > 0) for (const watcher of [...this.#watchers]) watcher(flight);
  }

  cancel(id: Id, reason: unknown): void {
    const flight = this.#flights.get(idKey(id));
    if (flight === undefined || !flight.cancellable) return;
    flight.cancelled = true;
    flight.stop.abort(reason);
    flight.onCancel?.();
    this.end(flight);
  }

  /** Also of whatever begins from now on. */
  abortAll(reason: unknown): void {
    this.#over = { reason };
    for (const flight of this.#flights.values()) flight.stop.abort(reason);
  }

  /** Resolves when no work is in flight, or after the grace. With `before`, only work that came before it counts. */
  drained(graceMs: number, before?: Flight): Promise<void> {
    const most = before?.number ?? Infinity;
    return this.#until((flight) => flight.background || flight.number >= most, graceMs);
  }

  /** Resolves when nothing at all is in flight, or after the grace. */
  settled(graceMs: number): Promise<void> {
    return this.#until(() => false, graceMs);
  }

  /** Counts down those that are there now: what comes later is not waited for. */
  async #until(ignored: (flight: Flight) => boolean, graceMs: number): Promise<void> {
    const awaited = new Set([...this.#flights.values()].filter((flight) => !ignored(flight)));
    if (awaited.size === 0) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(watch);
        resolve();
      };
      const watch = (ended: Flight): void => {
        if (awaited.delete(ended) && awaited.size === 0) finish();
      };
      const timer = setTimeout(finish, graceMs);
      this.#watchers.add(watch);
    });
  }
}
