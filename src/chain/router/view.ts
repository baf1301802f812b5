// A view is what one group of callers sees of all upstreams: their capabilities and the names in their lists. When a
// name is not known yet, the upstreams are listed. All waiting callers share one listing, and wait only until their
// name is found.

import { abortable, attempt, forwardAbort, ignoreRejection, within, withTimeout } from "../../core/async.ts";
import { BoundedMap } from "../../core/collections.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, type McpError, withoutDiagnostics } from "../../protocol/errors.ts";
import { LISTS, type ListCapability, type ListKind } from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import { tryParseTemplate, type UriTemplate } from "../../protocol/uri-template.ts";
import { mapResultUris } from "../result-items.ts";
import { isMethodNotFound, isTimeout, withUpstreamName } from "./failures.ts";
import { NameIndex, type Naming, type Route, type RoutedUpstream } from "./names.ts";
import { backgroundContext, readAllPages, type ListContents, type PagedList } from "./pages.ts";

/** How long the list of an upstream may take, with all its pages. */
const LIST_TIMEOUT_MS = 30_000;
/** How long the list of a caller waits for an upstream that is up. The upstream's list is read to its end. */
const LIST_WAIT_MS = 2_000;
/** How long to wait for other upstreams that might also have a name that was found. */
const COLLISION_WAIT_MS = 1_000;

/** A listing in progress. */
interface Listing {
  /** One promise for each upstream that has not answered yet. */
  readonly pending: Set<Promise<void>>;
}

/** Whether the name was found. `"unless others have it"`: it was, but wait briefly for the other upstreams. */
export type IsFound = () => boolean | "unless others have it";

export class View {
  readonly upstreams: readonly UpstreamView[];
  readonly indexes: Readonly<Record<ListKind, NameIndex>>;
  readonly addresses: Addresses;
  readonly #listings = new Map<ListKind, Listing>();
  readonly #listeners = new Set<(capability: ListCapability) => void>();

