// Arguments of tools and prompts on the command line: `key=text`, `key:=json`, either from a file with `@`, and `--args`
// for a whole object. A string is converted by the tool's schema. What cannot be converted, is missing or is given twice
// is reported before anything is sent; the server validates the rest.

import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { isObject, errorMessage } from "../../core/values.ts";
import { nearest } from "../../core/options.ts";
import type { Prompt, PromptArgument, Tool } from "../../protocol/model/index.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { formatTable } from "../terminal/layout.ts";
import { oneLine } from "../terminal/sanitize.ts";
import { describeShape, readProperties, type Property, type ValueShape } from "./schema-shape.ts";

export interface Argument {
  readonly key: string;
  /** A string is still to be converted; JSON is not. */
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
    // A key overrides --args; whether it may be repeated depends on the schema.
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
    if (path === "") throw new UsageError(`${argument} names no file after the @`);
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

/** `unknown` are arguments that the tool does not declare; they are sent too. */
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

/** Arguments of prompts are strings. */
export function promptArguments(prompt: Prompt, given: readonly Argument[]): Readonly<Record<string, string>> {
  const properties = promptProperties(prompt);
  const args = new Map<string, string>();
  for (const { key, value } of given) {
    if (args.has(key)) throw new UsageError(`${key} is given twice`);
    const text = "json" in value ? value.json : value.text;
    if (typeof text !== "string") throw new UsageError(`${key} must be a string, as all arguments of prompts`);
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

/** The arguments as they are written: `text=string [count=integer]`. */
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

/** The items of a list that have a string under this key; a list from a server may contain anything. */
export function withKey<T>(list: unknown, key: keyof T & string): T[] {
  if (!Array.isArray(list)) return [];
  return list.filter((one: unknown): one is T => isObject(one) && typeof one[key] === "string");
}

/** One typo per this many characters, and at most as many. */
const TYPO_LENGTH = 3;
const MAX_LISTED_NAMES = 12;

/** An unknown tool or prompt, with the names that were probably meant. */
export function notFound(kind: string, name: string, names: readonly string[]): NotFoundError {
  // A gateway puts the upstream before a name that several upstreams have.
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
