// Helpers for promises and signals: waiting with a limit, many listeners on one AbortSignal, promises that nothing
// awaits, backoff before a retry, and work that is shared or runs one at a time.

import { ConnectionError, type ConnectionErrorOptions, THE_SERVER } from "./errors.ts";
import type { Optional } from "./values.ts";

/** Calls `work` and turns an exception that it throws synchronously into a rejected promise. */
export function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}

function ignore(): void {}

/** Returns the same promise, marked as handled: if nothing awaits it, its rejection does not end the process. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.then(undefined, ignore);
  return promise;
}

export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** A promise that is settled from outside. Its rejection is ignored if nothing awaits it. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: Deferred<T>["resolve"];
  let reject!: Deferred<T>["reject"];
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise: ignoreRejection(promise), resolve, reject };
}

/** The longest delay of setTimeout, which fires at once if the delay is longer. */
export const MAX_DELAY_MS: number = 0x7fffffff;

/** Waits for the promise, but at most `ms` milliseconds: then resolves to undefined. Rejects if the promise does. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const late = deferred<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), Math.min(ms, MAX_DELAY_MS));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

interface AbortWatch {
  readonly listeners: Set<() => void>;
  readonly fire: () => void;
}

const watches = new WeakMap<AbortSignal, AbortWatch>();

/**
 * Calls `listener` when the signal is aborted, but not if it is aborted already. Returns a function that removes the
 * listener. Each signal gets a single event listener, so that a signal shared by a thousand calls causes neither a
 * warning nor a leak.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined;
  let watch = watches.get(signal);
  if (watch === undefined) {
    const listeners = new Set<() => void>();
    const fire = (): void => {
      watches.delete(signal);
      for (const listener of [...listeners]) listener();
    };
    watch = { listeners, fire };
    watches.set(signal, watch);
    signal.addEventListener("abort", fire, { once: true });
  }
  const { listeners, fire } = watch;
  // A new function, so that the same listener can be added twice.
  const once = (): void => listener();
  listeners.add(once);
  return () => {
    // While a signal from AbortSignal.any() has an event listener, its source signals keep it alive. So remove the
    // event listener once it is unused.
    if (!listeners.delete(once) || listeners.size > 0 || watches.get(signal)?.listeners !== listeners) return;
    watches.delete(signal);
    signal.removeEventListener("abort", fire);
  };
}

/** Waits for the promise; rejects with the signal's reason as soon as the signal is aborted. */
export async function abortable<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const aborted = deferred<never>();
  const forget = onAbort(signal, () => aborted.reject(signal.reason));
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    forget();
  }
}

/** What `setTimeout` returns: an object in Node, a number in browsers. */
type Timer = { ref?(): unknown; unref?(): unknown } | number | undefined;

/** Lets the process exit before the timer fires. Does nothing where timers are numbers. */
export function unref<Of extends Timer>(timer: Of): Of {
  if (typeof timer === "object") timer.unref?.();
  return timer;
}

/** Lets the timer keep the process alive again. */
export function ref(timer: Timer): void {
  if (typeof timer === "object") timer.ref?.();
}

/** Calls `act` after the events that are already waiting. Browsers have no setImmediate. */
export function afterEvents(act: () => void): void {
  if (typeof setImmediate === "function") setImmediate(act);
  else setTimeout(act, 0);
}

export interface ForwardedAbort {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Stops forwarding: aborting the given signal no longer aborts this one. */
  forget(): void;
}

/** Creates a signal that is aborted when the given one is, or by its own `abort`. Call `forget` when done. */
export function forwardAbort(signal: AbortSignal): ForwardedAbort {
  const controller = new AbortController();
  if (signal.aborted) controller.abort(signal.reason);
  const forget = onAbort(signal, () => controller.abort(signal.reason));
  return {
    signal: controller.signal,
    abort: (reason) => {
      forget();
      controller.abort(reason);
    },
    forget,
  };
}

const FIRST_MS = 1_000;
const FACTOR = 1.6;
const JITTER = 0.2;
const MAX_MS = 60_000;

/** How many milliseconds to wait before a retry. `failures` is 0 before the first retry, 1 before the second. */
export function backoffMs(
  failures: number,
  { firstMs = FIRST_MS, maxMs = MAX_MS }: Optional<Record<"firstMs" | "maxMs", number>> = {},
): number {
  const plain = Math.min(firstMs * FACTOR ** failures, maxMs);
  return plain * (1 - JITTER + Math.random() * 2 * JITTER);
}

