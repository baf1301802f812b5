// Reads all pages of an upstream's list, and creates and parses the cursors of our own pages. If an upstream's pages do
// not end, reading stops at a limit: the items so far are used, and the result reports the problem.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Params, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams } from "../../protocol/errors.ts";
import { walkPages } from "../../protocol/pages.ts";
import { checksum } from "./names.ts";

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

/** Reads all pages. Each request has the caller's params, except the cursor, which is one of our own. */
export async function readAllPages(
  handler: Handler,
  list: PagedList,
  params: Params,
  context: Context,
): Promise<ListContents> {
  const { method, field } = list;
  const { cursor: _ours, ...others } = params;
  const collector = new PageCollector(list.key);
  const fetch = (cursor: string | undefined): Promise<Result> =>
    handler({ method, params: cursor === undefined ? others : { ...others, cursor } }, context);
  for await (const { page, problem } of walkPages(field, fetch)) {
    const items: unknown = page[field];
    if (!Array.isArray(items)) {
      throw new ConnectionError("protocol", `The upstream answered ${method} without \`${field}\``);
    }
    collector.add(page, field, items);
    if (problem === undefined) continue;
    return { ...collector.contents(), problem: `The upstream did not finish ${method}: ${problem}` };
  }
  return collector.contents();
}

class PageCollector {
  readonly #key: string;
  readonly #items: ListItem[] = [];
  readonly #keys: string[] = [];
  readonly #seen = new Set<string>();
  #rest: Result = {};
  #ttlMs = Infinity;
  #isPublic = true;

  constructor(key: string) {
    this.#key = key;
  }

  add(page: Result, field: string, items: readonly unknown[]): void {
    const { [field]: _items, nextCursor: _next, ttlMs, cacheScope, _meta, ...rest } = page;
    const meta = _meta === undefined && this.#rest._meta === undefined ? undefined : { ..._meta, ...this.#rest._meta };
    this.#rest = { ...rest, ...this.#rest, ...(meta && { _meta: meta }) };
    this.#ttlMs = Math.min(this.#ttlMs, typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : 0);
    this.#isPublic &&= cacheScope === "public";
    const before = this.#items.length;
    for (const item of items) {
      const key = isObject(item) ? item[this.#key] : undefined;
      // An item without a key cannot be used. An item that has moved to a later page was already added.
      if (typeof key !== "string" || !isObject(item) || this.#seen.has(key)) continue;
      this.#items.push(item);
      this.#keys.push(key);
    }
    for (const key of this.#keys.slice(before)) this.#seen.add(key);
  }

  contents(): ListContents {
    const { resultType: _kind, ...rest } = this.#rest;
    return { items: this.#items, keys: this.#keys, rest, ttlMs: this.#ttlMs, isPublic: this.#isPublic };
  }
}

/** Where a page ends. It names the last item, so that it stays valid when items are added or removed. */
export interface PageEnd {
  /** The label of the upstream. */
  readonly upstream: string;
  /** The last item's key in the upstream's own list, without a prefix. */
  readonly key: string;
  /** How many items of the upstream come before the next page. */
  readonly count: number;
}

/** Callers treat a cursor as opaque. It grants nothing; its checksum only detects cursors of other servers. */
export function writeCursor(method: string, { upstream, key, count }: PageEnd): string {
  const body = JSON.stringify([method, upstream, key, count]);
  return Buffer.from(checksum(body) + body).toString("base64url");
}

/** Throws an invalid_params error if the cursor is not from this list. */
export function readCursor(method: string, cursor: unknown, upstreams: { has(label: string): boolean }): PageEnd {
  const body = typeof cursor === "string" ? parseCursor(cursor) : undefined;
  if (Array.isArray(body)) {
    const [list, upstream, key, count] = body as readonly unknown[];
    const isKnown = typeof upstream === "string" && upstreams.has(upstream);
    if (list === method && isKnown && typeof key === "string" && Number.isInteger(count)) {
      return { upstream, key, count: count as number };
    }
  }
  throw invalidParams("Invalid cursor: it is not from this list", { cursor });
}

function parseCursor(cursor: string): unknown {
  const bytes = Buffer.from(cursor, "base64url");
  const text = bytes.toString();
  const { length } = checksum("");
  const body = text.slice(length);
  if (bytes.toString("base64url") !== cursor || text.slice(0, length) !== checksum(body)) return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

/** The index of the next page's first item in the upstream's current list. */
export function indexAfter(keys: readonly string[], { key, count }: PageEnd): number {
  if (keys[count - 1] === key) return count;
  const found = keys.indexOf(key);
  return found === -1 ? Math.min(Math.max(count, 0), keys.length) : found + 1;
}
