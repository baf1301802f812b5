// Runs requests through the transforms and the middleware of a chain. A transform is a pure function of an item; the
// driver applies it in every direction: to lists, calls, completions, subscriptions, updates and results. Before the
// first middleware runs, the name in a request is followed to its item (`context.item`): outside in to the name at the
// upstreams, then inside out through the transforms. What does not come out under the same name is not found.

import { copyContext } from "../core/cancel.ts";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { withMiddleware, type ChainEntry } from "../protocol/compose.ts";
import { McpError } from "../protocol/errors.ts";
import { CACHEABLE } from "../protocol/lists.ts";
import { Item, type ItemDefinition } from "./item.ts";
import { addedBy, type ItemHandler, type Layer, type LayeredMiddleware, type Transform } from "./layer.ts";
import { listenThrough } from "./listen-through.ts";
import { ItemFollower, whenKnown } from "./follow.ts";
import { createSegments, type Segment } from "./segments.ts";
import { capabilityOf, isNamedIn, isNotFoundKind, namedIn, notFound, notFoundIn, withName } from "./named-items.ts";
import { asPrivate, LISTS_BY_METHOD, mapResultUris, hasViewUri, mapViewUris, type KindOfList } from "./result-items.ts";

/** Makes middleware of a transform, of a middleware, or of both. It also works outside of a chain. */
export function layered(name: string, layer: Layer): LayeredMiddleware {
  const segments = createSegments([layer]);
  const middleware: LayeredMiddleware = (request, context, next) =>
    new Driver([{ name, middleware }], next, segments).run(request, context);
  const acting = layer.middleware;
  middleware.layer = layer;
  if (acting?.close !== undefined) middleware.close = () => acting.close?.();
  if (acting?.changed !== undefined) middleware.changed = () => acting.changed?.();
  if (acting?.metrics !== undefined) middleware.metrics = (upstreams) => acting.metrics?.(upstreams) ?? "";
  return Object.defineProperty(middleware, "name", { value: name });
}

/** A handler with a transform around it. */
export function transformed(transform: Transform, handler: ItemHandler): ItemHandler {
  const { run, items } = new Driver([{ name: "", middleware: layered("", { transform }) }], handler);
  const inner: ItemHandler = (request, context) => run(request, context);
  if (handler.items !== undefined) inner.items = items;
  return inner;
}

function layerOf({ middleware }: ChainEntry): Layer | undefined {
  return (middleware as LayeredMiddleware).layer;
}

export class Driver {
  /** Runs a request through the chain. */
  readonly run: Handler;
  /** What the names of callers lead to. */
  readonly items: ItemFollower;
  readonly #layers: readonly (Layer | undefined)[];
  readonly #names: readonly string[];
  readonly #base: ItemHandler;
  readonly #segments: readonly Segment[];
  /** From each entry inwards; the last is what is behind the chain. */
  readonly #handlers: Handler[] = [];
  /** The first handler before its lists are transformed. */
  #first: Handler;
  /** Whether callers may see other URIs than the upstreams. */
  readonly #changesUris: boolean;

