// Presents the change notifications of a session-style server as `subscriptions/listen`, for any number of
// subscribers. A resource of the server stays subscribed while at least one subscriber wants it. Each subscriber gets
// what it asked for, as far as the server supports it. Messages outside any call (logs, requests right after the
// handshake) are delivered here too, because a subscription is the only call that is always open.

import { onAbort } from "../../core/async.ts";
import type { Caller, Context, Notification, Request, Result } from "../../core/handler.ts";
import {
  changedFlag,
  changedMethod,
  LIST_CAPABILITIES,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
} from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import type { SessionRenewal } from "./handshake.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import type { TaskSubscription } from "../../tasks/store.ts";
import type { Peer } from "../calls/peer.ts";

interface Subscriber {
  readonly context: Context;
  readonly flags: ReadonlySet<string>;
  readonly uris: Set<string>;
  /** Notifications that came before the acknowledgement; undefined once it is sent. */
  early: Notification[] | undefined;
}

/** The one subscription to a resource: how many subscribers share it, and whether the server granted it. */
interface SharedSubscription {
  count: number;
  readonly granted: Promise<boolean>;
}

const FLAG_OF: Readonly<Record<string, string>> = Object.fromEntries(
  LIST_CAPABILITIES.map((capability) => [changedMethod(capability), changedFlag(capability)]),
);

export class ServerSubscriptions {
  readonly #peer: Peer;
  readonly #inSession: SessionRenewal["run"];
  readonly #capabilities: () => Json;
  readonly #defaultContext: Context;
  readonly #subscribers = new Set<Subscriber>();
  readonly #shared = new Map<string, SharedSubscription>();

