// A signal of one's own that ends with another's: what is passed on can be ended alone, and is ended in any case when
// the caller goes. Whoever made it lets go of the other signal when its work is over.

import { onAbort } from "../../core/async.ts";

export interface Following {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** No longer follows; what has not ended by then goes on. */
  forget(): void;
}

export function following(signal: AbortSignal): Following {
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
