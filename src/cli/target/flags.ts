// The flags of a command line, read against a table of those that there are. What is wrong is said in one sentence, in
// our own words, with the flag that was probably meant. What the flags mean is for the command.

import { parseArgs } from "node:util";
import { UsageError } from "../exit-codes.ts";
import { nearest } from "../../core/options.ts";

interface Flag {
  readonly type: "string" | "boolean";
  readonly multiple?: boolean;
  /** `-` is a value of it, and means stdin. */
  readonly dash?: boolean;
}

export type Flags = Readonly<Record<string, Flag>>;

export interface Line<F extends Flags> {
  readonly positionals: readonly string[];
  readonly values: Values<F>;
}

export type Values<F extends Flags> = {
  readonly [Name in keyof F]?: F[Name] extends { type: "boolean" }
    ? true
    : F[Name] extends { multiple: true }
      ? readonly string[]
      : string;
};

/** Throws a UsageError. `needs` says what a flag without its value wants, by the flag. */
export function parseFlags<const F extends Flags>(
  command: string,
  args: readonly string[],
  flags: F,
  needs: { readonly [Name in keyof F]?: string } = {},
): Line<F> {
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
    // A value that looks like a flag is one, unless it is joined by `=`.
    const isFlag = !inlineValue && value?.startsWith("-") === true && !(flag.dash === true && value === "-");
    const lacks = flag.type === "string" && (value === undefined || isFlag);
    if (lacks || value === "") throw new UsageError(`${rawName} needs ${needs[name] ?? "a value"}`);
  }
  return { positionals, values };
}

function hint(command: string, name: string, flags: Flags): string {
  const [flag] = nearest(name, Object.keys(flags));
  return flag === undefined ? `catenary ${command} --help lists them` : `did you mean --${flag}?`;
}
