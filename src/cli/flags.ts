// Declares the flags of commands with the fields of options (core/fields.ts). One declaration gives the types and checks
// of the values, the error with the flag that was probably meant, the help, the completion, and the reference.

import { parseArgs, type ParseArgsConfig } from "node:util";
import { choice, ms, string, type Field } from "../core/fields.ts";
import { nearest, OptionPlace, type OptionError } from "../core/options.ts";
import { suggest, UsageError } from "./command.ts";

/** A flag. Its description is Markdown for the reference; the help leaves out links and backquotes. */
export interface Flag<Type = unknown> extends Field<string, Type> {
  /** The word for the value in the help. Undefined if the flag takes none. */
  readonly placeholder?: string;
  /** The heading in the help. */
  readonly section?: string | undefined;
  /** One letter, such as `f` for -f. */
  readonly short?: string;
  /** `-` is a valid value and means stdin. */
  readonly dash?: true;
  /** The kind of target that the flag is for. */
  readonly only?: "command" | "url" | undefined;
}

export type Flags = Readonly<Record<string, Flag>>;

type ValueOf<Of> = Of extends Field<string, infer Type> ? ([Type] extends [boolean] ? true : Type) : never;

export type FlagValues<F extends Flags> = { readonly [Name in keyof F]?: ValueOf<F[Name]> };

export interface ParsedLine<F extends Flags> {
  readonly words: readonly string[];
  readonly values: FlagValues<F>;
}

type Details = Pick<Flag, "expected" | "short" | "dash" | "only">;

/** A flag with a value, which is a string if there is only a description. `expected` completes "--flag needs". */
export function flag(placeholder: string, description: string, details?: Details): Flag<string>;
export function flag<Type>(placeholder: string, field: Field<string, Type>, details?: Details): Flag<Type>;
export function flag(placeholder: string, field: Field | string, details: Details = {}): Flag {
  return { ...(typeof field === "string" ? string(field) : field), placeholder, ...details };
}

/** The same flags, for one kind of target. */
export function onlyFor<const F extends Flags>(kind: "command" | "url", flags: F): F {
  return Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, only: kind }])) as F;
}

/** The same flags under a heading of the help, or under none. */
export function section<const F extends Flags>(heading: string | undefined, flags: F): F {
  return Object.fromEntries(Object.entries(flags).map(([name, flag]) => [name, { ...flag, section: heading }])) as F;
}

/** One of these values. The error lists them, or names the nearest if it has a noun for them. */
export function oneOf<const Choice extends string>(
  placeholder: string,
  description: string,
  choices: readonly Choice[],
  noun?: string,
): Flag<Choice> {
  const check = (value: unknown, place: OptionPlace): Choice => {
    const choice = choices.find((known) => known === value);
    if (choice !== undefined) return choice;
    const all = `${noun === undefined ? "write one of" : `the ${noun}s are`} ${choices.join(", ")}`;
    const hint = suggest(String(value), noun === undefined ? [] : choices, all);
    throw place.error(
      `${String(value)} is not ${noun === undefined ? "" : "a "}valid${noun ? ` ${noun}` : ""}; ${hint}`,
    );
  };
  return flag(placeholder, { ...choice(description, choices), check });
}

/** A number of seconds. The value is in milliseconds. */
export function seconds(description: string, maximum?: number): Flag<number> {
  const range = maximum === undefined ? "" : ` from 0 to ${maximum}`;
  const check = (value: unknown, place: OptionPlace): number => {
    const isNumber = /^\d+(?:\.\d+)?$/.test(String(value)) && Number(value) <= (maximum ?? Infinity);
    if (!isNumber) throw place.error(`${String(value)} is not a number of seconds${range}`);
    return Number(value) * 1_000;
  };
  return { ...ms(description), check, placeholder: "SECONDS", expected: "a number of seconds" };
}

/** The place of a flag in errors, which are those of the command line. */
class FlagPlace extends OptionPlace {
  override error(problem: string): OptionError {
    return new UsageError(`${this.owner} ${problem}`) as Error as OptionError;
  }
}

function isRepeatable({ schema }: Flag): boolean {
  return schema?.["type"] === "array";
}

function tokenize(args: readonly string[], flags: Flags) {
  const options = Object.entries(flags).map(([name, flag]) => {
    const type = flag.placeholder === undefined ? "boolean" : "string";
    return [name, { type, multiple: isRepeatable(flag), ...(flag.short !== undefined && { short: flag.short }) }];
  });
  const known = Object.fromEntries(options) as NonNullable<ParseArgsConfig["options"]>;
  return parseArgs({ args: [...args], options: known, allowPositionals: true, strict: false, tokens: true });
}

