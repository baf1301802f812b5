// Waiting for what others do, but no longer than a signal allows. What was waited for goes on by itself.

import { onAbort } from "./abort.ts";

/** Rejects with the signal's reason as soon as it is aborted. */
export async function unlessAborted<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
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
