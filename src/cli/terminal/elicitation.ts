// Lets the user answer the questions of a server (elicitation) in the terminal. A form is filled in field by field and
// reviewed before it is sent. A URL is shown with its host, and opened only if the user agrees. All text from the
// server is sanitized. Ctrl-C at a question cancels the whole call; Ctrl-D dismisses the question.

import type { FormHandler, UrlHandler } from "../../client/client-requests.ts";
import { isObject } from "../../core/values.ts";
import type { ElicitResult, ElicitValue } from "../../protocol/model/index.ts";
import { truncate, oneLine, sanitize } from "./text.ts";
import { paint } from "./output.ts";
import type { Dialog, Prompter } from "./prompter.ts";

/** Opens a URL in the browser; false if that is not possible. */
export type OpenPage = (url: URL) => Promise<boolean>;

/** Longer messages from the server are cut. */
const MAX_MESSAGE_LENGTH = 4_000;
/** Longer titles, descriptions and choices are cut. */
const MAX_LINE_WIDTH = 500;

const DISMISSED: ElicitResult = { action: "cancel" };
const DECLINED: ElicitResult = { action: "decline" };

export function createElicitation(
  prompter: Prompter,
  serverName: () => string,
  openPage: OpenPage,
): { readonly form: FormHandler; readonly url: UrlHandler } {
  return {
    form: ({ message, requestedSchema }, { signal }) =>
      prompter.open(signal, (dialog) => {
        dialog.print(heading(serverName(), "asks", message));
        const fields = parseFields(requestedSchema);
        return fields.length === 0 ? confirm(dialog) : fillForm(dialog, fields);
      }),
    url: ({ message, url }, { signal }) =>
      prompter.open(signal, (dialog) => {
        dialog.print(heading(serverName(), "asks you to visit a page", message));
        return visitPage(dialog, new URL(url), openPage);
      }),
  };
}

function heading(server: string, action: string, message: unknown): string {
  const text = typeof message === "string" ? sanitize(message).slice(0, MAX_MESSAGE_LENGTH) : "";
  return `\n${paint("bold", `${line(server)} ${action}:`)} ${text}`;
}

function line(text: unknown): string {
  return typeof text === "string" ? truncate(MAX_LINE_WIDTH, oneLine(text)) : "";
}

/** A form without fields asks for consent. */
async function confirm(dialog: Dialog): Promise<ElicitResult> {
  for (;;) {
    const answer = await dialog.confirm("Agree? [y]es, [d]ecline, [c]ancel: ");
    if (answer === undefined || matches(answer, "cancel")) return DISMISSED;
    if (matches(answer, "decline") || matches(answer, "no")) return DECLINED;
    if (matches(answer, "yes")) return { action: "accept", content: {} };
  }
}

type Content = Map<string, ElicitValue>;

async function fillForm(dialog: Dialog, fields: readonly Field[]): Promise<ElicitResult> {
  dialog.print(paint("dim", "(:decline to refuse, :cancel to dismiss the question, Ctrl-C to cancel the call)"));
  const content: Content = new Map();
  for (;;) {
    for (const field of fields) {
      const result = await askField(dialog, field, content);
      if (result !== undefined) return result;
    }
    const result = await review(dialog, fields, content);
    if (result !== "edit") return result;
  }
}

/** Asks until the answer is valid. Returns a result only if the user declines or cancels. */
async function askField(dialog: Dialog, field: Field, content: Content): Promise<ElicitResult | undefined> {
  const current: Field = { ...field, defaultValue: content.get(field.name) ?? field.defaultValue };
  const { defaultValue, choices, schema } = current;
  const description = line(schema["description"]);
  if (description !== "") dialog.print(paint("dim", description));
  for (const [at, { title }] of choices.entries()) dialog.print(`  ${at + 1}) ${line(title)}`);
  const value = defaultValue === undefined ? "" : ` [${line(formatValue(current, defaultValue))}]`;
  const prompt = `${paint("bold", label(field))} (${line(fieldHint(field))})${value}: `;
  for (;;) {
    const typed = await dialog.ask(prompt);
    if (typed === undefined || typed === ":cancel") return DISMISSED;
    if (typed === ":decline") return DECLINED;
    const read = parseField(current, typed);
    if ("value" in read) {
      if (read.value === undefined) content.delete(field.name);
      else content.set(field.name, read.value);
      return undefined;
    }
    dialog.print(paint("yellow", sanitize(read.problem)));
  }
}

function label({ name, schema }: Field): string {
  const title = line(schema["title"]);
  return title === "" ? line(name) : title;
}

