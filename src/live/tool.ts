// Describes the tools of a language, and checks their arguments. The JSON Schema and the checks are written by hand,
// because a schema library would take longer to load than a session takes to start.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { defined, isObject } from "../core/values.ts";
import { nearest, type Fields } from "../core/options.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import type { CallSyntax } from "../tools/search.ts";
import type { GuestOptions } from "./options.ts";
import type { GuestText, Limits, Runtime } from "./runtime.ts";

/** A JSON Schema with the few keywords that are used here. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly default?: string | number | boolean;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly anyOf?: readonly object[];
}

export interface ArgumentSpec extends Omit<Schema, "required"> {
  readonly type: "string" | "integer" | "number" | "boolean" | "array";
  readonly required?: true;
  /** Accepted, but left out of the schema that clients read. */
  readonly unlisted?: true;
}

export type ArgumentSpecs = Readonly<Record<string, ArgumentSpec>>;

/** No description where the name says all: every client reads the descriptions with the list of tools. */
export function required(description?: string): ArgumentSpec {
  return { type: "string", required: true, ...defined({ description }) };
}

export function text(description?: string): ArgumentSpec {
  return { type: "string", ...defined({ description }) };
}

export function flag(description?: string): ArgumentSpec {
  return { type: "boolean", ...defined({ description }) };
}

export function count(preset: number, description?: string): ArgumentSpec {
  return { type: "integer", ...defined({ description }), default: preset };
}

export function choice(choices: readonly string[], description?: string, preset?: string): ArgumentSpec {
  return { type: "string", enum: choices, ...defined({ description, default: preset }) };
}

/** The arguments of one call. */
export type ToolArguments = { readonly [name: string]: unknown };

/** A tool that the guest implements: under the same name, or as `eval` if it is the tool that evaluates code. */
export interface GuestTool {
  readonly name: string;
  readonly title: string;
  /** Tells the model what the tool does and when to call it. */
  readonly description: string;
  readonly arguments: ArgumentSpecs;
  /** Does not change the session. */
  readonly readOnly?: true;
  /** The tool runs the user's code or may take long, so it gets a `timeout` argument and can run as a task. */
  readonly runsCode?: true;
  /** Can be answered while an evaluation runs. */
  readonly whileBusy?: true;
  /** The tool evaluates this argument, as `eval` does, and its result is the bare printed value. */
  readonly evaluates?: string;
  /** The guest replies as to `eval`. */
  readonly isEvaluation?: true;
  /** The tool is listed only while this library is loaded in a session of the caller. It can be called at any time. */
  readonly library?: string;
  /** Answers calls that need no guest. */
  readonly answer?: (session: KeptTexts, args: ToolArguments) => GuestText | undefined;
}

/** The part of a session that keeps long texts. */
export interface KeptTexts {
  readonly limits: Pick<Limits, "outputChars">;
  readonly log: { page(number: number, start: number, count: number): GuestText };
}

/** A resource that the guest reads, or many if the URI has variables such as `{name}`. */
export interface LanguageResource {
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
}

export interface LanguagePrompt {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly arguments: Readonly<Record<string, { readonly description: string; readonly required?: true }>>;
  /** The description of the result. Default: none. */
  readonly about?: (args: Readonly<Record<string, string | undefined>>) => string;
  readonly text: (args: Readonly<Record<string, string | undefined>>) => string;
}

export interface Language {
  readonly runtime: Runtime;
  /** The display name, such as "Common Lisp". */
  readonly title: string;
  /** The instructions of the MCP server. */
  readonly instructions: string;
  /** The tool that evaluates code. */
  readonly evaluate: GuestTool;
  readonly tools: readonly GuestTool[];
  /** The guest implements the common tools for errors and values: restarts, frames and handles. */
  readonly hasDebugger?: true;
  readonly resources?: readonly LanguageResource[];
  readonly prompts?: readonly LanguagePrompt[];
  /**
   * For the description of `run-code`: how the code calls tools, and how their results look. Absent if the guest does
   * not implement `set-tools`, so that the language cannot be used for code mode.
   */
  readonly callsTools?: string;
  /** How the code writes a call of a tool. Default: as JavaScript does, with declarations in TypeScript. */
  readonly callSyntax?: CallSyntax;
  /** What messages about calls advise. */
  readonly callAdvice?: CallAdvice;
}

/** Advice about calls of tools from code, as the language writes it. */
export interface CallAdvice {
  /** What code writes before the path of a tool, such as `tools.`. */
  readonly prefix?: string;
  /** The call that finds tools, such as `(search-tools "words")`. */
  readonly search: string;
  /** A sentence about how the code waits for its calls. */
  readonly wait: string;
  /** What the arguments of a call must be. */
  readonly arguments: string;
  /** The call that returns a text that was too long for the result, by its number. */
  readonly output: (number: number) => string;
}

/** What a language is created with: the options that all languages have, and its own settings. */
export interface LanguageOptions extends GuestOptions {
  /** Called once if sessions start slowly for a reason that the user can fix. */
  readonly onWarning?: ((text: string) => void) | undefined;
  readonly [setting: string]: unknown;
}

