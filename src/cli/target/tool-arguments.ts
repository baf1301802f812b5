// What a person has written, turned into what a tool or a prompt takes. A text is converted by the tool's schema;
// what cannot be, what is missing and what is given twice is said before anything is sent. Whether the values are good
// is for the end to say.

import type { Prompt, PromptArgument, Tool } from "../../protocol/model/index.ts";
import type { Given } from "./arguments.ts";
import { UsageError } from "../exit-codes.ts";
import { oneLine } from "../terminal/harmless.ts";
import { sound } from "./names.ts";
import { propertiesOf, shapeText, type Property, type Shape } from "./schema-shape.ts";
import { columns } from "../terminal/columns.ts";

type Arguments = { readonly [name: string]: unknown };

/** `unknown` are those that the tool does not declare; they are sent all the same. */
export function toolArguments(tool: Tool, given: readonly Given[]): { args: Arguments; unknown: readonly string[] } {
  const properties = propertiesOf(tool.inputSchema);
  const byName = new Map(properties.map((property) => [property.name, property]));
  const args = new Map<string, unknown>();
  for (const { key, value } of given) {
    const shape = byName.get(key)?.shape ?? { kinds: new Set() };
    const before = args.get(key);
    const isMore = Array.isArray(before) && isList(shape) && "text" in value && !value.text.startsWith("[");
    if (args.has(key) && !isMore) throw new UsageError(`${key} is given twice`);
    const converted = "json" in value ? value.json : convert(key, value.text, shape);
    args.set(
      key,
      isMore && Array.isArray(converted) ? [...(before as unknown[]), ...(converted as unknown[])] : converted,
    );
  }
  const missing = properties.filter(({ name, required }) => required && !args.has(name));
  if (missing.length > 0) throw lacks(tool.name, missing, properties);
  return { args: Object.fromEntries(args), unknown: [...args.keys()].filter((name) => !byName.has(name)) };
}

/** Arguments of prompts are texts. */
export function promptArguments(prompt: Prompt, given: readonly Given[]): Readonly<Record<string, string>> {
  const properties = promptProperties(prompt);
  const args = new Map<string, string>();
  for (const { key, value } of given) {
    if (args.has(key)) throw new UsageError(`${key} is given twice`);
    const text = "json" in value ? value.json : value.text;
    if (typeof text !== "string") throw new UsageError(`${key} must be a text: arguments of prompts are`);
    args.set(key, text);
  }
  const missing = properties.filter(({ name, required }) => required && !args.has(name));
  if (missing.length > 0) throw lacks(prompt.name, missing, properties);
  return Object.fromEntries(args);
}

export function promptProperties(prompt: Prompt): Property[] {
  return sound<PromptArgument>(prompt.arguments, "name").map(({ name, required, description }) => ({
    name,
    required: required === true,
    shape: { kinds: new Set(["string"] as const) },
    ...(typeof description === "string" ? { description } : undefined),
  }));
}

function lacks(name: string, missing: readonly Property[], properties: readonly Property[]): UsageError {
  const names = missing.map((property) => property.name).join(", ");
  return new UsageError(`${name} needs ${names}\nArguments of ${name}:\n${argumentTable(properties).trimEnd()}`);
}

/** A line for each, with its kind and what is said of it. */
export function argumentTable(properties: readonly Property[]): string {
  const rows = properties.map(({ name, required, shape, description = "", default: byDefault }) => {
    const need = required ? "required" : byDefault === undefined ? "" : `default ${JSON.stringify(byDefault)}`;
    return [oneLine(name), oneLine(shapeText(shape)), [oneLine(need), oneLine(description)].filter(Boolean).join("; ")];
  });
  return columns(rows, { indent: 2 });
}

/** As one would write them: `text=string [count=integer]`. */
export function signature(properties: readonly Property[]): string {
  const words = properties.map(({ name, required, shape }) => {
    const isJson = shape.kinds.size === 1 && shape.kinds.has("object");
    const word = `${name}${isJson ? ":" : ""}=${shapeText(shape)}`;
    return required ? word : `[${word}]`;
  });
  return oneLine(words.join(" "));
}

function isList({ kinds }: Shape): boolean {
  return kinds.has("array") && !kinds.has("string");
}

function convert(key: string, text: string, shape: Shape): unknown {
  const { kinds, values } = shape;
  if (values !== undefined) return oneOf(key, text, values);
  if (kinds.size === 0 || kinds.has("string")) return text;
  const trimmed = text.trim();
  if (kinds.has("null") && trimmed === "null") return null;
  if (kinds.has("boolean") && (trimmed === "true" || trimmed === "false")) return trimmed === "true";
  if (kinds.has("integer") || kinds.has("number")) {
    const number = numberOf(trimmed);
    if (number !== undefined && (kinds.has("number") || Number.isInteger(number))) {
      if (Number.isInteger(number) && !Number.isSafeInteger(number)) {
        throw new UsageError(`${key} must lie between -(2^53 - 1) and 2^53 - 1, or be given as a text: ${text}`);
      }
      return number;
    }
  }
  if (kinds.has("object") && trimmed.startsWith("{")) return jsonOf(key, trimmed, "a JSON object");
  if (kinds.has("array") && trimmed.startsWith("[")) return jsonOf(key, trimmed, "a JSON array");
  if (kinds.has("array")) return [convert(key, text, shape.items ?? { kinds: new Set() })];
  throw new UsageError(`${key} must be ${wanted(shape)}: ${text}`);
}

function oneOf(key: string, text: string, values: readonly unknown[]): unknown {
  const found = values.find((value) => value === text) ?? values.find((value) => JSON.stringify(value) === text.trim());
  if (found !== undefined) return found;
  throw new UsageError(
    `${key} must be one of ${shapeText({ kinds: new Set(), values }).replaceAll("|", ", ")}: ${text}`,
  );
}

function numberOf(text: string): number | undefined {
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  // JSON has no word for what is too large.
  return Number.isFinite(number) ? number : undefined;
}

function jsonOf(key: string, text: string, what: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new UsageError(`${key} must be ${what}: ${text}`);
  }
}

const WORDS: Readonly<Record<string, string>> = {
  integer: "an integer",
  number: "a number",
  boolean: "true or false",
  object: "a JSON object",
  array: "a JSON array",
  null: "null",
};

function wanted({ kinds }: Shape): string {
  return [...kinds].map((kind) => WORDS[kind] ?? kind).join(" or ");
}