async function review(dialog: Dialog, fields: readonly Field[], content: Content): Promise<ElicitResult | "edit"> {
  dialog.print("");
  for (const field of fields) {
    const value = content.get(field.name);
    const shown =
      value === undefined ? paint("dim", "(empty)") : truncate(MAX_MESSAGE_LENGTH, formatValue(field, value));
    dialog.print(`  ${label(field)}: ${shown}`);
  }
  for (;;) {
    const answer = await dialog.confirm("Send this? [Y]es, [e]dit, [d]ecline, [c]ancel: ");
    if (answer === undefined || matches(answer, "cancel") || answer === ":cancel") return DISMISSED;
    if (matches(answer, "decline") || matches(answer, "no") || answer === ":decline") return DECLINED;
    if (matches(answer, "edit")) return "edit";
    if (answer === "" || matches(answer, "yes")) return { action: "accept", content: Object.fromEntries(content) };
  }
}

async function visitPage(dialog: Dialog, url: URL, openPage: OpenPage): Promise<ElicitResult> {
  dialog.print(`  host: ${paint("bold", line(url.host))}`);
  // `href` is pure ASCII, so that look-alike characters in the host become visible.
  dialog.print(`  URL:  ${sanitize(url.href)}`);
  if (url.username !== "" || url.password !== "") {
    dialog.print("  Careful: the part before the @ is a user name, not the host");
  }
  for (;;) {
    const answer = await dialog.confirm("Open it in the browser? [y]es, [m]yself, [d]ecline, [c]ancel: ");
    if (answer === undefined || matches(answer, "cancel")) return DISMISSED;
    if (matches(answer, "decline") || matches(answer, "no")) return DECLINED;
    if (matches(answer, "myself")) return { action: "accept" };
    if (!matches(answer, "yes")) continue;
    if (await openPage(url)) return { action: "accept" };
    dialog.print("Could not open a browser; if you trust the URL, open it yourself and answer [m]yself");
  }
}

function matches(answer: string, word: string): boolean {
  return answer !== "" && word.startsWith(answer.toLowerCase());
}

// The fields of a form: each is asked for in one line, and its answer is parsed. For a choice, the user sees the titles
// and the server gets the values.

export interface Choice {
  readonly value: string;
  readonly title: string;
}

export interface Field {
  readonly name: string;
  readonly required: boolean;
  readonly kind: "text" | "number" | "integer" | "boolean" | "one" | "many";
  readonly choices: readonly Choice[];
  readonly defaultValue: ElicitValue | undefined;
  readonly schema: { readonly [key: string]: unknown };
}

export type ParsedField = { readonly value: ElicitValue | undefined } | { readonly problem: string };

/** The fields of a form; the schema comes from the server and may be anything. */
export function parseFields(requestedSchema: unknown): Field[] {
  const schema = isObject(requestedSchema) ? requestedSchema : {};
  const required: readonly unknown[] = Array.isArray(schema["required"]) ? schema["required"] : [];
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  return Object.entries(properties).flatMap(([name, field]) =>
    isObject(field) ? [toField(name, field, required.includes(name))] : [],
  );
}

function toField(name: string, schema: Field["schema"], required: boolean): Field {
  const isMany = schema["type"] === "array";
  const choices =
    isMany && isObject(schema["items"]) ? readChoices(schema["items"], "anyOf") : readChoices(schema, "oneOf");
  const kind = fieldKind(schema["type"], choices);
  const value = schema["default"];
  return { name, required, choices, kind, schema, defaultValue: isOfKind(kind, value) ? value : undefined };
}

function isOfKind(kind: Field["kind"], value: unknown): value is ElicitValue {
  if (kind === "many") return Array.isArray(value) && value.every((item) => typeof item === "string");
  if (kind === "number") return Number.isFinite(value);
  if (kind === "integer") return Number.isInteger(value);
  return typeof value === (kind === "boolean" ? "boolean" : "string");
}

function fieldKind(type: unknown, choices: readonly Choice[]): Field["kind"] {
  if (type === "array") return "many";
  if (type === "number" || type === "integer" || type === "boolean") return type;
  return choices.length > 0 ? "one" : "text";
}

