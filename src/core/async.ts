// Promises and signals: waiting with a limit, many waiters on one AbortSignal, and promises that nothing awaits.

/** Calls `work` and turns an exception that it throws synchronously into a rejected promise. */
export function attempt<T>(work: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(work());
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Returns the same promise, marked as handled: if nothing awaits it, its rejection does not end the process. */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Waits until the promise settles, but at most `ms`. */
export async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([promise, late]);
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
 * Calls `listener` once when the signal is aborted from now on; returns a function that removes it. Each signal gets
 * one event listener however many wait, so a signal shared by a thousand calls neither warns nor leaks.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal === undefined) return () => undefined;
  let watch = watches.get(signal);
  if (watch === undefined) {
    const listeners = new Set<() => void>();
    const fire = (): void => {
      watches.delete(signal);
      for (const one of [...listeners]) one();
    };
    watch = { listeners, fire };
    watches.set(signal, watch);
    signal.addEventListener("abort", fire, { once: true });
  }
  const { listeners, fire } = watch;
  // A new function, so that the same listener can be added twice.
  const one = (): void => listener();
  listeners.add(one);
  return () => {
    // A dependent signal with a listener is kept alive by its sources, so the last one to leave removes the listener.
    if (!listeners.delete(one) || listeners.size > 0 || watches.get(signal)?.listeners !== listeners) return;
    watches.delete(signal);
    signal.removeEventListener("abort", fire);
  };
}

/** Waits for the promise; rejects with the signal's reason as soon as the signal is aborted. */
export async function abortable<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let forget = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    forget = onAbort(signal, () => reject(signal.reason as Error));
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    forget();
  }
}

/** Keeps a timer from keeping the process alive. Does nothing where timers are numbers, as in browsers. */
export function unref<Timer>(timer: Timer): Timer {
  (timer as { unref?: () => void }).unref?.();
  return timer;
}

export interface ForwardedAbort {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Stops forwarding: the signal is no longer aborted by the other one. */
  forget(): void;
}

/** Creates a signal that is aborted with the given one, and can also be aborted alone. Call `forget` when done. */
export function forwardAbort(signal: AbortSignal): ForwardedAbort {
  const own = new AbortController();
  if (signal.aborted) own.abort(signal.reason);
  const forget = onAbort(signal, () => own.abort(signal.reason));
  return {
    signal: own.signal,
    abort: (reason) => {
      forget();
      own.abort(reason);
    },
    forget,
  };
}
