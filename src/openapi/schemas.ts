// Turns the schemas of an OpenAPI document into JSON Schema. References become `$defs` of the tool's own schema, so
// that cycles stay what they are. A schema that would be very long loses its deepest parts, since a list of tools
// contains all schemas. Schemas of OpenAPI 3.0 have their own keywords, such as `nullable`.

import { firstChars } from "../core/text.ts";
import { isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { isPattern, mapKeyword } from "../tools/schema.ts";
import { type Json, type OpenApiDocument, resolve } from "./document.ts";

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
    const isMarked = (schema: unknown): boolean => isObject(schema) && schema[this.#hidden] === true;
    return isMarked(schema) || isMarked(resolve(this.#root, schema));
  }

  /** A schema that refers to `#/$defs/...`; the names that it refers to are added to `references`. */
  convert(schema: unknown, references: Set<string>, depth = 0): JsonSchema | boolean {
    if (typeof schema === "boolean") return schema;
    if (!isObject(schema) || depth > MAX_DEPTH) return {};
    if (typeof schema["$ref"] === "string") return this.#convertReference(schema, schema["$ref"], references, depth);
    const inner = (innerSchema: unknown, name?: string | number): JsonSchema | boolean | undefined =>
      typeof name === "string" && this.isHidden(innerSchema)
        ? undefined
        : this.convert(innerSchema, references, depth + 1);
    const converted: Record<string, unknown> = {};
    const { type, description, pattern } = schema;
    const types = [type].flat().filter((name) => TYPES.has(name));
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
      const { schema: definition, references: further, length: ownLength } = this.#define(name);
      length += ownLength;
      const isTooLong = length > MAX_DEFINITIONS_LENGTH;
      definitions[name] = isTooLong
        ? { description: `${name}; its schema is left out here, since it is long` }
        : definition;
      if (!isTooLong) for (const reference of further) wanted.add(reference);
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
    const name = uniqueName(base, (candidate) => this.#references.has(candidate), this.#counts);
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
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}
