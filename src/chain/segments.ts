// Divides a chain into segments. Declared middleware (layer.ts) leaves lists as they are, so the transforms of neighbours
// are applied to a list in one step. Other middleware may do anything to lists, so what is outside of it has lists of its
// own.

import { Catalogue } from "./catalogue.ts";
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
  };
}
