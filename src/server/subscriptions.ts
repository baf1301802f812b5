// `subscriptions/listen`: notifies of changes of lists, resources and tasks, in one long request for each subscriber.
// The first notification lists what was granted. The request ends when the caller cancels it, when the server closes,
// when only tasks were granted and all of them are finished, or at once if nothing was granted to a stateless caller. The
// connection adds the subscription id to the notifications.

import { afterEvents } from "../core/async.ts";
import {
  type Context,
  LOG_LEVELS,
  type LogLevel,
  type Notification,
  type Params,
  type Request,
} from "../core/handler.ts";
import { checkNotification } from "../tools/content.ts";
import { isVendorMethod } from "../protocol/revisions/standard-methods.ts";
import {
  changedFlag,
  changedMethod,
  LIST_CAPABILITIES,
  type ListCapability,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
} from "../protocol/lists.ts";
import type { SubscriptionFilter } from "../protocol/model/index.ts";
import type { TaskSubscription } from "../tasks/store.ts";

/** What can be subscribed to right now. */
export interface Offer {
  readonly lists: readonly ListCapability[];
  readonly uris: readonly string[];
}

interface Subscriber {
  /** Whether messages that belong to no list, resource or task go here. A session has one such subscription. */
  readonly isMain: boolean;
  /** A session filters by its own level, which may change. */
  readonly logLevel: LogLevel | undefined;
  readonly lists: ReadonlySet<ListCapability>;
  readonly uris: ReadonlySet<string>;
  readonly notify: (notification: Notification) => void;
  readonly end: () => void;
}

export class Subscriptions {
  readonly #subscribers = new Set<Subscriber>();
  readonly #changedLists = new Set<ListCapability>();
  readonly #broadcaster = new Broadcaster<Subscriber>();

  /** Resolves when the subscription has ended. */
  async listen({ params }: Request, context: Context, offer: Offer, tasks?: TaskSubscription): Promise<void> {
    const filter = params["notifications"] as SubscriptionFilter;
    const lists = new Set(offer.lists.filter((list) => filter[changedFlag(list)] === true));
    const uris = new Set(offer.uris);
    const granted: SubscriptionFilter = {
      ...Object.fromEntries(Array.from(lists, (list) => [changedFlag(list), true])),
      ...(uris.size === 0 ? undefined : { resourceSubscriptions: [...uris] }),
      ...tasks?.granted,
    };
    context.notify({
      method: SUBSCRIPTION_ACKNOWLEDGED,
      params: { notifications: granted },
    });
    const { signal } = context;
    const hasChanges = lists.size > 0 || uris.size > 0;
    // The subscription of a session to the lists also carries vendors' notifications.
    const { resourceSubscriptions, taskIds } = filter;
    const isStream = context.caller.style === "session" && resourceSubscriptions === undefined && taskIds === undefined;
    if ((!hasChanges && !isStream && tasks === undefined) || signal.aborted) return;
    let stopTasks = (): void => undefined;
    await new Promise<void>((resolve) => {
      const subscriber: Subscriber = {
        isMain: context.caller.style === "stateless" || isStream,
        logLevel: context.caller.style === "stateless" ? context.logLevel : "debug",
        lists,
        uris,
        notify: (notification) => context.notify(notification),
        end: () => {
          this.#subscribers.delete(subscriber);
          signal.removeEventListener("abort", subscriber.end);
          stopTasks();
          resolve();
        },
      };
      this.#subscribers.add(subscriber);
      signal.addEventListener("abort", subscriber.end);
      stopTasks = tasks?.begin(() => (hasChanges ? undefined : subscriber.end())) ?? stopTasks;
    });
  }

  /** Several changes of a list in one tick cause one notification. */
  listChanged(list: ListCapability): void {
    if (this.#subscribers.size === 0) return;
    if (this.#changedLists.size === 0) queueMicrotask(() => this.#flush());
    this.#changedLists.add(list);
  }

  resourceUpdated(uri: string): void {
    this.#notify((subscriber) => subscriber.uris.has(uri), {
      method: RESOURCE_UPDATED,
      params: { uri },
    });
  }

  /** Sends a vendor's notification to every client that subscribed, or tells that a list may have changed for some. */
  notifyAll(notification: Notification): void {
    checkNotification(notification);
    const list = LIST_CAPABILITIES.find((name) => changedMethod(name) === notification.method);
    if (list !== undefined) return this.listChanged(list);
    if (!isVendorMethod(notification.method)) {
      throw new TypeError(`${notification.method} is a method of the protocol, which the server sends itself`);
    }
    this.#notify(({ isMain }) => isMain, notification);
  }

  log(level: LogLevel, params: Params): void {
    const urgency = LOG_LEVELS.indexOf(level);
    const isWanted = ({ isMain, logLevel }: Subscriber): boolean =>
      isMain && logLevel !== undefined && urgency >= LOG_LEVELS.indexOf(logLevel);
    this.#notify(isWanted, { method: "notifications/message", params });
  }

  close(): void {
    for (const subscriber of this.#subscribers) subscriber.end();
  }

  #flush(): void {
    const lists = [...this.#changedLists];
    this.#changedLists.clear();
    for (const list of lists) {
      this.#notify((subscriber) => subscriber.lists.has(list), {
        method: changedMethod(list),
      });
    }
  }

  #notify(isFor: (subscriber: Subscriber) => boolean, notification: Notification): void {
    this.#broadcaster.send([...this.#subscribers].filter(isFor), (subscriber) => {
      if (this.#subscribers.has(subscriber)) subscriber.notify(notification);
    });
  }
}

/** Deliveries in one turn of the event loop: a few milliseconds of work. */
const BATCH_SIZE = 64;

interface Broadcast<Receiver> {
  readonly receivers: readonly Receiver[];
  readonly deliver: (receiver: Receiver) => void;
  delivered: number;
}

/**
 * Delivers to many receivers in batches, so that ten thousand subscribers do not block other requests. Broadcasts are
 * delivered one after the other, so every receiver sees them in order.
 */
export class Broadcaster<Receiver> {
  readonly #queue: Broadcast<Receiver>[] = [];

  /** The first batch is delivered at once, unless an earlier broadcast is still under way. */
  send(receivers: readonly Receiver[], deliver: (receiver: Receiver) => void): void {
    this.#queue.push({ receivers, deliver, delivered: 0 });
    if (this.#queue.length === 1) this.#deliverBatch();
  }

  #deliverBatch(): void {
    let left = BATCH_SIZE;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const end = Math.min(next.receivers.length, next.delivered + left);
      left -= end - next.delivered;
      while (next.delivered < end) attempt(next.deliver, next.receivers[next.delivered++] as Receiver);
      if (next.delivered < next.receivers.length) break;
      this.#queue.shift();
    }
    if (this.#queue.length > 0) afterEvents(() => this.#deliverBatch());
  }
}

/** A receiver that throws must not stop the delivery to the others. */
function attempt<Receiver>(deliver: (receiver: Receiver) => void, receiver: Receiver): void {
  try {
    deliver(receiver);
  } catch {
    // Its connection is broken, and the connection reports that itself.
  }
}
