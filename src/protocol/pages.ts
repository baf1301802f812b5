// Pages of a list, and the cursors between them. A cursor is opaque to callers. It says after which item
// to go on (by the item's order and key, never by its index), so it stays good when items come and go
// between two pages, and it names its list, so a cursor of one list is refused by another. It is no
// secret and grants nothing: a check sum catches what was altered or made up, and that is all it must do.

import { invalidParams } from "./errors.ts";

/** What a cursor needs to know of an item. A list is sorted by `order`; items of equal order have their own keys. */
export interface PageItem {
  /** Given once and never again: a later item has a greater one. */
  readonly order: number;
  readonly key: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor?: string;
}

/** Throws invalid params for a cursor that `page` did not give for this list; an empty one is such a cursor. */
export function page<Item extends PageItem>(
  list: string,
  items: readonly Item[],
  cursor: unknown,
  size: number,
): Page<Item> {
  const start = cursor === undefined ? 0 : startAfter(items, decode(list, cursor));
  const part = start === 0 && items.length <= size ? items : items.slice(start, start + size);
  const last = part.at(-1);
  return last === undefined || start + part.length >= items.length
    ? { items: part }
    : { items: part, nextCursor: encode(list, last) };
}

function startAfter(items: readonly PageItem[], { order, key }: PageItem): number {
  const same = items.findIndex((item) => item.order === order && item.key === key);
  if (same !== -1) return same + 1;
  // Items of one order that no longer hold the key are given again: twice is better than never.
  const next = items.findIndex((item) => item.order >= order);
  return next === -1 ? items.length : next;
}

function encode(list: string, { order, key }: PageItem): string {
  const body = JSON.stringify([list, order, key]);
  return Buffer.from(checkSum(body) + body).toString("base64url");
}

function decode(list: string, cursor: unknown): PageItem {
  const said = typeof cursor === "string" ? read(cursor) : undefined;
  if (Array.isArray(said) && said[0] === list && typeof said[1] === "number" && typeof said[2] === "string") {
    return { order: said[1], key: said[2] };
  }
  throw invalidParams("Invalid cursor: it was not given by this list", { cursor });
}

function read(cursor: string): unknown {
  const bytes = Buffer.from(cursor, "base64url");
  const text = bytes.toString();
  const body = text.slice(CHECK_LETTERS);
  if (bytes.toString("base64url") !== cursor || text.slice(0, CHECK_LETTERS) !== checkSum(body)) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

const CHECK_LETTERS = 7;

/** FNV-1a, as seven letters. */
function checkSum(text: string): string {
  let sum = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) sum = Math.imul(sum ^ text.charCodeAt(index), 0x01000193);
  return (sum >>> 0).toString(36).padStart(CHECK_LETTERS, "0");
}
