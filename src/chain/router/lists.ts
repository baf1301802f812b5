// Lists of all ends as one: each end's pages walked to their end, all ends at once, put together in the order of the
// ends and cut into pages of our own. An end that fails is left out, and the result says so.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import { type Position, readCursor, startAfter, writeCursor } from "./cursor.ts";
import type { Directory } from "./directory.ts";
import {
  allFailed,
  isMethodNotFound,
  isTimeout,
  nested,
  UNAVAILABLE,
  type Unavailable,
  unavailable,
} from "./failures.ts";
import { type Kind, KINDS } from "./kinds.ts";
import type { Member, RoutedUpstream } from "./member.ts";
import { type View, WALK_MS } from "./view.ts";
import { type Item, type Listing, walk, type Walked } from "./walk.ts";

/** Items of a page, and about how many letters of JSON; whichever is reached first. */
const PAGE_ITEMS = 1_000;
const PAGE_LETTERS = 1_000_000;

/** What came of one end's list: nothing where it has no such list. */
export interface Read {
  readonly end: RoutedUpstream;
  readonly walked?: Walked;
  readonly failure?: Unavailable;
  /** Whether it may only need more time. */
  readonly isLate?: boolean;
}

/** A list that ends have who can do something. */
export interface Offered extends Listing {
  readonly isOffered: (capabilities: Json) => boolean;
}

export class Lists {
  readonly #ends: readonly RoutedUpstream[];
  readonly #byScheme: ReadonlyMap<string, number>;
  readonly #info: unknown;

  constructor(ends: readonly RoutedUpstream[], info: unknown) {
    this.#ends = ends;
    this.#byScheme = new Map(ends.map(({ index, label }) => [label.scheme, index]));
    this.#info = info;
  }

  async list(kind: Kind, request: Request, context: Context, view: View): Promise<Result> {
    const listing = KINDS[kind];
    const { cursor } = request.params;
    const after = cursor === undefined ? undefined : readCursor(listing.method, cursor, this.#byScheme);
    const directory = view.directories[kind];
    const from = this.#from(after, directory);
    const isOffered = (capabilities: Json): boolean => isObject(capabilities[listing.family]);
    const { changes } = directory;
    const reads = await readAll(view.members.slice(from), { ...listing, isOffered }, request, context);
    if (from === 0) throwIfAllFailed(listing.method, reads);
    for (const { end, walked, failure } of reads) {
      if (failure === undefined || walked !== undefined) directory.note(end.index, walked?.keys ?? []);
      else directory.noteProblem(end.index, failure.message);
    }
    if (from === 0) directory.noteAll(changes);
    return this.#result(listing, reads, directory, after);
  }

  /** The first end that has to be asked: names depend on all, but those before the page may be known. */
  #from(after: Position | undefined, directory: Directory): number {
    const first = after === undefined ? 0 : (this.#byScheme.get(after.end) ?? 0);
    return this.#ends.slice(0, first).every(({ index }) => directory.isKnown(index)) ? first : 0;
  }

  #result(listing: Listing, reads: readonly Read[], directory: Directory, after: Position | undefined): Result {
    const { names } = directory;
    const page = new Page();
    const start = after === undefined ? 0 : (this.#byScheme.get(after.end) ?? 0);
    let nextCursor: string | undefined;
    for (const { end, walked } of reads) {
      if (walked === undefined || end.index < start) continue;
      const { items, keys } = walked;
      const first = after !== undefined && end.index === start ? startAfter(keys, after) : 0;
      for (let index = first; index < items.length && nextCursor === undefined; index += 1) {
        const [item, key] = [items[index], keys[index]];
        if (item === undefined || key === undefined) continue;
        const shown = names.shown(end.index, key);
        if (page.add(shown === key ? item : { ...item, [listing.key]: shown })) {
          page.last = { end: end.label.scheme, key, count: index + 1 };
        } else if (page.last !== undefined) nextCursor = writeCursor(listing.method, page.last);
      }
    }
    const { rest, hints, meta } = together(reads, this.#info);
    return {
      ...rest,
      [listing.field]: page.items,
      ...(nextCursor === undefined ? undefined : { nextCursor }),
      ...hints,
      resultType: "complete",
      _meta: meta,
    };
  }
}

/** What all reads of a list have in common, put together. */
export function together(
  reads: readonly Read[],
  info: unknown,
): { readonly rest: Result; readonly hints: object; readonly meta: NonNullable<Result["_meta"]> } {
  const failures = reads.flatMap(({ end, walked, failure }) => [
    ...(failure ? [failure] : []),
    ...nested(end.name, walked?.rest),
  ]);
  const walked = reads.flatMap((read) => read.walked ?? []);
  const isWhole = failures.length === 0 && walked.length > 0;
  const rest = walked.reduceRight<Result>((all, one) => ({ ...all, ...one.rest }), {});
  const meta = walked.reduceRight<NonNullable<Result["_meta"]>>((all, one) => ({ ...all, ...one.rest._meta }), {});
  return {
    rest,
    hints: {
      ttlMs: isWhole ? Math.min(...walked.map(({ ttlMs }) => ttlMs)) : 0,
      cacheScope: isWhole && walked.every(({ isPublic }) => isPublic) ? "public" : "private",
    },
    meta: {
      ...meta,
      [META.serverInfo]: info,
      ...(failures.length === 0 ? undefined : { [UNAVAILABLE]: failures }),
    },
  };
}

/** All ends at once. */
export async function readAll(
  members: readonly Member[],
  listing: Offered,
  { params }: Request,
  context: Context,
): Promise<readonly Read[]> {
  const reads = await Promise.all(members.map((member) => read(member, listing, params, context)));
  context.signal.throwIfAborted();
  return reads;
}

/** Where every end has failed, an empty list would be a lie; one that only takes its time is told of later. */
function throwIfAllFailed(method: string, reads: readonly Read[]): void {
  const failures = reads.flatMap(({ failure, walked }) => (walked === undefined ? (failure ?? []) : []));
  const isLate = reads.some((one) => one.isLate);
  if (reads.length > 0 && failures.length === reads.length && !isLate) throw allFailed(method, failures);
}

async function read(member: Member, listing: Offered, params: Request["params"], context: Context): Promise<Read> {
  const { end } = member;
  try {
    if (!(await member.offers(context, listing.isOffered))) return { end };
    const walked = await member.patiently(WALK_MS, context, (own) => walk(end.handler, listing, params, own));
    const { problem } = walked;
    return problem === undefined
      ? { end, walked }
      : { end, walked, failure: unavailable(end.name, new Error(problem)) };
  } catch (error) {
    return isMethodNotFound(error) ? { end } : { end, failure: unavailable(end.name, error), isLate: isTimeout(error) };
  }
}

class Page {
  readonly items: Item[] = [];
  last: Position | undefined;
  #letters = 0;

  /** Whether there was room for it. */
  add(item: Item): boolean {
    if (this.items.length >= PAGE_ITEMS) return false;
    const letters = lettersOf(item);
    if (this.items.length > 0 && this.#letters + letters > PAGE_LETTERS) return false;
    this.#letters += letters;
    this.items.push(item);
    return true;
  }
}

/** About how long it is on a wire; what cannot be written there is for the front to find. */
function lettersOf(item: Item): number {
  try {
    return JSON.stringify(item).length;
  } catch {
    return 0;
  }
}