/** What is known about a language before its code is loaded. Configs, commands and errors read it. */
export interface LanguageEntry {
  /** The name in configs and commands, such as "js". */
  readonly name: string;
  /** A second name that configs accept. */
  readonly alternateName?: string;
  /** Other names that commands accept, in lower case. */
  readonly aliases: readonly string[];
  /** The display name, such as "JavaScript". */
  readonly title: string;
  /** A few words for help and schema, such as "JavaScript and TypeScript". */
  readonly description: string;
  readonly program: {
    /** The program that is looked up on the PATH if the user names none; absent if none is needed. */
    readonly name?: string;
    /** What the setting `program` can be, and its default. */
    readonly description: string;
    /** What to do if the program is missing. */
    readonly hint: string;
  };
  /** The options that this language has beyond the common ones, in code and in a config. */
  readonly settings: Fields;
  /** A reason why sessions with these settings will not work on this machine. */
  problem?(settings: Readonly<Record<string, unknown>>): SettingProblem | undefined;
  /** A reason why the code of such sessions cannot call tools, which code mode needs. */
  codeProblem?(settings: Readonly<Record<string, unknown>>): SettingProblem | undefined;
  create(options: LanguageOptions): Promise<Language>;
  /** Whether the code is unfinished, so that a person who types it wants another line. */
  needsMore(code: string): boolean;
}

export interface SettingProblem {
  readonly setting: string;
  /** Whether `create` refuses the settings too. Otherwise only evaluations fail. */
  readonly isFatal?: true;
  readonly message: string;
  readonly hint: string;
}

export interface ToolInput {
  readonly input: StandardSchemaV1<unknown, ToolArguments>;
  readonly inputSchema: JsonSchema;
}

/** The maximum length of a string argument: encoding a longer one would block the host's event loop. */
const MAX_STRING_LENGTH = 5_000_000;

/** The maximum number of problems reported for one call. */
const MAX_ISSUES = 20;
/** Longer argument names are cut in these reports. */
const MAX_NAME_LENGTH = 100;

const TYPE_NAMES: Readonly<Record<ArgumentSpec["type"], string>> = {
  string: "a string",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "an array of strings",
};

/** Whether the value has the type that the schema says, at any depth. */
export function fits(
  value: unknown,
  { type, enum: choices, items = {}, properties = {}, required = [] }: Schema,
): boolean {
  if (type === undefined) return choices?.includes(value) === true;
  if (Array.isArray(value)) return type === "array" && value.every((item) => fits(item, items));
  if (isObject(value)) {
    if (type !== "object") return false;
    for (const name of required) if (value[name] === undefined) return false;
    // A loop, for speed: the reply of every evaluation comes through here.
    for (const name of Object.keys(properties)) {
      const field = value[name];
      if (field !== undefined && !fits(field, properties[name] ?? {})) return false;
    }
    return true;
  }
  if (Array.isArray(type)) return type.some((typeName: string) => fits(value, { type: typeName }));
  if (typeof value === "number")
    return type === "integer" ? Number.isSafeInteger(value) : type === "number" && Number.isFinite(value);
  return type === (value === null ? "null" : typeof value);
}

/**
 * The JSON Schema of the arguments, and the validator that enforces it. The validator refuses other arguments; the schema
 * does not say so, since every client reads it with the list of tools.
 */
export function toolInput(specs: ArgumentSpecs): ToolInput {
  const required = Object.keys(specs).filter((name) => specs[name]?.required === true);
  return {
    input: { "~standard": { version: 1, vendor: "catenary", validate: (value) => validate(specs, required, value) } },
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(
        Object.entries(specs)
          .filter(([, { unlisted }]) => unlisted !== true)
          .map(([name, { required: _required, minimum: _minimum, ...schema }]) => [name, schema]),
      ),
      ...(required.length === 0 ? undefined : { required }),
    },
  };
}

function validate(
  specs: ArgumentSpecs,
  required: readonly string[],
  value: unknown,
): StandardSchemaV1.Result<ToolArguments> {
  if (!isObject(value)) return { issues: [{ message: "the arguments must be an object" }] };
  const issues: StandardSchemaV1.Issue[] = required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ message: "is required", path: [name] }));
  for (const name of Object.keys(value)) {
    if (issues.length >= MAX_ISSUES) break;
    const spec = Object.hasOwn(specs, name) ? specs[name] : undefined;
    const problem = spec === undefined ? unknownArgument(name, specs) : problemOf(spec, value[name]);
    if (problem !== undefined) issues.push({ message: problem, path: [name.slice(0, MAX_NAME_LENGTH)] });
  }
  return issues.length === 0 ? { value } : { issues };
}

function problemOf(spec: ArgumentSpec, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const { type, items = {}, minimum = -Infinity, enum: choices } = spec;
  if (!fits(value, { type, items })) return `must be ${TYPE_NAMES[type]}`;
  if (typeof value === "number" && value < minimum) return `must be ${minimum} or more`;
  if (typeof value === "string" && value.length > MAX_STRING_LENGTH)
    return `is longer than ${MAX_STRING_LENGTH.toLocaleString("en")} characters; put it into a file and load the file`;
  return choices?.includes(value) === false ? `must be one of ${choices.join(", ")}` : undefined;
}

function unknownArgument(name: string, specs: ArgumentSpecs): string {
  const known = Object.keys(specs);
  if (known.length === 0) return "is not an argument of this tool; it takes none";
  const [near] = nearest(name, known);
  const hint = near === undefined ? `the arguments are ${known.join(", ")}` : `did you mean ${near}?`;
  return `is not an argument of this tool; ${hint}`;
}

/** The name of an argument in guest requests: `capture-time` becomes `captureTime`. */
export function toCamelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
