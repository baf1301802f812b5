// A view is what one group of callers sees of all upstreams: their capabilities and the names in their lists. When a
// name is not known yet, the upstreams are listed. All waiting callers share one listing, and wait only until their
// name is found.

import { abortable, attempt, ignoreRejection, withTimeout } from "../../core/async.ts";
import { BoundedMap } from "../../core/bounded-map.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { LISTS, type ListCapability, type ListKind } from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import { sharedKey } from "../upstream/sharing.ts";
import { Addresses, ResultRewriter, TaskIds } from "./addresses.ts";
import { isMethodNotFound, isTimeout, publicMessage, withUpstreamName } from "./failures.ts";
import {
  NameIndex,
  prefixToolName,
  type NameIndexOptions,
  type NamesOption,
  type PrefixName,
  type Route,
  type RoutedUpstream,
} from "./names.ts";
import { readAllPages } from "./pages.ts";

/** How long the list of an upstream may take, with all its pages. */
export const LIST_TIMEOUT_MS = 30_000;
/** How long to wait for other upstreams that might also have a name that was found. */
const COLLISION_WAIT_MS = 1_000;

/** A listing in progress. */
interface Listing {
  /** One promise for each upstream that has not answered yet. */
  readonly pending: Set<Promise<void>>;
}

interface RoutedTarget {
  readonly upstream: RoutedUpstream;
  readonly rewriter: ResultRewriter;
}

/** Whether the name was found. `"unless others have it"`: it was, but wait briefly for the other upstreams. */
export type IsFound = () => boolean | "unless others have it";

export class View {
  readonly upstreams: readonly UpstreamView[];
  readonly taskIds: TaskIds;
  readonly indexes: Readonly<Record<ListKind, NameIndex>>;
  readonly addresses: Addresses;
  readonly #targets: readonly RoutedTarget[];
  readonly #listings = new Map<ListKind, Listing>();

  constructor(upstreams: readonly RoutedUpstream[], option: NamesOption) {
    this.upstreams = upstreams.map((upstream) => new UpstreamView(upstream));
    const prefix = prefixToolName(upstreams.map(({ label }) => label));
    const names: NameIndexOptions = { upstreams, option, prefix, labelOf: ({ label }) => label.name, isStrict: false };
    const uris: NameIndexOptions = {
      ...names,
      prefix: prefixUri(upstreams),
      labelOf: ({ label }) => label.scheme,
      isStrict: true,
    };
    const [resources, templates] = [new NameIndex(uris), new NameIndex(uris)];
    this.indexes = { tools: new NameIndex(names), prompts: new NameIndex(names), resources, templates };
    this.addresses = new Addresses(upstreams, option, resources, templates);
    this.taskIds = new TaskIds(upstreams);
    this.#targets = upstreams.map((upstream) => ({
      upstream,
      rewriter: new ResultRewriter(upstream.index, this.addresses, this.taskIds),
    }));
  }

  /** The upstream of a route. */
  at({ upstream }: Pick<Route, "upstream">): RoutedTarget {
    const target = this.#targets[upstream];
    if (target === undefined) throw new RangeError("There is no such upstream");
    return target;
  }

  /** The route of a name that a caller sent. Lists the upstreams if necessary. */
  async find(kind: ListKind, text: string, context: Context): Promise<Route | undefined> {
    const index = this.indexes[kind];
    const found = index.find(text);
    if (found !== undefined) {
      if (index.isStale) this.#startListing(kind, context);
      return found;
    }
    await this.list(kind, context, () => index.find(text) !== undefined && "unless others have it");
    return index.find(text);
  }

  /** Lists all upstreams, unless that was done just now. Waits until `isFound`, or until all have answered. */
  async list(kind: ListKind, context: Context, isFound: IsFound): Promise<void> {
    if (this.indexes[kind].isFresh && !this.#listings.has(kind)) return;
    const { pending } = this.#startListing(kind, context);
    let waitsForCollisions = true;
    let timer: NodeJS.Timeout | undefined;
    const waited = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, COLLISION_WAIT_MS);
    }).then(() => {
      waitsForCollisions = false;
    });
    try {
      while (pending.size > 0) {
        const found = isFound();
        if (found === true || (found !== false && !waitsForCollisions)) return;
        await abortable(context.signal, Promise.race(waitsForCollisions ? [...pending, waited] : pending));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Called when an upstream has notified that its lists have changed. */
  changed(capability: ListCapability): void {
    for (const kind of KINDS_OF[capability]) this.indexes[kind].changed();
  }

  #startListing(kind: ListKind, context: Context): Listing {
    const known = this.#listings.get(kind);
    if (known !== undefined) return known;
    const index = this.indexes[kind];
    const { changes } = index;
    const listing: Listing = { pending: new Set() };
    const finish = (listed: Promise<void>): void => {
      listing.pending.delete(listed);
      if (listing.pending.size > 0) return;
      this.#listings.delete(kind);
      index.setListed(changes);
    };
    this.#listings.set(kind, listing);
    for (const upstream of this.upstreams) {
      const listed: Promise<void> = this.#listUpstream(kind, upstream, context).then(() => finish(listed));
      listing.pending.add(listed);
    }
    if (listing.pending.size === 0) this.#listings.delete(kind);
    return listing;
  }

  async #listUpstream(kind: ListKind, view: UpstreamView, context: Context): Promise<void> {
    const { upstream } = view;
    const index = this.indexes[kind];
    const background = backgroundContext(context);
    const list = LISTS[kind];
    try {
      const listed = (await view.offers(background, (capabilities) => isObject(capabilities[list.capability])))
        ? await view.withTimeout(LIST_TIMEOUT_MS, background, (own) => readAllPages(upstream.handler, list, {}, own))
        : undefined;
      index.setList(upstream.index, listed?.keys ?? []);
    } catch (error) {
      if (isMethodNotFound(error)) index.setList(upstream.index, []);
      // A cancellation says nothing about the upstream.
      else if (!(error instanceof ConnectionError) || error.kind !== "cancelled") {
        index.setProblem(upstream.index, publicMessage(error as Error));
      }
    }
  }
}

