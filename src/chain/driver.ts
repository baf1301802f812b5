// Runs requests through the transforms and the middleware of a chain. A transform is a pure function of an item; the
// driver applies it in every direction: to lists, calls, completions, subscriptions, updates and results. Before the
// first middleware runs, the name in a request is followed to its item (`context.item`): outside in to the name at the
// upstreams, then inside out through the transforms. What does not come out under the same name is not found.

import { copyContext } from "../core/cancel.ts";
import type { Caller, Context, Handler, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { errorIn, withMiddleware, type ChainEntry } from "../protocol/compose.ts";
import { McpError } from "../protocol/errors.ts";
import { CACHEABLE, type ListKind } from "../protocol/lists.ts";
import { Item, viewKey, type Definition, type ItemKind, type ItemSource } from "./catalogue.ts";
import {
  addedBy,
  type ItemHandler,
  type Layer,
  type LayeredMiddleware,
  type Transform,
  type TransformView,
} from "./layer.ts";
import { listenThrough } from "./listen-through.ts";
import { createSegments, keptList, remember, searchName, type KnownItems, type Segment } from "./segments.ts";
import { capabilityOf, isNamedIn, isNotFoundKind, namedIn, notFound, notFoundIn, withName } from "./named-items.ts";
import { asPrivate, LISTS_BY_METHOD, mapResultUris, type KindOfList } from "./result-items.ts";

/** Makes middleware of a transform, of a middleware, or of both. It also works outside of a chain. */
export function layered(name: string, layer: Layer): LayeredMiddleware {
  const segments = createSegments([layer]);
  const middleware: LayeredMiddleware = (request, context, next) =>
    new Driver([{ name, middleware }], next, segments).run(request, context);
  const acting = layer.middleware;
  middleware.layer = layer;
  if (acting?.close !== undefined) middleware.close = () => acting.close?.();
  if (acting?.metrics !== undefined) middleware.metrics = (upstreams) => acting.metrics?.(upstreams) ?? "";
  return Object.defineProperty(middleware, "name", { value: name });
}

/** A handler with a transform around it. */
export function transformed(transform: Transform, handler: ItemHandler): Handler {
  return new Driver([{ name: "", middleware: layered("", { transform }) }], handler).run;
}

type Followed = Item | Promise<Item>;

function layerOf({ middleware }: ChainEntry): Layer | undefined {
  return (middleware as LayeredMiddleware).layer;
}

function segmentsOf(entries: readonly ChainEntry[]): readonly Segment[] {
  return createSegments(entries.map(layerOf));
}

export class Driver implements ItemSource {
  readonly #layers: readonly (Layer | undefined)[];
  readonly #names: readonly string[];
  readonly #base: ItemHandler;
  readonly #segments: readonly Segment[];
  /** From each entry inwards; the last is what is behind the chain. */
  readonly #handlers: Handler[] = [];
  /** The first handler before its lists are transformed. */
  #first: Handler;
  /** Whether where a name leads to stays the same until a list changes. */
  readonly #isStable: boolean;

  /** `segments`: those of an earlier driver with the same entries, which remember what they have learned. */
  constructor(entries: readonly ChainEntry[], base: ItemHandler, segments: readonly Segment[] = segmentsOf(entries)) {
    this.#layers = entries.map(layerOf);
    this.#names = entries.map(({ name }) => name);
    this.#base = base;
    this.#segments = segments;
    this.#isStable = this.#layers.every((layer) => layer?.transform?.isLive !== true);
    this.#first = base;
    const last = this.#segmentFrom(entries.length);
    this.#handlers[entries.length] = last === undefined ? base : this.#withEdge(last, this.#learning(last, base));
    for (const [at, entry] of [...entries.entries()].toReversed()) this.#handlers[at] = this.#compose(at, entry);
  }

  readonly run: Handler = (request, context) => (this.#handlers[0] as Handler)(request, context);

  /** Runs a request whose item is known: that of its context. */
  runItem(request: Request, context: Context): Promise<Result> {
    return this.#first(request, context);
  }

  /** The segment that begins at a place, and the one that ends before it. */
  #segmentFrom(at: number): Segment | undefined {
    return this.#segments.find(({ start }) => start === at);
  }

  #segmentBefore(at: number): Segment | undefined {
    return this.#segments.find(({ start, end }) => end === at && start < at);
  }

  #compose(at: number, { name, middleware }: ChainEntry): Handler {
    const layer = this.#layers[at];
    const segmentOf = this.#segmentBefore(at + 1);
    let handler = this.#handlers[at + 1] as Handler;
    if (segmentOf !== undefined) this.#handlers[at + 1] = handler = this.#learning(segmentOf, handler);
    if (layer?.transform !== undefined) handler = this.#withTransform(at, layer.transform, handler);
    const acting = layer === undefined ? middleware : layer.middleware;
    if (acting !== undefined) handler = withMiddleware({ name, middleware: acting }, handler);
    if (at === 0) this.#first = handler;
    const segment = this.#segmentFrom(at);
    return segment === undefined ? handler : this.#withEdge(segment, handler);
  }

  /** The outside of a segment: lists get their transforms, and names are followed to their items. */
  #withEdge(segment: Segment, inner: Handler): Handler {
    const isEmpty = this.#layers.length === 0;
    return (request, context) => {
      const { method } = request;
      if (isEmpty)
        return method === "subscriptions/listen" ? inner(request, this.#watch(context)) : inner(request, context);
      const list = LISTS_BY_METHOD.get(method);
      if (list !== undefined) return this.#list(segment, list, request, context, inner);
      if (method === "subscriptions/listen") return inner(request, this.#watch(context));
      const named = namedIn(request);
      if (named === undefined) return inner(request, context);
      const item = this.#follow(segment, named.kind, named.name, context);
      if (item instanceof Promise) return item.then((found) => this.#enter(segment, found, request, context, inner));
      return this.#enter(segment, item, request, context, inner);
    };
  }

  #enter(segment: Segment, item: Item, request: Request, context: Context, inner: Handler): Promise<Result> {
    const passed = copyContext(context, { item });
    const caller = context.item;
    const isOther = segment.start > 0 && caller instanceof Item && !isNamedIn(request, caller);
    if (!isOther) return inner(request, passed);
    return this.#checkOther(segment.start, caller, item, request, context).then(() => inner(request, passed));
  }

  /**
   * Middleware further outside calls another item than its own caller has named. What hides that outside of it must not
   * be reached in this way.
   */
  async #checkOther(start: number, caller: Item, item: Item, request: Request, context: Context): Promise<void> {
    const { kind, name } = caller;
    const { ownNames, otherNames, upstream } = item;
    for (const [at, layer] of this.#layers.slice(0, start).entries()) {
      const transform = layer?.transform;
      if (transform?.hides !== true || !transform.kinds.has(kind)) continue;
      const other = new Item({ kind, name, ownNames, otherNames, upstream });
      if ((await this.#ask(at, transform, other, context)) === undefined) {
        throw this.#refusal(at, transform, caller, request, context) as Error;
      }
    }
  }

  /** What is inside of a segment. Definitions in its lists are remembered, if something needs them. */
  #learning(segment: Segment, inner: Handler): Handler {
    return (request, context) => {
      const list = LISTS_BY_METHOD.get(request.method);
      // Over HTTP, the headers of calls are compared with what the list says.
      const isRemembered = segment.remembers || (segment.start === 0 && context.caller.headers !== undefined);
      if (list === undefined || !isRemembered) return inner(request, context);
      return inner(request, context).then((result) => {
        const isWhole = request.params["cursor"] === undefined && result["nextCursor"] === undefined;
        segment.catalogue.learn(list.kind, result, context.caller, isWhole);
        return result;
      });
    };
  }

  /** Forgets what lists have said when one has changed. */
  #watch(context: Context): Context {
    const notify: Context["notify"] = (notification) => {
      if (notification.method.endsWith("/list_changed")) {
        for (const { catalogue } of this.#segments) catalogue.forget();
      }
      context.notify(notification);
    };
    return copyContext(context, { notify });
  }

  #list(segment: Segment, list: KindOfList, request: Request, context: Context, inner: Handler): Promise<Result> {
    const { transforms, dependsOnCaller } = segment;
    if (transforms.length === 0) return inner(request, context);
    return inner(request, context).then(async (result) => {
      const items: unknown = result[list.field];
      if (!Array.isArray(items)) return result;
      const shown = await this.#transformed(segment, list, items, context, request.params["cursor"] === undefined);
      const page = shown === items ? result : { ...result, [list.field]: shown };
      return dependsOnCaller ? asPrivate(page) : page;
    });
  }

  /** The items of a page as callers see them; the same array as the last time if nothing has changed. */
  #transformed(
    { transforms, dependsOnCaller, isLive, lists, definitions }: Segment,
    { kind, key }: KindOfList,
    items: readonly unknown[],
    context: Context,
    isFirstPage: boolean,
  ): readonly unknown[] | Promise<readonly unknown[]> {
    const isKept = !dependsOnCaller && !isLive;
    const known = isKept ? keptList(lists, kind, items, isFirstPage) : undefined;
    if (known !== undefined) return known;
    const shown = items.map((definition): unknown => {
      const name = isObject(definition) ? definition[key] : undefined;
      if (!isObject(definition) || typeof name !== "string") return definition;
      const before = isKept ? definitions[kind].get(definition) : undefined;
      if (before !== undefined) return before ?? undefined;
      const after = then(this.#outside(transforms, 0, Item.listed(kind, name, definition), context), definitionOf);
      if (isKept) definitions[kind].set(definition, (after as Definition | undefined) ?? null);
      return after;
    });
    if (isFirstPage) {
      for (const [index, { transform }] of transforms.entries()) {
        for (const definition of transform.added?.[kind] ?? []) {
          const item = new Item({ kind, name: definition[key] as string, definition, isKnown: true });
          shown.push(then(this.#outside(transforms, index + 1, item, context), definitionOf));
        }
      }
    }
    const finish = (all: readonly unknown[]): readonly unknown[] => {
      const isSame = all.length === items.length && all.every((definition, at) => definition === items[at]);
      const page = isSame ? items : all.filter((definition) => definition !== undefined);
      if (isKept) lists.set(items, { kind, isFirstPage, before: [...items], after: page });
      return page;
    };
    return isLive ? Promise.all(shown).then(finish) : finish(shown);
  }

  /** The item outside of all transforms from `first` on; undefined if one hides it. */
  #outside(
    transforms: Segment["transforms"],
    first: number,
    item: Item,
    context: Context,
  ): Item | undefined | Promise<Item | undefined> {
    let current = item;
    for (let index = first; index < transforms.length; index += 1) {
      const { transform, at } = transforms[index] as Segment["transforms"][number];
      if (addedBy(transform, current) !== undefined) return undefined;
      if (!transform.kinds.has(current.kind)) continue;
      const changed = this.#ask(at, transform, current, context);
      if (changed instanceof Promise) {
        return changed.then((next) => next && this.#outside(transforms, index + 1, next, context));
      }
      if (changed === undefined) return undefined;
      current = changed;
    }
    return current;
  }

  /** What a transform makes of an item. Its own errors get the name of the middleware. */
  #ask(at: number, transform: Transform, item: Item, context: Context): Item | undefined | Promise<Item | undefined> {
    const origin = (shown: Item | undefined): Item | undefined =>
      shown === item ? item : shown?.setOrigin(transform, item);
    try {
      const shown = transform.item(item, this.#viewAt(at, context));
      if (!(shown instanceof Promise)) return origin(shown);
      return shown.then(origin, (error: unknown) => {
        throw errorIn(this.#names[at] ?? "", error);
      });
    } catch (error) {
      throw errorIn(this.#names[at] ?? "", error);
    }
  }

  #viewAt(at: number, context: Context): TransformView {
    return { caller: context.caller, context, next: this.#handlers[at + 1] as Handler };
  }

  find(kind: ItemKind, name: string, context: Context): Followed {
    const [first] = this.#segments;
    return first === undefined ? new Item({ kind, name }) : this.#follow(first, kind, name, context);
  }

  version(caller: Caller): number {
    let sum = this.#base.items?.version(caller) ?? 0;
    for (const { since, catalogue } of this.#segments) sum += since + catalogue.version;
    return sum;
  }

  /** Reads the lists of the first segment. A middleware that answers lists itself has a segment of its own. */
  get #reader(): Handler {
    return this.#layers[0]?.transform?.answersLists === true ? (this.#handlers[1] as Handler) : this.#first;
  }

  /** The item with its definition, for which the lists of the caller are read. */
  async define(kind: ListKind, name: string, context: Context): Promise<Item> {
    return this.#seen(0, kind, name, context, this.#reader);
  }

  /** Reads a list of the caller again. */
  async refresh(kind: ListKind, context: Context): Promise<void> {
    await this.#segments[0]?.catalogue.refresh(kind, context, this.#reader);
  }

  /** The item that a name leads to at the outside of a segment. A name that was followed before is one lookup. */
  #follow(segment: Segment, kind: ItemKind, name: string, context: Context): Followed {
    if (!this.#isStable) return this.#seen(segment.start, kind, name, context, undefined);
    const view = this.#viewOf(segment, context.caller);
    const known = view.items.get(kind)?.get(name);
    if (known !== undefined && (known.until === Infinity || performance.now() < known.until)) return known;
    return then(this.#seen(segment.start, kind, name, context, undefined), (item) => {
      const isSure = item.isKnown && item.until > 0 && item.failure === undefined;
      if (isSure && view.version === this.version(context.caller)) remember(segment, view, item);
      return item;
    });
  }

  #viewOf({ views }: Segment, caller: Caller): KnownItems {
    const key = viewKey(caller);
    const version = this.version(caller);
    let view = views.get(key);
    if (view === undefined || view.version !== version) views.set(key, (view = { version, items: new Map() }));
    return view;
  }

  /** The item outside of an entry. `read` reads the lists, if something further outside needs the definition. */
  #seen(at: number, kind: ItemKind, name: string, context: Context, read: Handler | undefined): Followed {
    if (at === this.#layers.length) {
      const [first] = this.#segments;
      const item = this.#fromBase(kind, name, context);
      return at === 0 && first !== undefined ? this.#defined(first, item, context, read) : item;
    }
    const layer = this.#layers[at];
    const next = this.#handlers[at + 1] as Handler;
    if (layer === undefined) return this.#inside(at, kind, name, context, read);
    const { transform } = layer;
    const reader = layer.needs?.(kind, name) === true ? (read ?? next) : read;
    if (transform === undefined) return this.#inside(at, kind, name, context, reader);
    const definition = addedBy(transform, { kind, name });
    if (definition !== undefined) return new Item({ kind, name, definition, isKnown: true });
    if (!transform.kinds.has(kind)) return this.#inside(at, kind, name, context, reader);
    if (transform.searchesNames === true) return this.#search(at, transform, kind, name, context, reader);
    const innerName = transform.innerName === undefined ? name : transform.innerName(kind, name);
    if (innerName === undefined) return new Item({ kind, name }).hide(transform, name);
    return this.#through(at, transform, kind, name, innerName, context, reader);
  }

  /** The item outside of a transform, whose name inside of it is known. */
  #through(
    at: number,
    transform: Transform,
    kind: ItemKind,
    name: string,
    innerName: string,
    context: Context,
    reader: Handler | undefined,
  ): Followed {
    const next = this.#handlers[at + 1] as Handler;
    const isNeeded = transform.needs?.(kind, innerName) === true;
    const behind = this.#inside(at, kind, innerName, context, isNeeded ? (reader ?? next) : reader);
    return then(behind, (item) => this.#shown(at, transform, item, name, isNeeded, context));
  }

  /** Asks the transform about each item of the list, until one has the name. */
  async #search(
    at: number,
    transform: Transform,
    kind: ItemKind,
    name: string,
    context: Context,
    reader: Handler | undefined,
  ): Promise<Item> {
    const segment = this.#segmentFrom(at);
    if (segment === undefined || kind === "tasks") return new Item({ kind, name });
    try {
      const listed = await segment.catalogue.all(kind, context, this.#handlers[at + 1] as Handler);
      const ask = (innerName: string, definition: Definition): Item | undefined | Promise<Item | undefined> =>
        this.#ask(at, transform, Item.listed(kind, innerName, definition), context);
      const innerName = await searchName(segment, listed, name, transform.dependsOnCaller !== true, ask);
      return await this.#through(at, transform, kind, name, innerName ?? name, context, reader);
    } catch (error) {
      return new Item({ kind, name }).hide(transform, name, error as Error);
    }
  }

  /** The item inside of an entry. */
  #inside(at: number, kind: ItemKind, name: string, context: Context, read: Handler | undefined): Followed {
    const segment = this.#segmentBefore(at + 1);
    if (segment === undefined) return this.#seen(at + 1, kind, name, context, read);
    const seen = this.#seen(at + 1, kind, name, context, undefined);
    // Middleware of users may show what is hidden inside of it.
    const isOpaque = this.#layers[at] === undefined;
    const passed = then(seen, (item) => (isOpaque && item.hiddenBy !== undefined ? new Item({ kind, name }) : item));
    return this.#defined(segment, passed, context, read);
  }

  /** The item outside of a transform under the name that the caller has used. */
  #shown(at: number, transform: Transform, item: Item, name: string, isNeeded: boolean, context: Context): Followed {
    const isHidden = item.hiddenBy !== undefined;
    if (isNeeded && item.failure !== undefined && !isHidden) return item.hide(transform, name, item.failure);
    // What is hidden further inside is in no list here. If it is hidden here too, the outermost refusal counts.
    const listed = isHidden ? item.withoutDefinition() : item;
    const check = (shown: Item | undefined): Item => {
      if (shown?.name !== name) return listed.hide(transform, name);
      if (!isHidden) return shown;
      return item.name === name ? item : item.change({ name }).setOrigin(transform, item);
    };
    const fail = (error: unknown): Item => listed.hide(transform, name, error as Error);
    try {
      const shown = this.#ask(at, transform, listed, context);
      return shown instanceof Promise ? shown.then(check, fail) : check(shown);
    } catch (error) {
      return fail(error);
    }
  }

  #fromBase(kind: ItemKind, name: string, context: Context): Followed {
    const { items } = this.#base;
    if (items !== undefined) return items.find(kind, name, context);
    const { item } = context;
    return item instanceof Item && item.kind === kind && item.name === name ? item : new Item({ kind, name });
  }

  /** Adds what the lists of a segment say about an item inside of it. */
  #defined({ catalogue, remembers }: Segment, found: Followed, context: Context, read: Handler | undefined): Followed {
    if (read === undefined && !remembers) return found;
    return then(found, (item) => {
      const { kind, name } = item;
      if (item.hiddenBy !== undefined || kind === "tasks") return item;
      const { caller } = context;
      const known = catalogue.get(kind, name, caller);
      if (read === undefined) return known === undefined ? item : item.withDefinition(known);
      const until = catalogue.freshUntil(kind, caller);
      if (known !== undefined && performance.now() < until) return item.withDefinition(known, until);
      return catalogue.find(kind, name, context, read).then(
        (definition) => (definition === undefined ? item.withoutDefinition() : item.withDefinition(definition, until)),
        (error: unknown) => item.withFailure(error as Error),
      );
    });
  }

  /** Passes requests through a transform. Its lists are changed at the edge of its segment. */
  #withTransform(at: number, transform: Transform, next: Handler): Handler {
    const { outerUri, dependsOnCaller } = transform;
    const changeUris =
      outerUri && ((outcome: Promise<Result>) => outcome.then((result) => mapResultUris(result, outerUri)));
    const pass = (item: Item, request: Request, context: Context): Promise<Result> => {
      if (item.hiddenBy === transform) return Promise.reject(this.#refusal(at, transform, item, request, context));
      const inner = item.changedBy === transform ? (item.inner ?? item) : item;
      const sent = inner.name === item.name ? request : withName(request, inner.name);
      let outcome = next(sent, inner === item ? context : copyContext(context, { item: inner }));
      if (changeUris !== undefined) outcome = changeUris(outcome);
      if (dependsOnCaller === true && CACHEABLE.has(request.method)) outcome = outcome.then(asPrivate);
      // Only of an item that an upstream certainly has are there no other names.
      if (sent === request && item.isKnown && item.ownNames.length > 0) return outcome;
      return outcome.catch((error: unknown) => {
        throw this.#outerError(error, at, transform, item, inner, request, context);
      });
    };
    return (request, context) => {
      const { method } = request;
      if (LISTS_BY_METHOD.has(method)) return next(request, context);
      if (method === "subscriptions/listen") {
        return listenThrough(transform, request, context, next, (item) => this.#ask(at, transform, item, context));
      }
      const { item } = context;
      if (item instanceof Item && isNamedIn(request, item)) {
        if (addedBy(transform, item) !== undefined) return this.#passAdded(at, item, request, context, next);
        if (transform.kinds.has(item.kind)) return pass(item, request, context);
      }
      return changeUris === undefined ? next(request, context) : changeUris(next(request, context));
    };
  }

  /** A request for an item that the transform has added, which its middleware passes on: another item may have its name. */
  async #passAdded(at: number, item: Item, request: Request, context: Context, next: Handler): Promise<Result> {
    const inner = await this.#inside(at, item.kind, item.name, context, undefined);
    return next(request, copyContext(context, { item: inner }));
  }

  #refusal(at: number, transform: Transform, item: Item, request: Request, context: Context): unknown {
    if (item.failure !== undefined) return item.failure;
    return transform.refuse?.(item, this.#viewAt(at, context)) ?? notFoundIn(request, item);
  }

  /** The error in the names that callers use. One that lists other names, which may be hidden, is replaced. */
  #outerError(
    error: unknown,
    at: number,
    transform: Transform,
    item: Item,
    inner: Item,
    request: Request,
    context: Context,
  ): unknown {
    if (!(error instanceof McpError)) return error;
    const isAmbiguous = isObject(error.data) && "candidates" in error.data && capabilityOf(item.kind) !== "resources";
    if (isAmbiguous && transform.hides === true) return this.#refusal(at, transform, item, request, context);
    return inner.name !== item.name && isNotFoundKind(error.kind)
      ? notFound(capabilityOf(item.kind), item.name)
      : error;
  }
}

function then<From, To>(value: From | Promise<From>, use: (value: From) => To | Promise<To>): To | Promise<To> {
  return value instanceof Promise ? value.then(use) : use(value);
}

function definitionOf(item: Item | undefined): Definition | undefined {
  return item?.definition;
}
