#!/usr/bin/env node
// The command `catenary`: finds the command by its name in one table and runs it. Data goes to stdout,
// everything else to stderr; the exit code says what kind of failure it was (see exit-codes).

import { writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { EXIT, UsageError } from "./exit-codes.ts";
import { nearest } from "../core/options.ts";
import { fail, leave } from "./terminal/output.ts";

export interface Command {
  /** The whole text of `catenary NAME --help`. */
  readonly help: string;
  /** Resolves to the exit code, or to nothing while it goes on running. */
  run(args: readonly string[]): Promise<number | undefined>;
}

interface Entry {
  /** Its line in `catenary --help`. */
  readonly summary: string;
  /** Late: who asks what there is needs none of it. */
  load(): Promise<Command>;
}

const COMMANDS: ReadonlyMap<string, Entry> = new Map<string, Entry>([
  [
    "up",
    {
      summary: "a gateway on this machine, for all the servers of a config",
      load: async () => (await import("./commands/up.ts")).upCommand,
    },
  ],
  [
    "serve",
    {
      summary: "serve a config's gateway or a module's server, on stdio or over HTTP",
      load: async () => (await import("./commands/serve.ts")).serveCommand,
    },
  ],
  [
    "run",
    {
      summary: "one stdio server behind an empty chain, for a client of any revision",
      load: async () => (await import("./commands/run.ts")).runCommand,
    },
  ],
  [
    "check",
    {
      summary: "explain what is wrong with a config",
      load: async () => (await import("./commands/check.ts")).checkCommand,
    },
  ],
  [
    "tools",
    {
      summary: "list the tools of a server, or show one",
      load: async () => (await import("./commands/tools.ts")).toolsCommand,
    },
  ],
  [
    "resources",
    {
      summary: "list what can be read at a server",
      load: async () => (await import("./commands/resources.ts")).resourcesCommand,
    },
  ],
  [
    "prompts",
    {
      summary: "list the prompts of a server, or show one",
      load: async () => (await import("./commands/prompts.ts")).promptsCommand,
    },
  ],
  ["call", { summary: "call a tool", load: async () => (await import("./commands/call.ts")).callCommand }],
  ["read", { summary: "read a resource", load: async () => (await import("./commands/read.ts")).readCommand }],
  [
    "eval",
    {
      summary: "evaluate code in a live session of JavaScript or Common Lisp",
      load: async () => (await import("./commands/eval.ts")).evalCommand,
    },
  ],
  ["prompt", { summary: "get a prompt", load: async () => (await import("./commands/prompt.ts")).promptCommand }],
]);

function help(): string {
  const lines = [...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(11)}${summary}`);
  return `Usage: catenary COMMAND [ARGUMENTS]\n\nCommands:\n${lines.join("\n")}\n\n  --help     this text, or that of a command\n  --version  the version of this program\n`;
}

function unknown(name: string): string {
  const [near] = nearest(name, COMMANDS.keys());
  return `There is no command ${name}; ${near === undefined ? "catenary --help lists them" : `did you mean ${near}?`}`;
}

async function main(args: readonly string[]): Promise<number | undefined> {
  // `catenary help call` is another way to say `catenary call --help`.
  const [name, ...rest] = args[0] === "help" && args[1] !== undefined ? [args[1], "--help"] : args;
  if (name === undefined || ["--help", "-h", "help"].includes(name)) {
    (name === undefined ? process.stderr : process.stdout).write(help());
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  if (name === "--version" || name === "-v") {
    const text = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    process.stdout.write(`${(JSON.parse(text) as { version: string }).version}\n`);
    return EXIT.ok;
  }
  const entry = COMMANDS.get(name);
  if (entry === undefined) {
    const { reporting } = await import("./show/failure.ts");
    return reporting(args, () => Promise.reject(new UsageError(unknown(name))));
  }
  const command = await entry.load();
  // What stands behind -- is somebody else's.
  const end = rest.indexOf("--");
  const own = end < 0 ? rest : rest.slice(0, end);
  if (own.includes("--help") || own.includes("-h")) {
    process.stdout.write(command.help);
    return EXIT.ok;
  }
  return command.run(rest);
}

/** What Node ends with where somebody waits for what can never come. */
const UNSETTLED = 13;

process.once("exit", () => {
  if (process.exitCode !== UNSETTLED) return;
  process.exitCode = EXIT.usage;
  writeSync(2, "catenary: a module that was loaded waits for something that never comes: look for an await in it\n");
});

try {
  const code = await main(process.argv.slice(2));
  if (code !== undefined) leave(code);
} catch (error) {
  fail(error);
}
