// Follows the name in a request to its item. Outside in, each transform says what the name is inside of it, down to what is
// behind the chain (`inward`). Then the item comes back inside out, through the same transforms (`#outward`). What does
// not come out under the name that the caller has used is hidden. A name that was followed before is one lookup until a
// list changes.

import type { Caller, Context, Handler } from "../core/handler.ts";
import { errorIn } from "../protocol/compose.ts";
import type { ListKind } from "../protocol/lists.ts";
import { REREAD_MS } from "./catalogue.ts";
import { Item, type ItemDefinition, type ItemKind, type ItemSource } from "./item.ts";
import { addedBy, type ItemHandler, type Layer, type Transform, type TransformView } from "./layer.ts";
import type { Segment } from "./segments.ts";

type Followed = Item | Promise<Item>;
type Asked = Item | undefined | Promise<Item | undefined>;

/** What is followed, and for whom. Only its name changes on the way. */
interface Lookup {
  readonly kind: ItemKind;
  readonly context: Context;
}

/** The parts of a chain, which its driver has put together. */
export interface ChainParts {
  readonly layers: readonly (Layer | undefined)[];
  /** The names of the middleware. */
  readonly names: readonly string[];
  /** The outermost segment. */
  readonly first: Segment;
  /** What is behind the chain. */
  readonly base: ItemHandler;
  /** From each entry inwards; the last is what is behind the chain. */
  readonly handlers: readonly Handler[];
}

export class ItemFollower implements ItemSource {
  /** Reads the lists of the first segment. */
  reader: Handler;
  readonly #parts: ChainParts;
  /** Whether where a name leads to stays the same until a list changes. */
  readonly #isStable: boolean;

  constructor(parts: ChainParts) {
    this.#parts = parts;
    this.reader = parts.base;
    this.#isStable = parts.layers.every((layer) => layer?.transform?.isLive !== true);
  }

