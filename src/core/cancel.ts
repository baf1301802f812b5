// A cancellation token that creates its AbortSignal on first use. A signal is expensive and most calls are never
// aborted, so our own code watches the token instead. A context stores its token under a symbol. A spread of the context
// copies the symbol but may have another signal, so the token is used only for the context that it is stored for.
// A spread reads the signal and so creates it; `copyContext` does not.

import { onAbort } from "./async.ts";
import type { Context } from "./handler.ts";
import type { Optional } from "./values.ts";

export const CANCEL_TOKEN: unique symbol = Symbol("catenary.cancelToken");

/** A token as a context stores it, with that context. A token is one itself, for the first context that it is for. */
interface StoredToken {
  readonly token: CancelToken;
  context: Context | undefined;
}

/** A context with a token, or a wrapper whose `wrapped` returns such a context. */
export type CancellableContext = Context & { readonly [CANCEL_TOKEN]?: StoredToken; wrapped?(): Context };

type RequiredFields = "revision" | "caller" | "notify" | "ask";

/** A context before `attachTo` gives it its signal. What it lacks may be undefined: a spread would cost more. */
export type ContextBeforeSignal = Pick<Context, RequiredFields> &
  Optional<Omit<Context, RequiredFields | "signal">> & { readonly [CANCEL_TOKEN]: StoredToken };

/** One getter for all contexts, and a property of each: a spread must copy it, as it copies what it returns. */
function getSignal(this: ContextBeforeSignal): AbortSignal {
  return this[CANCEL_TOKEN].token.signal;
}

interface WithDefineGetter {
  __defineGetter__(name: string, get: () => unknown): void;
}

function addSignal(context: ContextBeforeSignal): Context {
  // Takes less time than `Object.defineProperty`, and every request and every copy of a context needs it.
  (context as unknown as WithDefineGetter).__defineGetter__("signal", getSignal);
  return context as unknown as Context;
}

export class CancelToken implements StoredToken {
  readonly token: CancelToken = this;
  context: Context | undefined;
  aborted = false;
  #controller: AbortController | undefined;
  #reason: unknown;
  #listeners: Set<() => void> | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get reason(): unknown {
    return this.#reason;
  }

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.#reason = reason;
    this.#controller?.abort(reason);
    for (const listener of this.#listeners ?? []) listener();
    this.#listeners = undefined;
  }

  /** Adds this token's signal to the context, which stores the token, and returns the context. */
  attachTo(context: ContextBeforeSignal): Context {
    const attached = addSignal(context);
    this.context ??= attached;
    return attached;
  }

  /** Called once the call is answered, so that a token that lives on does not keep the request's data in memory. */
  detach(): void {
    this.context = undefined;
  }

  /** `listener` must be a new function, since a function is stored only once. Returns a function that removes it. */
  watch(listener: () => void): () => void {
    const listeners = (this.#listeners ??= new Set());
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }
}

/** What ends work: an AbortSignal, or a token, which costs less. */
export type Cancellation = AbortSignal | CancelToken;

/** Calls `listener` once when the work is cancelled. It must be a new function. Returns a function to remove it. */
export function onCancellation(cancellation: Cancellation | undefined, listener: () => void): () => void {
  return cancellation instanceof CancelToken ? cancellation.watch(listener) : onAbort(cancellation, listener);
}

export function signalOf(cancellation: Cancellation): AbortSignal {
  return cancellation instanceof CancelToken ? cancellation.signal : cancellation;
}

type CancellableFields = Pick<CancellableContext, "signal" | typeof CANCEL_TOKEN | "wrapped">;

function cancelTokenOf(context: CancellableFields): CancelToken | undefined {
  const inner: CancellableFields = context.wrapped?.() ?? context;
  const stored = inner[CANCEL_TOKEN];
  return stored?.context === inner ? stored.token : undefined;
}

export function isCancelled(context: CancellableFields): boolean {
  return (cancelTokenOf(context) ?? context.signal).aborted;
}

/** Calls `listener` once when the context is cancelled. It must be a new function. Returns a function to remove it. */
export function onCancel(context: CancellableFields, listener: () => void): () => void {
  return cancelTokenOf(context)?.watch(listener) ?? onAbort(context.signal, listener);
}

/** Whether it is a copy by `copyContext`, so that its functions are those of built-in middleware. */
export function isOurCopy(context: CancellableContext): boolean {
  return context[CANCEL_TOKEN]?.context === context;
}

type ContextChanges = Partial<
  Pick<Context, "caller" | "notify" | "ask" | "item" | "observer" | "headers" | "headersChecked">
>;

type ContextFields = { readonly [Name in keyof Context]: unknown };
/** So that a new field of a context must be copied too. */
type CopiedFields = { readonly [Name in Exclude<keyof Context, "signal"> | typeof CANCEL_TOKEN]: unknown };

/** The same as `{ ...context, ...changes }`, but the signal is still created on first use. */
export function copyContext(context: CancellableContext, changes: ContextChanges): Context {
  const stored = context[CANCEL_TOKEN];
  if (stored?.context !== context) return { ...context, ...changes };
  const storedForCopy: StoredToken = { token: stored.token, context: undefined };
  // A token is stored only for contexts of our own, which have no other fields.
  const fields: ContextFields = context;
  const copy: CopiedFields = {
    [CANCEL_TOKEN]: storedForCopy,
    revision: fields.revision,
    caller: changes.caller ?? fields.caller,
    logLevel: fields.logLevel,
    timeouts: fields.timeouts,
    notify: changes.notify ?? fields.notify,
    ask: changes.ask ?? fields.ask,
    hangUp: fields.hangUp,
    isNotification: fields.isNotification,
    session: fields.session,
    task: fields.task,
    item: changes.item ?? fields.item,
    observer: changes.observer ?? fields.observer,
    wire: fields.wire,
    headers: changes.headers ?? fields.headers,
    headersChecked: changes.headersChecked ?? fields.headersChecked,
    run: fields.run,
  };
  return (storedForCopy.context = addSignal(copy as unknown as ContextBeforeSignal));
}
