// What differs between two JSON values, as a list of paths. Apart from who shows it: steps of a call, and definitions that
// have changed.

import { isObject } from "../core/values.ts";
import type { ValueChange } from "./types.ts";

/** So many changes are listed. */
const MAX_CHANGES = 100;
/** Values that are deeper, or longer lists, are compared as a whole. */
const MAX_DEPTH = 12;
const MAX_ITEMS = 200;
/** So many values are compared at all. */
const MAX_COMPARED = 20_000;

/**
 * The changes that make `after` of `before`. Paths are such as `arguments.body` and `content[0].text`; the path of the
 * values themselves is empty. Items of arrays are compared by position; those of a list of tools, prompts or resources that
 * has become longer or shorter by their names, since most of them have only moved. Values that are the same object are not looked
 * into.
 */
export function valueChanges(before: unknown, after: unknown): ValueChange[] {
  const changes: ValueChange[] = [];
  compare(before, after, "", 0, { changes, left: MAX_COMPARED });
  return changes;
}

interface Comparison {
  readonly changes: ValueChange[];
  left: number;
}

function compare(before: unknown, after: unknown, path: string, depth: number, comparison: Comparison): void {
  if (Object.is(before, after) || comparison.changes.length >= MAX_CHANGES) return;
  comparison.left -= 1;
  const isDeep = depth >= MAX_DEPTH || comparison.left <= 0;
  const [oldItems, nowItems] = isDeep ? [] : [itemsByName(before), itemsByName(after)];
  if (oldItems !== undefined && nowItems !== undefined && oldItems.size !== nowItems.size) {
    for (const name of new Set([...oldItems.keys(), ...nowItems.keys()])) {
      const inner = `${path}[${JSON.stringify(name)}]`;
      const [old, now] = [oldItems.get(name), nowItems.get(name)];
      if (old === undefined) add(comparison, { path: inner, after: now });
      else if (now === undefined) add(comparison, { path: inner, before: old });
      else compare(old, now, inner, depth + 1, comparison);
    }
  } else if (
    Array.isArray(before) &&
    Array.isArray(after) &&
    !isDeep &&
    Math.max(before.length, after.length) <= MAX_ITEMS
  ) {
    for (let at = 0; at < Math.max(before.length, after.length); at += 1) {
      const inner = `${path}[${at}]`;
      if (at >= after.length) add(comparison, { path: inner, before: before[at] as unknown });
      else if (at >= before.length) add(comparison, { path: inner, after: after[at] as unknown });
      else compare(before[at], after[at], inner, depth + 1, comparison);
    }
  } else if (isPlain(before) && isPlain(after) && !isDeep) {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const inner = pathTo(path, key);
      // What is undefined is not there in JSON.
      const [old, now] = [ownValue(before, key), ownValue(after, key)];
      if (old === undefined && now !== undefined) add(comparison, { path: inner, after: now });
      else if (now === undefined && old !== undefined) add(comparison, { path: inner, before: old });
      else compare(old, now, inner, depth + 1, comparison);
    }
  } else if (!isDeep || !isSameJson(before, after)) add(comparison, { path, before, after });
}

/** The items of a list of tools, prompts or resources by what tells them apart. Undefined for another list. */
function itemsByName(value: unknown): ReadonlyMap<string, unknown> | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const items = new Map<string, unknown>();
  for (const item of value as readonly unknown[]) {
    const { uri, uriTemplate, name } = isObject(item) ? item : {};
    const key = uri ?? uriTemplate ?? name;
    if (typeof key !== "string" || items.has(key)) return undefined;
    items.set(key, item);
  }
  return items;
}

function add({ changes }: Comparison, change: ValueChange): void {
  if (changes.length < MAX_CHANGES) changes.push(change);
}

function isPlain(value: unknown): value is { readonly [key: string]: unknown } {
  return isObject(value) && !Array.isArray(value);
}

function ownValue(value: { readonly [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function pathTo(path: string, key: string): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

function isSameJson(before: unknown, after: unknown): boolean {
  try {
    return JSON.stringify(before) === JSON.stringify(after);
  } catch {
    return false;
  }
}
