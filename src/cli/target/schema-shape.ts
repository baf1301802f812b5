// A JSON Schema as a command line needs it: which kinds of values a property may have, and how to say that in a word.
// Local references and the usual ways of writing a choice are followed; what is not understood counts as anything.
// Nothing is validated here: the end does that, with the whole schema.

import { isObject } from "../../core/objects.ts";

export type Kind = "string" | "number" | "integer" | "boolean" | "null" | "array" | "object";

type Schema = { readonly [key: string]: unknown };

export interface Shape {
  /** Empty: anything. */
  readonly kinds: ReadonlySet<Kind>;
  /** The only values that it may have. */
  readonly values?: readonly unknown[];
  /** Of an array. */
  readonly items?: Shape;
}

export interface Property {
  readonly name: string;
  readonly required: boolean;
  readonly shape: Shape;
  readonly description?: string;
  readonly default?: unknown;
}

const KINDS: ReadonlySet<string> = new Set(["string", "number", "integer", "boolean", "null", "array", "object"]);
/** References may go in circles. */
const DEEPEST = 8;
/** And each circle may begin many others. */
const MOST_STEPS = 5_000;

/** One look through a schema: where its references lead, and how much more of it is looked at. */
interface Walk {
  readonly root: Schema;
  left: number;
}

/** The properties of an object's schema; a stranger may have written anything where they should be. */
export function propertiesOf(schema: unknown): Property[] {
  const walk: Walk = { root: isObject(schema) ? schema : {}, left: MOST_STEPS };
  const { properties, required } = membersOf(walk.root, walk);
  const named = [...properties].map(([name, found]): Property => {
    // What several choices have is one of theirs.
    const written = found.length === 1 ? found[0] : { anyOf: found };
    const property = resolve(written, walk);
    const description = (isObject(written) ? written["description"] : undefined) ?? property["description"];
    const byDefault = (isObject(written) ? written["default"] : undefined) ?? property["default"];
    return {
      name,
      required: required.has(name),
      shape: shapeOf(property, walk),
      ...(typeof description === "string" ? { description } : undefined),
      ...(byDefault === undefined ? undefined : { default: byDefault }),
    };
  });
  const unnamed = [...required].filter((name) => !properties.has(name));
  return [...named, ...unnamed.map((name) => ({ name, required: true, shape: ANYTHING }))];
}

const ANYTHING: Shape = { kinds: new Set() };

interface Members {
  /** As they are written, once or more. */
  readonly properties: Map<string, unknown[]>;
  readonly required: Set<string>;
}

/** Of an object: its own, those of all its parts, and those of its choices, of which only what all need is needed. */
function membersOf(written: unknown, walk: Walk, depth = 0): Members {
  const members: Members = { properties: new Map(), required: new Set() };
  if (depth > DEEPEST || walk.left <= 0) return members;
  walk.left -= 1;
  const schema = resolve(written, walk);
  const own = isObject(schema["properties"]) ? schema["properties"] : {};
  for (const [name, property] of Object.entries(own)) members.properties.set(name, [property]);
  for (const name of listOf(schema["required"])) if (typeof name === "string") members.required.add(name);
  const below = (part: unknown): Members => membersOf(part, walk, depth + 1);
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
  for (let step = 0; step < DEEPEST; step += 1) {
    if (!isObject(schema)) return {};
    const reference = schema["$ref"];
    if (typeof reference !== "string") return schema;
    schema = reference.startsWith("#/") ? at(reference.slice(2).split("/"), root) : undefined;
  }
  return {};
}

function at(path: readonly string[], root: Schema): unknown {
  let value: unknown = root;
  for (const part of path) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function shapeOf(written: unknown, walk: Walk, depth = 0): Shape {
  if (depth > DEEPEST || walk.left <= 0) return ANYTHING;
  walk.left -= 1;
  const schema = resolve(written, walk);
  const below = (part: unknown): Shape => shapeOf(part, walk, depth + 1);
  if ("const" in schema) return ofValues([schema["const"]]);
  if (Array.isArray(schema["enum"])) return ofValues(schema["enum"]);
  const choices = [schema["anyOf"], schema["oneOf"]].find((choice) => Array.isArray(choice)) as unknown[] | undefined;
  if (choices !== undefined) return united(choices.map(below));
  const types = (Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]]) as unknown[];
  const kinds = new Set(types.filter((type): type is Kind => KINDS.has(String(type))));
  // Often a single reference, so that something can be said beside it.
  if (kinds.size === 0)
    return (
      listOf(schema["allOf"])
        .map(below)
        .find((part) => part.kinds.size > 0) ?? ANYTHING
    );
  if (!kinds.has("array")) return { kinds };
  return { kinds, items: below(schema["items"]) };
}

function ofValues(values: readonly unknown[]): Shape {
  return { kinds: new Set(values.map(kindOf)), values };
}

function united(shapes: readonly Shape[]): Shape {
  if (shapes.some(({ kinds }) => kinds.size === 0)) return ANYTHING;
  const kinds = new Set(shapes.flatMap((shape) => [...shape.kinds]));
  const values = shapes.every((shape) => shape.values !== undefined)
    ? [...new Set(shapes.flatMap((shape) => shape.values ?? []))]
    : undefined;
  const items = shapes.flatMap((shape) => (shape.items === undefined ? [] : [shape.items]));
  const [item] = items;
  return {
    kinds,
    ...(values === undefined ? undefined : { values }),
    // Of two kinds of arrays nothing is known of an item.
    ...(item === undefined ? undefined : { items: items.length === 1 ? item : ANYTHING }),
  };
}

function kindOf(value: unknown): Kind {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as Kind;
}

/** In a word or two, as it stands in a list: `integer`, `fast|slow`, `string ...`. */
export function shapeText({ kinds, values, items }: Shape): string {
  if (values !== undefined) return values.map((value) => (typeof value === "string" ? value : json(value))).join("|");
  const known = [...kinds].filter((kind) => kind !== "null");
  if (known.length === 0) return kinds.has("null") ? "null" : "any";
  if (known.length === 1 && known[0] === "array") {
    const item = items === undefined || items.kinds.size === 0 ? "any" : shapeText(items);
    return `${item} ...`;
  }
  return known.join("|");
}

function json(value: unknown): string {
  return JSON.stringify(value) ?? "";
}
