// Parses the flags of a command against a table. The error for a mistake is one sentence, with the flag that was
// probably meant.

import { parseArgs } from "node:util";
import { nearest } from "../../core/options.ts";
import { UsageError } from "../command.ts";

interface Flag {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  /** `-` is a valid value and means stdin. */
  readonly dash?: boolean;
}

export type Flags = Readonly<Record<string, Flag>>;

export interface ParsedLine<F extends Flags> {
  readonly positionals: readonly string[];
  readonly values: FlagValues<F>;
}

export type FlagValues<F extends Flags> = {
  readonly [Name in keyof F]?: F[Name] extends { type: "boolean" }
    ? true
    : F[Name] extends { multiple: true }
      ? readonly string[]
      : string;
};

/** Throws a UsageError for an invalid flag. If the value of a flag is missing, the error quotes `expected`. */
export function parseFlags<const F extends Flags>(
  command: string,
  args: readonly string[],
  flags: F,
  expected: { readonly [Name in keyof F]?: string } = {},
): ParsedLine<F> {
  const { positionals, values, tokens } = parseArgs({
    args: [...args],
    options: flags,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const { name, rawName, value, inlineValue } = token;
    const flag = rawName.startsWith("--") && Object.hasOwn(flags, name) ? flags[name] : undefined;
    if (flag === undefined) throw new UsageError(`There is no option ${rawName}; ${hint(command, name, flags)}`);
    if (flag.type === "boolean" && value !== undefined) throw new UsageError(`${rawName} takes no value`);
    // A value that starts with a dash is the next flag, unless it follows an `=`.
    const isFlag = !inlineValue && value?.startsWith("-") === true && !(flag.dash === true && value === "-");
    const isMissing = flag.type === "string" && (value === undefined || isFlag);
    if (isMissing || value === "") throw new UsageError(`${rawName} needs ${expected[name] ?? "a value"}`);
  }
  return { positionals, values };
}

function hint(command: string, name: string, flags: Flags): string {
  const [flag] = nearest(name, Object.keys(flags));
  return flag === undefined ? `catenary ${command} --help lists the options` : `did you mean --${flag}?`;
}

export function unexpectedArguments(command: string, words: readonly string[], usage: string): UsageError {
  return new UsageError(`${command}: unexpected argument ${words.join(" ")}\n\n${usage}`);
}
