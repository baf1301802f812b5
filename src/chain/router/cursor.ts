// Cursors of merged lists. One names the list, the end, and the item after which to go on, with its place; so it stays
// good while items come and go, and says by itself where to begin. It is opaque to callers, grants nothing, and is
// refused where merge did not give it.

import { invalidParams } from "../../protocol/errors.ts";
import { checkSum } from "./check-sum.ts";

/** Where a page ends. */
export interface Position {
  /** The end's label. */
  readonly end: string;
  /** The item's name or address, as the end knows it. */
  readonly key: string;
  /** How many items of the end stand before the next page. */
  readonly count: number;
}

export function writeCursor(method: string, { end, key, count }: Position): string {
  const body = JSON.stringify([method, end, key, count]);
  return Buffer.from(checkSum(body) + body).toString("base64url");
}

/** Throws invalid params. */
export function readCursor(method: string, cursor: unknown, ends: { has(end: string): boolean }): Position {
  const said = typeof cursor === "string" ? opened(cursor) : undefined;
  if (Array.isArray(said)) {
    const [list, end, key, count] = said as readonly unknown[];
    const isUpstream = typeof end === "string" && ends.has(end);
    if (list === method && isUpstream && typeof key === "string" && Number.isInteger(count)) {
      return { end, key, count: count as number };
    }
  }
  throw invalidParams("Invalid cursor: it was not given by this list", { cursor });
}

function opened(cursor: string): unknown {
  const bytes = Buffer.from(cursor, "base64url");
  const text = bytes.toString();
  const sum = checkSum("");
  const body = text.slice(sum.length);
  if (bytes.toString("base64url") !== cursor || text.slice(0, sum.length) !== checkSum(body)) return undefined;
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

/** Where the next page begins among an end's items as they are now. */
export function startAfter(keys: readonly string[], { key, count }: Position): number {
  if (keys[count - 1] === key) return count;
  const found = keys.indexOf(key);
  return found === -1 ? Math.min(Math.max(count, 0), keys.length) : found + 1;
}
