// The arguments of tools and prompts as the command line needs them: their names, the types that a value may have, and a
// short description. Of a JSON Schema, what it does not know counts as "any", since the server validates.

import { defined } from "../../core/values.ts";
import { ANY, conjunction, type Shape, shapeOf } from "../../tools/schema-shape.ts";
import type { Prompt, PromptArgument } from "../../protocol/model/index.ts";
import { withKey } from "../command.ts";
import { formatTable, oneLine } from "../terminal/text.ts";

type JsonType = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

export interface ValueShape {
  /** Empty: any type. */
  readonly types: ReadonlySet<JsonType>;
  /** The allowed values. */
  readonly values?: readonly unknown[];
  /** The items of an array. */
  readonly items?: ValueShape;
}

export interface Property {
  readonly name: string;
  readonly required: boolean;
  readonly shape: ValueShape;
  readonly description?: string;
  readonly default?: unknown;
}

interface Members {
  /** The schemas of each property, one or more. */
  readonly properties: ReadonlyMap<string, ReadonlySet<unknown>>;
  readonly required: readonly string[];
}

export const ANYTHING: ValueShape = { types: new Set() };
const TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "null", "array", "object"]);
/** References may be circular. */
const MAX_DEPTH = 8;
/** Circular references may branch, so a depth limit alone is not enough: how many schemas are looked at in all. */
const MAX_SCHEMAS = 20_000;

export function promptProperties(prompt: Prompt): Property[] {
  return withKey<PromptArgument>(prompt.arguments, "name").map(({ name, required, description }) => ({
    name,
    required: required === true,
    shape: { types: new Set(["string"] as const) },
    ...(typeof description === "string" && { description }),
  }));
}

/** The properties of an object schema; the schema comes from a server and may be anything. */
export function readProperties(schema: unknown): Property[] {
  const reader = new SchemaReader(schema);
  const { properties, required } = reader.members(schema);
  const requiredNames = new Set(required);
  return [...new Set([...properties.keys(), ...requiredNames])].map((name) => {
    const [first, ...others] = properties.get(name) ?? [];
    // If several parts of the schema declare the property, any of the declarations may apply.
    const written = others.length > 0 ? { anyOf: [first, ...others] } : first;
    // What stands beside a reference counts more than what it refers to.
    const all = conjunction(written, schema);
    const description = all.map((schema) => schema["description"]).find((text) => typeof text === "string");
    const value = all.map((schema) => schema["default"]).find((value) => value !== undefined);
    const isRequired = requiredNames.has(name);
    return { name, required: isRequired, shape: reader.shape(written), ...defined({ description, default: value }) };
  });
}

class SchemaReader {
  readonly #root: unknown;
  #schemasLeft = MAX_SCHEMAS;

  constructor(root: unknown) {
    this.#root = root;
  }

  /** For anyOf and oneOf, a property is required only if every alternative requires it. */
  members(written: unknown, depth = 0): Members {
    const { properties, required, alternatives } = this.#read(written, depth);
    const [first, ...others] = alternatives.map((alternative) => this.members(alternative, depth + 1));
    if (first === undefined)
      return { properties: new Map([...properties].map(([name, schema]) => [name, new Set([schema])])), required };
    const all = new Map<string, Set<unknown>>();
    for (const choice of [first, ...others]) {
      for (const [name, schemas] of choice.properties) all.set(name, new Set([...(all.get(name) ?? []), ...schemas]));
    }
    const inEach = first.required.filter((name) => others.every((other) => other.required.includes(name)));
    return { properties: all, required: inEach };
  }

  shape(written: unknown, depth = 0): ValueShape {
    const { types = [], isGuess, allowed, items, alternatives } = this.#read(written, depth);
    const [values] = allowed;
    if (values !== undefined) return enumShape(values);
    if (alternatives.length > 0)
      return unionShape(alternatives.map((alternative) => this.shape(alternative, depth + 1)));
    const known = new Set(isGuess ? [] : [...types].filter((type): type is JsonType => TYPES.has(type)));
    return { types: known, ...(known.has("array") && { items: this.shape(items, depth + 1) }) };
  }

  #read(written: unknown, depth: number): Shape {
    if (depth > MAX_DEPTH) return ANY;
    const schemas = conjunction(written, this.#root);
    this.#schemasLeft -= schemas.length;
    const shape = shapeOf(schemas);
    return this.#schemasLeft < 0 || depth === MAX_DEPTH ? { ...shape, alternatives: [] } : shape;
  }
}

function enumShape(values: readonly unknown[]): ValueShape {
  return { types: new Set(values.map(typeOfValue)), values };
}

function unionShape(shapes: readonly ValueShape[]): ValueShape {
  if (shapes.some(({ types }) => types.size === 0)) return ANYTHING;
  const types = new Set(shapes.flatMap((shape) => [...shape.types]));
  const isEnum = shapes.every((shape) => shape.values !== undefined);
  const values = isEnum ? [...new Set(shapes.flatMap((shape) => shape.values ?? []))] : undefined;
  const [item, second] = shapes.flatMap((shape) => shape.items ?? []);
  // If several alternatives are arrays, an item may be anything.
  return { types, ...defined({ values, items: second === undefined ? item : ANYTHING }) };
}

function typeOfValue(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as JsonType;
}

/** One line per argument: name, type and description. */
export function argumentTable(properties: readonly Property[]): string {
  const rows = properties.map(({ name, required, shape, description = "", default: value }) => {
    const need = required ? "required" : value === undefined ? "" : `default ${JSON.stringify(value)}`;
    const details = [oneLine(need), oneLine(description)].filter(Boolean).join("; ");
    return [oneLine(name), oneLine(describeShape(shape)), details];
  });
  return formatTable(rows, { indent: 2 });
}

/** How to write the arguments: `text=string [count=integer]`. */
export function signature(properties: readonly Property[]): string {
  const words = properties.map(({ name, required, shape }) => {
    const isJson = shape.types.size === 1 && shape.types.has("object");
    const word = `${name}${isJson ? ":" : ""}=${describeShape(shape)}`;
    return required ? word : `[${word}]`;
  });
  return oneLine(words.join(" "));
}

/** A short description of a shape: `integer`, `fast|slow`, `string ...`. */
function describeShape({ types, values, items }: ValueShape): string {
  if (values !== undefined) return values.map(describeValue).join("|");
  const known = [...types].filter((type) => type !== "null");
  if (known.length === 0) return types.has("null") ? "null" : "any";
  return known.length === 1 && known[0] === "array" ? `${describeShape(items ?? ANYTHING)} ...` : known.join("|");
}

export function describeValue(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
