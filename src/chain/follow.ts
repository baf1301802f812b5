// Follows the names in requests to their items. Outside in, a name becomes the name inside of each transform, down to what
// is behind the chain; then the item comes back inside out, through the same transforms. What does not come out under the
// name that the caller has used is hidden. A name that was followed before is one lookup until a list changes.

import type { Caller, Context, Handler } from "../core/handler.ts";
import { errorIn } from "../protocol/compose.ts";
import type { ListKind } from "../protocol/lists.ts";
import { Item, viewKey, type Definition, type ItemKind, type ItemSource } from "./catalogue.ts";
import { addedBy, type ItemHandler, type Layer, type Transform, type TransformView } from "./layer.ts";
import { remember, searchName, segmentBefore, segmentFrom, type KnownItems, type Segment } from "./segments.ts";

type Followed = Item | Promise<Item>;

/** The parts of a chain, which its driver has put together. */
export interface ChainParts {
  readonly layers: readonly (Layer | undefined)[];
  /** The names of the middleware. */
  readonly names: readonly string[];
  readonly segments: readonly Segment[];
  /** What is behind the chain. */
  readonly base: ItemHandler;
  /** From each entry inwards; the last is what is behind the chain. */
  readonly handlers: readonly Handler[];
}

export class ItemFollower implements ItemSource {
  /** Reads the lists of the first segment. */
  reader: Handler;
  readonly #layers: ChainParts["layers"];
  readonly #names: ChainParts["names"];
  readonly #segments: ChainParts["segments"];
  readonly #base: ItemHandler;
  readonly #handlers: ChainParts["handlers"];
  /** Whether where a name leads to stays the same until a list changes. */
  readonly #isStable: boolean;

  constructor({ layers, names, segments, base, handlers }: ChainParts) {
    this.#layers = layers;
    this.#names = names;
    this.#segments = segments;
    this.#base = base;
    this.#handlers = handlers;
    this.reader = base;
    this.#isStable = layers.every((layer) => layer?.transform?.isLive !== true);
  }

  /** What a transform makes of an item. Its own errors get the name of the middleware. */
  ask(at: number, transform: Transform, item: Item, context: Context): Item | undefined | Promise<Item | undefined> {
    const origin = (shown: Item | undefined): Item | undefined =>
      shown === item ? item : shown?.setOrigin(transform, item);
    try {
      const shown = transform.item(item, this.viewAt(at, context));
      if (!(shown instanceof Promise)) return origin(shown);
      return shown.then(origin, (error: unknown) => {
        throw errorIn(this.#names[at] ?? "", error);
      });
    } catch (error) {
      throw errorIn(this.#names[at] ?? "", error);
    }
  }

  /** The same for a URI of a subscription. If the transform decides by the definition, that is found first. */
  askAbout(
    at: number,
    transform: Transform,
    item: Item,
    context: Context,
  ): Item | undefined | Promise<Item | undefined> {
    if (transform.needs?.(item.kind, item.name) !== true) return this.ask(at, transform, item, context);
    const inner = this.inside(at, item.kind, item.name, context, this.#handlers[at + 1]);
    return whenKnown(inner, (known) =>
      known.hiddenBy !== undefined || known.failure !== undefined ? undefined : this.ask(at, transform, known, context),
    );
  }

  viewAt(at: number, context: Context): TransformView {
    return { caller: context.caller, context, next: this.#handlers[at + 1] as Handler };
  }

  find(kind: ItemKind, name: string, context: Context): Followed {
    const [first] = this.#segments;
    return first === undefined ? new Item({ kind, name }) : this.follow(first, kind, name, context);
  }

  version(caller: Caller): number {
    let sum = this.#base.items?.version(caller) ?? 0;
    for (const { since, catalogue } of this.#segments) sum += since + catalogue.version;
    return sum;
  }

  /** The item with its definition, for which the lists of the caller are read. */
  async define(kind: ListKind, name: string, context: Context): Promise<Item> {
    return this.#seen(0, kind, name, context, this.reader);
  }

  /** Reads a list of the caller again. */
  async refresh(kind: ListKind, context: Context): Promise<void> {
    await this.#segments[0]?.catalogue.refresh(kind, context, this.reader);
  }

  /** The item that a name leads to at the outside of a segment. A name that was followed before is one lookup. */
  follow(segment: Segment, kind: ItemKind, name: string, context: Context): Followed {
    const { start } = segment;
    if (!this.#isStable) return this.#seen(start, kind, name, context, undefined);
    const view = this.#viewOf(segment, context.caller);
    const known = view.items.get(kind)?.get(name);
    if (known !== undefined && (known.until === Infinity || performance.now() < known.until)) return known;
    return whenKnown(this.#seen(start, kind, name, context, undefined), (item) => {
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
    if (layer === undefined) return this.inside(at, kind, name, context, read);
    const { transform } = layer;
    const reader = layer.needs?.(kind, name) === true ? (read ?? next) : read;
    if (transform === undefined) return this.inside(at, kind, name, context, reader);
    const definition = addedBy(transform, { kind, name });
    if (definition !== undefined) return new Item({ kind, name, definition, isKnown: true });
    if (!transform.kinds.has(kind)) return this.inside(at, kind, name, context, reader);
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
    const behind = this.inside(at, kind, innerName, context, isNeeded ? (reader ?? next) : reader);
    return whenKnown(behind, (item) => this.#shown(at, transform, item, name, isNeeded, context));
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
    const segment = segmentFrom(this.#segments, at);
    if (segment === undefined || kind === "tasks") return new Item({ kind, name });
    try {
      const listed = await segment.catalogue.all(kind, context, this.#handlers[at + 1] as Handler);
      const ask = (innerName: string, definition: Definition): Item | undefined | Promise<Item | undefined> =>
        this.ask(at, transform, Item.listed(kind, innerName, definition), context);
      const innerName = await searchName(segment, listed, name, transform.dependsOnCaller !== true, ask);
      return await this.#through(at, transform, kind, name, innerName ?? name, context, reader);
    } catch (error) {
      return new Item({ kind, name }).hide(transform, name, error as Error);
    }
  }

  /** The item inside of an entry. */
  inside(at: number, kind: ItemKind, name: string, context: Context, read: Handler | undefined): Followed {
    const segment = segmentBefore(this.#segments, at + 1);
    if (segment === undefined) return this.#seen(at + 1, kind, name, context, read);
    const seen = this.#seen(at + 1, kind, name, context, undefined);
    // Middleware of users may show what is hidden inside of it.
    const isOpaque = this.#layers[at] === undefined;
    const passed = whenKnown(seen, (item) =>
      isOpaque && item.hiddenBy !== undefined ? new Item({ kind, name }) : item,
    );
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
      const shown = this.ask(at, transform, listed, context);
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
    return whenKnown(found, (item) => {
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
}

export function whenKnown<From, To>(
  value: From | Promise<From>,
  use: (value: From) => To | Promise<To>,
): To | Promise<To> {
  return value instanceof Promise ? value.then(use) : use(value);
}
