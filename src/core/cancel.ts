// The end of a call's work, and who is told of it. A signal is dear, and most calls are never aborted: it is made when
// somebody looks at it, and our own code is told without one. A context carries its stop under a symbol; a copy of the
// context carries it too, but may have another signal, so the stop counts for the one context that it was lent to.

import { onAbort } from "./async.ts";
import type { Context } from "./handler.ts";

export const CANCEL_TOKEN: unique symbol = Symbol("catenary.stop");

/** A context whose signal is made on demand, or one of a class that stands in front of such a one. */
export type CancellableContext = Context & { readonly [CANCEL_TOKEN]?: CancelToken; behind?(): Context };

/** One that has no signal yet. */
export type ContextBeforeSignal = Omit<CancellableContext, "signal"> & { readonly [CANCEL_TOKEN]: CancelToken };

// One getter for all contexts: objects that each have a getter of their own are slow ones.
const SIGNAL = {
  get(this: ContextBeforeSignal): AbortSignal {
    return this[CANCEL_TOKEN].signal;
  },
  enumerable: true,
  configurable: true,
};

/** Aborted once, for one reason. */
export class CancelToken {
  aborted = false;
  #controller: AbortController | undefined;
  #reason: unknown;
  #acts: Set<() => void> | undefined;
  #borrower: Context | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const act of this.#acts ?? []) act();
    this.#acts = undefined;
  }

  /** The context whose signal is this stop's, with that signal. */
  lend(context: ContextBeforeSignal): Context {
    this.#borrower = Object.defineProperty<unknown>(context, "signal", SIGNAL) as Context;
    return this.#borrower;
  }

  /** The call is answered: what its caller sent need not be kept for as long as this is. */
  release(): void {
    this.#borrower = undefined;
  }

  isOf(context: Pick<Context, "signal">): boolean {
    return this.#borrower === context;
  }

  /** `act` must be a function of its own. */
  watch(act: () => void): () => void {
    const acts = (this.#acts ??= new Set());
    acts.add(act);
    return () => void acts.delete(act);
  }
}

type CancellableFields = Pick<CancellableContext, "signal" | typeof CANCEL_TOKEN | "behind">;

function cancelTokenOf(context: CancellableFields): CancelToken | undefined {
  const own: CancellableFields = context.behind?.() ?? context;
  const stop = own[CANCEL_TOKEN];
  return stop?.isOf(own) === true ? stop : undefined;
}

/** Whether nobody wants the result any more. */
export function isCancelled(context: CancellableFields): boolean {
  return (cancelTokenOf(context) ?? context.signal).aborted;
}

/** Calls `act`, a function of its own, once when the context's signal is aborted; returns how to take that back. */
export function onCancel(context: CancellableFields, act: () => void): () => void {
  return cancelTokenOf(context)?.watch(act) ?? onAbort(context.signal, act);
}
