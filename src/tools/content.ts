// Checks content blocks and JSON values before they are sent. Everything here runs for each result of a tool, so it
// looks only at what a client relies on: the type and the required fields of a block, and values that JSON would
// silently turn into `{}` or null.

import { didYouMean, kindOf, nearest } from "../core/options.ts";
import { fieldsOf, isObject } from "../core/values.ts";

const BLOCK_FIELDS: Readonly<Record<string, readonly string[]>> = {
  text: ["text"],
  image: ["data", "mimeType"],
  audio: ["data", "mimeType"],
  resource: ["resource"],
  resource_link: ["uri"],
};

const BLOCK_TYPES = Object.keys(BLOCK_FIELDS);

export function hasBlockType(block: unknown): boolean {
  return isObject(block) && typeof block["type"] === "string" && Object.hasOwn(BLOCK_FIELDS, block["type"]);
}

/** Whether this is a block but for its type, which is nearly that of a block, such as `{ type: "txt", text: "a" }`. */
export function isMisspeltBlock(block: unknown): boolean {
  if (!isObject(block) || typeof block["type"] !== "string") return false;
  const [near = ""] = nearest(block["type"], BLOCK_TYPES);
  return BLOCK_FIELDS[near]?.every((field) => field in block) === true;
}

/** The first problem of content blocks, such as "content[0].text, which must be a string"; undefined if there is none. */
export function contentProblem(content: unknown, path = "content"): string | undefined {
  if (!Array.isArray(content)) return `${path}, which must be an array of content blocks`;
  for (let index = 0; index < content.length; index += 1) {
    const problem = blockProblem(content[index], `${path}[${index}]`);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The problem of one block. A resource link without a name is accepted, since it gets its URI as the name. */
export function blockProblem(block: unknown, path: string): string | undefined {
  if (!isObject(block)) return `${path}, which must be a content block such as { type: "text", text: "..." }`;
  const { type } = block;
  const fields = typeof type === "string" && Object.hasOwn(BLOCK_FIELDS, type) ? BLOCK_FIELDS[type] : undefined;
  if (fields === undefined) {
    return `${path}.type, which is not the type of a content block; ${didYouMean(String(type), BLOCK_TYPES, "types")}`;
  }
  for (const field of fields) {
    if (field !== "resource" && typeof block[field] === "string") continue;
    if (field === "resource") return contentsProblem(block[field], `${path}.resource`);
    const bytes = isBytes(block[field]) ? ', not bytes; use Buffer.from(bytes).toString("base64")' : "";
    return `${path}.${field}, which must be a string${bytes}`;
  }
  return undefined;
}

/** The problem of the contents of a resource. */
export function contentsProblem(contents: unknown, path: string): string | undefined {
  const { uri, text, blob } = fieldsOf(contents);
  if (typeof uri !== "string") return `${path}.uri, which must be a string`;
  if (typeof text === "string" || typeof blob === "string") return undefined;
  return `${path}, which must have a string \`text\`, or base64 as \`blob\``;
}

/** What a value is that JSON cannot express, where it is, and what to return instead. */
export interface Unsendable {
  readonly path: string;
  readonly what: string;
  readonly advice?: string | undefined;
}

const PLAIN: ReadonlySet<unknown> = new Set([Object.prototype, null]);

/**
 * Finds the first value that JSON would lose or refuse: a promise that was not awaited, a Map, a Set, bytes, NaN. Values
 * with `toJSON` are left to it, and JSON leaves out fields that are functions, symbols or undefined. A value that
 * contains itself is `endless`.
 */
export function findUnsendable(value: unknown, endless?: Unsendable): Unsendable | undefined {
  try {
    return find(value, "");
  } catch (error) {
    // Endless recursion: JSON.stringify describes the cycle. A getter that throws: JSON.stringify calls it again.
    if (error instanceof RangeError) return endless;
    throw error;
  }
}

function find(value: unknown, path: string): Unsendable | undefined {
  if (typeof value === "object") {
    if (value === null) return undefined;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index += 1) {
        const item: unknown = value[index];
        if (isFine(item)) continue;
        const unsendable = find(item, `${path}[${index}]`);
        if (unsendable !== undefined) return unsendable;
      }
      return undefined;
    }
    const isPlain = PLAIN.has(Object.getPrototypeOf(value));
    if (!isPlain) {
      const [what, advice] = describe(value);
      if (what !== undefined) return { path, what, advice };
    }
    if ("toJSON" in value && typeof value.toJSON === "function") return undefined;
    let isEmpty = true;
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue;
      isEmpty = false;
      const field = (value as Readonly<Record<string, unknown>>)[key];
      if (isFine(field) || typeof field === "function" || typeof field === "symbol") continue;
      const unsendable = find(field, path === "" ? key : `${path}.${key}`);
      if (unsendable !== undefined) return unsendable;
    }
    // For example a Response, which has fields, but none that JSON sees.
    if (isEmpty && !isPlain) return { path, what: `an object of the class ${className(value)} without JSON fields` };
    return undefined;
  }
  const [what, advice] = describe(value);
  return what === undefined ? undefined : { path, what, advice };
}

