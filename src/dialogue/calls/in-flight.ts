// Requests that came in and are not answered yet, by id: what a cancellation finds, and what has to end
// with the connection. An id that is still in flight may not be used again.

import { CancelToken } from "../../core/cancel.ts";
import { idKey, type Id, type ErrorBody, type RequestMessage, type ResponseMessage } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Inbound } from "../../transport/transport.ts";
import type { Notification } from "../../core/handler.ts";

/** One request in flight. `stop` ends the work for it; cancelling silences the answer as well. */
export interface Flight {
  readonly key: string;
  /** Its place in the order of arrival. */
  readonly number: number;
  /** Long-lived by nature (a listen): nobody waits for it to finish. */
  readonly background: boolean;
  /** The handshake cannot be taken back. */
  readonly cancellable: boolean;
  readonly stop: CancelToken;
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
  return { key: "", number: 0, background, cancellable: true, stop: new CancelToken(), cancelled: false, done: false };
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
    const flight: Flight = { key, number, background, cancellable, stop: new CancelToken(), cancelled: false, done: false };
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

// A bound on what is worked on at once: who finds no slot waits in the order of arrival. A slot is held until the
// answer is out, so a caller that does not read its answers ends up waiting for itself. Work that was cancelled gives
// up its slot even if it goes on, because it may be deaf; but only as many as there are slots may go on without one,
// or a caller could start work without bound: the rest keep theirs. So twice the bound is the most that ever runs.

export class Slots {
  readonly #count: number;
  #free: number;
  /** Work that was cancelled and has not ended. */
  #cancelled = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    if (!(count > 0)) throw new TypeError("maxInFlight must be a number above 0");
    this.#count = count;
    this.#free = count;
  }

  /** False where there is none. */
  take(): boolean {
    if (this.#free === 0) return false;
    this.#free -= 1;
    return true;
  }

  /** Resolves with a slot taken. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** Work that has a slot was cancelled. */
  cancel(): void {
    this.#cancelled += 1;
    if (this.#cancelled <= this.#count) this.give();
  }

  /** Work that was cancelled has ended. */
  endCancelled(): void {
    if (this.#cancelled > this.#count) this.give();
    this.#cancelled -= 1;
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free += 1;
    else next();
  }
}

// A request, answered: whatever a front made of it, as the response that goes out. One place, because a result that is
// no object and an error that nobody meant for the wire are the same on every wire.


/** Our side toward callers of one style. */
export interface Front {
  answer(message: RequestMessage, inbound: Inbound, flight: Flight): Promise<{ readonly [key: string]: unknown }>;
  fault(error: unknown, message: RequestMessage): ErrorBody;
}

/** Why a question is taken back that its own call no longer waits for. */
export const ANSWERED = "The call has been answered: nobody can be asked on its behalf any more";

/** How long aborted work may take to say so before its wire is closed over it. */
export const SETTLE_MS = 250;

export async function outcomeOf(
  front: Front,
  message: RequestMessage,
  inbound: Inbound,
  flight: Flight,
): Promise<ResponseMessage> {
  const { id, method } = message;
  try {
    const result: unknown = await front.answer(message, inbound, flight);
    if (!isObject(result)) throw McpError.of("internal_error", `The handler's result of ${method} is no object`);
    return { jsonrpc: "2.0", id, result };
  } catch (error) {
    return { jsonrpc: "2.0", id, error: front.fault(error, message) };
  } finally {
    flight.done = true;
    flight.stop.release();
    flight.asking?.abort(new Error(ANSWERED));
  }
}

// Progress as a caller gets it: only where it asked for it, under its own token, and growing, also where a call was
// run again for its answers.


/** Undefined for what the caller does not get. */
export function progressUnder(token: unknown): (notification: Notification) => Notification | undefined {
  let reached = -Infinity;
  return ({ method, params }) => {
    const progress = params?.["progress"] as number;
    if (token === undefined || !(progress > reached)) return undefined;
    reached = progress;
    return { method, params: { ...params, progressToken: token } };
  };
}
