// Parses an OpenAPI document, as JSON or YAML; finds what its references point to, and lists its operations. Only
// references within the document are followed, so that it cannot make us read other files.

import { firstChars } from "../core/text.ts";
import { errorMessage, isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { isPattern, mapKeyword, resolveReference } from "../tools/schema.ts";

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
  let found = value;
  for (const seen = new Set<string>(); isObject(found) && typeof found["$ref"] === "string";) {
    const reference = found["$ref"];
    if (seen.has(reference)) throw new Error(`the reference ${reference} refers to itself`);
    if (seen.size >= MAX_CHAIN) throw new Error(`the reference ${reference} is one of a chain that is too long`);
    seen.add(reference);
    found = lookUp(root, reference);
  }
  return found;
}

function lookUp(root: Json, reference: string): unknown {
  if (!reference.startsWith("#/")) throw new Error(`the reference ${reference} leads out of the document`);
  const value = resolveReference(root, reference);
  if (value === undefined) throw new Error(`the reference ${reference} leads nowhere`);
  return value;
}

/** The field as an object, resolved; empty if it is missing or something else. */
export function objectAt(root: Json, holder: Json, key: string): Json {
  const found = resolve(root, holder[key]);
  return isObject(found) ? found : {};
}

/** All operations, and the problem of each that has one. */
export function listOperations({ root }: OpenApiDocument): (RawOperation & { readonly problem?: string })[] {
  return Object.entries(objectAt(root, root, "paths"))
    .filter(([path]) => path.startsWith("/"))
    .flatMap(([path, given]) => {
      const item = attempt(() => resolve(root, given));
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
    for (const one of Array.isArray(list) ? list : []) {
      const parameter = resolve(root, one);
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

// Turns the schemas of an OpenAPI document into JSON Schema. References become `$defs` of the tool's own schema, so
// that cycles stay what they are. A schema that would be very long loses its deepest parts, since a list of tools
// contains all schemas. Schemas of OpenAPI 3.0 have their own keywords, such as `nullable`.

const MAX_DESCRIPTION = 500;
const MAX_DEPTH = 40;
/** How long the definitions of one tool may be, as JSON. */
const MAX_DEFINITIONS_LENGTH = 30_000;

const isString = (value: unknown): boolean => typeof value === "string";
const isNumber = (value: unknown): boolean => typeof value === "number" && Number.isFinite(value);
const isCount = (value: unknown): boolean => Number.isInteger(value) && Number(value) >= 0;
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isAny = (): boolean => true;

/** The keywords that are copied, with a check of their values. All others mean nothing in JSON Schema. */
const COPIED: Readonly<Record<string, (value: unknown) => boolean>> = {
  ...Object.fromEntries(["title", "format", "contentEncoding", "contentMediaType"].map((name) => [name, isString])),
  ...Object.fromEntries(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map((name) => [name, isNumber])),
  ...Object.fromEntries(
    ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"].map((name) => [name, isCount]),
  ),
  multipleOf: (value) => isNumber(value) && Number(value) > 0,
  uniqueItems: isFlag,
  deprecated: isFlag,
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: isAny,
  default: isAny,
};
const isSchema = (value: unknown): boolean => isObject(value) || isFlag(value);
const isList = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** The keywords whose schemas are converted, with a check of their values. */
const CONVERTED: Readonly<Record<string, (value: unknown) => boolean>> = {
  ...Object.fromEntries(["additionalProperties", "not", "if", "then", "else"].map((name) => [name, isSchema])),
  ...Object.fromEntries(["contains", "propertyNames", "items"].map((name) => [name, isSchema])),
  ...Object.fromEntries(["allOf", "anyOf", "oneOf", "prefixItems"].map((name) => [name, isList])),
  ...Object.fromEntries(["properties", "patternProperties", "dependentSchemas"].map((name) => [name, isObject])),
};
const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "object", "array", "null"]);

interface Definition {
  readonly schema: JsonSchema | boolean;
  readonly references: ReadonlySet<string>;
  readonly length: number;
}

/** How often each name was wanted, so that the next number for it is known. */
export type NameCounts = Map<string, number>;

/** The name, or with the first number that makes it unique. */
export function uniqueName(base: string, isTaken: (name: string) => boolean, counts: NameCounts): string {
  let name = base;
  let count = counts.get(base) ?? 1;
  for (; isTaken(name); name = `${base}_${count}`) count += 1;
  counts.set(base, count);
  return name;
}

/** Converts schemas for one direction: what a server only sends is left out of input, and the reverse. */
export class SchemaConverter {
  readonly #root: Json;
  readonly #isOld: boolean;
  readonly #hidden: "readOnly" | "writeOnly";
  /** The references by the names of their definitions. */
  readonly #references = new Map<string, string>();
  readonly #names = new Map<string, string>();
  readonly #counts: NameCounts = new Map();
  readonly #definitions = new Map<string, Definition>();

  constructor({ root, isOld }: OpenApiDocument, direction: "input" | "output") {
    this.#root = root;
    this.#isOld = isOld;
    this.#hidden = direction === "input" ? "readOnly" : "writeOnly";
  }

  /** Whether a property has no place in this direction. */
  isHidden(schema: unknown): boolean {
    const isMarked = (one: unknown): boolean => isObject(one) && one[this.#hidden] === true;
    return isMarked(schema) || isMarked(resolve(this.#root, schema));
  }

  /** A schema that refers to `#/$defs/...`; the names that it refers to are added to `references`. */
  convert(schema: unknown, references: Set<string>, depth = 0): JsonSchema | boolean {
    if (typeof schema === "boolean") return schema;
    if (!isObject(schema) || depth > MAX_DEPTH) return {};
    if (typeof schema["$ref"] === "string") return this.#convertReference(schema, schema["$ref"], references, depth);
    const inner = (one: unknown, name?: string | number): JsonSchema | boolean | undefined =>
      typeof name === "string" && this.isHidden(one) ? undefined : this.convert(one, references, depth + 1);
    const converted: Record<string, unknown> = {};
    const { type, description, pattern } = schema;
    const types = [type].flat().filter((one) => TYPES.has(one));
    if (types.length > 0) converted["type"] = Array.isArray(type) ? types : types[0];
    if (isString(description) && description !== "") {
      converted["description"] = firstChars(String(description).trim(), MAX_DESCRIPTION);
    }
    for (const [name, isValid] of Object.entries(COPIED)) {
      if (schema[name] !== undefined && isValid(schema[name])) converted[name] = schema[name];
    }
    // Models see it, and the API checks it. It is not run here (see `withoutPatterns`), and may be for another engine.
    if (isPattern(pattern)) converted["pattern"] = pattern;
    for (const [keyword, isValid] of Object.entries(CONVERTED)) {
      if (isValid(schema[keyword])) converted[keyword] = mapKeyword(keyword, schema[keyword], inner);
    }
    const properties = isObject(schema["properties"]) ? schema["properties"] : {};
    const required = strings(schema["required"]).filter((name) => !this.isHidden(properties[name]));
    if (required.length > 0) converted["required"] = required;
    return this.#isOld ? fromOldSchema(schema, converted) : converted;
  }

  /** The schema with the definitions that it needs. */
  withDefinitions(schema: JsonSchema, references: ReadonlySet<string>): JsonSchema {
    const definitions: Record<string, JsonSchema | boolean> = {};
    let length = 0;
    // Breadth first, so that the deepest ones are left out. A Set can grow while it is walked through.
    const wanted = new Set(references);
    for (const name of wanted) {
      const { schema: own, references: further, length: ownLength } = this.#define(name);
      length += ownLength;
      const isTooLong = length > MAX_DEFINITIONS_LENGTH;
      definitions[name] = isTooLong ? { description: `${name}; its schema is left out here, since it is long` } : own;
      if (!isTooLong) for (const one of further) wanted.add(one);
    }
    return wanted.size === 0 ? schema : { ...schema, $defs: definitions };
  }

  #convertReference(schema: Json, reference: string, references: Set<string>, depth: number): JsonSchema {
    const name = this.#nameOf(reference);
    references.add(name);
    const { $ref: _, ...siblings } = schema;
    // In 3.0, what stands beside a reference is ignored; a description does no harm.
    const kept = this.#isOld ? { description: siblings["description"] } : siblings;
    return { ...(this.convert(kept, references, depth + 1) as JsonSchema), $ref: `#/$defs/${name}` };
  }

  #nameOf(reference: string): string {
    const known = this.#names.get(reference);
    if (known !== undefined) return known;
    // Throws if it leads nowhere.
    resolve(this.#root, { $ref: reference });
    const base = reference.replace(/^#\/(?:components\/schemas\/)?/, "").replace(/[^\w.-]+/g, "_");
    const name = uniqueName(base, (one) => this.#references.has(one), this.#counts);
    this.#references.set(name, reference);
    this.#names.set(reference, name);
    return name;
  }

  #define(name: string): Definition {
    const known = this.#definitions.get(name);
    if (known !== undefined) return known;
    const references = new Set<string>();
    const schema = this.convert(resolve(this.#root, { $ref: this.#references.get(name) }), references);
    const definition = { schema, references, length: JSON.stringify(schema).length };
    this.#definitions.set(name, definition);
    return definition;
  }
}

/** Applies the keywords that only OpenAPI 3.0 has. */
function fromOldSchema(schema: Json, converted: Record<string, unknown>): Record<string, unknown> {
  for (const [flag, bound] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"],
  ] as const) {
    if (schema[flag] !== true || converted[bound] === undefined) continue;
    converted[flag] = converted[bound];
    delete converted[bound];
  }
  if (schema["nullable"] !== true) return converted;
  const { type, enum: choices } = converted;
  if (type === undefined && choices === undefined) {
    const { description, default: fallback, ...rest } = converted;
    if (Object.keys(rest).length === 0) return converted;
    return { ...copyOf({ description, default: fallback }), anyOf: [rest, { type: "null" }] };
  }
  if (type !== undefined) converted["type"] = [...new Set([type, "null"].flat())];
  if (Array.isArray(choices) && !choices.includes(null)) converted["enum"] = [...(choices as unknown[]), null];
  return converted;
}

function copyOf(fields: Json): Json {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}
