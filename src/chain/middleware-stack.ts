// The middleware of a gateway, which can be replaced while requests run. A request finishes with the middleware that it
// began with, and subscriptions move to the new middleware. A replaced middleware is closed once no request uses it.
// Loaded with the first request of a gateway that has middleware.

import { forwardAbort, onAbort, unref, type ForwardedAbort } from "../core/async.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { SETTLE_MS } from "../dialogue/calls/in-flight.ts";
import { LIST_CAPABILITIES, SUBSCRIPTION_ACKNOWLEDGED, changedFlag, changedMethod } from "../protocol/lists.ts";
import { compose } from "./compose.ts";
import { noSuchEntry, release, retain, type ChainEntry } from "./entries.ts";

export class MiddlewareStack {
  readonly #handler: Handler;
  readonly #subscriptions = new Set<MovingSubscription>();
  /** Replaced versions that still have requests, each with a promise that resolves when these are finished. */
  readonly #retired = new Map<StackVersion, Promise<void>>();
  /** Entries that were replaced and are not closed yet. */
  readonly #leaving = new Set<ChainEntry>();
  #entries: readonly ChainEntry[];
  #version: StackVersion;

  constructor(entries: readonly ChainEntry[], handler: Handler) {
    this.#handler = handler;
    this.#entries = entries;
    this.#version = new StackVersion(entries, handler);
  }

  get entries(): readonly ChainEntry[] {
    return this.#entries;
  }

  run(request: Request, context: Context): Promise<Result> {
    return request.method === "subscriptions/listen"
      ? this.#listen(request, context)
      : this.#version.run(request, context);
  }

  replace(name: string, middleware: Middleware): void {
    const at = this.#entries.findIndex((entry) => entry.name === name);
    const old = this.#entries[at];
    if (old === undefined) throw noSuchEntry(name, this.#entries);
    const added: ChainEntry = { name, middleware };
    retain(added);
    const before = this.#version;
    this.#entries = this.#entries.with(at, added);
    this.#version = new StackVersion(this.#entries, this.#handler);
    this.#retired.set(
      before,
      before.retire().then(() => void this.#retired.delete(before)),
    );
    for (const subscription of this.#subscriptions) subscription.moveTo(this.#version);
    this.#leaving.add(old);
    const using = [...this.#retired].filter(([version]) => version.entries.includes(old)).map(([, drained]) => drained);
    void Promise.all(using).then(() => this.#closeOnce(old).catch(() => undefined));
  }

  /** Ends the subscriptions and closes all middleware, even if requests still use it. */
  close(): Promise<void>[] {
    for (const subscription of this.#subscriptions) subscription.end();
    return [
      ...[...this.#leaving].map((entry) => this.#closeOnce(entry)),
      ...this.#entries.map((entry) => release(entry)),
    ];
  }

  async #closeOnce(old: ChainEntry): Promise<void> {
    if (this.#leaving.delete(old)) await release(old);
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const subscription = new MovingSubscription(this.#version, request, context);
    this.#subscriptions.add(subscription);
    try {
      return await subscription.outcome;
    } finally {
      this.#subscriptions.delete(subscription);
    }
  }
}

interface RunningRequest {
  readonly context: Context;
}

/** The middleware as it is until the next replacement, composed once, and the requests that run through it. */
class StackVersion {
  readonly entries: readonly ChainEntry[];
  readonly #handler: Handler;
  readonly #running = new Set<RunningRequest>();
  #drained: (() => void) | undefined;

  constructor(entries: readonly ChainEntry[], handler: Handler) {
    this.entries = entries;
    this.#handler = compose(entries, handler);
  }

  async run(request: Request, context: Context): Promise<Result> {
    const running: RunningRequest = { context };
    this.#running.add(running);
    try {
      return await this.#handler(request, context);
    } finally {
      this.#remove(running);
    }
  }

  /** Resolves when the last request is finished. No request may be started after this call. */
  retire(): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    for (const running of this.#running) {
      // Middleware that never answers must not delay closing once its caller has left.
      const { signal } = running.context;
      const remove = (): void => void unref(setTimeout(() => this.#remove(running), SETTLE_MS));
      if (signal.aborted) remove();
      else onAbort(signal, remove);
    }
    return new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  #remove(running: RunningRequest): void {
    if (this.#running.delete(running) && this.#running.size === 0) this.#drained?.();
  }
}

/** A subscription through one version of the middleware. Each move to another version adds a leg. */
interface Leg {
  readonly stop: ForwardedAbort;
}

/**
 * A `subscriptions/listen` that outlives the middleware that it was opened through. After a replacement it is opened
 * again through the new middleware. The old leg ends only when the new one is acknowledged, so that no notification is
 * lost. The caller gets one acknowledgement. Since the new middleware may show other names, the caller also gets a
 * list-changed notification for each list that it subscribed to.
 */
class MovingSubscription {
  /** Settles when the subscription is over. */
  readonly outcome: Promise<Result>;
  readonly #request: Request;
  readonly #context: Context;
  #resolve: (result: Result) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  /** What the caller's acknowledgement granted. */
  #granted: Readonly<Record<string, unknown>> | undefined;
  /** The leg whose notifications reach the caller. */
  #active: Leg | undefined;
  /** The leg through the current middleware. */
  #newest: Leg | undefined;
  #isOver = false;

  constructor(version: StackVersion, request: Request, context: Context) {
    this.#request = request;
    this.#context = context;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.moveTo(version);
  }

  moveTo(version: StackVersion): void {
    if (this.#isOver) return;
    const leg: Leg = { stop: forwardAbort(this.#context.signal) };
    const before = this.#newest;
    this.#newest = leg;
    // An acknowledged leg stays active until the new leg is acknowledged. Any other leg is stopped at once.
    if (before !== undefined && (before !== this.#active || this.#granted === undefined)) before.stop.abort(MOVED);
    if (this.#granted === undefined) this.#active = leg;
    const notify = (notification: Notification): void => this.#receive(leg, notification);
    version.run(this.#request, { ...this.#context, signal: leg.stop.signal, notify }).then(
      (result) => this.#settle(leg, () => this.#resolve(result)),
      (error: unknown) => this.#settle(leg, () => this.#reject(error)),
    );
  }

  end(): void {
    this.#finish(() => this.#resolve({ resultType: "complete" }));
  }

  #receive(leg: Leg, notification: Notification): void {
    if (this.#isOver) return;
    if (notification.method === SUBSCRIPTION_ACKNOWLEDGED && leg === this.#newest) this.#acknowledge(leg, notification);
    else if (leg === this.#active) this.#context.notify(notification);
  }

  #acknowledge(leg: Leg, notification: Notification): void {
    const granted = notification.params?.["notifications"];
    if (this.#granted === undefined) {
      this.#granted = isObject(granted) ? granted : {};
      this.#context.notify(notification);
      return;
    }
    // A repeated acknowledgement of the same leg.
    if (leg === this.#active) return;
    this.#active?.stop.abort(MOVED);
    this.#active = leg;
    for (const capability of LIST_CAPABILITIES) {
      if (this.#granted[changedFlag(capability)] === true) this.#context.notify({ method: changedMethod(capability) });
    }
  }

  #settle(leg: Leg, settle: () => void): void {
    leg.stop.forget();
    if (leg === this.#newest) this.#finish(settle);
  }

  #finish(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    settle();
    this.#active?.stop.abort(OVER);
    this.#newest?.stop.abort(OVER);
  }
}

const MOVED = new Error("The subscription moved to other middleware");
const OVER = new Error("The subscription is over");
