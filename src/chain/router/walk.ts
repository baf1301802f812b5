// One list of one end, walked to its end. A cursor is the end's own affair and is given back as it came. An end whose
// pages never finish is stopped here: what it has said so far counts, and the caller is told that it is not all.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Params, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";

const MOST_PAGES = 1_000;
const MOST_ITEMS = 10_000;
/** Of all pages but the last, as JSON: each may be as long as a message, and there are many. */
const MOST_LETTERS = 16 * 1024 * 1024;
/** It goes back with the next question, and is kept to be told from others. */
const LONGEST_CURSOR = 64 * 1024;

/** What is listed: by which request, under which field, and by which field of an item one is told from another. */
export interface Listing {
  readonly method: string;
  readonly field: string;
  readonly key: string;
}

export type Item = { readonly [key: string]: unknown };

export interface Walked {
  readonly items: readonly Item[];
  /** The same as texts, by the field that tells them apart. */
  readonly keys: readonly string[];
  /** The pages' other fields, the first page's before the others'. */
  readonly rest: Result;
  /** The least of all pages. */
  readonly ttlMs: number;
  readonly isPublic: boolean;
  /** Why it is not the whole list. */
  readonly problem?: string;
}

/** The params are those of the caller; they come with each page. */
export async function walk(handler: Handler, listing: Listing, params: Params, context: Context): Promise<Walked> {
  const { method, field } = listing;
  const { cursor: _ours, ...others } = params;
  const found = new Found(listing.key);
  const cursors = new Set<string>();
  let letters = 0;
  for (let cursor: string | undefined; ;) {
    const page = await handler({ method, params: cursor === undefined ? others : { ...others, cursor } }, context);
    const items: unknown = page[field];
    if (!Array.isArray(items)) throw new ConnectionError("protocol", `The end answered ${method} without \`${field}\``);
    found.add(page, field, items);
    const next = page["nextCursor"];
    // Some ends write null for "no more".
    if (next === undefined || next === null) return found.whole();
    letters += lettersOf(page);
    const problem =
      typeof next !== "string"
        ? "its `nextCursor` is no string"
        : next.length > LONGEST_CURSOR
          ? `its \`nextCursor\` is longer than ${LONGEST_CURSOR} letters`
          : cursors.has(next)
            ? "its pages repeat themselves"
            : cursors.size + 1 >= MOST_PAGES
              ? `it has more than ${MOST_PAGES} pages`
              : found.count >= MOST_ITEMS
                ? `it has more than ${MOST_ITEMS} items`
                : letters > MOST_LETTERS
                  ? `it is longer than ${MOST_LETTERS} letters`
                  : undefined;
    if (problem !== undefined) return { ...found.whole(), problem: `The end left ${method} unfinished: ${problem}` };
    cursor = next as string;
    cursors.add(cursor);
  }
}

function lettersOf(page: Result): number {
  try {
    return JSON.stringify(page).length;
  } catch {
    // Only an end in this process can say what cannot be written; what it keeps is its own affair.
    return 0;
  }
}

class Found {
  readonly #key: string;
  readonly #items: Item[] = [];
  readonly #keys: string[] = [];
  readonly #seen = new Set<string>();
  #rest: Result = {};
  #ttlMs = Infinity;
  #isPublic = true;

  constructor(key: string) {
    this.#key = key;
  }

  get count(): number {
    return this.#items.length;
  }

  add(page: Result, field: string, items: readonly unknown[]): void {
    const { [field]: _items, nextCursor: _next, ttlMs, cacheScope, _meta, ...rest } = page;
    const meta = _meta === undefined && this.#rest._meta === undefined ? undefined : { ..._meta, ...this.#rest._meta };
    this.#rest = { ...rest, ...this.#rest, ...(meta && { _meta: meta }) };
    this.#ttlMs = Math.min(this.#ttlMs, typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : 0);
    this.#isPublic &&= cacheScope === "public";
    const before = this.count;
    for (const item of items) {
      const key = isObject(item) ? item[this.#key] : undefined;
      // What has no name can be neither called nor read; what moved to a later page while we walked is there already.
      if (typeof key !== "string" || !isObject(item) || this.#seen.has(key)) continue;
      this.#items.push(item);
      this.#keys.push(key);
    }
    for (const key of this.#keys.slice(before)) this.#seen.add(key);
  }

  whole(): Walked {
    const { resultType: _kind, ...rest } = this.#rest;
    return { items: this.#items, keys: this.#keys, rest, ttlMs: this.#ttlMs, isPublic: this.#isPublic };
  }
}
