// Reads from a JSON Schema what the command line needs: the types that a property may have, and a short description of
// them. Follows local references, allOf, anyOf and oneOf; anything else counts as "any". The server validates.

import { isObject } from "../../core/values.ts";

export type JsonType = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

type Schema = { readonly [key: string]: unknown };

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

const TYPES: ReadonlySet<string> = new Set(["string", "number", "integer", "boolean", "null", "array", "object"]);
/** References may be circular. */
const MAX_DEPTH = 8;
/** Circular references may also multiply. */
const MAX_STEPS = 5_000;

/** The state of one walk through a schema. */
interface Walk {
  readonly root: Schema;
  stepsLeft: number;
}

/** The properties of an object schema; the schema comes from a server and may be anything. */
export function readProperties(schema: unknown): Property[] {
  const walk: Walk = { root: isObject(schema) ? schema : {}, stepsLeft: MAX_STEPS };
  const { properties, required } = collectMembers(walk.root, walk);
  const named = [...properties].map(([name, found]): Property => {
    // Declared by several alternatives: any of them may apply.
    const written = found.length === 1 ? found[0] : { anyOf: found };
    const property = resolve(written, walk);
    const description = (isObject(written) ? written["description"] : undefined) ?? property["description"];
    const defaultValue = (isObject(written) ? written["default"] : undefined) ?? property["default"];
    return {
      name,
      required: required.has(name),
      shape: readShape(property, walk),
      ...(typeof description === "string" ? { description } : undefined),
      ...(defaultValue === undefined ? undefined : { default: defaultValue }),
    };
  });
  const unnamed = [...required].filter((name) => !properties.has(name));
  return [...named, ...unnamed.map((name) => ({ name, required: true, shape: ANYTHING }))];
}

const ANYTHING: ValueShape = { types: new Set() };

interface Members {
  /** The schemas of each property, one or more. */
  readonly properties: Map<string, unknown[]>;
  readonly required: Set<string>;
}

/** Collects the members of an object schema with its allOf and anyOf parts. Required in anyOf means required in all. */
function collectMembers(written: unknown, walk: Walk, depth = 0): Members {
  const members: Members = { properties: new Map(), required: new Set() };
  if (depth > MAX_DEPTH || walk.stepsLeft <= 0) return members;
  walk.stepsLeft -= 1;
  const schema = resolve(written, walk);
  const own = isObject(schema["properties"]) ? schema["properties"] : {};
  for (const [name, property] of Object.entries(own)) members.properties.set(name, [property]);
  for (const name of listOf(schema["required"])) if (typeof name === "string") members.required.add(name);
  const below = (part: unknown): Members => collectMembers(part, walk, depth + 1);
  const parts = listOf(schema["allOf"]).map(below);
  const choices = listOf(schema["anyOf"] ?? schema["oneOf"]).map(below);
  for (const { properties } of [...parts, ...choices]) {
    for (const [name, found] of properties) {
      const all = members.properties.get(name);
      if (all === undefined) members.properties.set(name, found);
      else all.push(...found);
    }
  }
  for (const { required } of parts) for (const name of required) members.required.add(name);
  const [first] = choices;
  for (const name of first?.required ?? []) {
    if (choices.every(({ required }) => required.has(name))) members.required.add(name);
  }
  return members;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function resolve(written: unknown, { root }: Walk): Schema {
  let schema = written;
  for (let step = 0; step < MAX_DEPTH; step += 1) {
    if (!isObject(schema)) return {};
    const reference = schema["$ref"];
    if (typeof reference !== "string") return schema;
    schema = reference.startsWith("#/") ? lookUp(reference.slice(2).split("/"), root) : undefined;
  }
  return {};
}

function lookUp(path: readonly string[], root: Schema): unknown {
  let value: unknown = root;
  for (const part of path) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function readShape(written: unknown, walk: Walk, depth = 0): ValueShape {
  if (depth > MAX_DEPTH || walk.stepsLeft <= 0) return ANYTHING;
  walk.stepsLeft -= 1;
  const schema = resolve(written, walk);
  const below = (part: unknown): ValueShape => readShape(part, walk, depth + 1);
  if ("const" in schema) return enumShape([schema["const"]]);
  if (Array.isArray(schema["enum"])) return enumShape(schema["enum"]);
  const choices = [schema["anyOf"], schema["oneOf"]].find((choice) => Array.isArray(choice)) as unknown[] | undefined;
  if (choices !== undefined) return unionShape(choices.map(below));
  const declared = (Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]]) as unknown[];
  const types = new Set(declared.filter((type): type is JsonType => TYPES.has(String(type))));
  // Often a single $ref, wrapped so that a description can be added to it.
  if (types.size === 0)
    return (
      listOf(schema["allOf"])
        .map(below)
        .find((part) => part.types.size > 0) ?? ANYTHING
    );
  if (!types.has("array")) return { types };
  return { types, items: below(schema["items"]) };
}

function enumShape(values: readonly unknown[]): ValueShape {
  return { types: new Set(values.map(typeOfValue)), values };
}

function unionShape(shapes: readonly ValueShape[]): ValueShape {
  if (shapes.some(({ types }) => types.size === 0)) return ANYTHING;
  const types = new Set(shapes.flatMap((shape) => [...shape.types]));
  const values = shapes.every((shape) => shape.values !== undefined)
    ? [...new Set(shapes.flatMap((shape) => shape.values ?? []))]
    : undefined;
  const items = shapes.flatMap((shape) => (shape.items === undefined ? [] : [shape.items]));
  const [item] = items;
  return {
    types,
    ...(values === undefined ? undefined : { values }),
    // With several array types, an item may be anything.
    ...(item === undefined ? undefined : { items: items.length === 1 ? item : ANYTHING }),
  };
}

function typeOfValue(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as JsonType;
}

/** A short description: `integer`, `fast|slow`, `string ...`. */
export function describeShape({ types, values, items }: ValueShape): string {
  if (values !== undefined) return values.map((value) => (typeof value === "string" ? value : json(value))).join("|");
  const known = [...types].filter((type) => type !== "null");
  if (known.length === 0) return types.has("null") ? "null" : "any";
  if (known.length === 1 && known[0] === "array") {
    const item = items === undefined || items.types.size === 0 ? "any" : describeShape(items);
    return `${item} ...`;
  }
  return known.join("|");
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? "";
}
