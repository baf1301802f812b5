// One field of a form: how it is asked in a line, and what is made of what a person types. The values that an end
// receives are its own words (the constants of a choice, not their titles). Nothing is read or written here.

import { isObject } from "../../core/objects.ts";
import type { ElicitValue } from "../../protocol/model/index.ts";
import { oneLine } from "./harmless.ts";

export interface Choice {
  readonly value: string;
  readonly title: string;
}

export interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly kind: "text" | "number" | "integer" | "boolean" | "one" | "many";
  readonly choices: readonly Choice[];
  readonly byDefault: ElicitValue | undefined;
  readonly schema: { readonly [key: string]: unknown };
}

export type Read = { readonly value: ElicitValue | undefined } | { readonly problem: string };

/** The fields of a form; an end may write anything where they should be. */
export function fieldsOf(requestedSchema: unknown): Field[] {
  const schema = isObject(requestedSchema) ? requestedSchema : {};
  const required: readonly unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  return Object.entries(properties).flatMap(([name, field]) =>
    isObject(field) ? [fieldOf(name, field, required.includes(name))] : [],
  );
}

function fieldOf(name: string, schema: Field["schema"], required: boolean): Field {
  const isMany = schema["type"] === "array";
  const choices =
    isMany && isObject(schema["items"]) ? choicesOf(schema["items"], "anyOf") : choicesOf(schema, "oneOf");
  const kind = kindOf(schema["type"], choices);
  const byDefault = schema["default"];
  return {
    name,
    required,
    choices,
    kind,
    schema,
    byDefault: fits(kind, byDefault) ? byDefault : undefined,
  };
}

function fits(kind: Field["kind"], value: unknown): value is ElicitValue {
  if (kind === "many") return Array.isArray(value) && value.every((item) => typeof item === "string");
  if (kind === "number") return Number.isFinite(value);
  if (kind === "integer") return Number.isInteger(value);
  return typeof value === (kind === "boolean" ? "boolean" : "string");
}

function kindOf(type: unknown, choices: readonly Choice[]): Field["kind"] {
  if (type === "array") return "many";
  if (type === "number" || type === "integer" || type === "boolean") return type;
  return choices.length > 0 ? "one" : "text";
}

function choicesOf(schema: Field["schema"], titled: "oneOf" | "anyOf"): Choice[] {
  const listed: readonly unknown[] | undefined = Array.isArray(schema[titled]) ? schema[titled] : undefined;
  if (listed !== undefined) {
    return listed.flatMap((choice) =>
      isObject(choice) && typeof choice["const"] === "string"
        ? [{ value: choice["const"], title: typeof choice["title"] === "string" ? choice["title"] : choice["const"] }]
        : [],
    );
  }
  const values: readonly unknown[] = Array.isArray(schema["enum"]) ? schema["enum"] : [];
  const names: readonly unknown[] = Array.isArray(schema["enumNames"]) ? schema["enumNames"] : [];
  return values.map((value, at) => ({ value: String(value), title: String(names[at] ?? value) }));
}

/** What may be typed, in a few words. */
export function fieldHint({ kind, schema, required, choices }: Field): string {
  const words: Record<Field["kind"], string> = {
    text: typeof schema["format"] === "string" ? oneLine(schema["format"]) : "text",
    number: "number",
    integer: "whole number",
    boolean: "yes or no",
    one: "a number or a name",
    many: `${choices.length === 0 ? "texts" : "numbers"} with commas between; 0 for none`,
  };
  const range =
    kind === "text"
      ? between(schema["minLength"], schema["maxLength"], " characters")
      : kind === "many"
        ? between(schema["minItems"], schema["maxItems"], " of them")
        : between(schema["minimum"], schema["maximum"], "");
  return [words[kind], ...(range === "" ? [] : [range]), ...(required ? [] : ["may be left out"])].join(", ");
}

function between(least: unknown, most: unknown, unit: string): string {
  const from = typeof least === "number" ? least : undefined;
  const to = typeof most === "number" ? most : undefined;
  if (from === undefined && to === undefined) return "";
  if (from === undefined) return `at most ${to}${unit}`;
  return to === undefined ? `at least ${from}${unit}` : `${from} to ${to}${unit}`;
}

