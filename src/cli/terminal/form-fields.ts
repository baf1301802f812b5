// The fields of a form: each is asked for in one line, and its answer is parsed. For a choice, the user sees the titles
// and the server gets the values.

import { isObject } from "../../core/values.ts";
import type { ElicitValue } from "../../protocol/model/index.ts";
import { withKey } from "../command.ts";
import { ANYTHING, readProperties, type ValueShape } from "../target/properties.ts";
import { oneLine, parseNumber } from "./text.ts";

interface Choice {
  readonly value: string;
  readonly title: string;
}

type Kind = "text" | "number" | "integer" | "boolean" | "one" | "many";

export interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly kind: Kind;
  readonly choices: readonly Choice[];
  readonly defaultValue: ElicitValue | undefined;
  readonly schema: { readonly [key: string]: unknown };
}

type ParsedField = { readonly value: ElicitValue | undefined } | { readonly problem: string };

/** The bounds of a value: their names in the schema, how a hint counts, and how a problem begins and ends. */
type Bounds = readonly [min: string, max: string, unit: string, must: string, counted: string];

const NUMBER_BOUNDS: Bounds = ["minimum", "maximum", "", "It must be", ""];

const KINDS: Readonly<Record<Kind, readonly [hint: string, bounds?: Bounds]>> = {
  text: ["text", ["minLength", "maxLength", " characters", "It must have", " characters"]],
  number: ["number", NUMBER_BOUNDS],
  integer: ["whole number", NUMBER_BOUNDS],
  boolean: ["yes or no"],
  one: ["number or name"],
  many: ["numbers separated by commas; 0 for none", ["minItems", "maxItems", " items", "Choose", ""]],
};

/** The fields of a form; the schema comes from the server and may be anything. */
export function parseFields(requestedSchema: unknown): Field[] {
  const { properties } = isObject(requestedSchema) ? requestedSchema : {};
  return readProperties(requestedSchema).flatMap(({ name, required, shape, default: value }) => {
    const schema = isObject(properties) ? properties[name] : undefined;
    if (!isObject(schema)) return [];
    const kind = fieldKind(shape);
    const [{ values = [] }, titled] = kind === "many" ? [shape.items ?? ANYTHING, schema["items"]] : [shape, schema];
    const choices = withTitles(values, titled);
    return [{ name, required, choices, kind, schema, defaultValue: isOfKind(kind, value) ? value : undefined }];
  });
}

function isOfKind(kind: Kind, value: unknown): value is ElicitValue {
  if (kind === "many") return Array.isArray(value) && value.every((item) => typeof item === "string");
  if (kind === "number") return Number.isFinite(value);
  if (kind === "integer") return Number.isInteger(value);
  return typeof value === (kind === "boolean" ? "boolean" : "string");
}

function fieldKind({ types, values = [] }: ValueShape): Kind {
  if (types.has("array")) return "many";
  const [type, ...others] = types;
  if (others.length === 0 && (type === "number" || type === "integer" || type === "boolean")) return type;
  return values.length === 0 ? "text" : "one";
}

/** The choices with their titles, which stand beside the values, or in a list beside that of the values. */
function withTitles(values: readonly unknown[], schema: unknown): Choice[] {
  const { oneOf, anyOf = oneOf, enum: all, enumNames } = isObject(schema) ? schema : {};
  const titled = withKey<{ readonly const?: unknown; readonly title: string }>(anyOf, "title");
  const titles = new Map<unknown, unknown>(titled.map((choice) => [choice.const, choice.title]));
  const names: readonly unknown[] = Array.isArray(enumNames) ? enumNames : [];
  for (const [at, value] of (Array.isArray(all) ? all : []).entries())
    titles.set(value, names[at] ?? titles.get(value));
  return values.map((value) => ({ value: String(value), title: String(titles.get(value) ?? value) }));
}

