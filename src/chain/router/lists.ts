// Combines the answers of all upstreams to `server/discover` and to list requests. Reads all pages of all upstreams in
// parallel, joins them in the order of the upstreams, and splits them into pages of our own. An upstream that fails is
// left out, and the result's `_meta` names it.

import type { Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { LIST_CAPABILITIES, LISTS, type ListCapability, type ListKind } from "../../protocol/lists.ts";
import { type Implementation, META } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import {
  allFailed,
  isMethodNotFound,
  isTimeout,
  nestedUnavailable,
  UNAVAILABLE,
  type Unavailable,
  unavailable,
} from "./failures.ts";
import type { NameIndex, RoutedUpstream } from "./names.ts";
import {
  indexAfter,
  readAllPages,
  readCursor,
  writeCursor,
  type ListContents,
  type ListItem,
  type PagedList,
  type PageEnd,
} from "./pages.ts";
import { jsonLength } from "../../protocol/pages.ts";
import { LIST_TIMEOUT_MS, type UpstreamView, type View } from "./view.ts";

/** A page ends at this many items or, roughly, this many characters of JSON. */
const PAGE_ITEMS = 1_000;
const PAGE_LENGTH = 1_000_000;

/** The list of one upstream. Has neither `contents` nor `failure` if the upstream has no such list. */
export interface UpstreamList {
  readonly upstream: RoutedUpstream;
  readonly contents?: ListContents;
  readonly failure?: Unavailable;
  /** Whether the upstream timed out, and may still answer later. */
  readonly isLate?: boolean;
}

/** A list, and a function that returns whether an upstream with the given capabilities has this list. */
export interface OfferedList extends PagedList {
  readonly isOffered: (capabilities: Json) => boolean;
}

export class Lists {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #byScheme: ReadonlyMap<string, number>;
  readonly #info: unknown;

  constructor(upstreams: readonly RoutedUpstream[], info: unknown) {
    this.#upstreams = upstreams;
    this.#byScheme = new Map(upstreams.map(({ index, label }) => [label.scheme, index]));
    this.#info = info;
  }

  async list(kind: ListKind, request: Request, context: Context, view: View): Promise<Result> {
    const list = LISTS[kind];
    const { cursor } = request.params;
    const after = cursor === undefined ? undefined : readCursor(list.method, cursor, this.#byScheme);
    const index = view.indexes[kind];
    const first = this.#firstUpstream(after, index);
    const isOffered = (capabilities: Json): boolean => isObject(capabilities[list.capability]);
    const { changes } = index;
    const lists = await readLists(view.upstreams.slice(first), { ...list, isOffered }, request, context);
    if (first === 0) throwIfAllFailed(list.method, lists);
    for (const { upstream, contents, failure } of lists) {
      if (failure === undefined || contents !== undefined) index.setList(upstream.index, contents?.keys ?? []);
      else index.setProblem(upstream.index, failure.message);
    }
    if (first === 0) index.setListed(changes);
    return this.#createPage(list, lists, index, after);
  }

  /**
   * The first upstream to read. Names depend on the lists of all upstreams, so the upstreams before the page are
   * skipped only if their lists are known already.
   */
  #firstUpstream(after: PageEnd | undefined, index: NameIndex): number {
    const first = after === undefined ? 0 : (this.#byScheme.get(after.upstream) ?? 0);
    return this.#upstreams.slice(0, first).every((upstream) => index.isKnown(upstream.index)) ? first : 0;
  }

  #createPage(list: PagedList, lists: readonly UpstreamList[], index: NameIndex, after: PageEnd | undefined): Result {
    const { names } = index;
    const page = new Page();
    const start = after === undefined ? 0 : (this.#byScheme.get(after.upstream) ?? 0);
    let nextCursor: string | undefined;
    for (const { upstream, contents } of lists) {
      if (contents === undefined || upstream.index < start) continue;
      const { items, keys } = contents;
      const first = after !== undefined && upstream.index === start ? indexAfter(keys, after) : 0;
      for (let at = first; at < items.length && nextCursor === undefined; at += 1) {
        const [item, key] = [items[at], keys[at]];
        if (item === undefined || key === undefined) continue;
        const shown = names.shown(upstream.index, key);
        if (page.add(shown === key ? item : { ...item, [list.key]: shown })) {
          page.end = { upstream: upstream.label.scheme, key, count: at + 1 };
        } else if (page.end !== undefined) nextCursor = writeCursor(list.method, page.end);
      }
    }
    const { rest, hints, meta } = combine(lists, this.#info);
    return {
      ...rest,
      [list.field]: page.items,
      ...(nextCursor === undefined ? undefined : { nextCursor }),
      ...hints,
      resultType: "complete",
      _meta: meta,
    };
  }
}

/** Combines the fields of all lists other than the items. */
export function combine(
  lists: readonly UpstreamList[],
  info: unknown,
): { readonly rest: Result; readonly hints: object; readonly meta: NonNullable<Result["_meta"]> } {
  const failures = lists.flatMap(({ upstream, contents, failure }) => [
    ...(failure ? [failure] : []),
    ...nestedUnavailable(upstream.name, contents?.rest),
  ]);
  const all = lists.flatMap((list) => list.contents ?? []);
  const isWhole = failures.length === 0 && all.length > 0;
  const rest = all.reduceRight<Result>((before, one) => ({ ...before, ...one.rest }), {});
  const meta = all.reduceRight<NonNullable<Result["_meta"]>>((before, one) => ({ ...before, ...one.rest._meta }), {});
  return {
    rest,
    hints: {
      ttlMs: isWhole ? Math.min(...all.map(({ ttlMs }) => ttlMs)) : 0,
      cacheScope: isWhole && all.every(({ isPublic }) => isPublic) ? "public" : "private",
    },
    meta: {
      ...meta,
      [META.serverInfo]: info,
      ...(failures.length === 0 ? undefined : { [UNAVAILABLE]: failures }),
    },
  };
}

/** Reads the lists of all upstreams in parallel. */
export async function readLists(
  upstreams: readonly UpstreamView[],
  list: OfferedList,
  { params }: Request,
  context: Context,
): Promise<readonly UpstreamList[]> {
  const lists = await Promise.all(upstreams.map((upstream) => readList(upstream, list, params, context)));
  context.signal.throwIfAborted();
  return lists;
}

/**
 * Throws if every upstream has failed, since an empty list would be wrong. Does not throw if an upstream has timed out,
 * because the caller is notified of a change when that upstream answers.
 */
function throwIfAllFailed(method: string, lists: readonly UpstreamList[]): void {
  const failures = lists.flatMap(({ failure, contents }) => (contents === undefined ? (failure ?? []) : []));
  const isLate = lists.some((one) => one.isLate);
  if (lists.length > 0 && failures.length === lists.length && !isLate) throw allFailed(method, failures);
}

async function readList(
  view: UpstreamView,
  list: OfferedList,
  params: Request["params"],
  context: Context,
): Promise<UpstreamList> {
  const { upstream } = view;
  try {
    if (!(await view.offers(context, list.isOffered))) return { upstream };
    const contents = await view.withTimeout(LIST_TIMEOUT_MS, context, (own) =>
      readAllPages(upstream.handler, list, params, own),
    );
    const { problem } = contents;
    return problem === undefined
      ? { upstream, contents }
      : { upstream, contents, failure: unavailable(upstream.name, new Error(problem)) };
  } catch (error) {
    if (isMethodNotFound(error)) return { upstream };
    return { upstream, failure: unavailable(upstream.name, error), isLate: isTimeout(error) };
  }
}

class Page {
  readonly items: ListItem[] = [];
  end: PageEnd | undefined;
  #length = 0;

  /** Returns false if the page is full. */
  add(item: ListItem): boolean {
    if (this.items.length >= PAGE_ITEMS) return false;
    const length = jsonLength(item);
    if (this.items.length > 0 && this.#length + length > PAGE_LENGTH) return false;
    this.#length += length;
    this.items.push(item);
    return true;
  }
}

/** How the router describes itself to callers. */
export interface RouterInfo {
  readonly info: Implementation;
  readonly instructions?: string | undefined;
}

interface DiscoverOutcome {
  readonly upstream: RoutedUpstream;
  readonly result?: Result;
  readonly failure?: Unavailable;
  readonly isLate?: boolean;
}

/**
 * Combines the capabilities of the upstreams. If an upstream fails or times out, everything that it may have is declared:
 * a client with a session reads the capabilities only once, so what is declared later would be missed.
 */
export async function discover(
  upstreams: readonly UpstreamView[],
  context: Context,
  ours: RouterInfo,
): Promise<Result> {
  const outcomes = await Promise.all(upstreams.map((upstream) => discoverUpstream(upstream, context)));
  context.signal.throwIfAborted();
  const results = outcomes.map(({ result }) => result).filter((result) => result !== undefined);
  const failures = outcomes.flatMap(
    ({ upstream, result, failure }) => failure ?? nestedUnavailable(upstream.name, result),
  );
  const isLate = outcomes.some((one) => one.isLate);
  const hasFailures = failures.length > 0;
  if (upstreams.length > 0 && results.length === 0 && !isLate) throw allFailed("server/discover", failures);
  const offered = results.map(({ capabilities }) => (isObject(capabilities) ? capabilities : {}));
  const instructions = joinInstructions(outcomes, ours);
  const ttls = results.map(({ ttlMs }) => (typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : 0));
  const isWhole = !hasFailures && results.length > 0;
  return {
    capabilities: joinCapabilities(offered, hasFailures),
    ...(instructions === "" ? undefined : { instructions }),
    ttlMs: isWhole ? Math.min(...ttls) : 0,
    cacheScope: isWhole && results.every(({ cacheScope }) => cacheScope === "public") ? "public" : "private",
    resultType: "complete",
    _meta: {
      [META.serverInfo]: ours.info,
      ...(failures.length === 0 ? undefined : { [UNAVAILABLE]: failures }),
    },
  };
}

async function discoverUpstream(view: UpstreamView, context: Context): Promise<DiscoverOutcome> {
  const { upstream } = view;
  try {
    return { upstream, result: await view.discover(context) };
  } catch (error) {
    return { upstream, failure: unavailable(upstream.name, error), isLate: isTimeout(error) };
  }
}

function joinCapabilities(offered: readonly Json[], hasFailures: boolean): Json {
  const has = (name: string): boolean => offered.some((one) => isObject(one[name]));
  const lists = LIST_CAPABILITIES.filter((capability) => hasFailures || has(capability));
  return {
    ...(hasFailures || has("logging") ? { logging: {} } : undefined),
    ...(hasFailures || has("completions") ? { completions: {} } : undefined),
    ...Object.fromEntries(lists.map((capability) => [capability, joinList(capability, offered, hasFailures)])),
    ...joinVendor("extensions", offered),
    ...joinVendor("experimental", offered),
  };
}

function joinList(capability: ListCapability, offered: readonly Json[], hasFailures: boolean): Json {
  const all = offered.map((one) => one[capability]).filter(isObject);
  const canSubscribe = (hasFailures && capability === "resources") || all.some(({ subscribe }) => subscribe === true);
  const canChange = hasFailures || all.some(({ listChanged }) => listChanged === true);
  return { ...(canSubscribe ? { subscribe: true } : undefined), ...(canChange ? { listChanged: true } : undefined) };
}

/** Joins capabilities that the specification does not define. Earlier upstreams have priority. */
function joinVendor(field: "extensions" | "experimental", offered: readonly Json[]): Json | undefined {
  const all = offered.map((one) => one[field]).filter(isObject);
  if (all.length === 0) return undefined;
  return { [field]: all.reduceRight<Json>((later, one) => ({ ...later, ...one }), {}) };
}

function joinInstructions(outcomes: readonly DiscoverOutcome[], { instructions }: RouterInfo): string {
  const parts = outcomes.flatMap(({ upstream, result }) => {
    const text = result?.["instructions"];
    return typeof text === "string" && text !== "" ? [`# ${upstream.name}\n\n${text}`] : [];
  });
  return [...(instructions === undefined || instructions === "" ? [] : [instructions]), ...parts].join("\n\n");
}