  constructor(upstreams: readonly RoutedUpstream[], naming: Naming) {
    const onChanged = (capability: ListCapability): void => {
      this.changed(capability);
      for (const listener of [...this.#listeners]) listener(capability);
    };
    this.upstreams = upstreams.map((upstream) => new UpstreamView(upstream, onChanged));
    const [tools, prompts] = [new NameIndex(upstreams, naming, "tools"), new NameIndex(upstreams, naming, "prompts")];
    const [resources, templates] = [new NameIndex(upstreams), new NameIndex(upstreams)];
    this.indexes = { tools, prompts, resources, templates };
    this.addresses = new Addresses(upstreams, resources, templates);
  }

  /** Another number when names may lead elsewhere, or definitions have changed. */
  get version(): number {
    const { tools, prompts, resources, templates } = this.indexes;
    return tools.version + prompts.version + resources.version + templates.version;
  }

  /** The upstream of a route. */
  at({ upstream }: Pick<Route, "upstream">): RoutedUpstream {
    const found = this.upstreams[upstream];
    if (found === undefined) throw new RangeError("There is no such upstream");
    return found.upstream;
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
    return index.find(text) ?? index.findAway(text);
  }

  /** Lists all upstreams, unless that was done just now. Waits until `isFound`, or until all have answered. */
  async list(kind: ListKind, context: Context, isFound: IsFound): Promise<void> {
    if (this.indexes[kind].isFresh && !this.#listings.has(kind)) return;
    const { pending } = this.#startListing(kind, context);
    const until = performance.now() + COLLISION_WAIT_MS;
    while (pending.size > 0) {
      const found = isFound();
      const leftMs = until - performance.now();
      if (found === true || (found !== false && leftMs <= 0)) return;
      const next = Promise.race(pending);
      await abortable(context.signal, found === false ? next : within(leftMs, next));
    }
  }

  /** Calls the listener when lists contain an upstream that they lacked. Returns a function that removes the listener. */
  onChanged(listener: (capability: ListCapability) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
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
    const { index: at } = view.upstream;
    const index = this.indexes[kind];
    try {
      const contents = await view.readList(offeredList(kind), {}, backgroundContext(context), LIST_TIMEOUT_MS);
      index.setList(at, contents?.keys ?? [], contents?.items);
    } catch (error) {
      // A cancellation says nothing about the upstream.
      const isCancelled = error instanceof ConnectionError && error.kind === "cancelled";
      if (!isCancelled) index.setProblem(at, withoutDiagnostics(error));
    }
  }
}

/** A list, and a function that returns whether an upstream with the given capabilities has this list. */
export interface OfferedList extends PagedList {
  readonly isOffered: (capabilities: Json) => boolean;
  /** Absent if there is no notification of changes. */
  readonly capability?: ListCapability;
}

export function offeredList(kind: ListKind): OfferedList {
  const list = LISTS[kind];
  return { ...list, isOffered: (capabilities) => isObject(capabilities[list.capability]) };
}

const KINDS_OF: Readonly<Record<ListCapability, readonly ListKind[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  resources: ["resources", "templates"],
};

/** How long `server/discover` waits for an upstream. It is the first request of a caller, and some callers wait 1.5 s. */
const DISCOVER_TIMEOUT_MS = 1_000;
/** How long a list waits for an upstream whose capabilities are not known, such as a program that is still starting. */
const START_TIMEOUT_MS = 15_000;
/** How long a request waits for an upstream that has failed or timed out and has not answered since. */
const UNAVAILABLE_WAIT_MS = 50;
/** After this long without an answer, `server/discover` is sent again. */
const REDISCOVER_MS = 60_000;

interface PendingDiscover {
  readonly answer: Promise<Result>;
  readonly stop: AbortController;
  readonly since: number;
}

/** A list that was not read in time. */
interface LateList {
  /** Pending while the list is read. */
  readonly reading: Promise<ListContents> | undefined;
  /** What was read last. It is shown if the list is late again. */
  readonly contents: ListContents | undefined;
}

/**
 * One upstream as one group of callers sees it: its capabilities, and whether it is available. An upstream that has
 * failed or timed out is tried again in the background, and the others do not wait for it until it answers. This
 * concerns only the router's own requests; requests of callers go directly to the handler.
 */
export class UpstreamView {
  readonly upstream: RoutedUpstream;
  /** From the last answer to `server/discover`; undefined if there was none. */
  capabilities: Json | undefined;
  readonly #onChanged: (capability: ListCapability) => void;
  /** Lists that callers have got without this upstream, and the request that must succeed until it is in them. */
  readonly #missing = new Map<ListCapability, "discover" | "list">();
  /** By method. */
  readonly #late = new Map<string, LateList>();
  /** Why it is not available. */
  #problem: Error | undefined;
  #pending: PendingDiscover | undefined;

  /** `onChanged` is called when lists contain the upstream that they lacked. */
  constructor(upstream: RoutedUpstream, onChanged: (capability: ListCapability) => void = () => undefined) {
    this.upstream = upstream;
    this.#onChanged = onChanged;
  }

  /** Sends `server/discover`. Callers that wait at the same time share one request. */
  async discover(context: Context): Promise<Result> {
    const answer = this.#discover(context);
    // After this short time, an upstream may still be starting. That is not a problem yet.
    return this.#wait(DISCOVER_TIMEOUT_MS, context, () => answer, { isTimeoutProblem: false });
  }

  /** Whether it has a capability. Sends `server/discover` again only if the capability was not declared before. */
  async offers(context: Context, isOffered: (capabilities: Json) => boolean): Promise<boolean> {
    if (!isOffered(this.capabilities ?? {})) {
      const answer = this.#discover(context);
      const ms = this.capabilities !== undefined && this.#isUp ? LIST_WAIT_MS : START_TIMEOUT_MS;
      await this.#wait(ms, context, () => answer, { isTimeoutProblem: true });
    }
    return isOffered(this.capabilities ?? {});
  }

  has(capability: string): boolean {
    return isObject(this.capabilities?.[capability]);
  }

  /** Whether it has the capability, or its capabilities are not known. */
  mayHave(capability: string): boolean {
    return this.capabilities === undefined || this.has(capability);
  }

  /**
   * Reads a whole list; undefined if the upstream has no such list. Errors get the name of the upstream. `maxWaitMs`:
   * for a caller that needs more than what can be had soon.
   */
  async readList(
    list: OfferedList,
    params: Params,
    context: Context,
    maxWaitMs?: number,
  ): Promise<ListContents | undefined> {
    const { method, capability } = list;
    let isOffered = false;
    try {
      isOffered = await this.offers(context, list.isOffered);
      if (!isOffered) return undefined;
      return await this.#read(list, params, context, maxWaitMs);
    } catch (error) {
      const isUnknown = isMethodNotFound(error);
      // Many upstreams declare prompts or resources and have no lists of them.
      if (isUnknown && method !== LISTS.tools.method) return undefined;
      if (context.signal.aborted) throw error;
      if (capability !== undefined) this.#missing.set(capability, isOffered ? "list" : "discover");
      // The answer will show that the upstream is available again.
      if (isOffered && this.#problem !== undefined) void this.#discover(context);
      if (!isUnknown) throw error;
      const message = `The upstream ${this.upstream.name} declares tools and does not know ${method}`;
      throw new ConnectionError("protocol", message, { cause: error });
    }
  }

  /** Called when the upstream has answered. Callers whose lists lacked it are notified. */
  available(): void {
    for (const [capability, awaited] of [...this.#missing]) if (awaited === "discover") this.#listed(capability);
  }

  #listed(capability: ListCapability | undefined): void {
    if (capability !== undefined && this.#missing.delete(capability)) this.#onChanged(capability);
  }

  get #isUp(): boolean {
    return this.upstream.isUp?.() ?? true;
  }

  /** Waits for a list for a short time. If it comes later, it is kept, and callers are notified. */
  async #read(list: OfferedList, params: Params, context: Context, maxWaitMs?: number): Promise<ListContents> {
    const { method, capability } = list;
    const late = this.#late.get(method);
    const stop = forwardAbort(context.signal);
    const read = (signal: AbortSignal): Promise<ListContents> =>
      attempt(() => readAllPages(this.upstream.handler, list, params, { ...context, signal }));
    const reading = late?.reading ?? ignoreRejection(withTimeout(LIST_TIMEOUT_MS, stop.signal, read));
    const isNew = reading !== late?.reading;
    const usualMs = isNew ? (this.#isUp ? LIST_WAIT_MS : START_TIMEOUT_MS) : UNAVAILABLE_WAIT_MS;
    try {
      const contents = await this.#wait(maxWaitMs ?? usualMs, context, () => reading, { isTimeoutProblem: false });
      if (isNew) this.#late.delete(method);
      this.#listed(capability);
      return contents;
    } catch (error) {
      if (context.signal.aborted) throw error;
      if (!isTimeout(error)) stop.abort(error);
      else if (isNew) this.#keepReading(list, reading, late?.contents);
      if (!isTimeout(error) || late?.contents === undefined) throw error;
      return { ...late.contents, ttlMs: 0 };
    } finally {
      stop.forget();
    }
  }

  #keepReading({ method, capability }: OfferedList, reading: Promise<ListContents>, before?: ListContents): void {
    this.#late.set(method, { reading, contents: before });
    reading.then(
      (contents) => {
        if (capability === undefined) {
          this.#late.delete(method);
          return;
        }
        this.#late.set(method, { reading: undefined, contents });
        const isChanged = before !== undefined && JSON.stringify(before.items) !== JSON.stringify(contents.items);
        if (isChanged) this.#missing.set(capability, "list");
        this.#listed(capability);
      },
      (error: unknown) => {
        this.#late.delete(method);
        if (!isMethodNotFound(error)) this.#problem = withUpstreamName(this.upstream.name, error);
      },
    );
  }

  async #wait<T>(
    ms: number,
    context: Context,
    work: (context: Context) => Promise<T>,
    { isTimeoutProblem }: { readonly isTimeoutProblem: boolean },
  ): Promise<T> {
    const { signal } = context;
    const before = this.#problem;
    try {
      const limitMs = before === undefined ? ms : UNAVAILABLE_WAIT_MS;
      const { name } = this.upstream;
      const isStarting = this.capabilities === undefined || !this.#isUp;
      const late = isStarting ? `The upstream ${name} is still starting; ask again` : undefined;
      const done = await withTimeout(limitMs, signal, (own) => attempt(() => work({ ...context, signal: own })), late);
      this.#problem = undefined;
      return done;
    } catch (error) {
      if (signal.aborted || isMethodNotFound(error)) throw error;
      const named = withUpstreamName(this.upstream.name, error);
      const isLate = isTimeout(error);
      if (isLate && !isTimeoutProblem && before === undefined) throw named;
      this.#problem = isLate && before !== undefined ? before : named;
      throw this.#problem;
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
    const result = await attempt(() => this.upstream.handler(request, context));
    const { capabilities } = result;
    this.capabilities = isObject(capabilities) ? capabilities : {};
    this.#problem = undefined;
    this.available();
    return result;
  }
}

// Decides how the resource URIs and task ids of many upstreams are shown to callers, and rewrites results that contain
// them. A label is a prefix that names the upstream. A listed URI gets a label by the same rules as a name (names.ts).
// An unlisted URI comes from a result (a link or an embedded resource), a template or a subscription. It gets a label
// if it could also belong to another upstream. Otherwise it is shown unchanged, and the router remembers its upstream.

/** How many unlisted URIs each view remembers. */
const MAX_ROUTES = 1_000;
/** How many parsed templates are kept, for all views together. */
const MAX_TEMPLATES = 10_000;

/** The upstreams that may have a resource. */
export interface AddressRoutes {
  /** The most likely one first. */
  readonly routes: readonly Route[];
  /** Whether no other upstream can have it. */
  readonly isCertain: boolean;
}

/** False for a template that cannot be parsed. */
const parsedTemplates = new BoundedMap<string, UriTemplate | false>(MAX_TEMPLATES);

class Addresses {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #resources: NameIndex;
  readonly #templates: NameIndex;
  readonly #routes = new BoundedMap<string, Route>(MAX_ROUTES);

  constructor(upstreams: readonly RoutedUpstream[], resources: NameIndex, templates: NameIndex) {
    this.#upstreams = upstreams;
    this.#resources = resources;
    this.#templates = templates;
  }

  /** Whether URIs are never changed. */
  get areUnchanged(): boolean {
    return this.#upstreams.length === 1 && !this.#isAlways(0);
  }

  /** The URI that callers see for an upstream's own URI. If it is unlisted and has no label, it is remembered. */
  shown(upstream: number, uri: string): string {
    if (this.areUnchanged) return uri;
    if (this.#isAlways(upstream)) return this.#labelled(upstream, uri);
    if (this.#resources.names.owners(uri).includes(upstream)) return this.#resources.names.shown(upstream, uri);
    if (this.#needsLabel({ upstream, name: uri })) return this.#labelled(upstream, uri);
    this.remember(uri, { upstream, name: uri });
    return uri;
  }

  /** Undefined if the URI has no label, or if callers see this URI without a label. */
  #routeByLabel(uri: string): Route | undefined {
    const route = this.#resources.parseLabel(uri);
    return route !== undefined && this.#needsLabel(route) ? route : undefined;
  }

  #needsLabel({ upstream, name }: Route): boolean {
    const { names } = this.#resources;
    const owners = names.owners(name);
    if (owners.length > 0) return !owners.includes(upstream) || names.shown(upstream, name) !== name;
    const route = this.#routes.get(name);
    if (route !== undefined) return route.upstream !== upstream;
    if (names.hasPrefixes(upstream) || this.#templates.names.hasPrefixes(upstream)) return true;
    return this.#isAlways(upstream) || this.#resources.parseLabel(name) !== undefined;
  }

  /** Remembers where an unlisted URI was found. */
  remember(uri: string, route: Route): void {
    this.#routes.set(uri, route);
  }

  /** If several upstreams list this URI, the labelled URIs that a caller can choose from. Otherwise empty. */
  candidates(uri: string): readonly string[] {
    const { names } = this.#resources;
    if (names.route(uri) !== undefined) return [];
    return names.owners(uri).map((upstream) => names.shown(upstream, uri));
  }

  routes(uri: string): AddressRoutes {
    const certain = this.#resources.find(uri) ?? this.#routeByLabel(uri);
    if (certain !== undefined) return { routes: [certain], isCertain: true };
    const known = this.#routes.get(uri);
    const matching = this.#upstreams.flatMap(({ index }) =>
      this.#templates.listOf(index).some((template) => matchesTemplate(template, uri))
        ? [{ upstream: index, name: uri }]
        : [],
    );
    return { routes: known === undefined ? matching : [known, ...matching], isCertain: false };
  }

  /**
   * The upstream of a task. The id of a task has the label of its upstream and the upstream's own id. Nothing is stored,
   * so an id is valid as long as the upstream knows it, even after a restart of the gateway.
   */
  taskRoute(id: string): Route | undefined {
    return this.#resources.parseLabel(id);
  }

  /** Replaces an upstream's own URIs in a result, and the id of a task, with those that callers use. */
  rewrite<Fields extends Params | Result>(upstream: number, fields: Fields): Fields {
    const { taskId } = fields;
    const changed = this.rewriteUris(upstream, fields);
    return typeof taskId === "string" ? { ...changed, taskId: this.#labelled(upstream, taskId) } : changed;
  }

  /** `own` is shown as `requested`, the URI that the caller has used. */
  rewriteUris<Fields extends Params | Result>(upstream: number, fields: Fields, own?: string, requested = ""): Fields {
    if (this.areUnchanged) return fields;
    return mapResultUris(fields, (uri) => (uri === own ? requested : this.shown(upstream, uri)));
  }

  #isAlways(upstream: number): boolean {
    return this.#upstreams[upstream]?.names === "always";
  }

  #labelled(upstream: number, text: string): string {
    return `${this.#upstreams[upstream]?.label.scheme ?? ""}.${text}`;
  }
}

function matchesTemplate(text: string, uri: string): boolean {
  let template = parsedTemplates.get(text);
  if (template === undefined) {
    template = tryParseTemplate(text) ?? false;
    parsedTemplates.set(text, template);
  }
  return template !== false && template.match(uri) !== undefined;
}

export function unknownTask(taskId: string): McpError {
  return invalidParams("Unknown task: its id names no upstream", { taskId });
}
