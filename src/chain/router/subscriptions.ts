// Splits a caller's subscription into one for each upstream that it concerns. The caller gets one acknowledgement, when
// each upstream has granted its part, has failed, or has taken too long. Notifications that arrive earlier are held
// until then. An upstream that fails neither ends the subscription nor delays the notifications of others.

import { abortable, deferred, forwardAbort, ignoreRejection, within, type ForwardedAbort } from "../../core/async.ts";
import type { Context, Notification, Params, Request, Result } from "../../core/handler.ts";
import {
  isLasting,
  keepSubscribed,
  type EndedSubscription,
  type Grant,
  type Reopens,
} from "../../protocol/keep-subscribed.ts";
import { changedFlag, changedMethod, LIST_CAPABILITIES } from "../../protocol/lists.ts";
import type { SubscriptionFilter } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import { Subscriber } from "../../protocol/subscribers.ts";
import {
  changedList,
  changingLists,
  covers,
  filterFor,
  filterOf,
  grantedIn,
  isConcerned,
  listsIn,
  namesIn,
  RESOURCE_UPDATED,
  resourceUpdated,
  TASK_CHANGED,
} from "../../protocol/subscription.ts";
import { unknownTask } from "./addresses.ts";
import { isRefusal, withUpstreamName } from "./failures.ts";
import type { Route } from "./names.ts";
import { routesFor, withOthers } from "./resources.ts";
import type { View } from "./view.ts";

/** How long the acknowledgement waits for upstreams that do not answer. */
const ACKNOWLEDGE_MS = 5_000;

export async function listen(request: Request, context: Context, view: View): Promise<Result> {
  return new RoutedSubscription(request, context, view).run();
}

const FLAGS: ReadonlySet<string> = new Set(LIST_CAPABILITIES.map(changedFlag));

class RoutedSubscription {
  readonly context: Context;
  readonly params: Params;
  readonly view: View;
  /** Gets notifications with the caller's URIs and task ids. */
  readonly subscriber: Subscriber;
  /** Flags, and fields of the filter that the router does not know. */
  readonly #flags: Json;
  readonly #uris: readonly string[];
  readonly #taskIds: readonly string[];
  readonly #parts: SubscriptionPart[] = [];
  /** URIs that several upstreams may have. */
  readonly #uncertain: { readonly uri: string; readonly routes: readonly Route[] }[] = [];
  readonly #problems: Error[] = [];

  constructor(request: Request, context: Context, view: View) {
    this.context = context;
    this.params = request.params;
    this.view = view;
    const filter = filterOf(request);
    this.subscriber = new Subscriber(context, filter);
    const { resourceSubscriptions = [], taskIds = [], ...flags } = filter;
    this.#flags = flags;
    this.#uris = [...new Set(resourceSubscriptions)];
    this.#taskIds = [...new Set(taskIds)];
  }

