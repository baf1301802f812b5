// Reads all pages of an upstream's list. If its pages do not end, reading stops at a limit: the items so far are used,
// and the result reports the problem. Also says which upstream an item is of.

import { isSameArray } from "../../core/collections.ts";
import { ConnectionError, THE_UPSTREAM } from "../../core/errors.ts";
import type { Context, Handler, Params, Result } from "../../core/handler.ts";
import { defined, isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { OWN_NAMES, UPSTREAM } from "../../protocol/lists.ts";
import { walkPages } from "../../protocol/walk-pages.ts";

/** `field` holds the items of a result; `key` is the field of an item that identifies it. */
export interface PagedList {
  readonly method: string;
  readonly field: string;
  readonly key: string;
}

export type ListItem = { readonly [key: string]: unknown };

export interface ListContents {
  readonly items: readonly ListItem[];
  /** The key of each item. */
  readonly keys: readonly string[];
  /** The other fields of the pages; earlier pages have priority. */
  readonly rest: Result;
  /** The smallest value of all pages. */
  readonly ttlMs: number;
  readonly isPublic: boolean;
  /** Why the list is incomplete. */
  readonly problem?: string;
}

/**
 * Reads all pages. Each request has the caller's params, without the caller's cursor, which this gateway issued and the
 * upstream does not know.
 */
export async function readAllPages(
  handler: Handler,
  { method, field, key }: PagedList,
  params: Params,
  context: Context,
): Promise<ListContents> {
  const { cursor: _ours, ...others } = params;
  const fetch = (cursor: string | undefined): Promise<Result> =>
    handler({ method, params: cursor === undefined ? others : { ...others, cursor } }, context);
  const parts: ListPart[] = [];
  let [rest, lowestTtlMs, isPublic]: [Result, number, boolean] = [{}, Infinity, true];
  let problem: string | undefined;
  for await (const { page, problem: pageProblem } of walkPages(field, fetch)) {
    const { [field]: listed, nextCursor: _next, resultType: _kind, ttlMs, cacheScope, _meta, ...more } = page;
    if (!Array.isArray(listed)) {
      throw new ConnectionError("protocol", `The upstream answered ${method} without \`${field}\``, THE_UPSTREAM);
    }
    const meta = _meta === undefined && rest._meta === undefined ? undefined : { ..._meta, ...rest._meta };
    rest = { ...more, ...rest, ...(meta && { _meta: meta }) };
    lowestTtlMs = Math.min(lowestTtlMs, typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : 0);
    isPublic &&= cacheScope === "public";
    parts.push(listPart(listed, key));
    if (pageProblem !== undefined) problem = `did not finish ${method}: ${pageProblem}`;
  }
  const { items, keys } = joined(parts);
  return { items, keys, rest, ttlMs: lowestTtlMs, isPublic, ...defined({ problem }) };
}

/** Items and their keys. */
type ListPart = Pick<ListContents, "items" | "keys">;

/**
 * By the arrays in which upstreams list them, so that a list that has not changed is the same value again. An upstream in
 * this process may change its array.
 */
const knownParts = new WeakMap<object, ListPart & { readonly key: string; readonly listed: readonly unknown[] }>();

/** The items of a page. One without a key cannot be used; of several with one key, the first counts. */
export function listPart(listed: readonly unknown[], key: string): ListPart {
  const known = knownParts.get(listed);
  if (known?.key === key && isSameArray(known.listed, listed)) return known;
  const byKey = new Map<string, ListItem>();
  for (const item of listed) {
    const name = isObject(item) ? item[key] : undefined;
    if (isObject(item) && typeof name === "string" && !byKey.has(name)) byKey.set(name, item);
  }
  const part = { ...entriesOf(byKey), key, listed: [...listed] };
  knownParts.set(listed, part);
  return part;
}

/** They are kept for all who read the list, so they are frozen. */
function entriesOf(byKey: ReadonlyMap<string, ListItem>): ListPart {
  return { items: Object.freeze([...byKey.values()]), keys: Object.freeze([...byKey.keys()]) };
}

/** By the first of the joined pages. */
const knownJoins = new WeakMap<ListPart, ListPart & { readonly parts: readonly ListPart[] }>();

/** An item may be listed again if it has moved to a later page meanwhile. */
function joined(parts: readonly ListPart[]): ListPart {
  const first = parts[0] as ListPart;
  if (parts.length === 1) return first;
  const known = knownJoins.get(first);
  if (known !== undefined && isSameArray(known.parts, parts)) return known;
  const byKey = new Map<string, ListItem>();
  for (const { items, keys } of parts) {
    for (const [at, name] of keys.entries()) if (!byKey.has(name)) byKey.set(name, items[at] as ListItem);
  }
  const whole = { ...entriesOf(byKey), parts };
  knownJoins.set(first, whole);
  return whole;
}

/**
 * An item as callers see it. Its `_meta` names its upstream, if the gateway has several, and its names there if they
 * differ. Middleware trusts both fields, so an upstream cannot set them: its `UPSTREAM` is dropped, and its `OWN_NAMES`
 * are appended after ours (the upstream may be a gateway).
 */
export function shownItem(
  item: ListItem,
  keyField: string,
  key: string,
  shownName: string,
  upstream: string | undefined,
): ListItem {
  const { [OWN_NAMES]: inner, [UPSTREAM]: _inner, ...meta } = isObject(item["_meta"]) ? item["_meta"] : {};
  const names: readonly unknown[] = Array.isArray(inner) ? inner : [];
  const ownNames = shownName === key && names.length === 0 ? [] : [key, ...names];
  return {
    ...item,
    [keyField]: shownName,
    _meta: {
      ...meta,
      ...(upstream === undefined ? undefined : { [UPSTREAM]: upstream }),
      ...(ownNames.length === 0 ? undefined : { [OWN_NAMES]: ownNames }),
    },
  };
}

/** A context for a gateway's own requests on behalf of a caller. They may outlive the call that needs them. */
export function backgroundContext(
  { revision, caller }: Pick<Context, "revision" | "caller">,
  signal: AbortSignal = new AbortController().signal,
): Context {
  return {
    revision,
    caller,
    signal,
    notify: () => undefined,
    ask: async ({ method }) => {
      throw McpError.of("missing_capability", `No client can answer ${method}`, { requiredCapabilities: {} });
    },
  };
}
