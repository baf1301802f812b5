// Reads the pages of a list within limits, since the pages of a broken or hostile server never end. Everyone who needs
// more than one page of a list reads it with this. Apart from lists.ts, since a small server never needs it.

import type { Context, Handler, Result } from "../core/handler.ts";
import { jsonLength, MAX_CURSOR_LENGTH } from "./pages.ts";

const MAX_PAGES = 1_000;

interface PageLimits {
  readonly items: number;
  /** All pages together, in characters of JSON. The last page is not counted; only the limit on a message applies. */
  readonly length: number;
}

/** For those who keep the list, or what they learn from it. */
const LIST_LIMITS: PageLimits = { items: 10_000, length: 16 * 1024 * 1024 };
/** For those who pass each page on. */
export const NO_LIMITS: PageLimits = { items: Infinity, length: Infinity };

interface WalkedPage {
  readonly page: Result;
  /** Why no further page is read, although there is one. */
  readonly problem?: string;
}

/** Yields the pages of a list as they are needed. Cursors are opaque, and an empty string is a valid one. */
export async function* walkPages(
  field: string,
  fetchPage: (cursor: string | undefined) => Promise<Result>,
  limits: PageLimits = LIST_LIMITS,
): AsyncGenerator<WalkedPage, void, undefined> {
  const cursors = new Set<string>();
  let items = 0;
  let length = 0;
  for (let cursor: string | undefined; ;) {
    const page = await fetchPage(cursor);
    const { [field]: list, nextCursor: next } = page;
    // Some servers send null on the last page.
    if (next === undefined || next === null) {
      yield { page };
      return;
    }
    if (Array.isArray(list)) items += list.length;
    if (limits.length !== Infinity) length += pageLength(page, field);
    const problem =
      typeof next !== "string"
        ? "its `nextCursor` is not a string"
        : next.length > MAX_CURSOR_LENGTH
          ? `its \`nextCursor\` is longer than ${MAX_CURSOR_LENGTH} characters`
          : cursors.has(next)
            ? "its pages repeat"
            : cursors.size + 1 >= MAX_PAGES
              ? `it has more than ${MAX_PAGES} pages`
              : items >= limits.items
                ? `it has more than ${limits.items} items`
                : length > limits.length
                  ? `it is longer than ${limits.length} characters`
                  : undefined;
    if (problem !== undefined) {
      yield { page, problem };
      return;
    }
    yield { page };
    cursor = next as string;
    cursors.add(cursor);
  }
}

/** By the array of items: a server in this process lists the same one until it changes. */
const knownLengths = new WeakMap<object, number>();

function pageLength(page: Result, field: string): number {
  const { [field]: items, ...rest } = page;
  if (!Array.isArray(items)) return jsonLength(rest);
  let length = knownLengths.get(items);
  if (length === undefined) knownLengths.set(items, (length = jsonLength(items)));
  return length + jsonLength(rest);
}

/** Yields the pages of the list of tools, as far as the limits allow. */
export async function* toolPages(handler: Handler, context: Context): AsyncGenerator<Result, void, undefined> {
  const fetch = (cursor: string | undefined): Promise<Result> =>
    handler({ method: "tools/list", params: cursor === undefined ? {} : { cursor } }, context);
  for await (const { page } of walkPages("tools", fetch)) yield page;
}
