// Pages of a list and their cursors. A cursor contains the name of its list, so that other lists refuse it, and the
// order and key of the last item. It contains no index, so it stays valid when items are added or removed. It grants no
// access, so a checksum is enough to detect altered or invented cursors.

import { Buffer } from "node:buffer";
import { invalidParams, type McpError } from "./errors.ts";

/** A list is sorted by `order`; items of equal order have different keys. */
export interface PageItem {
  /** A later item never has a smaller number. For tasks, this may be the time of creation, so two can be equal. */
  readonly order: number;
  readonly key: string;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor?: string;
}

/** Throws an `invalid_params` error for a cursor that is not from this list, such as an empty string. */
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
  // The item is gone. Start with the items of the same order: listing one twice is better than missing one.
  const next = items.findIndex((item) => item.order >= order);
  return next === -1 ? items.length : next;
}

function encode(list: string, { order, key }: PageItem): string {
  return encodeCursor([list, order, key]);
}

function decode(list: string, cursor: unknown): PageItem {
  const [listName, order, key] = decodeCursor(cursor);
  if (listName === list && typeof order === "number" && typeof key === "string") return { order, key };
  throw invalidCursor(cursor);
}

export function encodeCursor(fields: readonly unknown[]): string {
  const body = JSON.stringify(fields);
  return Buffer.from(checksum(body) + body).toString("base64url");
}

/** The fields of a cursor; empty if it is not a cursor of ours. */
export function decodeCursor(cursor: unknown): readonly unknown[] {
  const bytes = Buffer.from(typeof cursor === "string" ? cursor : "", "base64url");
  const text = bytes.toString();
  const body = text.slice(CHECKSUM_LENGTH);
  if (bytes.toString("base64url") !== cursor || text.slice(0, CHECKSUM_LENGTH) !== checksum(body)) return [];
  try {
    const fields: unknown = JSON.parse(body);
    return Array.isArray(fields) ? fields : [];
  } catch {
    return [];
  }
}

export function invalidCursor(cursor: unknown): McpError {
  return invalidParams("Invalid cursor: it is not from this list", { cursor });
}

const CHECKSUM_LENGTH = 7;

/** FNV-1a in base 36, always of the same length. Not secure: it is easy to construct strings that collide. */
export function checksum(text: string): string {
  let sum = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) sum = Math.imul(sum ^ text.charCodeAt(index), 0x01000193);
  return (sum >>> 0).toString(36).padStart(CHECKSUM_LENGTH, "0");
}

/** Cursors are sent back to the server, and kept in memory to detect pages that repeat. */
export const MAX_CURSOR_LENGTH = 65_536;

/** The length as JSON; 0 for a value that cannot be serialized, which a handler in this process may return. */
export function jsonLength(value: unknown): number {
  try {
    return JSON.stringify(value).length;
  } catch {
    return 0;
  }
}
