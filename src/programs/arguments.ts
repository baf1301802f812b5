// From the arguments of a tool call to the arguments of a program: the input schema, the check, and the patterns that
// allow or deny a command line. No value can become an option that the caller did not name: a value is joined to its
// option with `=`, or may not begin with a dash.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { kindOf, nearest } from "../core/options.ts";
import { matchesGlob } from "../core/text.ts";
import { isObject, type Optional } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import type { ProgramHelp, ProgramOption } from "./help.ts";

/** The argument for what is not an option. */
const POSITIONAL = "_args";

/** The arguments of a program, as `spawn` takes them. */
export interface ProgramArguments {
  readonly options: readonly string[];
  readonly positional: readonly string[];
}

/** The schema that clients see. */
export function inputSchema({ options, hasSubcommands }: ProgramHelp, extraOptions: boolean): JsonSchema {
  const description = hasSubcommands
    ? "The subcommand, then its own arguments and options, each as a string of its own"
    : "The arguments that are not options, such as file names, in their order";
  return {
    type: "object",
    properties: {
      [POSITIONAL]: { type: "array", items: { type: "string" }, description },
      ...Object.fromEntries(options.map((option) => [option.name, optionSchema(option)])),
    },
    additionalProperties: extraOptions,
  };
}

function optionSchema({ value, type, choices, isRepeatable, description, flag, aliases }: ProgramOption): JsonSchema {
  const others = aliases.map((alias) => `${alias.length === 1 ? "-" : "--"}${alias}`);
  const spellings = description.startsWith(flag) ? "" : ` (${[flag, ...others].join(", ")})`;
  const described = { description: `${description}${spellings}` };
  if (value === "none") return { type: "boolean", ...described };
  const single = choices.length > 0 ? { type: "string", enum: choices } : { type };
  if (value === "optional") {
    // true gives the option without a value.
    const both = choices.length > 0 ? { enum: [...choices, true, false] } : { type: [type, "boolean"] };
    return { ...both, ...described };
  }
  return isRepeatable ? { type: "array", items: single, ...described } : { ...single, ...described };
}

type Issues = StandardSchemaV1.Issue[];

/** Checks the arguments of a call and turns them into those of the program. */
export function toProgramArguments(
  help: ProgramHelp,
  extraOptions: boolean,
  args: unknown,
): StandardSchemaV1.Result<ProgramArguments> {
  if (!isObject(args)) return { issues: [{ message: "the arguments must be an object" }] };
  const issues: Issues = [];
  const options: string[] = [];
  for (const [name, value] of Object.entries(args)) {
    if (name === POSITIONAL || value === undefined) continue;
    const report = (message: string): void => void issues.push({ message, path: [name.slice(0, 100)] });
    const option = help.options.find((known) => known.name === name) ?? (extraOptions ? extraOption(name) : undefined);
    if (option === undefined) report(unknownOption(name, help, extraOptions));
    else options.push(...optionWords(option, value, report));
  }
  const positional = positionalWords(help, extraOptions, args[POSITIONAL], (message) =>
    issues.push({ message, path: [POSITIONAL] }),
  );
  return issues.length === 0 ? { value: { options, positional } } : { issues };
}

/** An option that the help does not list. It accepts every kind of value. */
function extraOption(name: string): ProgramOption | undefined {
  if (!/^[A-Za-z0-9][\w.:+-]*$/.test(name)) return undefined;
  return {
    name,
    flag: name.length === 1 ? `-${name}` : `--${name}`,
    aliases: [],
    value: "optional",
    separator: name.length === 1 ? " " : "=",
    type: "string",
    choices: [],
    isRepeatable: true,
    description: "",
  };
}

function unknownOption(name: string, { options }: ProgramHelp, extraOptions: boolean): string {
  if (extraOptions) return "is not a valid name of an option";
  const bare = name.replace(/^-+/, "");
  const same = options.find((option) => option.name === bare || option.aliases.includes(bare));
  const near = same?.name ?? nearest(name, [POSITIONAL, ...options.map((option) => option.name)])[0];
  const hint = near === undefined ? `arguments that are not options belong in ${POSITIONAL}` : `did you mean ${near}?`;
  return `is not an option of this program; ${hint}`;
}