/** A value as it is shown to the person again. */
export function valueText({ choices }: Field, value: ElicitValue): string {
  const titled = (one: unknown): string => choices.find((choice) => choice.value === one)?.title ?? String(one);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (!Array.isArray(value)) return oneLine(titled(value));
  return value.length === 0 ? "none" : oneLine(value.map(titled).join(", "));
}

/** What the person means by what was typed; an empty line is the default, or nothing. */
export function readField(field: Field, typed: string): Read {
  if (typed === "") {
    if (field.byDefault !== undefined) return { value: field.byDefault };
    return field.required ? { problem: "It is needed" } : { value: undefined };
  }
  switch (field.kind) {
    case "text":
      return readText(field, typed);
    case "number":
    case "integer":
      return readNumber(field, typed);
    case "boolean":
      if (/^(?:y|yes|true)$/i.test(typed)) return { value: true };
      return /^(?:n|no|false)$/i.test(typed) ? { value: false } : { problem: "Type yes or no" };
    case "one": {
      const choice = chosen(field.choices, typed);
      return choice === undefined ? { problem: notListed(field, typed) } : { value: choice.value };
    }
    case "many":
      return readMany(field, typed);
  }
}

function chosen(choices: readonly Choice[], typed: string): Choice | undefined {
  const same = (text: string): boolean => text.toLowerCase() === typed.toLowerCase();
  return (
    choices.find(({ value }) => value === typed) ??
    (/^\d+$/.test(typed) ? choices[Number(typed) - 1] : undefined) ??
    choices.find(({ value, title }) => same(value) || same(title))
  );
}

function notListed({ choices }: Field, typed: string): string {
  return `${typed} is not in the list; type a number from 1 to ${choices.length}`;
}

function readMany(field: Field, typed: string): Read {
  const { choices, schema } = field;
  const parts = typed === "0" ? [] : typed.split(",").map((part) => part.trim());
  const values = new Set<string>();
  for (const part of parts) {
    // Without a list, the words themselves are what is wanted.
    const choice = choices.length === 0 ? { value: part } : chosen(choices, part);
    if (choice === undefined) return { problem: notListed(field, part) };
    values.add(choice.value);
  }
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && values.size < minItems) return { problem: `Choose at least ${minItems}` };
  if (typeof maxItems === "number" && values.size > maxItems) return { problem: `Choose at most ${maxItems}` };
  return { value: [...values] };
}

function readNumber({ kind, schema }: Field, typed: string): Read {
  const value = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(typed) ? Number(typed) : Number.NaN;
  if (!Number.isFinite(value)) return { problem: `${typed} is no number` };
  if (kind === "integer" && !Number.isInteger(value)) return { problem: `${typed} is no whole number` };
  const { minimum, maximum } = schema;
  if (typeof minimum === "number" && value < minimum) return { problem: `It must be at least ${minimum}` };
  if (typeof maximum === "number" && value > maximum) return { problem: `It must be at most ${maximum}` };
  return { value };
}

const FORMATS: Readonly<Record<string, readonly [fits: (text: string) => boolean, example: string]>> = {
  email: [(text) => /^[^\s@]+@[^\s@]+$/.test(text), "name@example.com"],
  uri: [(text) => URL.canParse(text), "https://example.com/"],
  date: [(text) => /^\d{4}-\d\d-\d\d$/.test(text) && isDate(`${text}T00:00:00Z`), "2025-01-31"],
  "date-time": [
    (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i.test(text) && isDate(text),
    "2025-01-31T12:00:00Z",
  ],
};

function isDate(text: string): boolean {
  const date = new Date(text);
  // A day that the month does not have is another day.
  return (
    !Number.isNaN(date.getTime()) && (!text.endsWith("T00:00:00Z") || date.toISOString().startsWith(text.slice(0, 10)))
  );
}

function readText({ schema }: Field, typed: string): Read {
  const { minLength, maxLength, format } = schema;
  const length = [...typed].length;
  if (typeof minLength === "number" && length < minLength)
    return { problem: `It must have at least ${minLength} characters` };
  if (typeof maxLength === "number" && length > maxLength)
    return { problem: `It must have at most ${maxLength} characters` };
  const known = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (known !== undefined && !known[0](typed)) return { problem: `It must be written like ${known[1]}` };
  return { value: typed };
}
