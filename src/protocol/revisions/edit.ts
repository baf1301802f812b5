// Small edits of JSON that a delta is written in: drop a key, edit what stands at a key, edit each item.
// An edit never changes its input, copies only what it changes, and leaves alone what has another shape
// than it expects, because it also sees what no check has seen yet. It knows nothing of MCP.

import { isObject } from "../../core/objects.ts";

export type Edit = <T>(value: T) => T;
type Json = { readonly [key: string]: unknown };

/** An edit of objects; anything else stays. */
export function object(edit: (value: Json) => unknown): Edit {
  return <T>(value: T): T => (isObject(value) ? (edit(value) as T) : value);
}

export function all(...edits: readonly Edit[]): Edit {
  return (value) => edits.reduce((so, edit) => edit(so), value);
}

export function drop(...keys: readonly string[]): Edit {
  return object((value) => without(value, keys));
}

/** Drops keys of the object at `key`, and that object too when nothing else was in it. */
export function dropAt(key: string, ...keys: readonly string[]): Edit {
  return object((value) => {
    const inner = value[key];
    if (!isObject(inner)) return value;
    const left = without(inner, keys);
    if (left === inner) return value;
    return Object.keys(left).length === 0 ? without(value, [key]) : { ...value, [key]: left };
  });
}

export function at(key: string, edit: Edit): Edit {
  return object((value) => {
    if (!Object.hasOwn(value, key)) return value;
    const before = value[key];
    const after = edit(before);
    return after === before ? value : { ...value, [key]: after };
  });
}

export function items(edit: Edit): Edit {
  return <T>(value: T): T => {
    if (!Array.isArray(value)) return value;
    let changed = false;
    const after = value.map((item: unknown) => {
      const edited = edit(item);
      changed ||= edited !== item;
      return edited;
    });
    return changed ? (after as T) : value;
  };
}

/** Edits every value of an object, whatever its key. */
export function values(edit: Edit): Edit {
  return object((value) => {
    let changed = false;
    const entries = Object.entries(value).map(([key, inner]) => {
      const edited = edit(inner);
      changed ||= edited !== inner;
      return [key, edited] as const;
    });
    return changed ? Object.fromEntries(entries) : value;
  });
}

export function rename(from: string, to: string): Edit {
  return object((value) => (Object.hasOwn(value, from) ? { ...without(value, [from]), [to]: value[from] } : value));
}

export function set(fields: Json): Edit {
  return object((value) => ({ ...value, ...fields }));
}

/** A new object of the other keys: `delete` would make it a slow one. */
function without(value: Json, keys: readonly string[]): Json {
  if (!keys.some((key) => Object.hasOwn(value, key))) return value;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) if (!keys.includes(key)) put(copy, key, value[key]);
  return copy;
}

/** As data, whatever the key is called. */
function put(copy: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__")
    Object.defineProperty(copy, key, { value, enumerable: true, configurable: true, writable: true });
  else copy[key] = value;
}

/** Both of `drop` and `dropAt` in one copy: for what every result goes through. */
export function sift(dropped: readonly string[], at: string, inner: readonly string[]): Edit {
  return object((value) => {
    const held = value[at];
    const touches = dropped.some((key) => Object.hasOwn(value, key));
    if (!touches && !(isObject(held) && inner.some((key) => Object.hasOwn(held, key)))) return value;
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      if (dropped.includes(key)) continue;
      const before = value[key];
      if (key !== at || !isObject(before)) put(copy, key, before);
      else {
        const after = without(before, inner);
        if (after === before || Object.keys(after).length > 0) put(copy, key, after);
      }
    }
    return copy;
  });
}
