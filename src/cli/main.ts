#!/usr/bin/env node
// The command `catenary`: finds the command by its name in one table and runs it. Data goes to stdout,
// everything else to stderr; the exit code says what kind of failure it was (see exit-codes).

import { readFile } from "node:fs/promises";
import { serveCommand } from "./commands/serve.ts";
import { EXIT, UsageError } from "./exit-codes.ts";
import { fail } from "./output.ts";

export interface Command {
  /** Its line in `catenary --help`. */
  readonly summary: string;
  /** The whole text of `catenary NAME --help`. */
  readonly help: string;
  /** Resolves to the exit code, or to nothing while it goes on running. */
  run(args: readonly string[]): Promise<number | undefined>;
}

const COMMANDS: ReadonlyMap<string, Command> = new Map([["serve", serveCommand]]);

function help(): string {
  const lines = [...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(10)}${summary}`);
  return `Usage: catenary COMMAND [ARGUMENTS]\n\nCommands:\n${lines.join("\n")}\n\n  --help     this text, or that of a command\n  --version  the version of this program\n`;
}

async function main(args: readonly string[]): Promise<number | undefined> {
  const [name, ...rest] = args;
  if (name === undefined || ["--help", "-h", "help"].includes(name)) {
    (name === undefined ? process.stderr : process.stdout).write(help());
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  if (name === "--version" || name === "-v") {
    const text = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    process.stdout.write(`${(JSON.parse(text) as { version: string }).version}\n`);
    return EXIT.ok;
  }
  const command = COMMANDS.get(name);
  if (command === undefined) throw new UsageError(`There is no command ${name}; catenary --help lists them`);
  if (rest.includes("--help") || rest.includes("-h")) {
    process.stdout.write(command.help);
    return EXIT.ok;
  }
  return command.run(rest);
}

try {
  const code = await main(process.argv.slice(2));
  if (code !== undefined) process.exitCode = code;
} catch (error) {
  fail(error);
}
