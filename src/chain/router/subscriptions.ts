// Splits a caller's subscription into one for each upstream that it concerns. The caller gets one acknowledgement, when
// each upstream has granted its part, has failed, or has taken too long. Notifications that arrive earlier are held
// until then. An upstream that fails neither ends the subscription nor delays the notifications of others.

import { abortable, deferred, forwardAbort, ignoreRejection, within, type ForwardedAbort } from "../../core/async.ts";
import type { Context, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import {
  changedFlag,
  changedMethod,
  LIST_CAPABILITIES,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
} from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import {
  isLasting,
  keepSubscribed,
  possibleChanges,
  type EndedSubscription,
  type Grant,
  type Reopens,
} from "../../protocol/subscription.ts";
import { unknownTask } from "./addresses.ts";
import { routesFor, withOthers } from "./resources.ts";
import { isRefusal, withUpstreamName } from "./failures.ts";
import type { Route } from "./names.ts";
import type { View } from "./view.ts";

/** How long the acknowledgement waits for upstreams that do not answer. */
const ACKNOWLEDGE_MS = 5_000;
/** How many notifications are held until the acknowledgement. */
const MAX_EARLY = 1_000;

const TASK_CHANGED = "notifications/tasks";

const EVENTS: ReadonlySet<string> = new Set([
  ...LIST_CAPABILITIES.map((capability) => changedMethod(capability)),
  RESOURCE_UPDATED,
  TASK_CHANGED,
]);

const FLAGS: ReadonlySet<string> = new Set(LIST_CAPABILITIES.map((capability) => changedFlag(capability)));

/** The part of a filter for one upstream. The maps go from the upstream's own URIs and task ids to the caller's. */
interface PartFilter {
  /** Flags, and fields of the caller's filter that the router does not know. */
  flags: Json;
  readonly uris: Map<string, string>;
  readonly taskIds: Map<string, string>;
}

export async function listen(request: Request, context: Context, view: View): Promise<Result> {
  return new RoutedSubscription(request, context, view).run();
}

class RoutedSubscription {
  readonly context: Context;
  readonly params: Params;
  readonly view: View;
  readonly #filter: Json;
  readonly #uris: readonly string[];
  readonly #taskIds: readonly string[];
  readonly #parts: SubscriptionPart[] = [];
  /** By the index of the upstream. */
  readonly #filters = new Map<number, PartFilter>();
  /** URIs that several upstreams may have. */
  readonly #uncertain: { readonly uri: string; readonly routes: readonly Route[] }[] = [];
  readonly #problems: Error[] = [];
  /** What the caller was granted. */
  #granted: Json = {};
  /** Held notifications by what they are about; undefined after the acknowledgement. */
  #early: Map<string, Notification> | undefined = new Map();

  constructor({ params }: Request, context: Context, view: View) {
    this.context = context;
    this.params = params;
    this.view = view;
    const { resourceSubscriptions, taskIds, ...filter } = params["notifications"] as Json;
    this.#filter = filter;
    this.#uris = [...new Set((resourceSubscriptions as readonly string[] | undefined) ?? [])];
    this.#taskIds = [...new Set((taskIds as readonly string[] | undefined) ?? [])];
  }

  async run(): Promise<Result> {
    const forget = this.view.onChanged((capability) => {
      const flags = this.isAcknowledged ? this.#granted : this.#filter;
      if (flags[changedFlag(capability)] === true) this.notify({ method: changedMethod(capability) });
    });
    return this.#run().finally(forget);
  }

  async #run(): Promise<Result> {
    const { signal } = this.context;
    await Promise.all([this.#addLists(), this.#addUris(this.#uris)]);
    this.#addTasks();
    const runs = [...this.#filters].map(([upstream, filter]) => this.#createPart(upstream, filter).run());
    const searches = this.#uncertain.map(({ uri, routes }) => this.#search(uri, routes));
    const settled = [...this.#parts.map((part) => part.settled), ...searches.map((search) => search.settled)];
    await abortable(signal, within(ACKNOWLEDGE_MS, Promise.all(settled)));
    this.#throwIfAllFailed();
    this.#acknowledge();
    const over = ignoreRejection(Promise.all([...runs, ...searches.map((search) => search.over)]));
    await abortable(signal, over).catch(() => undefined);
    return { resultType: "complete" };
  }

  /** Passes on a notification that already has the caller's URIs and task ids. */
  notify(notification: Notification): void {
    const { method, params } = notification;
    if (this.#early === undefined || !EVENTS.has(method)) {
      this.context.notify(notification);
      return;
    }
    const subject = JSON.stringify([method, params?.["uri"], params?.["taskId"]]);
    if (this.#early.size < MAX_EARLY) this.#early.set(subject, notification);
  }

  get isAcknowledged(): boolean {
    return this.#early === undefined;
  }

  /**
   * Adds the flags for list changes to each upstream that sends notifications of them. The subscription of a session
   * also receives notifications that belong to no call, so it includes all upstreams.
   */
  async #addLists(): Promise<void> {
    const isSessionStream =
      this.context.caller.style === "session" && this.#uris.length === 0 && this.#taskIds.length === 0;
    const flagged = LIST_CAPABILITIES.filter((capability) => this.#filter[changedFlag(capability)] === true);
    if (!isSessionStream && Object.keys(this.#filter).length === 0) return;
    // Unknown fields may concern any upstream.
    const hasUnknown = Object.keys(this.#filter).some((key) => !FLAGS.has(key));
    const canNotify = (capabilities: Json): boolean =>
      hasUnknown ||
      flagged.some((capability) => {
        const declared = capabilities[capability];
        return isObject(declared) && declared["listChanged"] === true;
      });
    await Promise.all(
      this.view.upstreams.map(async (view) => {
        // An upstream whose capabilities are not known yet is included, so that the others need not wait for it.
        const isIncluded = isSessionStream || view.capabilities === undefined;
        if (isIncluded || (await view.offers(this.context, canNotify).catch(() => true))) {
          this.#filterOf(view.upstream.index).flags = this.#filter;
        }
      }),
    );
  }

  async #addUris(uris: readonly string[]): Promise<void> {
    await Promise.all(
      uris.map(async (uri) => {
        try {
          const { isCertain, routes } = await routesFor(uri, this.context, this.view);
          const [first] = routes;
          if (isCertain && first !== undefined) this.#filterOf(first.upstream).uris.set(first.name, uri);
          else this.#uncertain.push({ uri, routes: withOthers(routes, uri, this.view) });
        } catch (error) {
          this.#problems.push(error as Error);
        }
      }),
    );
  }

  #addTasks(): void {
    for (const id of this.#taskIds) {
      const route = this.view.addresses.taskRoute(id);
      if (route === undefined) this.#problems.push(unknownTask(id));
      else this.#filterOf(route.upstream).taskIds.set(route.name, id);
    }
  }

  #filterOf(upstream: number): PartFilter {
    const filter = this.#filters.get(upstream) ?? { flags: {}, uris: new Map(), taskIds: new Map() };
    this.#filters.set(upstream, filter);
    return filter;
  }

  #createPart(upstream: number, filter: PartFilter): SubscriptionPart {
    const part = new SubscriptionPart(upstream, filter, this);
    this.#parts.push(part);
    return part;
  }

  /** Tries the upstreams that may have an unlisted URI, one after another, until one grants the subscription. */
  #search(uri: string, routes: readonly Route[]): { readonly settled: Promise<void>; readonly over: Promise<void> } {
    const { promise: settled, resolve: settle } = deferred();
    const search = async (): Promise<void> => {
      for (const { upstream, name } of routes) {
        const part = this.#createPart(upstream, { flags: {}, uris: new Map([[name, uri]]), taskIds: new Map() });
        const over = part.run();
        await part.settled;
        if (part.grantedToCaller["resourceSubscriptions"] !== undefined) {
          this.view.addresses.remember(uri, { upstream, name });
          settle();
          return over;
        }
        part.stop();
      }
    };
    return { settled, over: search().finally(settle) };
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

  #acknowledge(): void {
    const notifications = this.#parts.reduce<Json>((all, part) => joinGrants(all, this.#grantOf(part)), {});
    this.#granted = notifications;
    this.context.notify({ method: SUBSCRIPTION_ACKNOWLEDGED, params: { notifications } });
    const early = this.#early ?? new Map<string, Notification>();
    this.#early = undefined;
    for (const notification of early.values()) this.context.notify(notification);
  }

  /** The flags of a part that is still opening are granted, since it notifies of changed lists once it is open. */
  #grantOf(part: SubscriptionPart): Json {
    if (part.granted !== undefined || part.isOver) return part.grantedToCaller;
    const flags = [...FLAGS].filter((flag) => part.filter.flags[flag] === true);
    return Object.fromEntries(flags.map((flag) => [flag, true]));
  }
}

function joinGrants(one: Json, other: Json): Json {
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
  readonly filter: PartFilter;
  /** Why it is not open. */
  failure: Error | undefined;
  isOver = false;
  readonly #upstream: number;
  readonly #whole: RoutedSubscription;
  /** In the upstream's own names. */
  readonly #grant: Grant = { granted: undefined };
  readonly #stop: ForwardedAbort;
  readonly #settled = deferred();

  constructor(upstream: number, filter: PartFilter, whole: RoutedSubscription) {
    this.#stop = forwardAbort(whole.context.signal);
    this.#upstream = upstream;
    this.filter = filter;
    this.#whole = whole;
  }

  /** Resolves when the first attempt is acknowledged or has failed. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** The upstream's last grant; undefined if there was none. */
  get granted(): Json | undefined {
    return this.#grant.granted;
  }

  /** Never rejects; resolves when it is over. */
  async run(): Promise<void> {
    const { name, handler } = this.#whole.view.at({ upstream: this.#upstream });
    const { context } = this.#whole;
    const { signal } = this.#stop;
    const open = (own: Context): Promise<Result> => handler(this.#request(), own);
    const reopens = ({ error, granted }: EndedSubscription): Reopens => {
      this.failure = error === undefined ? undefined : withUpstreamName(name, error);
      this.#settled.resolve();
      return (error === undefined ? isLasting(granted) : !isRefusal(error)) && "later";
    };
    try {
      const notify = (notification: Notification): void => this.#receive(notification);
      await keepSubscribed({ ...context, signal, notify }, this.#grant, { open, reopens });
    } catch {
      // It is over, and `failure` says why.
    } finally {
      this.#stop.forget();
      this.isOver = true;
      this.#settled.resolve();
    }
  }

  stop(): void {
    this.#stop.abort(new Error("The subscription is over"));
    this.#settled.resolve();
  }

  /** The grant in the caller's names. */
  get grantedToCaller(): Json {
    const { resourceSubscriptions, taskIds, ...flags } = this.granted ?? {};
    return {
      ...flags,
      ...listOf("resourceSubscriptions", translate(resourceSubscriptions, this.filter.uris)),
      ...listOf("taskIds", translate(taskIds, this.filter.taskIds)),
    };
  }

  #request(): Request {
    const { flags, uris, taskIds } = this.filter;
    const notifications = {
      ...flags,
      ...listOf("resourceSubscriptions", [...uris.keys()]),
      ...listOf("taskIds", [...taskIds.keys()]),
    };
    return { method: "subscriptions/listen", params: { ...this.#whole.params, notifications } };
  }

  #receive(notification: Notification): void {
    const { method, params = {} } = notification;
    const whole = this.#whole;
    if (method === SUBSCRIPTION_ACKNOWLEDGED) {
      this.failure = undefined;
      this.#settled.resolve();
      // The caller was told what it is granted before this upstream had answered.
      if (whole.isAcknowledged) {
        const { resourceSubscriptions } = this.granted ?? {};
        for (const change of possibleChanges({ resourceSubscriptions })) this.#receive(change);
      }
      whole.view.upstreams[this.#upstream]?.available();
      return;
    }
    const capability = LIST_CAPABILITIES.find((one) => changedMethod(one) === method);
    if (capability !== undefined) whole.view.changed(capability);
    if (method === RESOURCE_UPDATED)
      whole.notify({ method, params: { ...params, uri: this.#callersUri(params["uri"]) } });
    else if (method === TASK_CHANGED) {
      whole.notify({ method, params: whole.view.addresses.rewrite(this.#upstream, params) });
    } else whole.notify(notification);
  }

  /** An update may name a URI below the one that was subscribed to. */
  #callersUri(uri: unknown): unknown {
    if (typeof uri !== "string") return uri;
    const exact = this.filter.uris.get(uri);
    if (exact !== undefined) return exact;
    for (const [own, shown] of this.filter.uris) if (uri.startsWith(own)) return shown + uri.slice(own.length);
    return uri;
  }
}

function translate(granted: unknown, names: ReadonlyMap<string, string>): string[] {
  return Array.isArray(granted) ? granted.flatMap((one) => names.get(one as string) ?? []) : [];
}

/** The list as a field of a filter, which is left out if it is empty. */
function listOf(field: string, names: readonly string[]): Json {
  return names.length === 0 ? {} : { [field]: names };
}
