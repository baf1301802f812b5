// `subscriptions/listen`: notifies of changes of lists, resources and tasks, in one long request for each subscriber.
// The request ends when the caller cancels it, when the server closes, when only tasks were granted and all of them are
// finished, or at once if nothing was granted to a stateless caller. The connection adds the subscription id to the
// notifications.

import { type Context, levelRank, type LogLevel, type Notification, type Params } from "../core/handler.ts";
import { changedMethod, type ListCapability } from "../protocol/lists.ts";
import type { SubscriptionFilter } from "../protocol/model/index.ts";
import { isVendorMethod } from "../protocol/revisions/standard-methods.ts";
import { Subscriber, Subscribers, type TaskSubscription } from "../protocol/subscribers.ts";
import { changedList, grantsNothing, isConcerned, namesIn, resourceUpdated } from "../protocol/subscription.ts";
import { checkNotification } from "../tools/content.ts";

export class Subscriptions {
  readonly #subscribers = new Subscribers();
  readonly #changedLists = new Set<ListCapability>();

  /** Resolves when the subscription has ended. `changes`: the lists and resources that are granted. */
  async listen(
    filter: SubscriptionFilter,
    context: Context,
    changes: SubscriptionFilter,
    tasks?: TaskSubscription,
  ): Promise<void> {
    const subscriber = new Subscriber(context, filter);
    subscriber.acknowledge(changes, tasks);
    // The subscription of a session to the lists also carries vendors' notifications.
    const isStream = context.caller.style === "session" && subscriber.isMain;
    if (!isStream && grantsNothing(subscriber.filter)) return;
    this.#subscribers.add(subscriber);
    await subscriber.ended;
    this.#subscribers.delete(subscriber);
  }

  /** Several changes of a list in one tick cause one notification. */
  listChanged(list: ListCapability): void {
    if (this.#subscribers.size === 0) return;
    if (this.#changedLists.size === 0) queueMicrotask(() => this.#flush());
    this.#changedLists.add(list);
  }

  /** `mayRead`: whether the caller of a subscription to a whole may be told of the part with this URI. */
  resourceUpdated(uri: string, mayRead: (context: Context) => boolean): void {
    const notification = resourceUpdated(uri);
    this.#subscribers.notify(
      notification,
      ({ filter, context }) =>
        isConcerned(filter, notification) &&
        (namesIn(filter, "resourceSubscriptions").includes(uri) || mayRead(context)),
    );
  }

  /** Sends a vendor's notification to every client that subscribed, or tells that a list may have changed for some. */
  notifyAll(notification: Notification): void {
    checkNotification(notification);
    const list = changedList(notification);
    if (list !== undefined) return this.listChanged(list);
    if (!isVendorMethod(notification.method)) {
      throw new TypeError(`${notification.method} is a method of the protocol, which the server sends itself`);
    }
    this.#subscribers.notify(notification, ({ isMain }) => isMain);
  }

  log(level: LogLevel, params: Params): void {
    const urgency = levelRank(level);
    this.#subscribers.notify({ method: "notifications/message", params }, ({ isMain, context }) => {
      // A session filters by its own level, which may change.
      const lowest = context.caller.style === "session" ? "debug" : context.logLevel;
      return isMain && lowest !== undefined && urgency >= levelRank(lowest);
    });
  }

  close(): void {
    for (const subscriber of this.#subscribers) subscriber.end();
  }

  #flush(): void {
    const lists = [...this.#changedLists];
    this.#changedLists.clear();
    for (const list of lists) this.#subscribers.notify({ method: changedMethod(list) });
  }
}
