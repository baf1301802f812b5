// What requests are about: the things that a list shows, the one that a call or a completion names, and what a caller is
// told of one that there is not. Shared by the links that change what callers see.

import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { KINDS, type Family, type Kind } from "../router/kinds.ts";

export type Item = { readonly [key: string]: unknown };
export type List = (typeof KINDS)[Kind];

/** By method. */
export const LISTS: ReadonlyMap<string, List> = new Map(Object.values(KINDS).map((kind) => [kind.method, kind]));

export interface Named {
  readonly family: Family;
  readonly param: "name" | "uri";
}

/** Requests that name one thing, and the param that does. */
export const NAMED: ReadonlyMap<string, Named> = new Map<string, Named>([
  ["tools/call", { family: "tools", param: "name" }],
  ["prompts/get", { family: "prompts", param: "name" }],
  ["resources/read", { family: "resources", param: "uri" }],
]);

/** The result with other items, by the names that they have; undefined leaves one out. What is no item stays. */
export function eachItem(result: Result, list: List, change: (item: Item, name: string) => Item | undefined): Result {
  const items = result[list.field];
  if (!Array.isArray(items)) return result;
  const changed = (items as readonly unknown[]).flatMap((item) => {
    if (!isObject(item)) return [item];
    const name = item[list.key];
    return typeof name === "string" ? (change(item, name) ?? []) : [item];
  });
  return { ...result, [list.field]: changed };
}

/** In the words of a server that has no such thing. */
export function unknown(family: Family, name: string): McpError {
  if (family === "tools") return McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
  if (family === "prompts") return McpError.of("prompt_not_found", `Prompt not found: ${name}`, { promptName: name });
  return McpError.of("resource_not_found", `Resource not found: ${name}`, { uri: name });
}

export interface Referred {
  readonly family: Family;
  /** Of the reference. */
  readonly field: "name" | "uri";
  readonly name: string;
}

/** What `ref` of a completion names. */
export function referred(ref: unknown): Referred | undefined {
  if (!isObject(ref)) return undefined;
  const [family, field] =
    ref["type"] === "ref/prompt" ? (["prompts", "name"] as const) : (["resources", "uri"] as const);
  const name = ref[field];
  return typeof name === "string" ? { family, field, name } : undefined;
}

export function uncompletable(family: Family, name: string, ref: unknown): McpError {
  const what = family === "prompts" ? `prompt ${name}` : `resource ${name}`;
  return invalidParams(`There is no ${what} to complete`, { ref });
}
