// Parses the arguments of tools and prompts on the command line: `key=text`, `key:=json`, `@file` in place of a value,
// and `--args` for a whole object. Strings are converted as the tool's schema says. An argument that cannot be
// converted, is missing or is given twice is reported before anything is sent. The server validates the rest.

import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { isObject, errorMessage } from "../../core/values.ts";
import { nearest } from "../../core/options.ts";
import type { Prompt, PromptArgument, Tool } from "../../protocol/model/index.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { formatTable, oneLine } from "../terminal/text.ts";

export interface Argument {
  readonly key: string;
  /** `text` is converted as the schema says; `json` is sent unchanged. */
  readonly value: { readonly text: string } | { readonly json: unknown };
}

export const ARGUMENTS_HELP = `Arguments:
  key=value              a string; converted if the schema says number, integer, boolean, null,
                         array or object. Give the items of an array one by one (tag=a tag=b)
                         or as JSON (tag='["a","b"]')
  key:=json              a JSON value: count:=3 filter:='{"open":true}'
  key=@file, key:=@file  the string, or the JSON, in a file; @- is stdin. Write a string that
                         begins with @ as JSON: key:='"@name"'
  --args JSON            all arguments as one JSON object; \`--args -\` reads it from stdin.
                         Single keys override it
  A dot in a key is part of its name; write nested values as JSON.
`;

/** Throws a UsageError, or a NotFoundError for a missing file. */
export async function readArguments(words: readonly string[], args?: string): Promise<readonly Argument[]> {
  const files = new ArgumentFiles();
  const given: Argument[] = [];
  if (args !== undefined) {
    const values = parseJson("--args", args === "-" ? await files.read("--args -", "-") : args);
    if (!isObject(values)) throw new UsageError(`--args must be a JSON object, such as '{"text":"hi"}'`);
    for (const [key, json] of Object.entries(values)) given.push({ key, value: { json } });
  }
  const overridden = new Set<string>();
  for (const word of words) {
    const [, key = "", colon, value = ""] = /^([^=]+?)(:?)=([^]*)$/.exec(word) ?? [];
    if (key === "" || key === ":") {
      throw new UsageError(`${word} is not a valid argument: write key=value for a string, key:=json for JSON`);
    }
    const text = value.startsWith("@") ? await files.read(word, value.slice(1)) : value;
    const argument: Argument = { key, value: colon === ":" ? { json: parseJson(key, text) } : { text } };
    // The first use of a key overrides --args. Whether the key may be repeated depends on the schema.
    if (args !== undefined && !overridden.has(key)) {
      overridden.add(key);
      const at = given.findIndex((other) => other.key === key);
      if (at >= 0) given.splice(at, 1);
    }
    given.push(argument);
  }
  return given;
}

function parseJson(source: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new UsageError(`${source} is not JSON: ${errorMessage(error)}`);
  }
}

/** Reads the files that arguments name. Stdin can be read only once. */
class ArgumentFiles {
  #stdinReader: string | undefined;

  async read(argument: string, path: string): Promise<string> {
    if (path === "") throw new UsageError(`${argument} has no file name after the @`);
    if (path !== "-") return decodeText(path, await readBytes(path, argument));
    if (this.#stdinReader !== undefined) {
      throw new UsageError(`${argument}: stdin was already read by ${this.#stdinReader}`);
    }
    this.#stdinReader = argument;
    return decodeText("stdin", await buffer(process.stdin));
  }
}

async function readBytes(path: string, argument: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new NotFoundError(
        `There is no file ${path} for ${argument}; write a string that begins with @ as key:='"@..."'`,
      );
    }
    throw new UsageError(`Cannot read ${path}: ${errorMessage(error)}`);
  }
}

