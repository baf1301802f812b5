// Lists that come in pages, walked to their ends. A cursor is the end's own affair: it is given back as it
// came, and the empty text is a cursor like any other. An end whose pages never finish is stopped here.

import { ConnectionError } from "../core/errors.ts";
import type { Result } from "../core/handler.ts";

const MOST_PAGES = 1_000;

/** The items of a list, a page at a time, each page fetched when its turn comes. */
export async function* pagesOf<T>(
  method: string,
  field: string,
  fetch: (cursor: string | undefined) => Promise<Result>,
): AsyncGenerator<readonly T[], void, undefined> {
  let cursor: string | undefined;
  for (let count = 1; ; count += 1) {
    const page = await fetch(cursor);
    const items = page[field];
    if (!Array.isArray(items)) throw broken(method, `its answer has no array \`${field}\``);
    yield items as readonly T[];
    const next = page["nextCursor"];
    // Some ends write null for "no more".
    if (next === undefined || next === null) return;
    if (typeof next !== "string") throw broken(method, "its `nextCursor` is no string");
    if (count === MOST_PAGES) throw broken(method, `it has more than ${MOST_PAGES} pages`);
    cursor = next;
  }
}

function broken(method: string, why: string): ConnectionError {
  return new ConnectionError(
    "protocol",
    `The end cannot be walked through ${method}: ${why}; ask for single pages with \`cursor\``,
  );
}
