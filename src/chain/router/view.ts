// A view is what one group of callers sees of all upstreams: their capabilities and the names in their lists. When a
// name is not known yet, the upstreams are listed. All waiting callers share one listing, and wait only until their
// name is found.

import { abortable, within } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context } from "../../core/handler.ts";
import { withoutDiagnostics } from "../../protocol/errors.ts";
import { LISTS, type ListCapability, type ListKind } from "../../protocol/lists.ts";
import { Addresses } from "./addresses.ts";
import { NameIndex, type Naming, type Route, type RoutedUpstream } from "./names.ts";
import { backgroundContext } from "./pages.ts";
import { LIST_TIMEOUT_MS, UpstreamView } from "./upstream-view.ts";

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
    const routed = this.upstreams[upstream];
    if (routed === undefined) throw new RangeError("There is no such upstream");
    return routed.upstream;
  }

  /** The route of a name that a caller sent. Lists the upstreams if necessary. */
  async find(kind: ListKind, text: string, context: Context): Promise<Route | undefined> {
    const index = this.indexes[kind];
    const route = index.find(text);
    if (route !== undefined) {
      if (index.isStale) this.#startListing(kind, context);
      return route;
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
      const isKnown = isFound();
      const leftMs = until - performance.now();
      if (isKnown === true || (isKnown !== false && leftMs <= 0)) return;
      const next = Promise.race(pending);
      await abortable(context.signal, isKnown === false ? next : within(leftMs, next));
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
      const contents = await view.readList(LISTS[kind], {}, backgroundContext(context), LIST_TIMEOUT_MS);
      index.setList(at, contents?.keys ?? [], contents?.items);
    } catch (error) {
      // A cancellation says nothing about the upstream.
      const isCancelled = error instanceof ConnectionError && error.kind === "cancelled";
      if (!isCancelled) index.setProblem(at, withoutDiagnostics(error));
    }
  }
}

const KINDS_OF: Readonly<Record<ListCapability, readonly ListKind[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  resources: ["resources", "templates"],
};
