// Functions that edit JSON, for the deltas: first general ones (drop a key, edit the value at a key, edit each item),
// then edits of MCP content that several deltas need. An edit never changes its input, copies only what it changes, and
// ignores values of an unexpected type, since its input may be unchecked.

import { copyFields, isObject, putField } from "../../core/values.ts";
import { McpError } from "../errors.ts";

export type Edit = <T>(value: T) => T;
type Json = { readonly [key: string]: unknown };

/** Edits objects; leaves other values unchanged. */
export function object(edit: (value: Json) => unknown): Edit {
  return <T>(value: T): T => (isObject(value) ? (edit(value) as T) : value);
}

export function all(...edits: readonly Edit[]): Edit {
  return (value) => {
    let current = value;
    for (const edit of edits) current = edit(current);
    return current;
  };
}

export function drop(...keys: readonly string[]): Edit {
  return object((value) => without(value, keys));
}

/** Drops keys of the object at `key`, and the object itself if it becomes empty. */
export function dropAt(key: string, ...keys: readonly string[]): Edit {
  return object((value) => without(value, [], key, keys));
}

export function at(key: string, edit: Edit): Edit {
  return object((value) => {
    if (!Object.hasOwn(value, key)) return value;
    const before = value[key];
    const after = edit(before);
    return after === before ? value : withField(value, key, after);
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

/** Edits every value of an object. */
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
  const all = Object.entries(fields);
  return object((value) => {
    const copy = copyFields(value);
    for (const [name, field] of all) copy[name] = field;
    return copy;
  });
}

function withField(value: Json, key: string, field: unknown): Json {
  const copy = copyFields(value);
  putField(copy, key, field);
  return copy;
}

/**
 * Drops keys of an object, and keys of the object at `key`, with that object itself if it becomes empty. Builds a new
 * object, since `delete` on a copy would make it slow.
 */
export function without(value: Json, keys: readonly string[], key?: string, inner: readonly string[] = []): Json {
  const copy: Record<string, unknown> = {};
  let isSame = true;
  for (const name of Object.keys(value)) {
    const before = value[name];
    const after = name === key && isObject(before) ? without(before, inner) : before;
    const isEmptied = after !== before && isObject(after) && Object.keys(after).length === 0;
    isSame &&= after === before && !keys.includes(name);
    if (isEmptied || keys.includes(name)) continue;
    putField(copy, name, after);
  }
  return isSame ? value : copy;
}

/** Edits content blocks of one type; leaves others unchanged. */
export function block(type: string, edit: Edit): Edit {
  return object((value) => (value.type === type ? edit(value) : value));
}

/** Sampling content is one block or an array of them. */
function oneOrMany(edit: Edit): Edit {
  const many = items(edit);
  return (value) => (Array.isArray(value) ? many(value) : edit(value));
}

export function toolContent(edit: Edit): Edit {
  return at("content", items(edit));
}

export function promptContent(edit: Edit): Edit {
  return at("messages", items(at("content", edit)));
}

export function sampledContent(edit: Edit): Edit {
  return at("content", oneOrMany(edit));
}

export function samplingContent(edit: Edit): Edit {
  return at("messages", items(sampledContent(edit)));
}

/** Drops structured content that the revision cannot express, or converts it to text if it is the only content. */
export function dropStructured(isUnsupported: (structured: unknown) => boolean): Edit {
  return object((result) => {
    if (!Object.hasOwn(result, "structuredContent") || !isUnsupported(result.structuredContent)) return result;
    const { structuredContent, ...rest } = result;
    const isEmpty = Array.isArray(rest.content) && rest.content.length === 0;
    return isEmpty ? { ...rest, content: [{ type: "text", text: JSON.stringify(structuredContent) }] } : rest;
  });
}

/** The error for a request to the client that its revision cannot express. */
export function cannotAsk(what: string, requiredCapabilities: Readonly<Record<string, unknown>>): McpError {
  return McpError.of("missing_capability", `The caller's revision cannot express ${what}`, { requiredCapabilities });
}

/** The error for a result that the receiver's revision cannot express. */
export function cannotAnswer(what: string): McpError {
  return McpError.of("internal_error", `The receiver's revision cannot express ${what}`);
}
