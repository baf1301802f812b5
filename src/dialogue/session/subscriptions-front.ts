// The subscriptions that a session keeps with its handler: one for changed lists, which also carries messages outside
// any call, and one for each resource that the client subscribed to. Each message is authenticated on its own, so a
// second `resources/subscribe` for the same URI may have another caller. It opens a new subscription, which replaces
// the old one once granted. A subscription that ends is opened again with backoff, since sessions have no message that
// reports the end to the client. After the reopening, the client is notified that it may have missed changes.

import { abortable } from "../../core/async.ts";
import type { Caller, Context, Handler, Notification, Result } from "../../core/handler.ts";
import { invalidParams, McpError, methodNotFound, errorKind } from "../../protocol/errors.ts";
import { changedFlag, LIST_CAPABILITIES, RESOURCE_UPDATED, SUBSCRIPTION_ACKNOWLEDGED } from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import {
  isLasting,
  keepSubscribed,
  type EndedSubscription,
  type Grant,
  type Reopens,
} from "../../protocol/subscription.ts";

const MAX_SUBSCRIPTIONS = 10_000;

type Filter = Readonly<Record<string, unknown>>;

/** The session that a subscription belongs to. It provides the context, and sends notifications to the client. */
export interface SubscriptionHost {
  readonly context: Omit<Context, "signal" | "notify">;
  deliver(notification: Notification): void;
}

export class ClientSubscriptions {
  readonly #handler: Handler;
  /** By URI: the granted subscription, and those that are not granted yet. */
  readonly #resources = new Map<string, Set<Subscription>>();
  #lists: Subscription | undefined;
  #host: SubscriptionHost | undefined;
  #canSubscribe = false;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  /** Subscribes to all lists that the server says can change. */
  start(host: SubscriptionHost, capabilities: Json): void {
    this.#host = host;
    this.#canSubscribe = (capabilities["resources"] as Json | undefined)?.["subscribe"] === true;
    const changing = LIST_CAPABILITIES.filter(
      (name) => (capabilities[name] as Json | undefined)?.["listChanged"] === true,
    );
    const filter = Object.fromEntries(changing.map((name) => [changedFlag(name), true]));
    this.#lists = new Subscription(this.#handler, host, filter);
    this.#lists.open().catch(() => undefined);
  }

  async subscribe(uri: string, caller: Caller): Promise<void> {
    const host = this.#host;
    if (!this.#canSubscribe || host === undefined) throw methodNotFound("resources/subscribe");
    const all = this.#subscriptionsTo(uri);
    const own: SubscriptionHost = { ...host, context: { ...host.context, caller } };
    const subscription = new Subscription(this.#handler, own, { resourceSubscriptions: [uri] });
    all.add(subscription);
    try {
      const uris = (await subscription.open())["resourceSubscriptions"];
      const isGranted = Array.isArray(uris) && uris.includes(uri);
      if (!isGranted) throw invalidParams(`Updates of ${uri} cannot be subscribed to`, { uri });
    } catch (error) {
      this.#remove(uri, all, subscription);
      throw error;
    }
    // The client may have unsubscribed meanwhile.
    if (!all.has(subscription)) return;
    for (const other of [...all]) if (other !== subscription && other.isGranted) this.#remove(uri, all, other);
  }

  async unsubscribe(uri: string): Promise<void> {
    if (!this.#canSubscribe) throw methodNotFound("resources/unsubscribe");
    this.#removeAll(uri);
  }

  close(): void {
    this.#lists?.close();
    for (const uri of [...this.#resources.keys()]) this.#removeAll(uri);
  }

  #subscriptionsTo(uri: string): Set<Subscription> {
    const found = this.#resources.get(uri);
    if (found !== undefined) return found;
    if (this.#resources.size >= MAX_SUBSCRIPTIONS) {
      throw McpError.of("rate_limited", `A session has at most ${MAX_SUBSCRIPTIONS} subscriptions`, { uri });
    }
    const added = new Set<Subscription>();
    this.#resources.set(uri, added);
    return added;
  }

  #removeAll(uri: string): void {
    const all = this.#resources.get(uri) ?? new Set();
    for (const subscription of [...all]) this.#remove(uri, all, subscription);
  }

  #remove(uri: string, all: Set<Subscription>, subscription: Subscription): void {
    subscription.close();
    all.delete(subscription);
    // A newer set may have replaced this one.
    if (all.size === 0 && this.#resources.get(uri) === all) this.#resources.delete(uri);
  }
}

/** One `subscriptions/listen`. If it ends before it is closed, it is opened again. */
class Subscription {
  readonly #handler: Handler;
  readonly #host: SubscriptionHost;
  readonly #filter: Filter;
  readonly #stop = new AbortController();
  /** Whether the subscription was ever acknowledged. */
  isGranted = false;

  constructor(handler: Handler, host: SubscriptionHost, filter: Filter) {
    this.#handler = handler;
    this.#host = host;
    this.#filter = filter;
  }

  /** Resolves to the part of the filter that the server grants. */
  open(): Promise<Filter> {
    const { signal } = this.#stop;
    const isOfResource = "resourceSubscriptions" in this.#filter;
    const grant: Grant = { granted: undefined };
    const reopens = ({ granted, error }: EndedSubscription): Reopens => {
      // The client learns that its subscription to a resource has failed, and can subscribe again.
      if (isOfResource && grant.granted === undefined) return false;
      // A server without subscriptions will not have them later either.
      const mayReopen = error === undefined ? isLasting(granted) : errorKind(error) !== "method_not_found";
      return mayReopen && "later";
    };
    return new Promise<Filter>((resolve, reject) => {
      const notify = (notification: Notification): void => {
        if (signal.aborted) return;
        if (notification.method === SUBSCRIPTION_ACKNOWLEDGED) {
          this.isGranted = true;
          resolve((notification.params?.["notifications"] as Filter | undefined) ?? {});
        } else if (this.#carries(notification)) this.#host.deliver(notification);
      };
      const request = { method: "subscriptions/listen", params: { notifications: this.#filter } };
      const context: Context = { ...this.#host.context, signal, notify };
      const open = (own: Context): Promise<Result> => this.#handler(request, own);
      const listening = keepSubscribed(context, grant, { open, reopens });
      abortable(signal, listening).then(() => resolve({}), reject);
    });
  }

  close(): void {
    this.#stop.abort(new Error("The subscription is over"));
  }

  /** A resource subscription delivers updates; the list subscription delivers everything else, except progress. */
  #carries({ method }: Notification): boolean {
    if (method === "notifications/progress") return false;
    return (method === RESOURCE_UPDATED) === "resourceSubscriptions" in this.#filter;
  }
}
