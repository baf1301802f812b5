// A JSON Schema as a command line needs it: which kinds of values a property may have, and how to say that in a word.
// Local references and the usual ways of writing a choice are followed; what is not understood counts as anything.
// Nothing is validated here: the end does that, with the whole schema.

import { isObject } from "../protocol/check.ts";

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

/** The properties of an object's schema; a stranger may have written anything where they should be. */
export function propertiesOf(schema: unknown): Property[] {
  const root = isObject(schema) ? schema : {};
  const properties = isObject(root["properties"]) ? root["properties"] : {};
  const required: readonly unknown[] = Array.isArray(root["required"]) ? root["required"] : [];
  const named = Object.entries(properties).map(([name, written]): Property => {
    const property = resolve(written, root);
    const description = (isObject(written) ? written["description"] : undefined) ?? property["description"];
    const byDefault = (isObject(written) ? written["default"] : undefined) ?? property["default"];
    return {
      name,
      required: required.includes(name),
      shape: shapeOf(property, root),
      ...(typeof description === "string" ? { description } : undefined),
      ...(byDefault === undefined ? undefined : { default: byDefault }),
    };
  });
  const unnamed = required.filter((name) => typeof name === "string" && !Object.hasOwn(properties, name));
  return [...named, ...unnamed.map((name) => ({ name: String(name), required: true, shape: ANYTHING }))];
}

const ANYTHING: Shape = { kinds: new Set() };

function resolve(written: unknown, root: Schema): Schema {
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

function shapeOf(written: unknown, root: Schema, depth = 0): Shape {
  const schema = resolve(written, root);
  if (depth > DEEPEST) return ANYTHING;
  if ("const" in schema) return ofValues([schema["const"]]);
  if (Array.isArray(schema["enum"])) return ofValues(schema["enum"]);
  const choices = [schema["anyOf"], schema["oneOf"]].find((choice) => Array.isArray(choice)) as unknown[] | undefined;
  if (choices !== undefined) return united(choices.map((choice) => shapeOf(choice, root, depth + 1)));
  const types = (Array.isArray(schema["type"]) ? schema["type"] : [schema["type"]]) as unknown[];
  const kinds = new Set(types.filter((type): type is Kind => KINDS.has(String(type))));
  if (!kinds.has("array")) return { kinds };
  return { kinds, items: shapeOf(schema["items"], root, depth + 1) };
}

function ofValues(values: readonly unknown[]): Shape {
  return { kinds: new Set(values.map(kindOf)), values };
}

function united(shapes: readonly Shape[]): Shape {
  if (shapes.some(({ kinds }) => kinds.size === 0)) return ANYTHING;
  const kinds = new Set(shapes.flatMap((shape) => [...shape.kinds]));
  const values = shapes.every((shape) => shape.values !== undefined)
    ? shapes.flatMap((shape) => shape.values ?? [])
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