/** Throws a UsageError for an invalid flag. */
export function parseFlags<const F extends Flags>(command: string, args: readonly string[], flags: F): ParsedLine<F> {
  const { positionals, values, tokens } = tokenize(args, flags);
  const seen = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const flag = Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) throw new UsageError(`There is no option ${rawName}; ${hint(command, name, flags)}`);
    const takesValue = flag.placeholder !== undefined;
    if (!takesValue && value !== undefined) throw new UsageError(`${rawName} takes no value`);
    // A value that starts with a dash is the next flag, unless it follows an `=`.
    const isFlag = inlineValue !== true && value?.startsWith("-") === true && !(flag.dash === true && value === "-");
    const isMissing = takesValue && (value === undefined || isFlag);
    if (isMissing || value === "") throw new UsageError(`${rawName} needs ${flag.expected ?? "a value"}`);
    if (takesValue && !isRepeatable(flag) && seen.has(name))
      throw new UsageError(`${rawName} was given twice, and takes one value`);
    seen.add(name);
  }
  const checked = Object.entries(values).map(([name, value]) => [
    name,
    flags[name]?.check(value, new FlagPlace(`--${name}`)),
  ]);
  return { words: positionals, values: Object.fromEntries(checked) as FlagValues<F> };
}

/** Options of other programs or with earlier names, and ours with the same meaning. */
const FOREIGN_FLAGS: ReadonlyMap<string, readonly [flag: string, example: string]> = new Map([
  ["p", ["http", "--http :PORT"]],
  ["port", ["http", "--http :PORT"]],
  ["host", ["http", "--http HOST:PORT"]],
  ["e", ["env", "--env KEY=VALUE"]],
  ["H", ["header", "--header 'NAME: VALUE'"]],
  ["o", ["output", "--output FILE"]],
  ["q", ["quiet", "--quiet"]],
  ["v", ["verbose", "--verbose"]],
  ["y", ["yes", "--yes"]],
  ["profile", ["compat", "--compat NAME"]],
  // Its name before there was a command of that name.
  ["watch", ["reload", "--reload"]],
]);

function hint(command: string, name: string, flags: Flags): string {
  const [foreign, example] = FOREIGN_FLAGS.get(name) ?? [];
  if (foreign !== undefined && Object.hasOwn(flags, foreign)) return `did you mean ${example}?`;
  // A single letter is near to every short name.
  const [near] = name.length === 1 ? [] : nearest(name, Object.keys(flags));
  return near === undefined ? `catenary ${command} --help lists the options` : `did you mean --${near}?`;
}

/** The first of these flags that is set. */
export function firstGiven(values: object, names: readonly string[]): string | undefined {
  return names.find((name) => (values as Readonly<Record<string, unknown>>)[name] !== undefined);
}

/** Throws a UsageError if one of these flags is set. `needed` is what it cannot be without. */
export function refuseFlags(values: object, names: readonly string[], needed: string): void {
  const misplaced = firstGiven(values, names);
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs ${needed}`);
}

/** Splits a line at its command: everything after `--`, or from the first word on that is not an option. */
export function splitAtCommand(args: readonly string[], flags: Flags): { ownWords: string[]; command: string[] } {
  const first = tokenize(args, flags).tokens.find(({ kind }) => kind !== "option");
  if (first === undefined) return { ownWords: [...args], command: [] };
  const from = first.kind === "option-terminator" ? first.index + 1 : first.index;
  return { ownWords: args.slice(0, first.index), command: args.slice(from) };
}

/** `--output FILE`, as in the help and the reference. */
export function label(name: string, { placeholder, short }: Flag): string {
  return `${short === undefined ? "" : `-${short}, `}--${name}${placeholder === undefined ? "" : ` ${placeholder}`}`;
}

/** The description in Markdown. */
export function meaning(flag: Flag): string {
  const { description, only } = flag;
  const text = only === undefined ? description : description.replace(/^./, (letter) => letter.toLowerCase());
  const kind = { command: "For a command: ", url: "For a URL: " };
  return `${only === undefined ? "" : kind[only]}${text}${isRepeatable(flag) ? " Repeatable." : ""}`;
}

/** The help has only its words; the reference has all of it. */
export const MARKDOWN_LINK: RegExp = /\[([^\]]+)\]\([^)]*\)/g;

/** Where descriptions begin in the help. */
const COLUMN = 25;

/** The lines of the flags in the help, under their headings. */
export function flagLines(flags: Flags, width: number): string[] {
  const labels = Object.entries(flags).map(([name, flag]) => ({ flag, text: `  ${label(name, flag)}` }));
  const longest = Math.max(...labels.map(({ text }) => text.length));
  const column = Math.min(longest < COLUMN ? longest + 1 : COLUMN, COLUMN);
  let heading: string | undefined;
  return labels.flatMap(({ flag, text }, index) => {
    const plain = meaning(flag).replaceAll(MARKDOWN_LINK, "$1").replaceAll("`", "");
    const [first = "", ...more] = wrap(plain, width - column);
    const rest = more.map((line) => " ".repeat(column) + line);
    const lines = text.length < column ? [text.padEnd(column) + first] : [text, " ".repeat(column) + first];
    const isNew = flag.section !== heading;
    heading = flag.section;
    return [...(isNew ? [...(index === 0 ? [] : [""]), `${heading ?? "Options"}:`] : []), ...lines, ...rest];
  });
}

/** Breaks a paragraph at spaces. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
