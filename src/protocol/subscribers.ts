// The subscribers of one server, and the delivery of notifications to those that they concern.

import { afterEvents, deferred, onAbort } from "../core/async.ts";
import type { Context, Notification } from "../core/handler.ts";
import type { SubscriptionFilter } from "./model/index.ts";
import { acknowledgement, CHANGES, grantsNothing, isConcerned } from "./subscription.ts";

/** The part of a subscription that is about tasks. */
export interface TaskSubscription {
  readonly granted: SubscriptionFilter;
  /** The scopes that the caller needs. */
  readonly scopes: readonly string[];
  /** Starts delivery and calls `end` after the last notification. Returns a function that stops delivery. */
  begin(end: () => void): () => void;
}

/** How many notifications are held until the acknowledgement. */
const MAX_EARLY = 1_000;

export class Subscriber {
  readonly context: Context;
  /** What it asks for, and once that is acknowledged, what was granted. */
  filter: SubscriptionFilter;
  /**
   * Whether it gets what belongs to no list, resource or task, such as log messages. A session has one such
   * subscription, which is for no resource and no task.
   */
  readonly isMain: boolean;
  readonly #ended = deferred();
  /** Resolves when its caller has left, or `end` was called. */
  readonly ended: Promise<void> = this.#ended.promise;
  #isOver = false;
  /** Notifications that came before the acknowledgement, each once; undefined after it. */
  #early: Map<string, Notification> | undefined = new Map();

  constructor(context: Context, filter: SubscriptionFilter) {
    this.context = context;
    this.filter = filter;
    const isForLists = filter.resourceSubscriptions === undefined && filter.taskIds === undefined;
    this.isMain = context.caller.style === "stateless" || isForLists;
    const { signal } = context;
    if (signal.aborted) this.end();
    else void this.ended.then(onAbort(signal, () => this.end()));
  }

  get isAcknowledged(): boolean {
    return this.#early === undefined;
  }

  end(): void {
    this.#isOver = true;
    this.#ended.resolve();
  }

  /** If nothing but tasks is granted, it ends with them. */
  acknowledge(changes: SubscriptionFilter, tasks?: TaskSubscription): void {
    this.filter = { ...changes, ...tasks?.granted };
    this.context.notify(acknowledgement(this.filter));
    const early = this.#early?.values() ?? [];
    this.#early = undefined;
    for (const notification of early) this.context.notify(notification);
    if (tasks === undefined || this.#isOver) return;
    const stop = tasks.begin(() => (grantsNothing(changes) ? this.end() : undefined));
    void this.ended.then(stop);
  }

  notify(notification: Notification): void {
    if (this.#isOver) return;
    const early = this.#early;
    // A session sees no acknowledgement, so only changes wait for it.
    const mustWait = CHANGES.has(notification.method) || this.context.caller.style === "stateless";
    if (early === undefined || !mustWait) this.context.notify(notification);
    else if (early.size < MAX_EARLY) early.set(JSON.stringify(notification), notification);
  }
}

/** How many subscribers are notified in one turn of the event loop: a few milliseconds of work. */
const BATCH_SIZE = 64;

/**
 * Subscribers are notified in batches, so that ten thousand of them do not block other requests. Each gets all
 * notifications in their order.
 */
export class Subscribers extends Set<Subscriber> {
  readonly #queue: (readonly [Subscriber, Notification])[] = [];
  #isDelivering = false;

  /** By default, the notification is a change. */
  notify(
    notification: Notification,
    isReceiver = (subscriber: Subscriber): boolean => isConcerned(subscriber.filter, notification),
  ): void {
    for (const subscriber of this) {
      try {
        if (isReceiver(subscriber)) this.#queue.push([subscriber, notification]);
      } catch {
        // A function of the user that decides who sees a resource has failed, so this subscriber does not see it.
      }
    }
    if (!this.#isDelivering) this.#deliver();
  }

  #deliver(): void {
    this.#isDelivering = true;
    for (const [subscriber, notification] of this.#queue.splice(0, BATCH_SIZE)) {
      try {
        subscriber.notify(notification);
      } catch {
        // Its connection is broken, and reports that itself.
      }
    }
    this.#isDelivering = this.#queue.length > 0;
    if (this.#isDelivering) afterEvents(() => this.#deliver());
  }
}
