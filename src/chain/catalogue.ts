// The catalogue: what the callers of a view see, as items. An item is a tool, prompt, resource or template with the name
// that callers use, the name at its upstream, and its definition. A catalogue is fed by the lists that callers get, or
// read for them when a name is unknown, and dropped when a list has changed. Callers may see different tools under the
// same name, so nothing that was learned from the list of one caller is used for another.

import { abortable } from "../core/async.ts";
import { BoundedMap } from "../core/collections.ts";
import type { CalledItem, Caller, Context, Handler, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { LISTS, OWN_NAMES, UPSTREAM, type ListKind } from "../protocol/lists.ts";
import { factOf, type ToolFact } from "../protocol/tool-facts.ts";
import { walkPages } from "../protocol/walk-pages.ts";

/** An item as a server lists it. */
export type Definition = { readonly [field: string]: unknown };

/** What an item is: a tool, prompt, resource, template, or task. */
export type ItemKind = CalledItem["kind"];

/** One entry of a catalogue, at one place in a chain. */
export class Item implements CalledItem {
  readonly kind: ItemKind;
  readonly name: string;
  readonly upstream: string | undefined;
  /** The upstream, and those behind it if it is a gateway: `team`, `team.notes`. */
  readonly upstreams: readonly string[];
  /** Its names at the upstreams, the nearest first. There are several if upstreams are gateways. */
  readonly ownNames: readonly string[];
  /** These names, and some with the name of the upstream as a prefix, for rules that hide an item by any of them. */
  readonly otherNames: readonly string[];
  readonly definition: Definition | undefined;
  /** Where a router sends requests that name it. Only that router reads it. */
  readonly route: unknown;
  /** Whether an upstream has it. Otherwise it is only a name that a caller has sent. */
  readonly isKnown: boolean;
  /** The item as it was before `changedBy` changed it. */
  inner: Item | undefined;
  changedBy: object | undefined;
  /** The transform that hides it, here or further inside. */
  readonly hiddenBy: object | undefined;
  /** Why its definition could not be read. */
  readonly failure: Error | undefined;
  /** Until when its definition counts, on the clock of `performance`. */
  readonly until: number;

  /** Only `kind` and `name` must be given. */
  constructor(fields: Partial<ItemFields> & Pick<ItemFields, "kind" | "name">) {
    this.kind = fields.kind;
    this.name = fields.name;
    this.upstream = fields.upstream;
    this.upstreams = fields.upstreams ?? NO_NAMES;
    this.ownNames = fields.ownNames ?? NO_NAMES;
    this.otherNames = fields.otherNames ?? NO_NAMES;
    this.definition = fields.definition;
    this.route = fields.route;
    this.isKnown = fields.isKnown ?? false;
    this.inner = fields.inner;
    this.changedBy = fields.changedBy;
    this.hiddenBy = fields.hiddenBy;
    this.failure = fields.failure;
    this.until = fields.until ?? Infinity;
  }

  /** An item of a list. Its `_meta` says of which upstream it is, and its names there. */
  static listed(kind: ListKind, name: string, definition: Definition): Item {
    return new Item({ kind, name, definition, isKnown: true, ...originOf(definition, name) });
  }

  get ownName(): string {
    return this.ownNames[0] ?? this.name;
  }

  /** What the definition of a tool says about calls of it. */
  get facts(): ToolFact | undefined {
    const { definition } = this;
    if (this.kind !== "tools" || definition === undefined) return undefined;
    let facts = knownFacts.get(definition);
    if (facts === undefined) knownFacts.set(definition, (facts = factOf(definition, true)));
    return facts;
  }

  /** The item with another name or definition. Its definition has the new name. */
  change(changes: { readonly name?: string; readonly definition?: Definition | undefined }): Item {
    const { name = this.name, definition = this.definition } = changes;
    const isListed = definition !== undefined && name !== this.name && this.kind !== "tasks";
    const shown = isListed ? { ...definition, [LISTS[this.kind].key]: name } : definition;
    const { upstream } = this;
    // An item that no list says other names of has its own.
    const isOwn = this.ownNames.length === 0 && name !== this.name;
    const ownNames = isOwn ? [this.name] : this.ownNames;
    const otherNames = isOwn ? [this.name, ...this.otherNames] : this.otherNames;
    if (shown !== undefined && shown !== this.definition) origins.set(shown, { upstream, ownNames, otherNames });
    return changed(this, { name, definition: shown, ownNames, otherNames });
  }

  /** Says which transform has made it of another item. */
  setOrigin(transform: object, inner: Item): this {
    this.changedBy = transform;
    this.inner = inner;
    return this;
  }

  /** The item outside of a transform that hides it from callers that use this name. `failure`: why, if not by a rule. */
  hide(transform: object, name: string, failure?: Error): Item {
    return changed(this, { name, failure, inner: this, changedBy: transform, hiddenBy: transform });
  }

  /** The same item, now that its definition is known. */
  withDefinition(definition: Definition, until?: number): Item {
    const origin = this.isKnown ? undefined : originOf(definition, this.name);
    return changed(this, { ...origin, definition, isKnown: true, until: until ?? this.until });
  }

  /** The same item, which is in no list. */
  withoutDefinition(): Item {
    return this.definition === undefined ? this : changed(this, { definition: undefined });
  }

  withFailure(failure: Error): Item {
    return changed(this, { failure });
  }
}

/** What an item is made of. */
type ItemFields = Omit<
  Item,
  "ownName" | "facts" | "change" | "setOrigin" | "hide" | "withDefinition" | "withoutDefinition" | "withFailure"
>;

function changed(item: ItemFields, changes: Partial<ItemFields>): Item {
  return new Item({ ...item, ...changes });
}

/** By definition, so that they are worked out once for each list. */
const knownFacts = new WeakMap<Definition, ToolFact>();

const NO_NAMES: readonly string[] = [];

/** Where definitions come from that a transform has made. */
const origins = new WeakMap<Definition, Partial<ItemFields>>();

/** The upstream and the names of an item there: what is known of it, or what a router has written into its `_meta`. */
function originOf(definition: Definition, name: string): Partial<ItemFields> {
  const known = origins.get(definition);
  if (known !== undefined) return known;
  const { _meta: meta } = definition;
  const { [OWN_NAMES]: listed, [UPSTREAM]: upstream } = isObject(meta) ? meta : {};
  const ownNames: readonly string[] = Array.isArray(listed)
    ? listed.filter((one) => typeof one === "string")
    : NO_NAMES;
  if (typeof upstream !== "string") return { ownNames, otherNames: ownNames };
  return { ownNames, upstream, otherNames: [...ownNames, `${upstream}_${ownNames[0] ?? name}`] };
}

/** What is known about the tool that a request calls. Throws if its list could not be read. */
export function calledTool({ item }: Context): ToolFact | undefined {
  // A tool that is hidden further inside is in no list here.
  if (!(item instanceof Item) || item.hiddenBy !== undefined) return undefined;
  if (item.failure !== undefined) throw item.failure;
  return item.facts;
}

let lastStart = 0;

/** Where a version begins to count: each elsewhere, so that what replaces something has no version of that. */
export function startVersion(): number {
  return (lastStart += 2 ** 24);
}

/** What a router or a gateway knows about the names that its callers use. */
export interface ItemSource {
  /** The item that a name leads to; one that is not known if nothing has the name. Never throws or rejects. */
  find(kind: ItemKind, name: string, context: Context): Item | Promise<Item>;
  /** Another number when names may lead elsewhere. */
  version(caller: Caller): number;
  /** The URI that callers see for a URI of an upstream. Absent if it is the same. */
  readonly shownUri?: (upstream: string, uri: string, caller: Caller) => string;
  /** Reads the lists that this depends on, if they were never read. */
  readonly readUris?: (context: Context) => Promise<void>;
}

const MAX_VIEWS = 1_000;
/** Of all lists of all callers. Above this, the lists of all other callers are forgotten, and read again when needed. */
const MAX_ITEMS = 1_000_000;
/** Of one list. What follows is not read, and so is unknown. */
const MAX_LIST_ITEMS = 100_000;
const MAX_LIST_LENGTH = 128 * 1024 * 1024;
/** After this long, a list is read again: a caller without a subscription is not notified of changes. */
const MAX_AGE_MS = 60_000;
/** How soon a list may be read again for an unknown name. Otherwise each call of an invented name would read it. */
const REREAD_MS = 10_000;
/** How many times in a row a list is read if it keeps changing. */
const MAX_READS = 5;

/** One list of one view. */
interface KnownList {
  /** By name. */
  readonly definitions: Map<string, Definition>;
  readonly since: number;
  /** When it was last read to its end. */
  readAt: number;
  reading: Promise<void> | undefined;
  failure: Error | undefined;
}

/** The definitions in the lists at one place of a chain, by the view of the caller. */
export class Catalogue {
  /** Another number when something was learned or forgotten. */
  version: number = startVersion();
  #views = new BoundedMap<string, Partial<Record<ListKind, KnownList>>>(MAX_VIEWS);
  /** How many items were learned since all were forgotten. */
  #learned = 0;

  /** What the last list says about an item, without reading it. */
  get(kind: ListKind, name: string, caller: Caller): Definition | undefined {
    return this.#views.get(viewKey(caller))?.[kind]?.definitions.get(name);
  }

  /**
   * Reads the list with `read` if the item is unknown or was listed long ago. Undefined if it is not listed. Throws if the
   * list cannot be read.
   */
  async find(kind: ListKind, name: string, context: Context, read: Handler): Promise<Definition | undefined> {
    let list = this.#fresh(kind, context.caller);
    for (let attempts = 0; attempts < MAX_READS; attempts += 1) {
      if (list.definitions.has(name) || performance.now() - list.readAt <= REREAD_MS) break;
      await this.#read(list, kind, context, read);
      // If the list has changed meanwhile, it is read again: a decision about an old definition could be wrong.
      const current = this.#fresh(kind, context.caller);
      if (current === list) break;
      list = current;
    }
    const found = list.definitions.get(name);
    if (found === undefined && list.failure !== undefined) throw list.failure;
    return found;
  }

  /** All definitions that the caller sees, by name. Throws if the list cannot be read. */
  async all(kind: ListKind, context: Context, read: Handler): Promise<ReadonlyMap<string, Definition>> {
    const list = this.#fresh(kind, context.caller);
    if (performance.now() - list.readAt > REREAD_MS) await this.#read(list, kind, context, read);
    if (list.failure !== undefined) throw list.failure;
    return list.definitions;
  }

  /** Until when the list counts, on the clock of `performance`. */
  freshUntil(kind: ListKind, caller: Caller): number {
    return (this.#views.get(viewKey(caller))?.[kind]?.since ?? -Infinity) + MAX_AGE_MS;
  }

  /** Remembers a page of a list that this caller gets. `isWhole`: whether it is the whole list. */
  learn(kind: ListKind, page: Result, caller: Caller, isWhole: boolean): void {
    const list = this.#fresh(kind, caller);
    const items: unknown = page[LISTS[kind].field];
    if (!Array.isArray(items)) return;
    this.#learn(list, kind, items);
    if (isWhole && list.definitions.size !== items.length) {
      // Something is no longer listed.
      list.definitions.clear();
      this.version += 1;
      this.#learn(list, kind, items);
    }
    if (this.#learned > MAX_ITEMS) this.#forgetOthers(list, kind, caller);
  }

  /** Reads the list of the caller again. A failure is ignored: what is known stays. */
  async refresh(kind: ListKind, context: Context, read: Handler): Promise<void> {
    await this.#read(this.#fresh(kind, context.caller), kind, context, read);
  }

  forget(): void {
    this.version += 1;
    this.#learned = 0;
    this.#views = new BoundedMap(MAX_VIEWS);
  }

  /** Never a part of a list: an item that a transform decides about by its definition would be hidden then. */
  #forgetOthers(list: KnownList, kind: ListKind, caller: Caller): void {
    this.forget();
    this.#learned = list.definitions.size;
    this.#views.set(viewKey(caller), { [kind]: list });
  }

  #fresh(kind: ListKind, caller: Caller): KnownList {
    const key = viewKey(caller);
    let lists = this.#views.get(key);
    if (lists === undefined) this.#views.set(key, (lists = {}));
    const now = performance.now();
    const known = lists[kind];
    if (known !== undefined && now - known.since < MAX_AGE_MS) return known;
    return (lists[kind] = {
      definitions: new Map(),
      since: now,
      readAt: -Infinity,
      reading: undefined,
      failure: undefined,
    });
  }

  #learn(list: KnownList, kind: ListKind, items: readonly unknown[]): void {
    const { key } = LISTS[kind];
    const { definitions } = list;
    let isChanged = false;
    for (const item of items) {
      const name = isObject(item) ? item[key] : undefined;
      if (!isObject(item) || typeof name !== "string" || definitions.get(name) === item) continue;
      definitions.set(name, item);
      this.#learned += 1;
      isChanged = true;
    }
    if (isChanged) this.version += 1;
  }

  /** Reads the whole list, once for all who wait, so the caller's signal ends only its own wait. */
  #read(list: KnownList, kind: ListKind, context: Context, read: Handler): Promise<void> {
    list.reading ??= this.#readAll(list, kind, context, read).then(
      () => {
        list.failure = undefined;
        list.readAt = performance.now();
        list.reading = undefined;
      },
      (error: unknown) => {
        list.failure = error as Error;
        list.reading = undefined;
      },
    );
    return abortable(context.signal, list.reading);
  }

  async #readAll(list: KnownList, kind: ListKind, context: Context, read: Handler): Promise<void> {
    const { method, field } = LISTS[kind];
    const silent: Context = { ...context, signal: new AbortController().signal, notify: () => undefined };
    const fetch = (cursor: string | undefined): Promise<Result> =>
      read({ method, params: cursor === undefined ? {} : { cursor } }, silent);
    const pages: Result[] = [];
    const limits = { items: MAX_LIST_ITEMS, length: MAX_LIST_LENGTH };
    for await (const { page } of walkPages(field, fetch, limits)) pages.push(page);
    list.definitions.clear();
    this.version += 1;
    for (const { [field]: items } of pages) if (Array.isArray(items)) this.#learn(list, kind, items);
    if (this.#learned > MAX_ITEMS) this.#forgetOthers(list, kind, context.caller);
  }
}

/** The last caller and its key: the next request is often of the same one. */
let last: { readonly caller: Caller; readonly key: string } | undefined;

/** The same for callers that certainly see the same: one client with the same identity at the same endpoint. */
export function viewKey(caller: Caller): string {
  if (last?.caller === caller) return last.key;
  const { key, principal, endpoint, part, scopes, claims } = caller;
  const isPlain = principal === undefined && endpoint === undefined && part === undefined;
  if (isPlain && scopes === undefined && claims === undefined) return key;
  // Keys of callers do not begin with a bracket.
  last = { caller, key: JSON.stringify([key, principal, endpoint, part, scopes, claims]) };
  return last.key;
}