function readChoices(schema: Field["schema"], titled: "oneOf" | "anyOf"): Choice[] {
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

/** Describes in a few words what may be typed. */
export function fieldHint({ kind, schema, required, choices }: Field): string {
  const words: Record<Field["kind"], string> = {
    text: typeof schema["format"] === "string" ? oneLine(schema["format"]) : "text",
    number: "number",
    integer: "whole number",
    boolean: "yes or no",
    one: "number or name",
    many: `${choices.length === 0 ? "values" : "numbers"} separated by commas; 0 for none`,
  };
  const range =
    kind === "text"
      ? formatRange(schema["minLength"], schema["maxLength"], " characters")
      : kind === "many"
        ? formatRange(schema["minItems"], schema["maxItems"], " items")
        : formatRange(schema["minimum"], schema["maximum"], "");
  return [words[kind], ...(range === "" ? [] : [range]), ...(required ? [] : ["optional"])].join(", ");
}

function formatRange(min: unknown, max: unknown, unit: string): string {
  const from = typeof min === "number" ? min : undefined;
  const to = typeof max === "number" ? max : undefined;
  if (from === undefined && to === undefined) return "";
  if (from === undefined) return `at most ${to}${unit}`;
  return to === undefined ? `at least ${from}${unit}` : `${from} to ${to}${unit}`;
}

export function formatValue({ choices }: Field, value: ElicitValue): string {
  const titleOf = (one: unknown): string => choices.find((choice) => choice.value === one)?.title ?? String(one);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (!Array.isArray(value)) return oneLine(titleOf(value));
  return value.length === 0 ? "none" : oneLine(value.map(titleOf).join(", "));
}

/** Parses an answer. An empty line takes the default, or leaves an optional field out. */
export function parseField(field: Field, typed: string): ParsedField {
  if (typed === "") {
    if (field.defaultValue !== undefined) return { value: field.defaultValue };
    return field.required ? { problem: "A value is required" } : { value: undefined };
  }
  switch (field.kind) {
    case "text":
      return parseText(field, typed);
    case "number":
    case "integer":
      return parseNumber(field, typed);
    case "boolean":
      if (/^(?:y|yes|true)$/i.test(typed)) return { value: true };
      return /^(?:n|no|false)$/i.test(typed) ? { value: false } : { problem: "Type yes or no" };
    case "one": {
      const choice = findChoice(field.choices, typed);
      return choice === undefined ? { problem: notListed(field, typed) } : { value: choice.value };
    }
    case "many":
      return parseMany(field, typed);
  }
}

function findChoice(choices: readonly Choice[], typed: string): Choice | undefined {
  const isTyped = (text: string): boolean => text.toLowerCase() === typed.toLowerCase();
  return (
    choices.find(({ value }) => value === typed) ??
    (/^\d+$/.test(typed) ? choices[Number(typed) - 1] : undefined) ??
    choices.find(({ value, title }) => isTyped(value) || isTyped(title))
  );
}

function notListed({ choices }: Field, typed: string): string {
  return `${typed} is not in the list; type a number from 1 to ${choices.length}`;
}

function parseMany(field: Field, typed: string): ParsedField {
  const { choices, schema } = field;
  const parts = typed === "0" ? [] : typed.split(",").map((part) => part.trim());
  const values = new Set<string>();
  for (const part of parts) {
    // Without choices, any value is accepted.
    const choice = choices.length === 0 ? { value: part } : findChoice(choices, part);
    if (choice === undefined) return { problem: notListed(field, part) };
    values.add(choice.value);
  }
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && values.size < minItems) return { problem: `Choose at least ${minItems}` };
  if (typeof maxItems === "number" && values.size > maxItems) return { problem: `Choose at most ${maxItems}` };
  return { value: [...values] };
}

function parseNumber({ kind, schema }: Field, typed: string): ParsedField {
  const value = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(typed) ? Number(typed) : Number.NaN;
  if (!Number.isFinite(value)) return { problem: `${typed} is not a number` };
  if (kind === "integer" && !Number.isInteger(value)) return { problem: `${typed} is not a whole number` };
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
  // Date turns February 30 into March 2.
  return (
    !Number.isNaN(date.getTime()) && (!text.endsWith("T00:00:00Z") || date.toISOString().startsWith(text.slice(0, 10)))
  );
}

function parseText({ schema }: Field, typed: string): ParsedField {
  const { minLength, maxLength, format } = schema;
  const length = [...typed].length;
  if (typeof minLength === "number" && length < minLength)
    return { problem: `It must have at least ${minLength} characters` };
  if (typeof maxLength === "number" && length > maxLength)
    return { problem: `It must have at most ${maxLength} characters` };
  const known = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  if (known !== undefined && !known[0](typed)) return { problem: `It must look like ${known[1]}` };
  return { value: typed };
}
