// The one walker of JSON Schema: which schemas are inside a schema, and what a reference within it leads to. Schemas may
// come from anyone, so nothing is assumed about the values of their keywords.

import { isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";

/** Keywords, names and indexes, from the outermost schema inwards. */
export type SchemaPath = readonly (string | number)[];

/** Keywords whose value is data, even if it looks like a schema. */
const DATA: ReadonlySet<string> = new Set(["const", "default", "dependentRequired", "enum", "example", "examples"]);
/** Keywords whose value is an object of schemas, under names that the author chose. */
const NAMED: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

interface InnerSchema {
  readonly keyword: string;
  /** The name in an object of schemas, or the index in an array of schemas. */
  readonly name: string | number | undefined;
  /** Anything: values of unknown keywords may be schemas too. */
  readonly schema: unknown;
}

/** The schemas directly inside a schema, in their order. */
export function* innerSchemas(schema: object): Generator<InnerSchema, void, undefined> {
  const entries: [string, unknown][] = Object.entries(schema);
  for (const [keyword, value] of entries) {
    if (DATA.has(keyword)) continue;
    if (Array.isArray(value)) for (const [name, inner] of value.entries()) yield { keyword, name, schema: inner };
    else if (!NAMED.has(keyword) || !isObject(value)) yield { keyword, name: undefined, schema: value };
    else for (const [name, inner] of Object.entries(value)) yield { keyword, name, schema: inner };
  }
}

/** A schema and all schemas within it, the innermost first, each with its path. */
export function* schemasWithin(
  schema: object,
  path: SchemaPath = [],
): Generator<{ readonly schema: JsonSchema; readonly path: SchemaPath }, void, undefined> {
  for (const { keyword, name, schema: inner } of innerSchemas(schema)) {
    if (typeof inner !== "object" || inner === null) continue;
    yield* schemasWithin(inner, name === undefined ? [...path, keyword] : [...path, keyword, name]);
  }
  if (isObject(schema)) yield { schema, path };
}

/** The value of a keyword with each schema in it replaced. If `replace` returns undefined for a named one, it is left out. */
export function mapKeyword(
  keyword: string,
  value: unknown,
  replace: (schema: unknown, name?: string | number) => unknown,
): unknown {
  if (DATA.has(keyword)) return value;
  if (Array.isArray(value)) return value.map((inner: unknown, at) => replace(inner, at));
  if (!NAMED.has(keyword) || !isObject(value)) return replace(value);
  const named = Object.entries(value).map(([name, inner]) => [name, replace(inner, name)] as const);
  return Object.fromEntries(named.filter(([, inner]) => inner !== undefined));
}

/** A copy in which the schemas within a schema are replaced, the innermost first, and then the schema itself. */
export function mapSchema(schema: JsonSchema, replace: (schema: JsonSchema) => JsonSchema): JsonSchema {
  const visit = (inner: unknown): unknown => {
    if (Array.isArray(inner)) return inner.map(visit);
    return isObject(inner) ? mapSchema(inner, replace) : inner;
  };
  return replace(
    Object.fromEntries(
      Object.entries(schema).map(([keyword, value]) => [keyword, mapKeyword(keyword, value, visit)] as const),
    ),
  );
}

/** What a reference within a schema or document leads to; undefined if it leads nowhere, or out of it. */
export function resolveReference(root: unknown, reference: string): unknown {
  if (!/^#(?:\/|$)/.test(reference)) return undefined;
  let inner = root;
  for (const part of reference.split("/").slice(1)) {
    const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, name)) return undefined;
    inner = (inner as JsonSchema)[name];
  }
  return inner;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Whether it is a regular expression as JSON Schema has them. */
export function isPattern(value: unknown): value is string {
  try {
    return typeof value === "string" && new RegExp(value, "u") instanceof RegExp;
  } catch {
    return false;
  }
}
