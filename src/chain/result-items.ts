// The items of lists, the item that a request names, and the resource URIs in results, for all that changes what callers
// see: the router, filter and rename.

import type { Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import { LISTS, type List, type ListCapability, type ListKind } from "../protocol/lists.ts";

type Fields = { readonly [key: string]: unknown };

/** A list, and the kind of its items. */
export type KindOfList = List & { readonly kind: ListKind };

export const LISTS_BY_METHOD: ReadonlyMap<string, KindOfList> = new Map(
  (Object.keys(LISTS) as ListKind[]).map((kind) => [LISTS[kind].method, { ...LISTS[kind], kind }]),
);

export interface NamingParam {
  readonly capability: ListCapability;
  readonly param: "name" | "uri";
}

/** The requests that name one item, with the param that holds its name. */
export const NAMING_PARAMS: ReadonlyMap<string, NamingParam> = new Map<string, NamingParam>([
  ["tools/call", { capability: "tools", param: "name" }],
  ["prompts/get", { capability: "prompts", param: "name" }],
  ["resources/read", { capability: "resources", param: "uri" }],
]);

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

/** The error that a server gives for an item that it does not have. */
export function notFound(capability: ListCapability, name: string): McpError {
  if (capability === "tools") return McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
  if (capability === "prompts") {
    return McpError.of("prompt_not_found", `Prompt not found: ${name}`, { promptName: name });
  }
  return McpError.of("resource_not_found", `Resource not found: ${name}`, { uri: name });
}

export interface CompletionRef {
  readonly capability: ListCapability;
  /** The field of the reference that holds the name. */
  readonly field: "name" | "uri";
  readonly name: string;
}

/** Reads the `ref` of a completion request; undefined if it is invalid. */
export function readRef(ref: unknown): CompletionRef | undefined {
  if (!isObject(ref)) return undefined;
  const [capability, field] =
    ref["type"] === "ref/prompt" ? (["prompts", "name"] as const) : (["resources", "uri"] as const);
  const name = ref[field];
  return typeof name === "string" ? { capability, field, name } : undefined;
}

export function nothingToComplete(capability: ListCapability, name: string, ref: unknown): McpError {
  const what = capability === "prompts" ? `prompt ${name}` : `resource ${name}`;
  return invalidParams(`There is no ${what} to complete`, { ref });
}

// The rest changes resource URIs: of resource contents, of links and embedded resources in tool and prompt results, and
// in the results of tasks. What needs no change is not copied.

type ChangeUri = (uri: string) => string;

export function mapResultUris<T extends Fields>(result: T, change: ChangeUri): T {
  let changed = mapField(result, "contents", (item) => mapUri(item, change));
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