function isFine(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value === "string" || typeof value === "boolean" || value === undefined || value === null;
}

function className(value: object): string {
  const { constructor } = value;
  return typeof constructor === "function" && constructor.name !== "" ? constructor.name : "Object";
}

/** What a value is, if JSON cannot express it, and what to return instead. */
function describe(value: unknown): readonly [what?: string, advice?: string] {
  if (value === undefined) return ["undefined"];
  if (typeof value === "function" || typeof value === "symbol") return [`a ${typeof value}`];
  if (typeof value === "bigint") {
    return "toJSON" in BigInt.prototype ? [] : ["a BigInt", "a number or a string"];
  }
  if (typeof value === "number") return Number.isFinite(value) ? [] : [String(value), "null or a string"];
  if (typeof value !== "object" || value === null) return [];
  if (value instanceof Map) return ["a Map", "an object or an array"];
  if (value instanceof Set) return ["a Set", "an array"];
  if (value instanceof Promise) return ["a promise", "its value: await it"];
  if (value instanceof Error) return ["an error", "its message, or throw it"];
  if (isBytes(value)) return ["bytes", "an image, audio or resource block"];
  if (Symbol.asyncIterator in value)
    return ["an async iterator", "an array: for await (const item of ...) items.push(item)"];
  return "next" in value && typeof value.next === "function" && Symbol.iterator in value
    ? ["an iterator", "an array: [...iterator]"]
    : [];
}

function isBytes(value: unknown): boolean {
  return ArrayBuffer.isView(value) || value instanceof ArrayBuffer;
}

/** Throws a TypeError if the notification of an author cannot be sent. Otherwise it would be lost without a word. */
export function checkNotification(notification: unknown): void {
  const { method, params } = fieldsOf(notification);
  if (typeof method !== "string" || method === "") {
    const actual = isObject(notification) ? `a method that is ${kindOf(method)}` : kindOf(notification);
    throw new TypeError(`A notification is { method: "notifications/acme/tick", params: { ... } }, not ${actual}`);
  }
  if (params === undefined) return;
  if (!isObject(params)) throw new TypeError(`${method}: \`params\` must be an object, not ${kindOf(params)}`);
  const cycle = findUnsendable(params, CYCLE);
  if (cycle === undefined) return;
  const advice = cycle.advice === undefined ? "" : `; send ${cycle.advice}`;
  const place = ["params", cycle.path].filter((part) => part !== "").join(".");
  throw new TypeError(`${method}: \`${place}\` is ${cycle.what}, which cannot be sent${advice}`);
}

const CYCLE: Unsendable = { path: "", what: "a value that contains itself" };
