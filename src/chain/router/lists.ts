// Combines the answers of all upstreams to `server/discover` and to list requests. Reads all pages of all upstreams in
// parallel, joins them in the order of the upstreams, and splits them into pages of our own. An upstream that fails is
// left out, and the result's `_meta` names it.

import type { Context, Params, Request, Result } from "../../core/handler.ts";
import { defined, isObject } from "../../core/values.ts";
import { LIST_CAPABILITIES, LISTS, type ListCapability, UNAVAILABLE, type Unavailable } from "../../protocol/lists.ts";
import { decodeCursor, encodeCursor, invalidCursor, jsonLength } from "../../protocol/pages.ts";
import { META } from "../../protocol/model/base.ts";
import type { Implementation } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import { LISTS_BY_METHOD } from "../result-items.ts";
import { allFailed, isTimeout, nestedUnavailable, unavailable } from "./failures.ts";
import type { NameIndex, RoutedUpstream } from "./names.ts";
import { shownItem, type ListContents, type ListItem, type PagedList } from "./pages.ts";
import type { OfferedList, UpstreamView } from "./upstream-view.ts";
import type { View } from "./view.ts";

/** A page ends at this many items or, roughly, this many characters of JSON. */
const PAGE_ITEMS = 1_000;
const PAGE_LENGTH = 1_000_000;

/** What one upstream answered. Has neither `answer` nor `failure` if the upstream has no such list. */
interface Outcome<Answer> {
  readonly upstream: RoutedUpstream;
  readonly answer?: Answer;
  readonly failure?: Unavailable;
  /** Whether the upstream timed out, and may still answer later. */
  readonly isLate?: boolean;
}

type UpstreamList = Outcome<ListContents>;

/** Asks all upstreams in parallel. */
async function askAll<Answer>(
  upstreams: readonly UpstreamView[],
  { signal }: Context,
  ask: (view: UpstreamView) => Promise<Answer | undefined>,
): Promise<readonly Outcome<Answer>[]> {
  const outcomes = await Promise.all(
    upstreams.map(async (view): Promise<Outcome<Answer>> => {
      const { upstream } = view;
      try {
        const answer = await ask(view);
        return answer === undefined ? { upstream } : { upstream, answer };
      } catch (error) {
        return { upstream, failure: unavailable(upstream.name, error), isLate: isTimeout(error) };
      }
    }),
  );
  signal.throwIfAborted();
  return outcomes;
}

/** Where a page ends. It names the last item, so that it stays valid when items are added or removed. */
interface PageEnd {
  /** The index of the upstream. */
  readonly upstream: number;
  /** The last item's key in the upstream's own list, without a prefix. */
  readonly key: string;
  /** How many items of the upstream come before the next page. */
  readonly count: number;
}

/** Answers a list request with one page of all upstreams' items. */
export async function listItems(
  { method, params }: Request,
  context: Context,
  view: View,
  { info }: RouterInfo,
): Promise<Result> {
  const kind = LISTS_BY_METHOD.get(method)?.kind ?? "tools";
  const { cursor } = params;
  const after = cursor === undefined ? undefined : readCursor(method, cursor, view);
  const index = view.indexes[kind];
  const { changes } = index;
  // Names depend on the lists of all upstreams, so those before the page are skipped only if their lists are known.
  const before = after?.upstream ?? 0;
  const first = view.upstreams.slice(0, before).every(({ upstream }) => index.isKnown(upstream.index)) ? before : 0;
  const lists = await readLists(view.upstreams.slice(first), LISTS[kind], params, context);
  if (first === 0) throwIfAllFailed(method, lists);
  for (const { upstream, answer, failure } of lists) {
    if (failure === undefined || answer !== undefined) index.setList(upstream.index, answer?.keys ?? [], answer?.items);
    else index.setProblem(upstream.index, failure.message);
  }
  if (first === 0) index.setListed(changes);
  index.setShown();
  return createPage(LISTS[kind], lists, index, after, info);
}

