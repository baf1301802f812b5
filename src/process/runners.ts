// Programs that run another program or a file, which one of their arguments names: package runners, interpreters, shells.

import { basename } from "node:path";

/** Their first argument, after flags without a value, names what they run. */
const RUNNERS: ReadonlySet<string> = new Set([
  ...["bun", "bunx", "deno", "node", "npx", "pipx", "python", "python3", "tsx", "uvx"],
  ...["bash", "sh"],
]);

/** Any other flag may be followed by a value, which may be secret. */
const FLAGS_WITHOUT_VALUE: ReadonlySet<string> = new Set([
  ...["-y", "--yes", "-q", "--quiet", "-u", "--no-install", "--bun"],
  ...["--enable-source-maps", "--no-warnings", "--experimental-strip-types"],
]);

const INTERPRETER = /^(?:node|bun|tsx|ts-node|python[\d.]*|ruby|perl|php)(?:\.exe)?$/;
const SHELL = /^(?:ba|da|k|z)?sh(?:\.exe)?$/;

/** The option of a shell after which it runs the argument, such as `-c` or `-lc`. */
export const SHELL_CODE: RegExp = /^-[a-z]*c$/;

export function isShell(program: string): boolean {
  return SHELL.test(basename(program));
}

/** Whether its first argument is a file to run. */
export function isInterpreter(program: string): boolean {
  return INTERPRETER.test(basename(program)) || isShell(program);
}

/** What the program runs: the first argument, if that cannot be a flag or its value. */
export function runBy(program: string, args: readonly string[]): string | undefined {
  const first = RUNNERS.has(program) ? args.find((arg) => !FLAGS_WITHOUT_VALUE.has(arg)) : undefined;
  return first?.startsWith("-") === false ? first : undefined;
}
