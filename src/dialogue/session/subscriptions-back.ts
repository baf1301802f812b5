// Presents the change notifications of a session-style server as `subscriptions/listen`, for any number of
// subscribers. A resource of the server stays subscribed while at least one subscriber wants it. Each subscriber gets
// what it asked for, as far as the server supports it. Messages outside any call (logs, requests right after the
// handshake) are delivered here too, because a subscription is the only call that is always open.

import type { Caller, Context, Notification, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { Subscriber, Subscribers, type TaskSubscription } from "../../protocol/subscribers.ts";
import { changingLists, filterFor, filterOf, listsIn, namesIn, possibleChanges } from "../../protocol/subscription.ts";
import type { Peer } from "../calls/peer.ts";
import type { SessionHost, SessionRenewal } from "./handshake.ts";

/** The one subscription to a resource: how many subscribers share it, and whether the server granted it. */
interface SharedSubscription {
  count: number;
  readonly isGranted: Promise<boolean>;
}

export class ServerSubscriptions {
  readonly #peer: Peer;
  readonly #renewal: SessionRenewal;
  readonly #session: SessionHost;
  readonly #subscribers = new Subscribers();
  readonly #shared = new Map<string, SharedSubscription>();

  constructor(peer: Peer, renewal: SessionRenewal, session: SessionHost) {
    this.#peer = peer;
    this.#renewal = renewal;
    this.#session = session;
  }

  /** The context for requests of the server outside any call: the newest subscription of a session-style client. */
  askableContext(): Context | undefined {
    return [...this.#subscribers].findLast(({ context: { caller } }) => caller.style === "session")?.context;
  }

  /** Whether all subscribers belong to one client. */
  get isUnambiguous(): boolean {
    const keys = [...this.#subscribers].map(({ context }) => context.caller.key);
    return new Set(keys.filter((key) => key !== INTERNAL_CALLER.key)).size < 2;
  }

  /** A subscription of this client, for messages outside any call; one without resources is preferred. */
  contextOf({ key }: Caller): Context | undefined {
    const ofClient = [...this.#subscribers].filter(({ context }) => context.caller.key === key);
    const withoutResources = ofClient.findLast(({ filter }) => filter.resourceSubscriptions === undefined);
    return (withoutResources ?? ofClient.at(-1))?.context;
  }

  /**
   * Runs until the caller ends it. A subscription to tasks alone also ends when all its tasks have ended. Throws if the
   * connection closes first.
   */
  async listen(request: Request, context: Context, tasks?: TaskSubscription): Promise<Result> {
    const wantedFilter = filterOf(request);
    const lists = listsIn(wantedFilter, changingLists(this.#session.terms.capabilities));
    const uris = [...new Set(namesIn(wantedFilter, "resourceSubscriptions"))];
    // The filter has all URIs before the server answers, since an update may come together with the answer.
    const subscriber = new Subscriber(context, filterFor(lists, { resourceSubscriptions: uris }));
    // A subscription to tasks alone does not get messages outside any call.
    if (tasks === undefined || lists.length > 0 || uris.length > 0) this.#subscribers.add(subscriber);
    const over = new AbortController();
    void subscriber.ended.then(() => over.abort());
    let resourceSubscriptions: readonly string[] = [];
    try {
      resourceSubscriptions = await this.#subscribe(uris);
      subscriber.acknowledge(filterFor(lists, { resourceSubscriptions }), tasks);
      await this.#peer.calls.ended(over.signal);
      return { resultType: "complete" };
    } finally {
      subscriber.end();
      this.#subscribers.delete(subscriber);
      for (const uri of resourceSubscriptions) this.#release(uri);
    }
  }

  /** Subscribes again. `mayHaveMissed`: changes may have been missed, so all is reported as changed. */
  async renew(mayHaveMissed: boolean): Promise<void> {
    const uris = [...this.#shared.keys()];
    await Promise.all(uris.map((uri) => this.#call("resources/subscribe", uri).catch(() => undefined)));
    if (!mayHaveMissed) return;
    const all = filterFor(changingLists(this.#session.terms.capabilities), {
      resourceSubscriptions: [...this.#shared.keys()],
    });
    for (const change of possibleChanges(all)) this.deliver(change);
  }

  deliver(notification: Notification): void {
    if (notification.method === "notifications/message") this.deliverToAll(notification);
    else this.#subscribers.notify(notification);
  }

  /** Delivers a notification that belongs to no call and to no list or resource. */
  deliverToAll(notification: Notification): void {
    const isClient = ({ context }: Subscriber): boolean => context.caller.key !== INTERNAL_CALLER.key;
    if ([...this.#subscribers].some(isClient)) this.#subscribers.notify(notification, isClient);
    else this.#session.defaultContext.notify(notification);
  }

  #call(method: string, uri: string): Promise<Result> {
    return this.#peer.call(method, { uri }, this.#session.defaultContext);
  }

  /** Returns the resources that the server grants. */
  async #subscribe(uris: readonly string[]): Promise<readonly string[]> {
    const { resources } = this.#session.terms.capabilities;
    if (!isObject(resources) || resources["subscribe"] !== true) return [];
    const granted = await Promise.all(uris.map((uri) => this.#join(uri)));
    return uris.filter((_, index) => granted[index]);
  }

  /** Joins the shared subscription to this resource, or creates it. Returns whether the server granted it. */
  async #join(uri: string): Promise<boolean> {
    let shared = this.#shared.get(uri);
    if (shared === undefined) {
      const subscribed = this.#renewal.run(() => this.#call("resources/subscribe", uri));
      shared = {
        count: 0,
        isGranted: subscribed.then(
          () => true,
          () => false,
        ),
      };
      this.#shared.set(uri, shared);
    }
    shared.count += 1;
    const isGranted = await shared.isGranted;
    if (!isGranted && this.#shared.get(uri) === shared) this.#shared.delete(uri);
    return isGranted;
  }

  #release(uri: string): void {
    const shared = this.#shared.get(uri);
    if (shared === undefined || (shared.count -= 1) > 0) return;
    this.#shared.delete(uri);
    this.#call("resources/unsubscribe", uri).catch(() => undefined);
  }
}