  async run(): Promise<Result> {
    const { subscriber } = this;
    const forget = this.view.onChanged((capability) => {
      const change = { method: changedMethod(capability) };
      if (isConcerned(subscriber.filter, change)) subscriber.notify(change);
    });
    try {
      await this.#run(this.context.signal);
      return { resultType: "complete" };
    } finally {
      forget();
      subscriber.end();
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#addLists(), ...this.#uris.map((uri) => this.#addUri(uri))]);
    for (const id of this.#taskIds) this.#addTask(id);
    const first = [...this.#parts];
    for (const part of first) part.start();
    const searched = Promise.all(this.#uncertain.map(({ uri, routes }) => this.#search(uri, routes)));
    await abortable(signal, within(ACKNOWLEDGE_MS, Promise.all([...first.map(({ settled }) => settled), searched])));
    this.#throwIfAllFailed();
    this.subscriber.acknowledge(
      this.#parts.reduce<SubscriptionFilter>((all, part) => joinGrants(all, grantOf(part)), {}),
    );
    const over = searched.then(() => Promise.all(this.#parts.map((part) => part.over)));
    await abortable(signal, ignoreRejection(over)).catch(() => undefined);
  }

  /**
   * Adds the flags for list changes to each upstream that sends notifications of them. The subscription of a session
   * also receives notifications that belong to no call, so it includes all upstreams.
   */
  async #addLists(): Promise<void> {
    const isSessionStream = this.context.caller.style === "session" && this.subscriber.isMain;
    if (!isSessionStream && Object.keys(this.#flags).length === 0) return;
    // Unknown fields may concern any upstream.
    const hasUnknown = Object.keys(this.#flags).some((key) => !FLAGS.has(key));
    const canNotify = (capabilities: Json): boolean =>
      hasUnknown || listsIn(this.#flags, changingLists(capabilities)).length > 0;
    await Promise.all(
      this.view.upstreams.map(async (view) => {
        // An upstream whose capabilities are not known yet is included, so that the others need not wait for it.
        const isIncluded = isSessionStream || view.capabilities === undefined;
        if (isIncluded || (await view.offers(this.context, canNotify).catch(() => true))) {
          this.#partAt(view.upstream.index).flags = this.#flags;
        }
      }),
    );
  }

  async #addUri(uri: string): Promise<void> {
    try {
      const { isCertain, routes } = await routesFor(uri, this.context, this.view);
      const [first] = routes;
      if (isCertain && first !== undefined) this.#partAt(first.upstream).uris.set(first.name, uri);
      else this.#uncertain.push({ uri, routes: withOthers(routes, uri, this.view) });
    } catch (error) {
      this.#problems.push(error as Error);
    }
  }

  #addTask(id: string): void {
    const route = this.view.addresses.taskRoute(id);
    if (route === undefined) this.#problems.push(unknownTask(id));
    else this.#partAt(route.upstream).taskIds.set(route.name, id);
  }

  #partAt(upstream: number): SubscriptionPart {
    return this.#parts.find((part) => part.upstream === upstream) ?? this.#addPart(upstream);
  }

  #addPart(upstream: number): SubscriptionPart {
    const part = new SubscriptionPart(upstream, this);
    this.#parts.push(part);
    return part;
  }

  /** Tries the upstreams that may have an unlisted URI, one after another, until one grants the subscription. */
  async #search(uri: string, routes: readonly Route[]): Promise<void> {
    for (const { upstream, name } of routes) {
      const part = this.#addPart(upstream);
      part.uris.set(name, uri);
      part.start();
      await part.settled;
      if (part.grantedToCaller.resourceSubscriptions !== undefined) {
        this.view.addresses.remember(uri, { upstream, name });
        return;
      }
      part.stop();
    }
  }

  /** Throws the first failure if nothing could be opened. */
  #throwIfAllFailed(): void {
    const failures = this.#parts.flatMap(({ granted, failure }) => (granted === undefined && failure ? [failure] : []));
    const isOpen = this.#parts.some(({ granted, failure }) => granted !== undefined || failure === undefined);
    const [first] = [...this.#problems, ...failures];
    if (isOpen || first === undefined) return;
    for (const part of this.#parts) part.stop();
    throw first;
  }
}

/** The flags of a part that is still opening are granted, since it notifies of changed lists once it is open. */
function grantOf({ granted, grantedToCaller, isOver, flags }: SubscriptionPart): SubscriptionFilter {
  return granted !== undefined || isOver ? grantedToCaller : filterFor(listsIn(flags));
}

function joinGrants(one: SubscriptionFilter, other: SubscriptionFilter): SubscriptionFilter {
  const joined = Object.entries(other).map(([key, value]): [string, unknown] => {
    const before = one[key];
    if (Array.isArray(before) && Array.isArray(value)) return [key, [...new Set(before.concat(value) as unknown[])]];
    return [key, before === undefined || before === false ? value : before];
  });
  return { ...one, ...Object.fromEntries(joined) };
}

/**
 * The subscription at one upstream, kept open until the caller's own subscription ends. If it breaks or the upstream
 * ends it, it is reopened with backoff, since otherwise a subscription that keeps breaking would make the caller read
 * all lists again and again. A subscription that the upstream rejects is not requested again.
 */
class SubscriptionPart {
  readonly upstream: number;
  /** Flags, and fields of the caller's filter that the router does not know. */
  flags: Json = {};
  /** From the upstream's own URIs and task ids to the caller's. */
  readonly uris = new Map<string, string>();
  readonly taskIds = new Map<string, string>();
  /** Why it is not open. */
  failure: Error | undefined;
  isOver = false;
  /** In the upstream's own names. */
  readonly #grant: Grant = { granted: undefined };
  readonly #whole: RoutedSubscription;
  readonly #stop: ForwardedAbort;
  readonly #settled = deferred();
  readonly #over = deferred();

  constructor(upstream: number, whole: RoutedSubscription) {
    this.#stop = forwardAbort(whole.context.signal);
    this.upstream = upstream;
    this.#whole = whole;
  }

  /** Resolves when the first attempt is acknowledged or has failed. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** The upstream's last grant; undefined if there was none. */
  get granted(): SubscriptionFilter | undefined {
    return this.#grant.granted;
  }

  /** The grant in the caller's names. */
  get grantedToCaller(): SubscriptionFilter {
    const { resourceSubscriptions: _uris, taskIds: _ids, ...flags } = this.granted ?? {};
    const shownNames = (field: "resourceSubscriptions" | "taskIds", names: ReadonlyMap<string, string>): string[] =>
      namesIn(this.granted, field).flatMap((name) => names.get(name) ?? []);
    const resourceSubscriptions = shownNames("resourceSubscriptions", this.uris);
    return { ...flags, ...filterFor([], { resourceSubscriptions, taskIds: shownNames("taskIds", this.taskIds) }) };
  }

  start(): void {
    const { context, params, view } = this.#whole;
    const { signal } = this.#stop;
    const { name, handler } = view.at({ upstream: this.upstream });
    const names = filterFor([], { resourceSubscriptions: [...this.uris.keys()], taskIds: [...this.taskIds.keys()] });
    const notifications = { ...this.flags, ...names };
    const request = { method: "subscriptions/listen", params: { ...params, notifications } };
    const open = (listenContext: Context): Promise<Result> => handler(request, listenContext);
    const reopens = ({ error, granted }: EndedSubscription): Reopens => {
      this.failure = error === undefined ? undefined : withUpstreamName(name, error);
      this.#settled.resolve();
      return (error === undefined ? isLasting(granted) : !isRefusal(error)) && "later";
    };
    const notify = (notification: Notification): void => this.#receive(notification);
    // If it ends with an error, `failure` says why.
    const stop = (): void => this.stop();
    keepSubscribed({ ...context, signal, notify }, this.#grant, { open, reopens }).then(stop, stop);
  }

  stop(): void {
    this.isOver = true;
    this.#stop.abort(new Error("The subscription is over"));
    this.#settled.resolve();
    this.#over.resolve();
  }

  #receive(notification: Notification): void {
    const { method, params = {} } = notification;
    const { subscriber, view } = this.#whole;
    if (grantedIn(notification) !== undefined) {
      this.failure = undefined;
      this.#settled.resolve();
      // The caller was told what it is granted before this upstream had answered.
      if (subscriber.isAcknowledged) {
        for (const uri of namesIn(this.granted, "resourceSubscriptions")) this.#receive(resourceUpdated(uri));
      }
      view.upstreams[this.upstream]?.available();
      return;
    }
    const list = changedList(notification);
    if (list !== undefined) view.changed(list);
    if (method === RESOURCE_UPDATED) {
      subscriber.notify({ method, params: { ...params, uri: this.#callersUri(params["uri"]) } });
    } else if (method === TASK_CHANGED) {
      subscriber.notify({ method, params: view.addresses.rewrite(this.upstream, params) });
    } else subscriber.notify(notification);
  }

  #callersUri(uri: unknown): unknown {
    if (typeof uri !== "string") return uri;
    const exact = this.uris.get(uri);
    if (exact !== undefined) return exact;
    for (const [whole, shownUri] of this.uris) if (covers(whole, uri)) return shownUri + uri.slice(whole.length);
    return uri;
  }
}
