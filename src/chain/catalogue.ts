// The catalogue: what callers see at one place of a chain, for each view one value: the definitions in its lists, and the
// items that names have led to. It is fed by the lists that callers get, or read for them when a name is unknown, and
// dropped when a list has changed. Callers may see different tools under the same name, so nothing that was learned from
// the list of one caller is used for another. What transforms make of a list is kept here too, so that it is made once.

import { callerKey } from "../core/caller-key.ts";
import { abortable } from "../core/async.ts";
import { isSameArray } from "../core/collections.ts";
import { ExpiringMap } from "../core/expiring-map.ts";
import type { Caller, Context, Handler, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { LISTS, type ListKind } from "../protocol/lists.ts";
import { walkPages } from "../protocol/walk-pages.ts";
import type { Item, ItemDefinition, ItemKind } from "./item.ts";

let lastStart = 0;

/** Where a version begins to count: each elsewhere, so that what replaces something has no version of that. */
export function startVersion(): number {
  return (lastStart += 2 ** 24);
}

const MAX_VIEWS = 1_000;
/** Of all lists of all callers. Above this, the lists of all other callers are forgotten, and read again when needed. */
const MAX_ITEMS = 1_000_000;
/** Of one list. What follows is not remembered, and so is unknown. */
const MAX_LIST_ITEMS = 100_000;
const MAX_LIST_LENGTH = 128 * 1024 * 1024;
/** Of all callers, which may invent names. Above this, everything is forgotten. */
const MAX_NAMES = 100_000;
/** A longer name is followed each time. */
const MAX_NAME_LENGTH = 500;
/** After this long, a list is read again: a caller without a subscription is not notified of changes. */
const MAX_AGE_MS = 60_000;
/** How soon a list may be read again for an unknown name. Otherwise each call of an invented name would read it. */
export const REREAD_MS = 10_000;
/** How many times in a row a list is read if it keeps changing. */
const MAX_READS = 5;

/** One list of one view. */
interface KnownList {
  /** By name. */
  readonly definitions: Map<string, ItemDefinition>;
  readonly since: number;
  /** When it was last read to its end. */
  readAt: number;
  reading: Promise<void> | undefined;
  failure: Error | undefined;
}

type NamedItems = Map<ItemKind, Map<string, Item>>;

/** The items that names of one view have led to, by kind, and the version for which that holds. */
export interface FollowedNames {
  readonly version: number;
  readonly items: NamedItems;
  /** Those whose definitions were looked for. */
  readonly defined: NamedItems;
}

/** A page of a list, and what transforms have made of it. A server may change its array, or use it for several lists. */
interface TransformedPage {
  readonly kind: ListKind;
  readonly isFirst: boolean;
  readonly before: readonly unknown[];
  readonly after: readonly unknown[];
}

interface CatalogueView {
  readonly lists: Partial<Record<ListKind, KnownList>>;
  followed: FollowedNames;
}

export class Catalogue {
  /** Another number when something was learned or forgotten. */
  version: number = startVersion();
  /** For transforms that do the same for all callers: definitions by those they were made of; null if they are hidden. */
  readonly transformed: Readonly<Record<ListKind, WeakMap<ItemDefinition, ItemDefinition | null>>> = {
    tools: new WeakMap(),
    prompts: new WeakMap(),
    resources: new WeakMap(),
    templates: new WeakMap(),
  };
  /** By the arrays they were made of. */
  readonly #pages = new WeakMap<object, TransformedPage>();
  /** The names inside of a transform by those outside, by the list that was searched. */
  readonly #searched = new WeakMap<object, { readonly version: number; readonly names: ReadonlyMap<string, string> }>();
  #views = new ExpiringMap<string, CatalogueView>({ maxEntries: MAX_VIEWS });
  /** How many items were learned, and how many names were followed, since all were forgotten. */
  #learned = 0;
  #followed = 0;

  /** What the last list says about an item, without reading it. */
  get(kind: ListKind, name: string, caller: Caller): ItemDefinition | undefined {
    return this.#views.get(callerKey(caller, "view"))?.lists[kind]?.definitions.get(name);
  }

  /**
   * Reads the list with `read` if the item is unknown or was listed long ago. Undefined if it is not listed. Throws if the
   * list cannot be read.
   */
  async find(kind: ListKind, name: string, context: Context, read: Handler): Promise<ItemDefinition | undefined> {
    let list = this.#fresh(kind, context.caller);
    for (let attempts = 0; attempts < MAX_READS; attempts += 1) {
      if (list.definitions.has(name) || performance.now() - list.readAt <= REREAD_MS) break;
      await this.#read(list, kind, context, read);
      // If the list has changed meanwhile, it is read again: a decision about an old definition could be wrong.
      const current = this.#fresh(kind, context.caller);
      if (current === list) break;
      list = current;
    }
    const definition = list.definitions.get(name);
    if (definition === undefined && list.failure !== undefined) throw list.failure;
    return definition;
  }

  /** All definitions that the caller sees, by name. Throws if the list cannot be read. */
  async all(kind: ListKind, context: Context, read: Handler): Promise<ReadonlyMap<string, ItemDefinition>> {
    const list = this.#fresh(kind, context.caller);
    if (performance.now() - list.readAt > REREAD_MS) await this.#read(list, kind, context, read);
    if (list.failure !== undefined) throw list.failure;
    return list.definitions;
  }

  /** Until when the list counts, on the clock of `performance`. */
  freshUntil(kind: ListKind, caller: Caller): number {
    return (this.#views.get(callerKey(caller, "view"))?.lists[kind]?.since ?? -Infinity) + MAX_AGE_MS;
  }

  /** Remembers a page of a list that this caller gets. `isWhole`: whether it is the whole list. */
  learn(kind: ListKind, page: Result, caller: Caller, isWhole: boolean): void {
    const list = this.#fresh(kind, caller);
    const items: unknown = page[LISTS[kind].field];
    if (!Array.isArray(items)) return;
    if (isWhole && !isSameArray([...list.definitions.values()], items)) {
      list.definitions.clear();
      this.version += 1;
    }
    this.#learn(list, kind, items);
    if (this.#learned > MAX_ITEMS) this.#forgetOthers(list, kind, caller);
  }

  /** The items that names of this caller have led to. They are forgotten when `version` is another one. */
  followed(caller: Caller, version: number): FollowedNames {
    const view = this.#viewOf(caller);
    if (view.followed.version !== version) view.followed = { version, items: new Map(), defined: new Map() };
    return view.followed;
  }

  /** Remembers where a name leads to. */
  remember(items: NamedItems, item: Item): void {
    if (item.name.length > MAX_NAME_LENGTH) return;
    this.#followed += 1;
    if (this.#followed > MAX_NAMES) return this.forget();
    const ofKind = items.get(item.kind);
    if (ofKind === undefined) items.set(item.kind, new Map([[item.name, item]]));
    else ofKind.set(item.name, item);
  }

  /** What transforms have made of this page, if it has not changed since. */
  transformedPage(kind: ListKind, items: readonly unknown[], isFirst: boolean): readonly unknown[] | undefined {
    const known = this.#pages.get(items);
    const isSame = known?.kind === kind && known.isFirst === isFirst && isSameArray(known.before, items);
    return isSame ? known.after : undefined;
  }

  keepPage(kind: ListKind, items: readonly unknown[], isFirst: boolean, after: readonly unknown[]): void {
    this.#pages.set(items, { kind, isFirst, before: [...items], after });
  }

  /**
   * The name inside of a transform of the item in a list that it shows under `name`. `ask` gives the item outside.
   * `isForAll`: whether it does the same for all callers.
   */
  async innerName(
    listed: ReadonlyMap<string, ItemDefinition>,
    name: string,
    isForAll: boolean,
    ask: (innerName: string, definition: ItemDefinition) => Item | undefined | Promise<Item | undefined>,
  ): Promise<string | undefined> {
    const { version } = this;
    const known = this.#searched.get(listed);
    if (known?.version === version) {
      const innerName = known.names.get(name);
      const definition = innerName === undefined ? undefined : listed.get(innerName);
      if (innerName !== undefined && definition !== undefined) {
        const item = await ask(innerName, definition);
        if (item?.name === name) return innerName;
      }
      if (isForAll) return undefined;
    }
    const names = new Map<string, string>();
    for (const [innerName, definition] of listed) {
      const answer = ask(innerName, definition);
      const item = answer instanceof Promise ? await answer : answer;
      if (item !== undefined && !names.has(item.name)) names.set(item.name, innerName);
    }
    this.#searched.set(listed, { version, names });
    return names.get(name);
  }

  /** Reads the list of the caller again. A failure is ignored: what is known stays. */
  async refresh(kind: ListKind, context: Context, read: Handler): Promise<void> {
    await this.#read(this.#fresh(kind, context.caller), kind, context, read);
  }

  forget(): void {
    this.version += 1;
    this.#learned = 0;
    this.#followed = 0;
    this.#views = new ExpiringMap({ maxEntries: MAX_VIEWS });
  }

  /** Never a part of a list: an item that a transform decides about by its definition would be hidden then. */
  #forgetOthers(list: KnownList, kind: ListKind, caller: Caller): void {
    this.forget();
    this.#learned = list.definitions.size;
    this.#viewOf(caller).lists[kind] = list;
  }

  #viewOf(caller: Caller): CatalogueView {
    const key = callerKey(caller, "view");
    let view = this.#views.get(key);
    if (view === undefined) {
      view = { lists: {}, followed: { version: -1, items: new Map(), defined: new Map() } };
      this.#views.set(key, view);
    }
    return view;
  }

  #fresh(kind: ListKind, caller: Caller): KnownList {
    const { lists } = this.#viewOf(caller);
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
      if (definitions.size >= MAX_LIST_ITEMS && !definitions.has(name)) continue;
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
    const isCurrent = this.#fresh(kind, context.caller) === list;
    if (isCurrent && this.#learned > MAX_ITEMS) this.#forgetOthers(list, kind, context.caller);
  }
}
