// How long to wait before an end is tried again: ever longer, never exactly the same, so that many callers of one end
// that came back do not all knock at once. Also the waiting itself, which the end of a request ends.

import { onAbort } from "../core/abort.ts";

const FIRST_MS = 1_000;
const FACTOR = 1.6;
const JITTER = 0.2;
const LONGEST_MS = 60_000;

/** After so many failures in a row, from 0. */
export function backoffMs(failures: number): number {
  const plain = Math.min(FIRST_MS * FACTOR ** failures, LONGEST_MS);
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
