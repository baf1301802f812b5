// Changes the resource URIs in results: of resource contents, of links and embedded resources in tool and prompt
// results, and in the results of tasks. What needs no change is not copied.

import { isObject } from "../core/values.ts";

type ChangeUri = (uri: string) => string;
type Fields = { readonly [key: string]: unknown };

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
  const items = fields[field];
  if (!Array.isArray(items)) return fields;
  let copy: unknown[] | undefined;
  for (const [index, item] of (items as readonly unknown[]).entries()) {
    const changed = isObject(item) ? change(item) : item;
    if (changed !== item) (copy ??= [...items])[index] = changed;
  }
  return withField(fields, field, copy ?? items);
}

function withField<T extends Fields>(fields: T, field: string, value: unknown): T {
  return fields[field] === value ? fields : { ...fields, [field]: value };
}