/** Waits `ms` milliseconds; rejects with the signal's reason as soon as the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const over = deferred();
  const timer = setTimeout(over.resolve, Math.min(ms, MAX_DELAY_MS));
  // At once, so that an abort leaves no timer behind.
  const forget = onAbort(signal, () => {
    clearTimeout(timer);
    over.reject(signal.reason);
  });
  await over.promise;
  forget();
}

/**
 * Runs `work` for at most `ms` milliseconds, or until `signal` is aborted. Then aborts the signal that `work` got, and
 * rejects without waiting for `work` to end.
 */
export async function withTimeout<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
  message?: string,
  { hint, subject }: Pick<ConnectionErrorOptions, "hint" | "subject"> = message === undefined ? THE_SERVER : {},
): Promise<T> {
  signal.throwIfAborted();
  const stop = forwardAbort(signal);
  const late = message ?? `The server did not answer in ${ms} ms`;
  const timeOut = (): void => stop.abort(new ConnectionError("timeout", late, { hint, subject }));
  const timer = setTimeout(timeOut, Math.min(ms, MAX_DELAY_MS));
  try {
    return await abortable(stop.signal, ignoreRejection(work(stop.signal)));
  } finally {
    clearTimeout(timer);
    stop.forget();
  }
}

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

  /** Waits for the work that is running. If none is running, starts `work`; without `work`, returns at once. */
  async join(signal: AbortSignal, work?: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (signal.aborted) throw cancelled();
    const running = this.#running ?? (work && this.#start(work));
    if (running === undefined) return;
    running.waiting += 1;
    try {
      await abortable(signal, running.outcome);
    } catch (error) {
      throw signal.aborted ? cancelled() : error;
    } finally {
      running.waiting -= 1;
      if (running.waiting === 0) {
        running.controller.abort();
        // The next caller starts new work instead of joining this one.
        this.#forget(running);
      }
    }
  }

  #start(work: (signal: AbortSignal) => Promise<void>): SharedWork {
    const controller = new AbortController();
    // The work may fail after all callers have left. Nothing awaits it then.
    const outcome = ignoreRejection(work(controller.signal).finally(() => this.#forget(running)));
    const running: SharedWork = { outcome, controller, waiting: 0 };
    this.#running = running;
    return running;
  }

  #forget(running: SharedWork): void {
    if (this.#running === running) this.#running = undefined;
  }
}

/** SingleFlight is used for tokens only, so the message says that. */
function cancelled(): ConnectionError {
  return new ConnectionError("cancelled", "Cancelled while waiting for a token", { mayHaveRun: false });
}

/** A number of slots, given in the order in which they are wanted. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(slots: number) {
    this.#free = slots;
  }

  get isFull(): boolean {
    return this.#free === 0;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a slot, at once if it returns undefined. Rejects if the signal is aborted while the caller waits. */
  acquire(signal?: AbortSignal): Promise<void> | undefined {
    if (this.#free > 0) return void (this.#free -= 1);
    if (signal?.aborted === true) return Promise.reject(signal.reason);
    return new Promise<void>((resolve, reject) => {
      const next = (): void => {
        this.#waiting.delete(next);
        forget();
        resolve();
      };
      const forget = onAbort(signal, () => {
        // A caller whose turn has come has the slot, and must release it.
        if (this.#waiting.delete(next)) reject(signal?.reason);
      });
      this.#waiting.add(next);
    });
  }

  /** The next one that waits takes the slot, so that a new one cannot overtake it. */
  release(): void {
    // In the usual case, none waits, and this takes less time than to ask for the first one.
    if (this.#waiting.size === 0) {
      this.#free += 1;
      return;
    }
    const [next] = this.#waiting;
    next?.();
  }

  /** Lets all that wait go on at once, without slots. */
  releaseAll(): void {
    for (const next of [...this.#waiting]) next();
  }

  /** Resolves to a function that frees the slot, and may be called twice. After `maxMs` the slot is freed anyway. */
  async take(signal: AbortSignal, maxMs?: number): Promise<() => void> {
    signal.throwIfAborted();
    await this.acquire(signal);
    let isFree = false;
    let timer: NodeJS.Timeout | undefined;
    const release = (): void => {
      clearTimeout(timer);
      if (isFree) return;
      isFree = true;
      this.release();
    };
    if (maxMs !== undefined) timer = unref(setTimeout(release, maxMs));
    return release;
  }
}

/** Runs calls with the same key one at a time, in order. A waiting call can be aborted. */
export class KeyedMutex {
  readonly #turns = new Map<string, Semaphore>();

  /** Do not nest calls with the same key: the inner one would wait for the outer one. */
  async run<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const turn = this.#turns.get(key) ?? new Semaphore(1);
    this.#turns.set(key, turn);
    const wait = turn.acquire(signal);
    if (wait !== undefined) await wait;
    try {
      return await attempt(work);
    } finally {
      turn.release();
      if (!turn.isFull) this.#turns.delete(key);
    }
  }
}
