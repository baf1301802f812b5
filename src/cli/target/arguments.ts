// Parses the arguments of tools and prompts on the command line: `key=text`, `key:=json`, `@file` in place of a value,
// and `--args` for a whole object. Strings are converted as the tool's schema says. An argument that cannot be
// converted, is missing or is given twice is reported before anything is sent. The server validates the rest.

import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { nearest } from "../../core/options.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import type { Prompt, Tool } from "../../protocol/model/index.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { oneLine, parseNumber } from "../terminal/text.ts";
import {
  ANYTHING,
  argumentTable,
  describeValue,
  promptProperties,
  type Property,
  readProperties,
  type ValueShape,
} from "./properties.ts";

export interface Argument {
  readonly key: string;
  /** `text` is converted as the schema says; `json` is sent unchanged. */
  readonly value: { readonly text: string } | { readonly json: unknown };
}

const FILES_ABOUT = `  key=@file, key:=@file  the string, or the JSON, in a file; @- is stdin. Write a string that
                         begins with @ as JSON: key:='"@name"'`;

export const ARGUMENTS_ABOUT: string = `Arguments:
  key=value              a string; converted if the schema says number, integer, boolean, null,
                         array or object. Give the items of an array one by one (tag=a tag=b)
                         or as JSON (tag='["a","b"]')
  key:=json              a JSON value: count:=3 filter:='{"open":true}'
${FILES_ABOUT}
  A dot in a key is part of its name; write nested values as JSON.`;

export const PROMPT_ARGUMENTS_ABOUT: string = `Arguments, which are all strings:
  key=value              a string
  key:=json              a string, written as JSON
${FILES_ABOUT}`;

/** Throws a UsageError, or a NotFoundError for a missing file. */
export async function readArguments(words: readonly string[], args?: string): Promise<readonly Argument[]> {
  let stdinReader: string | undefined;
  const readText = async (argument: string, path: string): Promise<string> => {
    if (path === "") throw new UsageError(`${argument} has no file name after the @`);
    if (path !== "-") return decodeText(path, await readBytes(path, argument));
    if (stdinReader !== undefined) throw new UsageError(`${argument}: stdin was already read by ${stdinReader}`);
    stdinReader = argument;
    return decodeText("stdin", await buffer(process.stdin));
  };
  const pairs: Argument[] = [];
  if (args !== undefined) {
    const values = parseJson("--args", args === "-" ? await readText("--args -", "-") : args);
    if (!isObject(values)) throw new UsageError(`--args must be a JSON object, such as '{"text":"hi"}'`);
    for (const [key, json] of Object.entries(values)) pairs.push({ key, value: { json } });
  }
  const single: Argument[] = [];
  for (const word of words) {
    const [, key = "", colon, value = ""] = /^([^=]+?)(:?)=([^]*)$/.exec(word) ?? [];
    if (key === "" || key === ":") {
      throw new UsageError(`${word} is not a valid argument: write key=value for a string, key:=json for JSON`);
    }
    const text = value.startsWith("@") ? await readText(word, value.slice(1)) : value;
    single.push({ key, value: colon === ":" ? { json: parseJson(key, text) } : { text } });
  }
  // Single keys override --args. Whether a key may be repeated depends on the schema.
  const isOverridden = ({ key }: Argument): boolean => single.some((other) => other.key === key);
  return [...pairs.filter((argument) => !isOverridden(argument)), ...single];
}