function optionWords(option: ProgramOption, value: unknown, report: (message: string) => void): readonly string[] {
  const { flag, isRepeatable, value: takes } = option;
  if (typeof value === "boolean") {
    if (takes === "required") report(`must be ${expected(option)}, not true or false`);
    return value ? [flag] : [];
  }
  if (takes === "none") report(`must be true or false, not ${kindOf(value)}`);
  if (Array.isArray(value) && !isRepeatable) report("may be given only once, so it must not be an array");
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.flatMap((item) => {
    const problem = valueProblem(option, item);
    if (problem !== undefined) report(problem);
    const text = String(item);
    // Joined to its option, the value is a part of one word and cannot be read as another option.
    const isJoined = takes === "optional" ? flag.startsWith("--") : option.separator === "=";
    if (isJoined || (text.startsWith("-") && flag.startsWith("--"))) return [`${flag}=${text}`];
    if (text.startsWith("-")) report(`must not begin with "-", because ${flag} takes it as a word of its own`);
    // GNU programs read an optional value only if it touches the letter.
    return takes === "optional" && !isRepeatable ? [`${flag}${text}`] : [flag, text];
  });
}

function valueProblem(option: ProgramOption, value: unknown): string | undefined {
  const { type, choices } = option;
  const isText = typeof value === "string" && !value.includes("\0");
  if (!isText && !(typeof value === "number" && Number.isFinite(value))) {
    return typeof value === "string" ? "must not contain a NUL character" : `must be ${expected(option)}`;
  }
  if (type === "number" && (value === "" || !Number.isFinite(Number(value)))) return "must be a number";
  return choices.length > 0 && !choices.includes(String(value)) ? `must be ${expected(option)}` : undefined;
}

function expected({ type, choices, isRepeatable }: ProgramOption): string {
  const single = choices.length > 0 ? `one of ${choices.join(", ")}` : `a ${type}`;
  return isRepeatable ? `${single}, or an array of them` : single;
}

function positionalWords(
  { hasSubcommands }: ProgramHelp,
  extraOptions: boolean,
  argument: unknown,
  report: (message: string) => void,
): readonly string[] {
  const values: readonly unknown[] = Array.isArray(argument) ? argument : argument === undefined ? [] : [argument];
  const words = values.map(String);
  if (!values.every((value) => typeof value === "string" || typeof value === "number")) {
    report("must be an array of strings");
  }
  if (words.some((word) => word.includes("\0"))) report("must not contain a NUL character");
  // The options of a subcommand are not in the help of the program, so all of them pass. Those before it do not.
  const checked = hasSubcommands ? words.slice(0, 1) : extraOptions ? [] : words;
  const dashed = checked.find((word) => word.startsWith("-") && word !== "-");
  if (dashed !== undefined) {
    const hint = hasSubcommands
      ? "must begin with the subcommand; options of the program itself are arguments of their own"
      : "must not have options, which are arguments of their own; write the file -x as ./-x";
    report(`${hint} (got ${JSON.stringify(dashed.slice(0, 50))})`);
  }
  return words;
}

/**
 * A command line as patterns see it: the words, with one space between two of them. A word that is empty, or has a space,
 * a quote, a backslash or a control character, is written as a JSON string, so that it cannot pass for several words.
 */
export function commandLine(words: readonly string[]): string {
  return words.map((word) => (/^[^\s"'\\\p{C}]+$/u.test(word) ? word : JSON.stringify(word))).join(" ");
}

/**
 * Why the command line may not be run; undefined if it may. A denied subcommand is denied with any options of the
 * program before it.
 */
export function refusal(
  program: string,
  { options, positional }: ProgramArguments,
  { include, exclude = [] }: Optional<Record<"include" | "exclude", readonly string[]>>,
): string | undefined {
  const line = commandLine([program, ...options, ...positional]);
  const forms = [line, commandLine([program, ...positional])];
  const denied = exclude.find((pattern) => forms.some((form) => matchesGlob(pattern, form)));
  if (denied !== undefined) return `\`${line}\` is not allowed: the pattern "${denied}" denies it`;
  if (include === undefined || include.some((pattern) => matchesGlob(pattern, line))) return undefined;
  return `\`${line}\` is not allowed; the patterns that are allowed: ${include.join(", ")}`;
}