function decodeText(source: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${source} is not UTF-8 text; encode bytes as the tool expects them, such as base64`);
  }
}

type Arguments = { readonly [name: string]: unknown };

/** Converts the arguments by the tool's schema. `unknown` lists those that the schema lacks; they are sent too. */
export function toolArguments(tool: Tool, given: readonly Argument[]): { args: Arguments; unknown: readonly string[] } {
  const properties = readProperties(tool.inputSchema);
  const byName = new Map(properties.map((property) => [property.name, property]));
  const args = new Map<string, unknown>();
  for (const { key, value } of given) {
    const shape = byName.get(key)?.shape ?? { types: new Set() };
    const before = args.get(key);
    const isNextItem = Array.isArray(before) && isList(shape) && "text" in value && !value.text.startsWith("[");
    if (args.has(key) && !isNextItem) throw new UsageError(`${key} is given twice`);
    const converted = "json" in value ? value.json : convert(key, value.text, shape);
    args.set(
      key,
      isNextItem && Array.isArray(converted) ? [...(before as unknown[]), ...(converted as unknown[])] : converted,
    );
  }
  const missing = properties.filter(({ name, required }) => required && !args.has(name));
  if (missing.length > 0) throw missingArguments(tool.name, missing, properties);
  return { args: Object.fromEntries(args), unknown: [...args.keys()].filter((name) => !byName.has(name)) };
}

/** Checks the arguments of a prompt, which must be strings. */
export function promptArguments(prompt: Prompt, given: readonly Argument[]): Readonly<Record<string, string>> {
  const properties = promptProperties(prompt);
  const args = new Map<string, string>();
  for (const { key, value } of given) {
    if (args.has(key)) throw new UsageError(`${key} is given twice`);
    const text = "json" in value ? value.json : value.text;
    if (typeof text !== "string") throw new UsageError(`${key} must be a string, like all arguments of prompts`);
    args.set(key, text);
  }
  const missing = properties.filter(({ name, required }) => required && !args.has(name));
  if (missing.length > 0) throw missingArguments(prompt.name, missing, properties);
  return Object.fromEntries(args);
}

export function promptProperties(prompt: Prompt): Property[] {
  return withKey<PromptArgument>(prompt.arguments, "name").map(({ name, required, description }) => ({
    name,
    required: required === true,
    shape: { types: new Set(["string"] as const) },
    ...(typeof description === "string" ? { description } : undefined),
  }));
}

function missingArguments(name: string, missing: readonly Property[], properties: readonly Property[]): UsageError {
  const names = missing.map((property) => property.name).join(", ");
  return new UsageError(`${name} needs ${names}\nArguments of ${name}:\n${argumentTable(properties).trimEnd()}`);
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

function isList({ types }: ValueShape): boolean {
  return types.has("array") && !types.has("string");
}

function convert(key: string, text: string, shape: ValueShape): unknown {
  const { types, values } = shape;
  if (values !== undefined) return convertEnum(key, text, values);
  if (types.size === 0 || types.has("string")) return text;
  const trimmed = text.trim();
  if (types.has("null") && trimmed === "null") return null;
  if (types.has("boolean") && (trimmed === "true" || trimmed === "false")) return trimmed === "true";
  if (types.has("integer") || types.has("number")) {
    const number = parseNumber(trimmed);
    if (number !== undefined && (types.has("number") || Number.isInteger(number))) {
      if (Number.isInteger(number) && !Number.isSafeInteger(number)) {
        throw new UsageError(`${key} must be between -(2^53 - 1) and 2^53 - 1, or a string: ${text}`);
      }
      return number;
    }
  }
  if (types.has("object") && trimmed.startsWith("{")) return convertJson(key, trimmed, "a JSON object");
  if (types.has("array") && trimmed.startsWith("[")) return convertJson(key, trimmed, "a JSON array");
  if (types.has("array")) return [convert(key, text, shape.items ?? { types: new Set() })];
  throw new UsageError(`${key} must be ${describeTypes(shape)}: ${text}`);
}

function convertEnum(key: string, text: string, values: readonly unknown[]): unknown {
  const found = values.find((value) => value === text) ?? values.find((value) => JSON.stringify(value) === text.trim());
  if (found !== undefined) return found;
  throw new UsageError(
    `${key} must be one of ${describeShape({ types: new Set(), values }).replaceAll("|", ", ")}: ${text}`,
  );
}

function parseNumber(text: string): number | undefined {
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  // JSON cannot express infinity.
  return Number.isFinite(number) ? number : undefined;
}

function convertJson(key: string, text: string, expected: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UsageError(`${key} must be ${expected}: ${text}`);
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
  object: "a JSON object",
  array: "a JSON array",
  null: "null",
};

function describeTypes({ types }: ValueShape): string {
  return [...types].map((type) => TYPE_NAMES[type] ?? type).join(" or ");
}

/** The items whose value under this key is a string. A list from a server may contain anything. */
export function withKey<T>(list: unknown, key: keyof T & string): T[] {
  if (!Array.isArray(list)) return [];
  return list.filter((one: unknown): one is T => isObject(one) && typeof one[key] === "string");
}

/** A name is suggested if it differs by at most one typo per 3 characters (rounded up), and by at most 3 in total. */
const TYPO_LENGTH = 3;
const MAX_LISTED_NAMES = 12;

/** The error for an unknown tool or prompt, with the names that were probably meant. */
export function notFound(kind: string, name: string, names: readonly string[]): NotFoundError {
  // A gateway prefixes a name that several upstreams have with the upstream: notes.search.
  const prefixed = names.filter((one) => one.endsWith(`.${name}`));
  if (prefixed.length > 0) {
    return new NotFoundError(`Several servers have a ${kind} ${name}; write the full name: ${listNames(prefixed)}`);
  }
  const near = nearest(name, names, Math.min(Math.ceil(name.length / TYPO_LENGTH), TYPO_LENGTH));
  const hint =
    near.length > 0
      ? `did you mean ${near.slice(0, 3).map(oneLine).join(" or ")}?`
      : names.length === 0
        ? "the server has none"
        : `there are ${listNames(names)}`;
  return new NotFoundError(`There is no ${kind} ${name}; ${hint}`);
}

function listNames(names: readonly string[]): string {
  const rest = names.length > MAX_LISTED_NAMES ? ` and ${names.length - MAX_LISTED_NAMES} more` : "";
  return `${names.slice(0, MAX_LISTED_NAMES).map(oneLine).join(", ")}${rest}`;
}

// Reads from a JSON Schema what the command line needs: the types that a property may have, and a short description of
// them. Follows local references, allOf, anyOf and oneOf. Anything else counts as "any", since the server validates.

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
/** Circular references may branch, so a depth limit alone is not enough. */
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
    // If several parts of the schema declare the property, any of the declarations may apply.
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

/**
 * Collects properties, also from allOf, anyOf and oneOf. For anyOf and oneOf, a property is required only if every
 * alternative requires it.
 */
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
  // Schema generators often wrap a single $ref in allOf to add a description to it.
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
    // If several alternatives are arrays, an item may be anything.
    ...(item === undefined ? undefined : { items: items.length === 1 ? item : ANYTHING }),
  };
}

function typeOfValue(value: unknown): JsonType {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value as JsonType;
}

/** A short description of a shape: `integer`, `fast|slow`, `string ...`. */
function describeShape({ types, values, items }: ValueShape): string {
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
