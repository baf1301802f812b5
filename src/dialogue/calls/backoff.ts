// How long to wait before an end is tried again: ever longer, never exactly the same, so that many callers of one end
// that came back do not all knock at once. Also the waiting itself, which the end of a request ends, and patience with
// an end that may never answer.

import { onAbort, ignoreRejection, abortable } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";

const FIRST_MS = 1_000;
const FACTOR = 1.6;
const JITTER = 0.2;
const LONGEST_MS = 60_000;

/** After so many failures in a row, from 0. */
export function backoffMs(
  failures: number,
  { firstMs = FIRST_MS, maxMs = LONGEST_MS }: { readonly firstMs?: number; readonly maxMs?: number } = {},
): number {
  const plain = Math.min(firstMs * FACTOR ** failures, maxMs);
  return plain * (1 - JITTER + Math.random() * 2 * JITTER);
}

/** Rejects with the signal's reason. */
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

/** Work that is given up after so long, or with the signal: its own signal tells it, and it is not waited for. */
export async function bounded<T>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const stop = new AbortController();
  const late = (): void => stop.abort(new ConnectionError("timeout", `The end did not answer in ${ms} ms`));
  const timer = setTimeout(late, ms);
  const forget = onAbort(signal, () => stop.abort(signal.reason));
  try {
    return await abortable(stop.signal, ignoreRejection(work(stop.signal)));
  } finally {
    clearTimeout(timer);
    forget();
  }
}
