// The items of lists, and the resource URIs in results: of resource contents, of links and embedded resources in tool and
// prompt results, and in the results of tasks. What needs no change is not copied.

import type { Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { LISTS, type List, type ListKind } from "../protocol/lists.ts";

type Fields = { readonly [key: string]: unknown };

/** A list, and the kind of its items. */
export type KindOfList = List & { readonly kind: ListKind };

export const LISTS_BY_METHOD: ReadonlyMap<string, KindOfList> = new Map(
  (Object.keys(LISTS) as ListKind[]).map((kind) => [LISTS[kind].method, { ...LISTS[kind], kind }]),
);

/** Changes each item of a list. If `change` returns undefined, the item is left out. Invalid items stay unchanged. */
export function mapItems(
  result: Result,
  list: List,
  change: (item: Fields, name: string) => Fields | undefined,
): Result {
  const items = result[list.field];
  if (!Array.isArray(items)) return result;
  const changed = (items as readonly unknown[]).flatMap((item) => {
    if (!isObject(item)) return [item];
    const name = item[list.key];
    return typeof name === "string" ? (change(item, name) ?? []) : [item];
  });
  return { ...result, [list.field]: changed };
}

type ChangeUri = (uri: string) => string;

/** Changes the URIs of views in `_meta`: that of a tool, or of a result (extension MCP Apps, and its older keys). */
export function mapViewUris<T extends Fields>(item: T, change: ChangeUri): T {
  const { _meta: meta } = item;
  if (!isObject(meta)) return item;
  let changed = meta;
  for (const key of VIEW_KEYS) {
    const uri = changed[key];
    if (typeof uri === "string") changed = withField(changed, key, change(uri));
  }
  const { ui } = changed;
  const uri = isObject(ui) ? ui["resourceUri"] : undefined;
  if (isObject(ui) && typeof uri === "string") {
    changed = withField(changed, "ui", withField(ui, "resourceUri", change(uri)));
  }
  return withField(item, "_meta", changed);
}

export function hasViewUri({ _meta: meta }: Fields): boolean {
  return isObject(meta) && (isObject(meta["ui"]) || VIEW_KEYS.some((key) => meta[key] !== undefined));
}

const VIEW_KEYS = ["ui/resourceUri", "openai/outputTemplate"] as const;

export function mapResultUris<T extends Fields>(result: T, change: ChangeUri): T {
  let changed = mapField(mapViewUris(result, change), "contents", (item) => mapUri(item, change));
  changed = mapField(changed, "content", (block) => mapBlock(block, change));
  changed = mapField(changed, "messages", (message) => mapMessage(message, change));
  const ofTask = changed["result"];
  return isObject(ofTask) ? withField(changed, "result", mapResultUris(ofTask, change)) : changed;
}

function mapMessage(message: Fields, change: ChangeUri): Fields {
  const { content } = message;
  return isObject(content)
    ? withField(message, "content", mapBlock(content, change))
    : mapField(message, "content", (block) => mapBlock(block, change));
}

function mapBlock(block: Fields, change: ChangeUri): Fields {
  const { type, resource } = block;
  if (type === "resource_link") return mapUri(block, change);
  return type === "resource" && isObject(resource) ? withField(block, "resource", mapUri(resource, change)) : block;
}

function mapUri(item: Fields, change: ChangeUri): Fields {
  const { uri } = item;
  return typeof uri === "string" ? withField(item, "uri", change(uri)) : item;
}

function mapField<T extends Fields>(fields: T, field: string, change: (item: Fields) => Fields): T {
  const items: unknown = fields[field];
  if (!Array.isArray(items)) return fields;
  const all: readonly unknown[] = items;
  let copy: unknown[] | undefined;
  for (const [index, item] of all.entries()) {
    const changed = isObject(item) ? change(item) : item;
    if (changed !== item) (copy ??= [...all])[index] = changed;
  }
  return withField(fields, field, copy ?? items);
}

function withField<T extends Fields>(fields: T, field: string, value: unknown): T {
  return fields[field] === value ? fields : { ...fields, [field]: value };
}

/** What one caller sees must not be cached for another. */
export function asPrivate(result: Result): Result {
  return result["cacheScope"] === "public" ? { ...result, cacheScope: "private" } : result;
}