function createPage(
  list: PagedList,
  lists: readonly UpstreamList[],
  index: NameIndex,
  after: PageEnd | undefined,
  info: unknown,
): Result {
  const answered = lists.flatMap(({ upstream, answer }) => (answer === undefined ? [] : [upstream.index]));
  const page = index.kept(JSON.stringify([after, answered]), () => itemsOfPage(list, lists, index, after));
  const { rest, hints, meta } = combine(lists, info);
  return { ...rest, [list.field]: page.items, ...defined(page.next), ...hints, resultType: "complete", _meta: meta };
}

interface MeasuredItem {
  readonly shownName: string;
  readonly upstream: string;
  readonly item: ListItem;
  /** In characters of JSON. */
  readonly length: number;
}

/** By the items as upstreams list them. */
const knownItems = new WeakMap<ListItem, MeasuredItem>();

/** The item as callers see it; the same value as long as its upstream lists the same. */
function knownItem(item: ListItem, keyField: string, key: string, shownName: string, upstream: string): MeasuredItem {
  const known = knownItems.get(item);
  if (known?.shownName === shownName && known.upstream === upstream) return known;
  const added = shownItem(item, keyField, key, shownName, upstream);
  const measured = { shownName, upstream, item: added, length: jsonLength(added) };
  knownItems.set(item, measured);
  return measured;
}

interface ItemsOfPage {
  readonly items: readonly ListItem[];
  readonly next: { readonly nextCursor: string | undefined };
}

function itemsOfPage(
  { method, key: keyField }: PagedList,
  lists: readonly UpstreamList[],
  { names }: NameIndex,
  after: PageEnd | undefined,
): ItemsOfPage {
  const page: ListItem[] = [];
  let length = 0;
  /** The fields of the cursor, if the page ends here. */
  let end: readonly unknown[] | undefined;
  let nextCursor: string | undefined;
  const start = after?.upstream ?? 0;
  for (const { upstream, answer } of lists) {
    if (answer === undefined || upstream.index < start) continue;
    const { items, keys } = answer;
    const first = after !== undefined && upstream.index === start ? indexAfter(keys, after) : 0;
    for (let at = first; at < items.length && nextCursor === undefined; at += 1) {
      const [item, key] = [items[at], keys[at]];
      if (item === undefined || key === undefined) continue;
      const shownName = names.shownName(upstream.index, key);
      const added = knownItem(item, keyField, key, shownName, upstream.name);
      length += added.length;
      if (end !== undefined && (page.length >= PAGE_ITEMS || length > PAGE_LENGTH)) {
        nextCursor = encodeCursor(end);
      } else {
        page.push(added.item);
        end = [method, upstream.label.scheme, key, at + 1];
      }
    }
  }
  return { items: page, next: { nextCursor } };
}

/** Throws an invalid_params error if the cursor is not from this list. A cursor grants nothing. */
function readCursor(method: string, cursor: unknown, { upstreams }: View): PageEnd {
  const [list, scheme, key, count] = decodeCursor(cursor);
  const upstream = upstreams.findIndex((view) => view.upstream.label.scheme === scheme);
  if (list !== method || upstream === -1 || typeof key !== "string" || !Number.isInteger(count)) {
    throw invalidCursor(cursor);
  }
  return { upstream, key, count: count as number };
}

/** The index of the next page's first item in the upstream's current list. */
function indexAfter(keys: readonly string[], { key, count }: PageEnd): number {
  if (keys[count - 1] === key) return count;
  const position = keys.indexOf(key);
  return position === -1 ? Math.min(Math.max(count, 0), keys.length) : position + 1;
}

