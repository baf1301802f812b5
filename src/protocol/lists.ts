// The lists that servers have: how each is requested, how its items are identified, which capability announces it, and
// the notifications about it. Also pages with their cursors, and which results may be cached.

import { Buffer } from "node:buffer";
import type { Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { invalidParams, type McpError } from "./errors.ts";

/** `field` holds the items of a result; `key` is the field of an item that identifies it. */
export const LISTS = {
  tools: { method: "tools/list", field: "tools", key: "name", capability: "tools" },
  prompts: { method: "prompts/list", field: "prompts", key: "name", capability: "prompts" },
  resources: { method: "resources/list", field: "resources", key: "uri", capability: "resources" },
  templates: {
    method: "resources/templates/list",
    field: "resourceTemplates",
    key: "uriTemplate",
    capability: "resources",
  },
} as const;

export type ListKind = keyof typeof LISTS;
export type List = (typeof LISTS)[ListKind];

/** The capabilities that announce lists. `resources` announces two: resources and templates. */
export type ListCapability = List["capability"];

export const LIST_CAPABILITIES: readonly ListCapability[] = ["tools", "prompts", "resources"];

/** The flag in the filter of `subscriptions/listen` that asks for changes of the lists. */
export function changedFlag(capability: ListCapability): `${ListCapability}ListChanged` {
  return `${capability}ListChanged`;
}

/** The notification that the lists have changed. */
export function changedMethod(capability: ListCapability): `notifications/${ListCapability}/list_changed` {
  return `notifications/${capability}/list_changed`;
}

/** The `_meta` key of a listed item that holds the name of its upstream. */
export const UPSTREAM = "catenary/upstream";
/** The `_meta` key of a listed item that holds its names at the upstreams, the nearest first, if some differ. */
export const OWN_NAMES = "catenary/names";
/** The `_meta` key of a result that lists the upstreams missing from it. */
export const UNAVAILABLE = "catenary/unavailable";

export interface Unavailable {
  readonly upstream: string;
  readonly message: string;
}

/** The upstreams that a result says are missing from it. */
export function unavailableIn(result: Result | undefined): readonly Unavailable[] {
  const listed = result?._meta?.[UNAVAILABLE];
  const isEntry = (one: unknown): one is Unavailable =>
    isObject(one) && typeof one["upstream"] === "string" && typeof one["message"] === "string";
  return Array.isArray(listed) ? listed.filter(isEntry) : [];
}

/** Sent by session-style clients. */
export const ROOTS_LIST_CHANGED = "notifications/roots/list_changed";

/** Requests whose results say how long they may be cached, and for whom. */
export const CACHEABLE: ReadonlySet<string> = new Set([
  "server/discover",
  ...Object.values(LISTS).map(({ method }) => method),
  "resources/read",
]);

// Pages of a list and their cursors. A cursor contains the name of its list, so that other lists refuse it, and the
// order and key of the last item. It contains no index, so it stays valid when items are added or removed. It grants no
// access, so a checksum is enough to detect altered or invented cursors.

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
  const [found, order, key] = decodeCursor(cursor);
  if (found === list && typeof order === "number" && typeof key === "string") return { order, key };
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