  find(kind: ItemKind, name: string, context: Context): Followed {
    return this.follow(this.#parts.first, kind, name, context);
  }

  version(caller: Caller): number {
    const { base, first } = this.#parts;
    let sum = base.items?.version(caller) ?? 0;
    for (let segment: Segment | undefined = first; segment !== undefined; segment = segment.next) {
      sum += segment.catalogue.version;
    }
    return sum;
  }

  /** The item with its definition, for which the lists of the caller are read. */
  define(kind: ListKind, name: string, context: Context): Followed {
    return this.follow(this.#parts.first, kind, name, context, this.reader);
  }

  /** Reads a list of the caller again. */
  async refresh(kind: ListKind, context: Context): Promise<void> {
    await this.#parts.first.catalogue.refresh(kind, context, this.reader);
  }

  /**
   * The item that a name leads to at the outside of a segment. A name that was followed before is one lookup. `reader`
   * reads lists, if the definition is needed.
   */
  follow(segment: Segment, kind: ItemKind, name: string, context: Context, reader?: Handler): Followed {
    if (!this.#isStable) return this.inward(segment, segment.start, name, { kind, context }, reader);
    const { catalogue } = segment;
    const followed = catalogue.followed(context.caller, this.version(context.caller));
    const items = reader === undefined ? followed.items : followed.defined;
    const known = items.get(kind)?.get(name);
    if (known !== undefined && (known.validUntil === Infinity || performance.now() < known.validUntil)) return known;
    return whenKnown(this.inward(segment, segment.start, name, { kind, context }, reader), (item) => {
      const isSure = item.isKnown && item.validUntil > 0 && item.failure === undefined;
      if (isSure && followed.version === this.version(context.caller)) catalogue.remember(items, item);
      return item;
    });
  }

  /**
   * Outside in: the item that a name leads to at the outside of an entry. `reader` reads lists, if something further
   * outside in the segment needs the definition.
   */
  inward(segment: Segment, at: number, name: string, lookup: Lookup, reader?: Handler): Followed {
    if (at === segment.end) return this.#beyond(segment, name, lookup, reader);
    const { kind, context } = lookup;
    const { needs, transform } = this.#parts.layers[at] ?? {};
    const next = this.#parts.handlers[at + 1];
    const layerReader = needs?.(kind, name) === true ? (reader ?? next) : reader;
    const definition = transform && addedBy(transform, kind, name);
    if (definition !== undefined) return new Item({ kind, name, definition, isKnown: true });
    if (transform?.kinds.has(kind) !== true) return this.inward(segment, at + 1, name, lookup, layerReader);
    const hide = (failure?: unknown): Item => new Item({ kind, name }).hide(transform, name, failure as Error);
    const pass = (innerName: string): Followed => {
      const isNeeded = transform.needs?.(kind, innerName) === true;
      const inner = this.inward(segment, at + 1, innerName, lookup, isNeeded ? (layerReader ?? next) : layerReader);
      return whenKnown(inner, (item) => this.#outward(at, transform, item, name, isNeeded, context));
    };
    if (transform.searchesNames === true) return this.#searchInside(segment, name, lookup).then(pass, hide);
    const innerName = transform.innerName === undefined ? name : transform.innerName(kind, name);
    return innerName === undefined ? hide() : pass(innerName);
  }

  /** Asks the transform, the only one of its segment, about each item of the list, until one has the name. */
  async #searchInside(segment: Segment, name: string, { kind, context }: Lookup): Promise<string> {
    const { start, catalogue, dependsOnCaller } = segment;
    const listed = await catalogue.all(kind as ListKind, context, this.#parts.handlers[start + 1] as Handler);
    const ask = (innerName: string, definition: ItemDefinition): Asked =>
      this.ask(start, Item.listed(kind as ListKind, innerName, definition), context);
    return (await catalogue.innerName(listed, name, !dependsOnCaller, ask)) ?? name;
  }

  /** Further inside than a segment: in the next one, or behind the chain. Adds what the lists of the segment say. */
  #beyond(segment: Segment, name: string, lookup: Lookup, reader: Handler | undefined): Followed {
    const { next, catalogue, remembers, isOpaque } = segment;
    const { kind, context } = lookup;
    const inner = next === undefined ? this.#atBase(name, lookup) : this.inward(next, next.start, name, lookup);
    if (reader === undefined && !remembers) return inner;
    return whenKnown(inner, (innerItem) => {
      // Middleware of users may show what is hidden inside of it.
      const item = isOpaque && innerItem.hiddenBy !== undefined ? new Item({ kind, name }) : innerItem;
      if (item.hiddenBy !== undefined || kind === "tasks") return item;
      const known = catalogue.get(kind, name, context.caller);
      if (reader === undefined) return known === undefined ? item : item.withDefinition(known);
      const until = catalogue.freshUntil(kind, context.caller);
      if (known !== undefined && performance.now() < until) return item.withDefinition(known, until);
      return catalogue.find(kind, name, context, reader).then(
        (definition) =>
          definition === undefined
            ? item.withoutDefinition(performance.now() + REREAD_MS)
            : item.withDefinition(definition, until),
        (error: unknown) => item.withFailure(error as Error),
      );
    });
  }

  #atBase(name: string, { kind, context }: Lookup): Followed {
    const { items } = this.#parts.base;
    if (items !== undefined) return items.find(kind, name, context);
    const { item } = context;
    return item instanceof Item && item.kind === kind && item.name === name ? item : new Item({ kind, name });
  }

  /** Inside out: the item outside of a transform, hidden unless it has the name that the caller has used. */
  #outward(at: number, transform: Transform, item: Item, name: string, isNeeded: boolean, context: Context): Followed {
    const isHidden = item.hiddenBy !== undefined;
    if (isNeeded && item.failure !== undefined && !isHidden) return item.hide(transform, name, item.failure);
    // What is hidden further inside is in no list here. If it is hidden here too, the outermost refusal counts.
    const listed = isHidden ? item.withoutDefinition() : item;
    const check = (outerItem: Item | undefined): Item => {
      if (outerItem?.name !== name) return listed.hide(transform, name);
      if (!isHidden) return outerItem;
      return item.name === name ? item : item.change({ name }).setOrigin(transform, item);
    };
    const fail = (error: unknown): Item => listed.hide(transform, name, error as Error);
    try {
      const outerItem = this.ask(at, listed, context);
      return outerItem instanceof Promise ? outerItem.then(check, fail) : check(outerItem);
    } catch (error) {
      return fail(error);
    }
  }

  /** What the transform of an entry makes of an item. Its own errors get the name of the middleware. */
  ask(at: number, item: Item, context: Context): Asked {
    const transform = this.#parts.layers[at]?.transform as Transform;
    const origin = (outerItem: Item | undefined): Item | undefined =>
      outerItem === item ? item : outerItem?.setOrigin(transform, item);
    const fail = (error: unknown): never => {
      throw errorIn(this.#parts.names[at] ?? "", error);
    };
    try {
      const outerItem = transform.item(item, this.viewAt(at, context));
      return outerItem instanceof Promise ? outerItem.then(origin, fail) : origin(outerItem);
    } catch (error) {
      return fail(error);
    }
  }

  /** The same for a URI of a subscription. If the transform decides by the definition, that is found first. */
  askAbout(segment: Segment, at: number, item: Item, context: Context): Asked {
    const { kind, name } = item;
    const { layers, handlers } = this.#parts;
    if (layers[at]?.transform?.needs?.(kind, name) !== true) return this.ask(at, item, context);
    return whenKnown(this.inward(segment, at + 1, name, { kind, context }, handlers[at + 1]), (inner) =>
      inner.hiddenBy !== undefined || inner.failure !== undefined ? undefined : this.ask(at, inner, context),
    );
  }

  viewAt(at: number, context: Context): TransformView {
    return { caller: context.caller, context, next: this.#parts.handlers[at + 1] as Handler };
  }
}

export function whenKnown<From, To>(
  value: From | Promise<From>,
  use: (value: From) => To | Promise<To>,
): To | Promise<To> {
  return value instanceof Promise ? value.then(use) : use(value);
}
