// Divides a chain into segments. Declared middleware (layer.ts) leaves lists as they are, so the transforms of neighbours
// are applied to a list in one step. Other middleware may do anything to lists, so what is outside of it has lists of its
// own.

import { isSameArray } from "../core/collections.ts";
import type { ListKind } from "../protocol/lists.ts";
import { Catalogue } from "./catalogue.ts";
import type { Item, ItemDefinition } from "./item.ts";
import type { Layer, Transform } from "./layer.ts";

/** The entries up to one that may change lists, or reads them. Their transforms are applied to a list in one step. */
export interface Segment {
  readonly start: number;
  /** The index after the last entry. */
  readonly end: number;
  /** The segment inside of it. */
  readonly next: Segment | undefined;
  /** The innermost first. */
  readonly transforms: readonly { readonly transform: Transform; readonly at: number }[];
  readonly dependsOnCaller: boolean;
  readonly isLive: boolean;
  /** Whether it ends with middleware of users, which may do anything to lists. */
  readonly isOpaque: boolean;
  /** Whether definitions in passing lists are remembered. */
  readonly remembers: boolean;
  readonly catalogue: Catalogue;
  /** Transformed lists by the arrays they were made of. */
  readonly lists: WeakMap<object, TransformedList>;
  /** Transformed definitions by those they were made of; null if they are hidden. An object may be of several kinds. */
  readonly definitions: Readonly<Record<ListKind, WeakMap<ItemDefinition, ItemDefinition | null>>>;
  /** The names inside of a transform by those outside, by the list that was searched. */
  readonly searched: WeakMap<object, { readonly version: number; readonly names: ReadonlyMap<string, string> }>;
}

/** A page of a list, and what it was made of: the server may change its array, or use it for several lists. */
export interface TransformedList {
  readonly kind: ListKind;
  readonly isFirstPage: boolean;
  readonly before: readonly unknown[];
  readonly after: readonly unknown[];
}

/**
 * The segments of a chain, the outermost first. A middleware that requests lists itself gets those of the segment inside
 * of it, and has a segment of its own.
 */
export function createSegments(all: readonly (Layer | undefined)[]): readonly [Segment, ...Segment[]] {
  const starts = all.flatMap((layer, at) =>
    layer?.readsLists === true ? [at, at + 1] : layer === undefined ? [at + 1] : [],
  );
  const segments: Segment[] = [];
  let end = all.length;
  for (const start of new Set([0, ...starts].toReversed())) {
    segments.unshift(createSegment(all, start, end, segments[0]));
    end = start;
  }
  return segments as [Segment, ...Segment[]];
}

function createSegment(
  all: readonly (Layer | undefined)[],
  start: number,
  end: number,
  next: Segment | undefined,
): Segment {
  const layers = all.slice(start, end);
  const transforms = layers.flatMap((layer, inner) =>
    layer?.transform === undefined ? [] : [{ transform: layer.transform, at: start + inner }],
  );
  const isOpaque = layers.includes(undefined);
  return {
    start,
    end,
    next,
    transforms: transforms.filter(({ transform }) => transform.answersLists !== true).toReversed(),
    dependsOnCaller: transforms.some(({ transform }) => transform.dependsOnCaller),
    isLive: transforms.some(({ transform }) => transform.isLive),
    isOpaque,
    remembers: isOpaque || layers.some((layer) => (layer?.needs ?? layer?.transform?.needs) !== undefined),
    catalogue: new Catalogue(),
    lists: new WeakMap(),
    definitions: { tools: new WeakMap(), prompts: new WeakMap(), resources: new WeakMap(), templates: new WeakMap() },
    searched: new WeakMap(),
  };
}

/** The name inside of a transform of the item in a list that it shows under `name`. `ask` gives the item outside. */
export async function searchName(
  { catalogue, searched }: Segment,
  listed: ReadonlyMap<string, ItemDefinition>,
  name: string,
  isForAll: boolean,
  ask: (innerName: string, definition: ItemDefinition) => Item | undefined | Promise<Item | undefined>,
): Promise<string | undefined> {
  const { version } = catalogue;
  const known = searched.get(listed);
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
    const asked = ask(innerName, definition);
    const item = asked instanceof Promise ? await asked : asked;
    if (item !== undefined && !names.has(item.name)) names.set(item.name, innerName);
  }
  searched.set(listed, { version, names });
  return names.get(name);
}

/** The list that was made of this array, if that has not changed since. */
export function keptList(
  lists: Segment["lists"],
  kind: ListKind,
  items: readonly unknown[],
  isFirstPage: boolean,
): readonly unknown[] | undefined {
  const known = lists.get(items);
  const isSame = known?.kind === kind && known.isFirstPage === isFirstPage && isSameArray(known.before, items);
  return isSame ? known.after : undefined;
}
