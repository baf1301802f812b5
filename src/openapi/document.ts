// Parses an OpenAPI document, as JSON or YAML; finds what its references point to, and lists its operations. Only
// references within the document are followed, so that it cannot make us read other files.

import { errorMessage, isObject } from "../core/values.ts";
import { resolveReference } from "../tools/schema.ts";

/** Of a document in a file or at a URL. */
export const MAX_DOCUMENT_BYTES = 50_000_000;

export type Json = { readonly [key: string]: unknown };

export interface OpenApiDocument {
  readonly root: Json;
  /** Whether schemas are those of OpenAPI 3.0, which differ from JSON Schema. */
  readonly isOld: boolean;
  /** Where the document came from, if that was a URL. */
  readonly url: URL | undefined;
}

export type Method = "GET" | "PUT" | "POST" | "DELETE" | "OPTIONS" | "HEAD" | "PATCH";

/** An operation as the document has it, with the parameters of its path. */
export interface RawOperation {
  readonly method: Method;
  readonly path: string;
  readonly operation: Json;
  readonly parameters: readonly Json[];
}

const METHODS: readonly Method[] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];
/** Real documents have about 30. */
const MAX_NESTING = 200;
/** How many values a document may have, counting those of a YAML alias each time. 13 MB of JSON have a million. */
const MAX_VALUES = 10_000_000;

export const isUrl = (source: string): boolean => /^https?:\/\//i.test(source);

/** Throws an error that names the document and says what is wrong with it. `url`: where it came from, if that was one. */
export function checkDocument(root: unknown, name: string, url: URL | undefined): OpenApiDocument {
  if (!isObject(root)) throw new Error(`${name} is not an OpenAPI document: it must be an object`);
  const { openapi, swagger, paths } = root;
  if (swagger !== undefined) {
    throw new Error(`${name} is Swagger 2; convert it to OpenAPI 3 first (npx swagger2openapi)`);
  }
  if (typeof openapi !== "string" || !openapi.startsWith("3.")) {
    throw new Error(`${name} is not an OpenAPI 3 document: its field openapi must be 3.0.x or 3.1.x`);
  }
  if (!isObject(paths)) throw new Error(`${name} has no paths, so it has no operations`);
  const count = countValues(root, new Map(), 0);
  if (typeof count === "string") throw new Error(`${name} cannot be used: ${count}`);
  return { root, isOld: openapi.startsWith("3.0"), url };
}

/** The path of a file, or the origin and path of a URL, whose query may contain a key. */
export function shownSource(source: string): string {
  if (!isUrl(source)) return source;
  const { origin, pathname } = new URL(source);
  return `${origin}${pathname}`;
}

/**
 * How many values a value has, itself included, or why the number has no limit. YAML aliases make one value part of many
 * others, or of itself. Each object is visited once.
 */
function countValues(value: unknown, counts: Map<object, number>, depth: number): number | string {
  if (typeof value !== "object" || value === null) return 1;
  const known = counts.get(value);
  if (known !== undefined) return known === 0 ? "it has a YAML alias for a value that contains the alias" : known;
  if (depth > MAX_NESTING) return `it is nested more than ${MAX_NESTING} levels deep`;
  counts.set(value, 0);
  let total = 1;
  for (const inner of Object.values(value) as readonly unknown[]) {
    const count = countValues(inner, counts, depth + 1);
    if (typeof count === "string") return count;
    total += count;
    if (total > MAX_VALUES) return `it has more than ${MAX_VALUES} values, counting each use of a YAML alias`;
  }
  counts.set(value, total);
  return total;
}

export async function parseDocument(text: string, name: string): Promise<unknown> {
  const plain = text.replace(/^\uFEFF/, "");
  try {
    if (/^\s*\{/.test(plain)) return JSON.parse(plain);
  } catch (error) {
    // A document in YAML may begin with a brace too.
    if (!/\.ya?ml$/i.test(name)) throw new Error(`${name} is not valid JSON: ${errorMessage(error)}`, { cause: error });
  }
  const yaml = await import("yaml");
  try {
    // The check for unique keys compares each key with all others of its object. As in JSON, the last one counts.
    return yaml.parse(plain, { prettyErrors: true, uniqueKeys: false }) as unknown;
  } catch (error) {
    const [first = ""] = errorMessage(error).split("\n");
    throw new Error(`${name} is not valid YAML: ${first}`, { cause: error });
  }
}

/** Longer chains of references are refused. */
const MAX_CHAIN = 100;

/** What a value refers to; the value itself if it is not a reference. Throws if the reference leads nowhere. */
export function resolve(root: Json, value: unknown): unknown {
  let target = value;
  for (const seen = new Set<string>(); isObject(target) && typeof target["$ref"] === "string";) {
    const reference = target["$ref"];
    if (seen.has(reference)) throw new Error(`the reference ${reference} refers to itself`);
    if (seen.size >= MAX_CHAIN) throw new Error(`the reference ${reference} is one of a chain that is too long`);
    seen.add(reference);
    target = lookUp(root, reference);
  }
  return target;
}

function lookUp(root: Json, reference: string): unknown {
  if (!reference.startsWith("#/")) throw new Error(`the reference ${reference} leads out of the document`);
  const value = resolveReference(root, reference);
  if (value === undefined) throw new Error(`the reference ${reference} leads nowhere`);
  return value;
}

/** The field as an object, resolved; empty if it is missing or something else. */
export function objectAt(root: Json, holder: Json, key: string): Json {
  const target = resolve(root, holder[key]);
  return isObject(target) ? target : {};
}

/** All operations, and the problem of each that has one. */
export function listOperations({ root }: OpenApiDocument): (RawOperation & { readonly problem?: string })[] {
  return Object.entries(objectAt(root, root, "paths"))
    .filter(([path]) => path.startsWith("/"))
    .flatMap(([path, pathEntry]) => {
      const item = attempt(() => resolve(root, pathEntry));
      if (!isObject(item.value)) return [];
      const { value: pathItem } = item;
      return METHODS.flatMap((method) => {
        const operation = pathItem[method.toLowerCase()];
        if (!isObject(operation)) return [];
        const { value: parameters = [], problem } = attempt(() => mergeParameters(root, pathItem, operation));
        return [{ method, path, operation, parameters, ...(problem !== undefined && { problem }) }];
      });
    });
}

/** Those of the operation override those of its path. */
function mergeParameters(root: Json, pathItem: Json, operation: Json): Json[] {
  const merged = new Map<string, Json>();
  for (const list of [pathItem["parameters"], operation["parameters"]]) {
    for (const listed of Array.isArray(list) ? list : []) {
      const parameter = resolve(root, listed);
      if (isObject(parameter)) merged.set(`${String(parameter["in"])} ${String(parameter["name"])}`, parameter);
    }
  }
  return [...merged.values()];
}

/** The value, or the message of what was thrown. */
export function attempt<T>(make: () => T): { readonly value?: T; readonly problem?: string } {
  try {
    return { value: make() };
  } catch (error) {
    return { problem: errorMessage(error) };
  }
}