const KINDS_OF: Readonly<Record<ListCapability, readonly ListKind[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  resources: ["resources", "templates"],
};

/** Labels contain no dot and are all different, so two prefixed URIs are never the same. */
function prefixUri(upstreams: readonly RoutedUpstream[]): PrefixName {
  return (upstream, uri) => `${upstreams[upstream]?.label.scheme ?? ""}.${uri}`;
}

/** How long an upstream may take for `server/discover`, which is the first request of a caller. */
const DISCOVER_TIMEOUT_MS = 8_000;
/** The longest timeout for an upstream that has timed out and has not answered since. */
const SLOW_TIMEOUT_MS = 1_000;

/** After this long without an answer, `server/discover` is sent again. */
const REDISCOVER_MS = 60_000;

interface PendingDiscover {
  readonly answer: Promise<Result>;
  readonly stop: AbortController;
  readonly since: number;
}

/**
 * One upstream as one group of callers sees it: its capabilities, and its timeouts. An upstream that has timed out gets
 * a short timeout until it answers, so that it does not delay the others. This concerns only the router's own requests;
 * requests of callers go directly to the handler.
 */
export class UpstreamView {
  readonly upstream: RoutedUpstream;
  /** From the last answer to `server/discover`; undefined if there was none. */
  capabilities: Json | undefined;
  #isSlow = false;
  #pending: PendingDiscover | undefined;

  constructor(upstream: RoutedUpstream) {
    this.upstream = upstream;
  }

  /** Sends `server/discover`. Callers that wait at the same time share one request. */
  async discover(context: Context): Promise<Result> {
    const answer = this.#discover(context);
    return this.withTimeout(DISCOVER_TIMEOUT_MS, context, () => answer);
  }

  /** Whether it has a capability. Sends `server/discover` again only if the capability was not declared before. */
  async offers(context: Context, isOffered: (capabilities: Json) => boolean): Promise<boolean> {
    if (!isOffered(this.capabilities ?? {})) await this.discover(context);
    return isOffered(this.capabilities ?? {});
  }

  has(capability: string): boolean {
    return isObject(this.capabilities?.[capability]);
  }

  /** Whether it has the capability, or its capabilities are not known. */
  mayHave(capability: string): boolean {
    return this.capabilities === undefined || this.has(capability);
  }

  /** Runs work with a timeout; errors get the name of the upstream. */
  async withTimeout<T>(ms: number, context: Context, work: (context: Context) => Promise<T>): Promise<T> {
    const { signal } = context;
    try {
      const done = await withTimeout(this.#isSlow ? Math.min(ms, SLOW_TIMEOUT_MS) : ms, signal, (own) =>
        attempt(() => work({ ...context, signal: own })),
      );
      this.#isSlow = false;
      return done;
    } catch (error) {
      if (signal.aborted) throw error;
      if (isTimeout(error)) {
        this.#isSlow = true;
        // An answer ends the short timeout.
        void this.#discover(context);
      }
      throw withUpstreamName(this.upstream.name, error);
    }
  }

  #discover(context: Context): Promise<Result> {
    const known = this.#pending;
    if (known !== undefined && performance.now() - known.since < REDISCOVER_MS) return known.answer;
    known?.stop.abort(new Error("The upstream did not answer"));
    const stop = new AbortController();
    const answer = ignoreRejection(
      this.#sendDiscover(backgroundContext(context, stop.signal)).finally(() => {
        if (this.#pending?.stop === stop) this.#pending = undefined;
      }),
    );
    this.#pending = { answer, stop, since: performance.now() };
    return answer;
  }

  async #sendDiscover(context: Context): Promise<Result> {
    const request: Request = { method: "server/discover", params: {} };
    try {
      const result = await attempt(() => this.upstream.handler(request, context));
      const { capabilities } = result;
      this.capabilities = isObject(capabilities) ? capabilities : {};
      this.#isSlow = false;
      return result;
    } catch (error) {
      if (!isTimeout(error)) this.#isSlow = false;
      throw error;
    }
  }
}

/** A context for the router's own requests on behalf of a caller. They may outlive the call that needs them. */
function backgroundContext({ revision, caller }: Context, signal: AbortSignal = new AbortController().signal): Context {
  return {
    revision,
    caller,
    signal,
    notify: () => undefined,
    ask: async ({ method }) => {
      throw McpError.of("missing_capability", `No client can answer ${method}`, { requiredCapabilities: {} });
    },
  };
}

const MAX_VIEWS = 1_000;

/** The views of all callers. Callers that get the same answers from upstreams share one. */
export class Views {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #option: NamesOption;
  readonly #views = new BoundedMap<string, View>(MAX_VIEWS);

  constructor(upstreams: readonly RoutedUpstream[], option: NamesOption) {
    this.#upstreams = upstreams;
    this.#option = option;
  }

  of(context: Context): View {
    const key = sharedKey(context.caller);
    let view = this.#views.get(key);
    if (view === undefined) {
      view = new View(this.#upstreams, this.#option);
      this.#views.set(key, view);
    }
    return view;
  }
}