  /** `inSession` runs work in a session, renewing it if it is lost. */
  constructor(peer: Peer, inSession: SessionRenewal["run"], capabilities: () => Json, defaultContext: Context) {
    this.#peer = peer;
    this.#inSession = inSession;
    this.#capabilities = capabilities;
    this.#defaultContext = defaultContext;
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
    const own = [...this.#subscribers].filter(({ context }) => context.caller.key === key);
    return (own.findLast(({ uris }) => uris.size === 0) ?? own.at(-1))?.context;
  }

  /**
   * Runs until the caller ends it. A subscription to tasks alone also ends when all its tasks have ended. Throws if the
   * connection closes first.
   */
  async listen(request: Request, context: Context, tasks?: TaskSubscription): Promise<Result> {
    const wanted = request.params["notifications"] as Json;
    const flags = Object.values(FLAG_OF).filter((flag) => wanted[flag] === true && this.#canChange(flag));
    const uris = (wanted["resourceSubscriptions"] as readonly string[] | undefined) ?? [];
    const subscriber: Subscriber = { context, flags: new Set(flags), uris: new Set(), early: [] };
    // A subscription to tasks alone does not get messages outside any call.
    const isTasksOnly = tasks !== undefined && flags.length === 0 && uris.length === 0;
    if (!isTasksOnly) this.#subscribers.add(subscriber);
    const over = new AbortController();
    const forget = onAbort(context.signal, () => over.abort());
    if (context.signal.aborted) over.abort();
    let stop = (): void => undefined;
    try {
      await this.#subscribe(subscriber, uris);
      const granted = {
        ...Object.fromEntries(flags.map((flag) => [flag, true])),
        ...(subscriber.uris.size > 0 ? { resourceSubscriptions: [...subscriber.uris] } : undefined),
        ...tasks?.granted,
      };
      context.notify({ method: SUBSCRIPTION_ACKNOWLEDGED, params: { notifications: granted } });
      const early = subscriber.early ?? [];
      subscriber.early = undefined;
      for (const notification of early) context.notify(notification);
      stop = tasks?.begin(() => (isTasksOnly ? over.abort() : undefined)) ?? stop;
      await this.#peer.untilClosed(over.signal);
      return { resultType: "complete" };
    } finally {
      stop();
      forget();
      this.#subscribers.delete(subscriber);
      for (const uri of subscriber.uris) this.#release(uri);
    }
  }

  /** Subscribes again. `mayHaveMissed`: changes may have been missed, so all is reported as changed. */
  async renew(mayHaveMissed: boolean): Promise<void> {
    const uris = [...this.#shared.keys()];
    await Promise.all(
      uris.map((uri) =>
        this.#peer.call("resources/subscribe", () => ({ uri }), this.#defaultContext).catch(() => undefined),
      ),
    );
    if (mayHaveMissed) this.#notifyAll();
  }

  #notifyAll(): void {
    for (const [method, flag] of Object.entries(FLAG_OF)) if (this.#canChange(flag)) this.deliver({ method });
    for (const uri of this.#shared.keys()) this.deliver({ method: RESOURCE_UPDATED, params: { uri } });
  }

  deliver(notification: Notification): void {
    if (notification.method === "notifications/message") {
      this.deliverToAll(notification);
      return;
    }
    const flag = FLAG_OF[notification.method];
    const uri = notification.method === RESOURCE_UPDATED ? notification.params?.["uri"] : undefined;
    for (const subscriber of this.#subscribers) {
      if (flag !== undefined ? subscriber.flags.has(flag) : typeof uri === "string" && covers(subscriber.uris, uri)) {
        this.#notify(subscriber, notification);
      }
    }
  }

  /** Delivers a notification that belongs to no call and to no list or resource. */
  deliverToAll(notification: Notification): void {
    const clients = [...this.#subscribers].filter(({ context }) => context.caller.key !== INTERNAL_CALLER.key);
    for (const client of clients) this.#notify(client, notification);
    if (clients.length === 0) this.#defaultContext.notify(notification);
  }

  #notify(subscriber: Subscriber, notification: Notification): void {
    if (subscriber.early === undefined) subscriber.context.notify(notification);
    else subscriber.early.push(notification);
  }

  #canChange(flag: string): boolean {
    const capability = this.#capabilities()[flag.replace("ListChanged", "")] as Json | undefined;
    return capability?.["listChanged"] === true;
  }

  /** Resources that the server refuses are left out of the acknowledgement. */
  async #subscribe(subscriber: Subscriber, uris: readonly string[]): Promise<void> {
    if ((this.#capabilities()["resources"] as Json | undefined)?.["subscribe"] !== true) return;
    const wanted = [...new Set(uris)];
    // The URIs are added before the answer, since an update may come together with the answer.
    for (const uri of wanted) subscriber.uris.add(uri);
    const granted = await Promise.all(wanted.map((uri) => this.#join(uri)));
    for (const [index, uri] of wanted.entries()) if (granted[index] !== true) subscriber.uris.delete(uri);
  }

  /** Joins the shared subscription to this resource, or creates it. Returns whether the server granted it. */
  async #join(uri: string): Promise<boolean> {
    let shared = this.#shared.get(uri);
    if (shared === undefined) {
      const subscribed = this.#inSession(() =>
        this.#peer.call("resources/subscribe", () => ({ uri }), this.#defaultContext),
      );
      shared = {
        count: 0,
        granted: subscribed.then(
          () => true,
          () => false,
        ),
      };
      this.#shared.set(uri, shared);
    }
    shared.count += 1;
    if (await shared.granted) return true;
    this.#leave(uri, shared);
    return false;
  }

  /** Returns whether that was the last subscriber. */
  #leave(uri: string, shared: SharedSubscription): boolean {
    shared.count -= 1;
    if (shared.count > 0 || this.#shared.get(uri) !== shared) return false;
    return this.#shared.delete(uri);
  }

  #release(uri: string): void {
    const shared = this.#shared.get(uri);
    if (shared === undefined || !this.#leave(uri, shared)) return;
    this.#peer.call("resources/unsubscribe", () => ({ uri }), this.#defaultContext).catch(() => undefined);
  }
}

/** An update may name a sub-resource of what was subscribed to. */
function covers(uris: ReadonlySet<string>, uri: string): boolean {
  if (uris.has(uri)) return true;
  for (const whole of uris) {
    if (uri.startsWith(whole) && (whole.endsWith("/") || "/?#".includes(uri.charAt(whole.length)))) return true;
  }
  return false;
}
