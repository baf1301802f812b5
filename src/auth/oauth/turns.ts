// Turns within this process: work under one name is done one at a time, in the order of asking. All token stores use
// it, the one in memory alone, the others before they ask other processes for a turn (file-lock.ts). Who no longer
// wants its turn leaves the line, and the others move up.

import { onAbort, attempt } from "../../core/async.ts";

export class Turns {
  /** Who waits behind whoever has the turn; a name without work is not here. */
  readonly #lines = new Map<string, (() => void)[]>();

  /** Not for work that itself waits for a turn under the same name: that would wait for itself. */
  async take<T>(name: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const line = this.#lines.get(name);
    if (line === undefined) this.#lines.set(name, []);
    else await stand(line, signal);
    try {
      return await attempt(work);
    } finally {
      const next = this.#lines.get(name)?.shift();
      if (next === undefined) this.#lines.delete(name);
      else next();
    }
  }
}

function stand(line: (() => void)[], signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => {
      // Not there any more: the turn has been given, and must not be lost.
      const place = line.indexOf(next);
      if (place < 0) return;
      line.splice(place, 1);
      forget();
      reject(signal?.reason);
    });
    const next = (): void => {
      forget();
      resolve();
    };
    line.push(next);
  });
}