/** Describes in a few words what may be typed. */
export function fieldHint({ kind, schema, required, choices }: Field): string {
  const [word, [min = "", max = "", unit = ""] = []] = KINDS[kind];
  const { format, [min]: from, [max]: to } = schema;
  const hint =
    kind === "text" && typeof format === "string"
      ? oneLine(format)
      : kind === "many" && choices.length === 0
        ? word.replace("numbers", "values")
        : word;
  const range =
    typeof from !== "number"
      ? typeof to === "number" && `at most ${to}${unit}`
      : `${typeof to === "number" ? `${from} to ${to}` : `at least ${from}`}${unit}`;
  return [hint, range, !required && "optional"].filter(Boolean).join(", ");
}

export function formatValue({ choices }: Field, value: ElicitValue): string {
  const titleOf = (value: unknown): string => choices.find((choice) => choice.value === value)?.title ?? String(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (!Array.isArray(value)) return oneLine(titleOf(value));
  return value.length === 0 ? "none" : oneLine(value.map(titleOf).join(", "));
}

/** Parses an answer. An empty line takes the default, or leaves an optional field out. */
export function parseField(field: Field, typed: string): ParsedField {
  const { kind, schema, defaultValue, required } = field;
  if (typed === "") {
    return defaultValue === undefined && required ? { problem: "A value is required" } : { value: defaultValue };
  }
  const parsed = parseTyped(field, typed);
  const [, [min = "", max = "", , must = "", counted = ""] = []] = KINDS[kind];
  if ("problem" in parsed || min === "") return parsed;
  const { [min]: from, [max]: to } = schema;
  const { value = "" } = parsed;
  const size = typeof value === "string" ? [...value].length : Array.isArray(value) ? value.length : Number(value);
  if (typeof from === "number" && size < from) return { problem: `${must} at least ${from}${counted}` };
  return typeof to === "number" && size > to ? { problem: `${must} at most ${to}${counted}` } : parsed;
}

function parseTyped({ kind, choices, schema: { format } }: Field, typed: string): ParsedField {
  if (kind === "boolean") {
    if (/^(?:y|yes|true)$/i.test(typed)) return { value: true };
    return /^(?:n|no|false)$/i.test(typed) ? { value: false } : { problem: "Type yes or no" };
  }
  if (kind === "number" || kind === "integer") {
    const value = parseNumber(typed);
    if (value === undefined) return { problem: `${typed} is not a number` };
    return kind === "number" || Number.isInteger(value) ? { value } : { problem: `${typed} is not a whole number` };
  }
  if (kind === "text") {
    const known = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
    return known === undefined || known[0](typed) ? { value: typed } : { problem: `It must look like ${known[1]}` };
  }
  const parts = kind === "one" ? [typed] : typed === "0" ? [] : typed.split(",").map((part) => part.trim());
  const values = new Set<string>();
  for (const part of parts) {
    // Without choices, any value is accepted.
    const choice = choices.length === 0 ? { value: part } : findChoice(choices, part);
    if (choice === undefined)
      return { problem: `${part} is not in the list; type a number from 1 to ${choices.length}` };
    values.add(choice.value);
  }
  const [first] = values;
  return { value: kind === "one" ? first : [...values] };
}

function findChoice(choices: readonly Choice[], typed: string): Choice | undefined {
  const isTyped = (text: string): boolean => text.toLowerCase() === typed.toLowerCase();
  return (
    choices.find(({ value }) => value === typed) ??
    (/^\d+$/.test(typed) ? choices[Number(typed) - 1] : undefined) ??
    choices.find(({ value, title }) => isTyped(value) || isTyped(title))
  );
}

const FORMATS: Readonly<Record<string, readonly [fits: (text: string) => boolean, example: string]>> = {
  email: [(text) => /^[^\s@]+@[^\s@]+$/.test(text), "name@example.com"],
  uri: [(text) => URL.canParse(text), "https://example.com/"],
  date: [(text) => isDay(text), "2025-01-31"],
  "date-time": [
    (text) =>
      isDay(text.slice(0, 10)) &&
      !Number.isNaN(Date.parse(text)) &&
      /^T\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i.test(text.slice(10)),
    "2025-01-31T12:00:00Z",
  ],
};

/** Date turns February 30 into March 2. */
function isDay(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && (new Date(text).toJSON() as string | null)?.startsWith(text) === true;
}
