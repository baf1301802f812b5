// The subscriptions that a session keeps with its handler: one for changed lists, which also carries messages outside
// any call, and one for each resource that the client subscribed to. Each message is authenticated on its own, so a
// second `resources/subscribe` for the same URI may have another caller. It opens a new subscription, which replaces
// the old one once granted. A subscription that ends is opened again with backoff, since sessions have no message that
// reports the end to the client. After the reopening, the client is notified that it may have missed changes.

import { abortable, ignoreRejection } from "../../core/async.ts";
import type { Caller, Context, Handler, Notification, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { errorKind, invalidParams, McpError, methodNotFound } from "../../protocol/errors.ts";
import {
  isLasting,
  keepSubscribed,
  type EndedSubscription,
  type Grant,
  type Reopens,
} from "../../protocol/keep-subscribed.ts";
import type { SubscriptionFilter } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import {
  changingLists,
  filterFor,
  grantedIn,
  listenRequest,
  namesIn,
  RESOURCE_UPDATED,
} from "../../protocol/subscription.ts";

const MAX_SUBSCRIPTIONS = 10_000;

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
    const { resources } = capabilities;
    this.#host = host;
    this.#canSubscribe = isObject(resources) && resources["subscribe"] === true;
    this.#lists = new Subscription(this.#handler, host, filterFor(changingLists(capabilities)));
    void ignoreRejection(this.#lists.granted);
  }

  async subscribe(uri: string, caller: Caller): Promise<void> {
    const host = this.#host;
    if (!this.#canSubscribe || host === undefined) throw methodNotFound("resources/subscribe");
    const all = this.#resources.get(uri) ?? new Set();
    if (all.size === 0 && this.#resources.size >= MAX_SUBSCRIPTIONS) {
      throw McpError.of("rate_limited", `A session has at most ${MAX_SUBSCRIPTIONS} subscriptions`, { uri });
    }
    const filter = { resourceSubscriptions: [uri] };
    const deliver = (notification: Notification): void => {
      // One copy of each update, however many subscriptions of the session cover it.
      const updated = notification.params?.["uri"];
      if (typeof updated !== "string" || this.#closest(updated) === uri) host.deliver(notification);
    };
    const added = new Subscription(this.#handler, { context: { ...host.context, caller }, deliver }, filter);
    this.#resources.set(uri, all.add(added));
    try {
      const isGranted = namesIn(await added.granted, "resourceSubscriptions").includes(uri);
      if (!isGranted) throw invalidParams(`Updates of ${uri} cannot be subscribed to`, { uri });
    } catch (error) {
      this.#remove(uri, (subscription) => subscription === added);
      throw error;
    }
    // The client may have unsubscribed meanwhile.
    const isKept = this.#resources.get(uri)?.has(added);
    if (isKept) this.#remove(uri, (subscription) => subscription !== added && subscription.isGranted);
  }

  async unsubscribe(uri: string): Promise<void> {
    if (!this.#canSubscribe) throw methodNotFound("resources/unsubscribe");
    this.#remove(uri);
  }

  close(): void {
    this.#lists?.close();
    for (const uri of this.#resources.keys()) this.#remove(uri);
  }

  /** The longest URI with a granted subscription that covers this one (see `covers`). */
  #closest(updated: string): string | undefined {
    let uri = "";
    let closest: string | undefined;
    for (const part of updated.split(/(?=[/?#])|(?<=\/)/)) {
      uri += part;
      for (const { isGranted } of this.#resources.get(uri) ?? []) if (isGranted) closest = uri;
    }
    return closest;
  }

  #remove(uri: string, isRemoved: (subscription: Subscription) => boolean = () => true): void {
    const all = this.#resources.get(uri) ?? new Set();
    for (const subscription of all) if (isRemoved(subscription) && all.delete(subscription)) subscription.close();
    if (all.size === 0) this.#resources.delete(uri);
  }
}

/** One `subscriptions/listen`. If it ends before it is closed, it is opened again. */
class Subscription {
  /** Resolves to the part of the filter that the server grants. */
  readonly granted: Promise<SubscriptionFilter>;
  readonly #grant: Grant = { granted: undefined };
  readonly #stop = new AbortController();

  constructor(handler: Handler, host: SubscriptionHost, filter: SubscriptionFilter) {
    const { signal } = this.#stop;
    const isOfResource = filter.resourceSubscriptions !== undefined;
    const open = (context: Context): Promise<Result> => handler(listenRequest(filter), context);
    const reopens = ({ granted, error }: EndedSubscription): Reopens => {
      // The client learns that its subscription to a resource has failed, and can subscribe again.
      if (isOfResource && !this.isGranted) return false;
      // A server without subscriptions will not have them later either.
      const mayReopen = error === undefined ? isLasting(granted) : errorKind(error) !== "method_not_found";
      return mayReopen && "later";
    };
    this.granted = new Promise((resolve, reject) => {
      const notify = (notification: Notification): void => {
        if (signal.aborted) return;
        const { method } = notification;
        const granted = grantedIn(notification);
        if (granted !== undefined) resolve(granted);
        // That of a resource delivers updates; that of the lists delivers everything else, except progress.
        else if ((method === RESOURCE_UPDATED) === isOfResource && method !== "notifications/progress") {
          host.deliver(notification);
        }
      };
      const listening = keepSubscribed({ ...host.context, signal, notify }, this.#grant, { open, reopens });
      abortable(signal, listening).then(() => resolve({}), reject);
    });
  }

  get isGranted(): boolean {
    return this.#grant.granted !== undefined;
  }

  close(): void {
    this.#stop.abort(new Error("The subscription is over"));
  }
}