/** Combines the fields of all lists other than the items. */
export function combine(
  lists: readonly UpstreamList[],
  info: unknown,
): { readonly rest: Result; readonly hints: object; readonly meta: NonNullable<Result["_meta"]> } {
  const failures = lists.flatMap(({ upstream, answer, failure }) => [
    ...(failure ? [failure] : []),
    ...nestedUnavailable(upstream.name, answer?.rest),
  ]);
  const all = lists.flatMap((list) => list.answer ?? []);
  const isWhole = failures.length === 0 && all.length > 0;
  const rest = all.reduceRight<Result>((before, answer) => ({ ...before, ...answer.rest }), {});
  const meta = all.reduceRight<NonNullable<Result["_meta"]>>(
    (before, answer) => ({ ...before, ...answer.rest._meta }),
    {},
  );
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

/** Reads the lists of all upstreams. An incomplete list has both an answer and a failure. */
export async function readLists(
  upstreams: readonly UpstreamView[],
  list: OfferedList,
  params: Params,
  context: Context,
): Promise<readonly UpstreamList[]> {
  const lists = await askAll(upstreams, context, (view) => view.readList(list, params, context));
  return lists.map((list) => {
    const problem = list.answer?.problem;
    const { name } = list.upstream;
    return problem === undefined
      ? list
      : { ...list, failure: { upstream: name, message: `The upstream ${name} ${problem}` } };
  });
}

/**
 * Throws if every upstream has failed, since an empty answer would be wrong. Does not throw if an upstream has timed
 * out, because the caller is notified of a change when that upstream answers.
 */
function throwIfAllFailed(method: string, outcomes: readonly Outcome<unknown>[]): void {
  const failures = outcomes.flatMap(({ failure, answer }) => (answer === undefined ? (failure ?? []) : []));
  const isLate = outcomes.some((outcome) => outcome.isLate);
  if (outcomes.length > 0 && failures.length === outcomes.length && !isLate) throw allFailed(method, failures);
}

/** How the router describes itself to callers. */
export interface RouterInfo {
  readonly info: Implementation;
  readonly instructions?: string | undefined;
}

/**
 * Combines the capabilities of the upstreams. If an upstream fails or times out, everything that it may have is declared:
 * a client with a session reads the capabilities only once, so what is declared later would be missed.
 */
export async function discover(
  { method }: Request,
  context: Context,
  { upstreams }: View,
  ours: RouterInfo,
): Promise<Result> {
  const outcomes = await askAll(upstreams, context, (view) => view.discover(context));
  throwIfAllFailed(method, outcomes);
  const results = outcomes.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
  const failures = outcomes.flatMap(
    ({ upstream, answer, failure }) => failure ?? nestedUnavailable(upstream.name, answer),
  );
  const hasFailures = failures.length > 0;
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
      ...(hasFailures ? { [UNAVAILABLE]: failures } : undefined),
    },
  };
}

function joinCapabilities(offered: readonly Json[], hasFailures: boolean): Json {
  const has = (name: string): boolean => offered.some((capabilities) => isObject(capabilities[name]));
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
  const all = offered.map((capabilities) => capabilities[capability]).filter(isObject);
  const canSubscribe = (hasFailures && capability === "resources") || all.some(({ subscribe }) => subscribe === true);
  const canChange = hasFailures || all.some(({ listChanged }) => listChanged === true);
  return { ...(canSubscribe ? { subscribe: true } : undefined), ...(canChange ? { listChanged: true } : undefined) };
}

/** Joins capabilities that the specification does not define. Earlier upstreams have priority. */
function joinVendor(field: "extensions" | "experimental", offered: readonly Json[]): Json | undefined {
  const all = offered.map((capabilities) => capabilities[field]).filter(isObject);
  if (all.length === 0) return undefined;
  return { [field]: all.reduceRight<Json>((later, value) => ({ ...later, ...value }), {}) };
}

function joinInstructions(outcomes: readonly Outcome<Result>[], { instructions }: RouterInfo): string {
  const parts = outcomes.flatMap(({ upstream, answer }) => {
    const text = answer?.["instructions"];
    return typeof text === "string" && text !== "" ? [`# ${upstream.name}\n\n${text}`] : [];
  });
  return [...(instructions === undefined || instructions === "" ? [] : [instructions]), ...parts].join("\n\n");
}
