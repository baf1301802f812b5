// The flags of a command line, read against a table of those that there are. What is wrong is said in one sentence, in
// our own words, with the flag that was probably meant. What the flags mean is for the command.

import { parseArgs } from "node:util";
import { UsageError } from "./exit-codes.ts";

export type Flags = Readonly<Record<string, { readonly type: "string" | "boolean"; readonly multiple?: boolean }>>;

export interface Line<F extends Flags> {
  readonly positionals: readonly string[];
  readonly values: {
    readonly [Name in keyof F]?: F[Name] extends { type: "boolean" }
      ? true
      : F[Name] extends { multiple: true }
        ? readonly string[]
        : string;
  };
}

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
    const lacks = flag.type === "string" && (value === undefined || (!inlineValue && value.startsWith("-")));
    if (lacks || value === "") throw new UsageError(`${rawName} needs ${needs[name] ?? "a value"}`);
  }
  return { positionals, values };
}

function hint(command: string, name: string, flags: Flags): string {
  const [nearest] = Object.keys(flags)
    .map((flag) => ({ flag, distance: flag.startsWith(name) ? 0 : distance(name, flag) }))
    .filter((candidate) => candidate.distance <= 2)
    .toSorted((a, b) => a.distance - b.distance);
  return nearest === undefined ? `catenary ${command} --help lists them` : `did you mean --${nearest.flag}?`;
}

/** Letters to put in, take out or change (Levenshtein). */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
