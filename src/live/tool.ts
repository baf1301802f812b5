// What a tool of a language is: its name, its words and its arguments. The guest does the work, under the tool's own
// name; how a call gets there, what is added to every tool, and how an answer becomes a result is the same for all (see
// live.ts).

import type { Runtime } from "./runtime.ts";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { nearest } from "../core/options.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { isObject } from "../core/objects.ts";

export interface Argument {
  readonly type: "string" | "integer" | "number" | "boolean" | "strings";
  readonly description: string;
  readonly required?: true;
  readonly choices?: readonly string[];
  /** The least that a number may be. */
  readonly least?: number;
  readonly default?: string | number | boolean;
}

export type Arguments = Readonly<Record<string, Argument>>;

export interface GuestTool {
  readonly name: string;
  readonly title: string;
  /** For the model: what it does, and when to call it. */
  readonly description: string;
  readonly arguments: Arguments;
  /** It changes nothing in the session. */
  readonly readOnly?: true;
  /** It runs the user's code, or works for long: it has a `timeout`, and may be a task. */
  readonly runsCode?: true;
  /** It is asked of the reader, at once, while an evaluation runs. */
  readonly atOnce?: true;
}

export interface Language {
  readonly runtime: Runtime;
  /** For people, such as "Common Lisp". */
  readonly title: string;
  /** For the model, of the whole server. */
  readonly instructions: string;
  /** The tool that evaluates. */
  readonly evaluate: GuestTool;
  readonly tools: readonly GuestTool[];
  /** What get-usage-guide says, as markdown. */
  readonly guide: string;
}

// The arguments of live tools: what callers see of them (a JSON Schema) and what checks them, written by hand, because
// a schema library would take longer to load than a session takes to start.

export type Given = { readonly [name: string]: unknown };

export interface Checked {
  readonly input: StandardSchemaV1<unknown, Given>;
  readonly inputSchema: JsonSchema;
}

/** Characters of a text: what is longer would hold up everybody while it is written for the guest. */
const MOST_TEXT = 5_000_000;

/** Faults of one call that are told, and characters of a name in them. */
const MOST_ISSUES = 20;
const MOST_NAME = 100;

const KINDS: Readonly<Record<Argument["type"], { readonly name: string; readonly is: (value: unknown) => boolean }>> = {
  string: { name: "a string", is: (value) => typeof value === "string" },
  integer: { name: "a whole number", is: (value) => Number.isSafeInteger(value) },
  number: { name: "a number", is: (value) => typeof value === "number" && Number.isFinite(value) },
  boolean: { name: "true or false", is: (value) => typeof value === "boolean" },
  strings: {
    name: "an array of strings",
    is: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
  },
};

export function checked(args: Arguments): Checked {
  const required = Object.keys(args).filter((name) => args[name]?.required === true);
  return {
    input: { "~standard": { version: 1, vendor: "catenary", validate: (value) => validated(args, required, value) } },
    inputSchema: {
      type: "object",
      properties: Object.fromEntries(Object.entries(args).map(([name, argument]) => [name, schemaOf(argument)])),
      ...(required.length === 0 ? undefined : { required }),
      additionalProperties: false,
    },
  };
}

function schemaOf({ type, description, choices, least, default: preset }: Argument): JsonSchema {
  return {
    ...(type === "strings" ? { type: "array", items: { type: "string" } } : { type }),
    description,
    ...(choices === undefined ? undefined : { enum: choices }),
    ...(least === undefined ? undefined : { minimum: least }),
    ...(preset === undefined ? undefined : { default: preset }),
  };
}

function validated(args: Arguments, required: readonly string[], value: unknown): StandardSchemaV1.Result<Given> {
  if (!isObject(value)) return { issues: [{ message: "the arguments must be an object" }] };
  const issues: StandardSchemaV1.Issue[] = required
    .filter((name) => value[name] === undefined)
    .map((name) => ({ message: "is required", path: [name] }));
  for (const name of Object.keys(value)) {
    if (issues.length >= MOST_ISSUES) break;
    const argument = Object.hasOwn(args, name) ? args[name] : undefined;
    const problem = argument === undefined ? unknown(name, args) : problemOf(argument, value[name]);
    if (problem !== undefined) issues.push({ message: problem, path: [name.slice(0, MOST_NAME)] });
  }
  return issues.length === 0 ? { value } : { issues };
}

function problemOf({ type, choices, least }: Argument, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const { name, is } = KINDS[type];
  if (!is(value)) return `must be ${name}`;
  if (least !== undefined && (value as number) < least) return `must be ${least} or more`;
  if (typeof value === "string" && value.length > MOST_TEXT)
    return `is longer than ${MOST_TEXT.toLocaleString("en")} characters; put it into a file, and load that`;
  return choices === undefined || choices.includes(value as string)
    ? undefined
    : `must be one of ${choices.join(", ")}`;
}

function unknown(name: string, args: Arguments): string {
  const known = Object.keys(args);
  if (known.length === 0) return "is no argument of this tool; it has none";
  const [near] = nearest(name, known);
  const hint = near === undefined ? `there are ${known.join(", ")}` : `did you mean ${near}?`;
  return `is no argument of this tool; ${hint}`;
}

/** As the guest is told: `capture-time` is `captureTime`. */
export function camel(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