function parseJson(source: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new UsageError(`${source} is not JSON: ${errorMessage(error)}`);
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

/**
 * Converts the arguments by the tool's schema. `unknown` lists those that the schema lacks, with those that were probably
 * meant; they are sent too.
 */
export function toolArguments(tool: Tool, pairs: readonly Argument[]): { args: Arguments; unknown: readonly string[] } {
  const properties = readProperties(tool.inputSchema);
  const byName = new Map(properties.map((property) => [property.name, property]));
  const args = new Map<string, unknown>();
  for (const { key, value } of pairs) {
    const shape = byName.get(key)?.shape ?? ANYTHING;
    const before = args.get(key);
    const isNextItem = Array.isArray(before) && isList(shape) && "text" in value && !value.text.startsWith("[");
    if (args.has(key) && !isNextItem) throw new UsageError(`${key} is given twice`);
    const converted = "json" in value ? value.json : convert(key, value.text, shape);
    args.set(key, isNextItem ? [before, converted].flat() : converted);
  }
  checkRequired(tool.name, properties, args);
  const unknown = [...args.keys()].filter((name) => !byName.has(name)).map((name) => withNearest(name, properties));
  return { args: Object.fromEntries(args), unknown };
}

/** Checks the arguments of a prompt, which must be strings. */
export function promptArguments(prompt: Prompt, pairs: readonly Argument[]): Readonly<Record<string, string>> {
  const args = new Map<string, string>();
  for (const { key, value } of pairs) {
    if (args.has(key)) throw new UsageError(`${key} is given twice`);
    const text = "json" in value ? value.json : value.text;
    if (typeof text !== "string") throw new UsageError(`${key} must be a string, like all arguments of prompts`);
    args.set(key, text);
  }
  checkRequired(prompt.name, promptProperties(prompt), args);
  return Object.fromEntries(args);
}

function withNearest(name: string, properties: readonly Property[]): string {
  const [near] = nearest(
    name,
    properties.map((property) => property.name),
  );
  return near === undefined ? oneLine(name) : `${oneLine(name)} (did you mean ${oneLine(near)}?)`;
}

function checkRequired(name: string, properties: readonly Property[], args: ReadonlyMap<string, unknown>): void {
  const missing = properties
    .filter((property) => property.required && !args.has(property.name))
    .map((property) => property.name);
  if (missing.length === 0) return;
  const table = argumentTable(properties).trimEnd();
  const known = properties.map((property) => property.name);
  const others = [...args.keys()].filter((key) => !known.includes(key)).map((key) => withNearest(key, properties));
  const also = others.length === 0 ? "" : `, and does not declare ${others.join(", ")}`;
  throw new UsageError(`${name} needs ${missing.join(", ")}${also}\nArguments of ${name}:\n${table}`);
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
  if (types.has("array")) return [convert(key, text, shape.items ?? ANYTHING)];
  throw new UsageError(`${key} must be ${[...types].map((type) => TYPE_NAMES[type] ?? type).join(" or ")}: ${text}`);
}

function convertEnum(key: string, text: string, values: readonly unknown[]): unknown {
  const match = values.find((value) => value === text) ?? values.find((value) => JSON.stringify(value) === text.trim());
  if (match !== undefined) return match;
  throw new UsageError(`${key} must be one of ${values.map(describeValue).join(", ")}: ${text}`);
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

/** A name is suggested if it differs by at most one typo per 3 characters (rounded up), and by at most 3 in total. */
const TYPO_LENGTH = 3;
const MAX_LISTED_NAMES = 12;

/** The error for an unknown tool or prompt, with the names that were probably meant. */
export function notFound(kind: string, name: string, names: readonly string[]): NotFoundError {
  // A gateway prefixes a name that several upstreams have with the upstream: notes_search.
  const prefixed = names.filter((candidate) =>
    ["_", "-", "."].some((separator) => candidate.endsWith(separator + name)),
  );
  const typos = nearest(name, names, Math.min(Math.ceil(name.length / TYPO_LENGTH), TYPO_LENGTH)).slice(0, 3);
  const near = prefixed.length === 0 ? typos : prefixed.slice(0, MAX_LISTED_NAMES);
  const hint =
    near.length > 0
      ? `did you mean ${near.map(oneLine).join(" or ")}?`
      : names.length === 0
        ? "the server has none"
        : `there are ${listNames(names)}`;
  return new NotFoundError(`There is no ${kind} ${name}; ${hint}`);
}

function listNames(names: readonly string[]): string {
  const rest = names.length > MAX_LISTED_NAMES ? ` and ${names.length - MAX_LISTED_NAMES} more` : "";
  return `${names.slice(0, MAX_LISTED_NAMES).map(oneLine).join(", ")}${rest}`;
}