  /** `keptSegments`: the segments of an earlier driver with the same entries, which remember what they have learned. */
  constructor(all: readonly ChainEntry[], base: ItemHandler, keptSegments?: readonly [Segment, ...Segment[]]) {
    const entries = all.flatMap(({ name, middleware }) =>
      ((middleware as LayeredMiddleware).parts ?? [middleware]).map((part) => ({ name, middleware: part })),
    );
    const layers = entries.map(layerOf);
    const segments = keptSegments ?? createSegments(layers);
    const names = (this.#names = entries.map(({ name }) => name));
    const handlers = this.#handlers;
    this.#layers = layers;
    this.#base = base;
    this.#segments = segments;
    this.#changesUris =
      base.items?.shownUri !== undefined || layers.some((layer) => layer?.transform?.outerUri !== undefined);
    this.items = new ItemFollower({ layers, names, first: segments[0], base, handlers });
    let handler: Handler = (this.#first = base);
    for (const segment of segments.toReversed()) {
      const innerHandler = handler;
      handler = handlers[segment.end] = this.#learning(segment, innerHandler);
      for (let at = segment.end - 1; at >= segment.start; at -= 1) {
        handler = handlers[at] = this.#compose(segment, at, entries[at] as ChainEntry, handler);
      }
      this.#first = handler;
      const acting = segment.start === segment.end ? innerHandler : handler;
      handler = handlers[segment.start] = this.#withEdge(segment, handler, acting);
    }
    this.run = handler;
    // A middleware that answers lists itself has a segment of its own.
    this.items.reader = layers[0]?.transform?.answersLists === true ? (handlers[1] as Handler) : this.#first;
  }

  /** Whether there is no middleware and no transform. */
  get isEmpty(): boolean {
    return this.#layers.length === 0;
  }

  /** Runs a request whose item is known: that of its context. */
  runItem(request: Request, context: Context): Promise<Result> {
    context.observer?.entered?.(context);
    return this.#first(request, context);
  }

  #compose(segment: Segment, at: number, { name, middleware }: ChainEntry, inner: Handler): Handler {
    const layer = this.#layers[at];
    const { transform } = layer ?? {};
    const acting = layer === undefined ? middleware : layer.middleware;
    // What acts too is one step.
    const step = acting === undefined ? name : undefined;
    const handler = transform === undefined ? inner : this.#withTransform(segment, at, transform, inner, step);
    return acting === undefined ? handler : withMiddleware({ name, middleware: acting }, handler);
  }

  /**
   * The outside of a segment: lists get their transforms, and names are followed to their items. `inner` gets the other
   * requests, and `lists` those that read lists.
   */
  #withEdge(segment: Segment, lists: Handler, inner: Handler): Handler {
    const { isEmpty } = this;
    return (request, context) => {
      const { method } = request;
      const list = LISTS_BY_METHOD.get(method);
      if (list !== undefined) return this.#list(segment, list, request, context, lists);
      if (method === "subscriptions/listen") return inner(request, this.#watch(context));
      const named = isEmpty && context.observer === undefined ? undefined : namedIn(request);
      if (named === undefined) return inner(request, context);
      const item = this.items.follow(segment, named.kind, named.name, context);
      if (item instanceof Promise)
        return item.then((entered) => this.#enter(segment, entered, request, context, inner));
      return this.#enter(segment, item, request, context, inner);
    };
  }

  #enter(segment: Segment, item: Item, request: Request, context: Context, inner: Handler): Promise<Result> {
    const passed = copyContext(context, { item });
    const callersItem = context.item;
    if (segment.start === 0) context.observer?.entered?.(passed);
    const isOther = segment.start > 0 && callersItem instanceof Item && !isNamedIn(request, callersItem);
    if (!isOther) return inner(request, passed);
    return this.#checkOther(segment.start, callersItem, item, request, context).then(() => inner(request, passed));
  }

  /**
   * Middleware further outside calls another item than its own caller has named. What hides that outside of it must not
   * be reached in this way.
   */
  async #checkOther(start: number, callersItem: Item, item: Item, request: Request, context: Context): Promise<void> {
    const { kind, name } = callersItem;
    if (item.kind !== kind) return;
    const { ownNames, upstream } = item;
    const otherNames = [item.name, ...item.otherNames];
    for (const [at, layer] of this.#layers.slice(0, start).entries()) {
      const transform = layer?.transform;
      if (transform?.hides !== true || !transform.kinds.has(kind)) continue;
      const other = new Item({ kind, name, ownNames, otherNames, upstream });
      if ((await this.items.ask(at, other, context)) === undefined) {
        throw this.#refusal(at, callersItem, request, context);
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

  #list(
    segment: Segment,
    list: KindOfList,
    request: Request,
    context: Context,
    inner: Handler,
    isRecorded = false,
  ): Promise<Result> {
    const { transforms, dependsOnCaller } = segment;
    const hasViews = segment.start === 0 && list.kind === "tools" && this.#changesUris;
    if (transforms.length === 0 && !hasViews) return inner(request, context);
    const recorder = isRecorded ? undefined : context.observer?.recorder;
    if (recorder !== undefined) {
      const names = transforms.map(({ at }) => this.#names[at] ?? "").toReversed();
      const run: Handler = (listed, inContext) => this.#list(segment, list, listed, inContext, inner, true);
      const recorded = recorder.record("transform", [...new Set(names)].join(" + ") || "views", request, context, run);
      if (recorded !== undefined) return recorded;
    }
    return inner(request, context).then(async (result) => {
      const items: unknown = result[list.field];
      if (!Array.isArray(items)) return result;
      const transformed = await this.#transformed(
        segment,
        list,
        items,
        context,
        request.params["cursor"] === undefined,
      );
      const listed = hasViews ? await this.#withViews(transformed, context) : transformed;
      const page = listed === items ? result : { ...result, [list.field]: listed };
      return dependsOnCaller ? asPrivate(page) : page;
    });
  }

  /**
   * Tools with the URIs of their views as callers see them. Only at the outside of the chain: `pin` must not take a label
   * for a change of the tool.
   */
  async #withViews(tools: readonly unknown[], context: Context): Promise<readonly unknown[]> {
    const changers = this.#layers.flatMap((layer) => layer?.transform?.outerUri ?? []).toReversed();
    if (!tools.some((tool) => isObject(tool) && hasViewUri(tool))) return tools;
    const { items } = this.#base;
    await items?.readUris?.(context);
    return tools.map((tool) => {
      if (!isObject(tool)) return tool;
      const { upstream } = Item.listed("tools", "", tool);
      return mapViewUris(tool, (uri) => {
        const outerUri = upstream === undefined ? uri : (items?.shownUri?.(upstream, uri, context.caller) ?? uri);
        return changers.reduce((changed, change) => change(changed), outerUri);
      });
    });
  }

  /** The items of a page as callers see them; the same array as the last time if nothing has changed. */
  #transformed(
    { transforms, dependsOnCaller, isLive, catalogue }: Segment,
    list: KindOfList,
    items: readonly unknown[],
    context: Context,
    isFirstPage: boolean,
  ): readonly unknown[] | Promise<readonly unknown[]> {
    const { kind, key } = list;
    const isKept = !dependsOnCaller && !isLive;
    const known = isKept ? catalogue.transformedPage(kind, items, isFirstPage) : undefined;
    if (known !== undefined) return known;
    const definitions = items.map((definition): unknown => {
      const name = isObject(definition) ? definition[key] : undefined;
      if (!isObject(definition) || typeof name !== "string") return definition;
      const before = isKept ? catalogue.transformed[kind].get(definition) : undefined;
      if (before !== undefined) return before ?? undefined;
      const after = whenKnown(this.#outside(transforms, 0, Item.listed(kind, name, definition), context), definitionOf);
      if (isKept) catalogue.transformed[kind].set(definition, (after as ItemDefinition | undefined) ?? null);
      return after;
    });
    if (isFirstPage) {
      for (const [index, { transform }] of transforms.entries()) {
        for (const definition of transform.added?.[kind] ?? []) {
          const item = new Item({ kind, name: definition[key] as string, definition, isKnown: true });
          definitions.push(whenKnown(this.#outside(transforms, index + 1, item, context), definitionOf));
        }
      }
    }
    const finish = (all: readonly unknown[]): readonly unknown[] => {
      const isSame = all.length === items.length && all.every((definition, at) => definition === items[at]);
      const page = isSame ? items : withoutSameNames(all, transforms[0]?.transform.onSameName, list);
      if (isKept) catalogue.keepPage(kind, items, isFirstPage, page);
      return page;
    };
    return isLive ? Promise.all(definitions).then(finish) : finish(definitions);
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
      if (addedBy(transform, current.kind, current.name) !== undefined) return undefined;
      if (!transform.kinds.has(current.kind)) continue;
      const changed = this.items.ask(at, current, context);
      if (changed instanceof Promise) {
        return changed.then((next) => next && this.#outside(transforms, index + 1, next, context));
      }
      if (changed === undefined) return undefined;
      current = changed;
    }
    return current;
  }

  /**
   * Passes requests through a transform. Its lists are changed at the edge of its segment. `step`: its name, if what
   * passes it is recorded as a step.
   */
  #withTransform(segment: Segment, at: number, transform: Transform, next: Handler, step: string | undefined): Handler {
    const { outerUri, dependsOnCaller, hides } = transform;
    const changeUris =
      outerUri && ((outcome: Promise<Result>) => outcome.then((result) => mapResultUris(result, outerUri)));
    const pass = (item: Item, request: Request, context: Context): Promise<Result> => {
      if (item.hiddenBy === transform) return Promise.reject(this.#refusal(at, item, request, context));
      const inner = item.changedBy === transform ? (item.inner ?? item) : item;
      const sent = inner.name === item.name ? request : withName(request, inner.name);
      let outcome = next(sent, inner === item ? context : copyContext(context, { item: inner }));
      if (changeUris !== undefined) outcome = changeUris(outcome);
      if (dependsOnCaller === true && CACHEABLE.has(request.method)) outcome = outcome.then(asPrivate);
      // Only of an item that an upstream certainly has are there no other names.
      if (sent === request && item.isKnown && item.ownNames.length > 0) return outcome;
      // The error gets the names that callers use.
      return outcome.catch((error: unknown) => {
        if (!(error instanceof McpError)) throw error;
        if (hides === true && listsNames(error, item)) throw this.#refusal(at, item, request, context);
        throw sent !== request && isNotFoundKind(error.kind) ? notFound(capabilityOf(item.kind), item.name) : error;
      });
    };
    const run = (request: Request, context: Context, isRecorded = false): Promise<Result> => {
      const { method } = request;
      if (LISTS_BY_METHOD.has(method)) return next(request, context);
      if (method === "subscriptions/listen") {
        return listenThrough(transform, request, context, next, (item) =>
          this.items.askAbout(segment, at, item, context),
        );
      }
      if (!isRecorded && step !== undefined) {
        const recorded = context.observer?.recorder?.record("transform", step, request, context, runRecorded);
        if (recorded !== undefined) return recorded;
      }
      const { item } = context;
      if (item instanceof Item && isNamedIn(request, item)) {
        const { kind, name } = item;
        if (addedBy(transform, kind, name) !== undefined) {
          // Its middleware passes the request on: another item further inside may have the name.
          const inner = this.items.inward(segment, at + 1, name, { kind, context });
          return Promise.resolve(inner).then((known) => next(request, copyContext(context, { item: known })));
        }
        if (transform.kinds.has(kind)) return pass(item, request, context);
      }
      return changeUris === undefined ? next(request, context) : changeUris(next(request, context));
    };
    const runRecorded: Handler = (request, context) => run(request, context, true);
    return run;
  }

  #refusal(at: number, item: Item, request: Request, context: Context): Error {
    if (item.failure !== undefined) return item.failure;
    return this.#layers[at]?.transform?.refuse?.(item, this.items.viewAt(at, context)) ?? notFoundIn(request, item);
  }
}

/** Whether an error lists other names, some of which may be hidden. */
function listsNames(error: McpError, { kind }: Item): boolean {
  return isObject(error.data) && "candidates" in error.data && capabilityOf(kind) !== "resources";
}

function definitionOf(item: Item | undefined): ItemDefinition | undefined {
  return item?.definition;
}

/** Leaves out what is hidden, and items whose name another one before has. */
function withoutSameNames(
  all: readonly unknown[],
  report: Transform["onSameName"],
  list: KindOfList,
): readonly unknown[] {
  const names = new Set<unknown>();
  return all.filter((definition) => {
    if (report === undefined || !isObject(definition)) return definition !== undefined;
    const { [list.key]: name } = definition;
    if (names.has(name)) report(list.kind, String(name));
    return names.size !== names.add(name).size;
  });
}
