// Waiting before a retry, with jitter so that many clients do not reconnect at the same moment, and limiting how long
// an attempt may take.

import { onAbort, ignoreRejection, abortable } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";

const FIRST_MS = 1_000;
const FACTOR = 1.6;
const JITTER = 0.2;
const MAX_MS = 60_000;

/** The wait after `failures` failures in a row, counted from 0. */
export function backoffMs(
  failures: number,
  { firstMs = FIRST_MS, maxMs = MAX_MS }: { readonly firstMs?: number; readonly maxMs?: number } = {},
): number {
  const plain = Math.min(firstMs * FACTOR ** failures, maxMs);
  return plain * (1 - JITTER + Math.random() * 2 * JITTER);
}

/** Waits `ms`; rejects with the signal's reason as soon as the signal is aborted. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(
      () => {
        forget();
        resolve();
        // setTimeout fires at once for longer delays.
      },
      Math.min(ms, 0x7fffffff),
    );
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

/** Runs `work` for at most `ms`, or until the signal is aborted; then aborts its own signal and does not await it. */
export async function withTimeout<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const stop = new AbortController();
  const timeOut = (): void => stop.abort(new ConnectionError("timeout", `The server did not answer in ${ms} ms`));
  const timer = setTimeout(timeOut, ms);
  const forget = onAbort(signal, () => stop.abort(signal.reason));
  try {
    return await abortable(stop.signal, ignoreRejection(work(stop.signal)));
  } finally {
    clearTimeout(timer);
    forget();
  }
}
