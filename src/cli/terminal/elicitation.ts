// Lets the user answer the questions of a server (elicitation) in the terminal. A form is filled in field by field and
// reviewed before it is sent. A URL is shown with its host, and opened only if the user agrees. All text from the
// server is sanitized. Ctrl-C at a question cancels the whole call; Ctrl-D dismisses the question.

import type { FormHandler, UrlHandler } from "../../client/contexts.ts";
import { isObject } from "../../core/values.ts";
import type { ElicitResult, ElicitValue } from "../../protocol/model/index.ts";
import { paint } from "./output.ts";
import { oneLine, parseNumber, sanitize, truncate } from "./text.ts";
import type { Dialog, Prompter } from "./prompter.ts";

/** Opens a URL in the browser; false if that is not possible. */
export type OpenPage = (url: URL) => Promise<boolean>;

/** Longer messages from the server are cut. */
const MAX_MESSAGE_LENGTH = 4_000;
/** Longer titles, descriptions and choices are cut. */
const MAX_LINE_WIDTH = 500;

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

/** Asks until the answer begins one of the words. `whenEmpty` is the word for an empty answer. */
async function choose<Word extends string>(
  dialog: Dialog,
  prompt: string,
  words: readonly Word[],
  whenEmpty?: Word,
): Promise<Word | "cancel" | "decline"> {
  for (;;) {
    const answer = (await dialog.confirm(prompt))?.toLowerCase().replace(/^:/, "");
    if (answer === undefined) return "cancel";
    if (answer === "" && whenEmpty !== undefined) return whenEmpty;
    const found = (["cancel", "decline", "no", ...words] as const).find((word) => word.startsWith(answer || "?"));
    if (found !== undefined) return found === "no" ? "decline" : found;
  }
}

/** A form without fields asks for consent. */
async function confirm(dialog: Dialog): Promise<ElicitResult> {
  const answer = await choose(dialog, "Agree? [y]es, [d]ecline, [c]ancel: ", ["yes"]);
  return answer === "yes" ? { action: "accept", content: {} } : { action: answer };
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
    const answer = await review(dialog, fields, content);
    if (answer === "yes") return { action: "accept", content: Object.fromEntries(content) };
    if (answer !== "edit") return { action: answer };
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
    if (typed === undefined || typed === ":cancel") return { action: "cancel" };
    if (typed === ":decline") return { action: "decline" };
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

async function review(
  dialog: Dialog,
  fields: readonly Field[],
  content: Content,
): Promise<"yes" | "edit" | "decline" | "cancel"> {
  dialog.print("");
  for (const field of fields) {
    const value = content.get(field.name);
    const shown =
      value === undefined ? paint("dim", "(empty)") : truncate(MAX_MESSAGE_LENGTH, formatValue(field, value));
    dialog.print(`  ${label(field)}: ${shown}`);
  }
  return choose(dialog, "Send this? [Y]es, [e]dit, [d]ecline, [c]ancel: ", ["edit", "yes"], "yes");
}

async function visitPage(dialog: Dialog, url: URL, openPage: OpenPage): Promise<ElicitResult> {
  dialog.print(`  host: ${paint("bold", line(url.host))}`);
  // `href` is pure ASCII, so that look-alike characters in the host become visible.
  dialog.print(`  URL:  ${sanitize(url.href)}`);
  if (url.username !== "" || url.password !== "") {
    dialog.print("  Careful: the part before the @ is a user name, not the host");
  }
  for (;;) {
    const prompt = "Open it in the browser? [y]es, [m]yself, [d]ecline, [c]ancel: ";
    const answer = await choose(dialog, prompt, ["myself", "yes"]);
    if (answer === "cancel" || answer === "decline") return { action: answer };
    if (answer === "myself" || (await openPage(url))) return { action: "accept" };
    dialog.print("Could not open a browser; if you trust the URL, open it yourself and answer [m]yself");
  }
}

// The fields of a form: each is asked for in one line, and its answer is parsed. For a choice, the user sees the titles
// and the server gets the values.

export interface Choice {
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

export type ParsedField = { readonly value: ElicitValue | undefined } | { readonly problem: string };

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
  const schema = isObject(requestedSchema) ? requestedSchema : {};
  const properties = Object.entries(isObject(schema["properties"]) ? schema["properties"] : {});
  return properties.flatMap(([name, field]) =>
    isObject(field) ? [toField(name, field, listOf(schema["required"]).includes(name))] : [],
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function toField(name: string, schema: Field["schema"], required: boolean): Field {
  const { type, items, default: value } = schema;
  const choices = type === "array" && isObject(items) ? readChoices(items, "anyOf") : readChoices(schema, "oneOf");
  const kind = fieldKind(type, choices);
  return { name, required, choices, kind, schema, defaultValue: isOfKind(kind, value) ? value : undefined };
}

function isOfKind(kind: Kind, value: unknown): value is ElicitValue {
  if (kind === "many") return Array.isArray(value) && value.every((item) => typeof item === "string");
  if (kind === "number") return Number.isFinite(value);
  if (kind === "integer") return Number.isInteger(value);
  return typeof value === (kind === "boolean" ? "boolean" : "string");
}

function fieldKind(type: unknown, choices: readonly Choice[]): Kind {
  if (type === "array") return "many";
  if (type === "number" || type === "integer" || type === "boolean") return type;
  return choices.length > 0 ? "one" : "text";
}

function readChoices(schema: Field["schema"], titled: "oneOf" | "anyOf"): Choice[] {
  if (!Array.isArray(schema[titled])) {
    const names = listOf(schema["enumNames"]);
    return listOf(schema["enum"]).map((value, at) => ({ value: String(value), title: String(names[at] ?? value) }));
  }
  return listOf(schema[titled]).flatMap((choice) => {
    if (!isObject(choice) || typeof choice["const"] !== "string") return [];
    const { const: value, title } = choice;
    return [{ value, title: typeof title === "string" ? title : value }];
  });
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
  const titleOf = (one: unknown): string => choices.find((choice) => choice.value === one)?.title ?? String(one);
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
