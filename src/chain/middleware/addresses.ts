// The addresses of resources that stand in results: in what was read, in links and embedded resources among the content
// of tools and prompts, and in results of tasks. Whoever renames resources changes them here. Text is left alone.

import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";

type Change = (uri: string) => string;
type Json = { readonly [key: string]: unknown };

/** The same result where nothing has changed. */
export function withAddresses(result: Result, change: Change): Result {
  const inTask = isObject(result["result"]) ? { result: withAddresses(result["result"], change) } : undefined;
  return changed(result, {
    ...inTask,
    ...eachOf(result, "contents", (item) => addressed(item, change)),
    ...eachOf(result, "content", (block) => blockOf(block, change)),
    ...eachOf(result, "messages", (message) => messageOf(message, change)),
  });
}

function eachOf(result: Json, field: string, map: (item: Json) => Json): Json | undefined {
  const items = result[field];
  return Array.isArray(items)
    ? { [field]: (items as readonly unknown[]).map((item) => (isObject(item) ? map(item) : item)) }
    : undefined;
}

function messageOf(message: Json, change: Change): Json {
  const { content } = message;
  if (isObject(content)) return { ...message, content: blockOf(content, change) };
  return { ...message, ...eachOf(message, "content", (block) => blockOf(block, change)) };
}

function blockOf(block: Json, change: Change): Json {
  if (block["type"] === "resource_link") return addressed(block, change);
  const { resource } = block;
  return block["type"] === "resource" && isObject(resource)
    ? { ...block, resource: addressed(resource, change) }
    : block;
}

function addressed(item: Json, change: Change): Json {
  const { uri } = item;
  return typeof uri === "string" ? { ...item, uri: change(uri) } : item;
}

function changed(result: Result, fields: Json): Result {
  return Object.keys(fields).length === 0 ? result : { ...result, ...fields };
}
