// The `catenary` program: finds a command in the table and runs it. Data goes to stdout, everything else to stderr; the
// exit codes are in command.ts.

import { writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { nearest } from "../core/options.ts";
import { beforeSeparator, EXIT, UsageError } from "./command.ts";
import { COMMANDS } from "./commands/index.ts";
import { exit, exitWithError, printStatus, setCommands, terminalWidth } from "./terminal/output.ts";
import { oneLine } from "./terminal/text.ts";

function helpText(): string {
  const lines = Object.entries(COMMANDS).map(([name, { summary }]) => `  ${name.padEnd(12)}${summary}`);
  return `Usage: catenary COMMAND [ARGUMENTS]

Commands:
${lines.join("\n")}

  --help      show this text, or the help of a command
  --version   show the version
`;
}

function unknownCommand(name: string): UsageError {
  if (name.startsWith("-")) {
    return new UsageError(
      `There is no option ${name}; write a command first: catenary COMMAND [OPTIONS]. catenary --help lists them`,
    );
  }
  // A method of the protocol, such as tools/call, has the name of a command in it.
  const inMethod = name.split("/").findLast((part) => Object.hasOwn(COMMANDS, part));
  const near = inMethod ?? nearest(name, Object.keys(COMMANDS))[0];
  const hint = near === undefined ? "catenary --help lists the commands" : `did you mean ${near}?`;
  return new UsageError(`There is no command ${name}; ${hint}`);
}

async function main(args: readonly string[]): Promise<number | undefined> {
  // `catenary help call` means `catenary call --help`.
  const [name, ...rest] = args[0] === "help" && args[1] !== undefined ? [args[1], "--help"] : args;
  if (name === undefined || ["--help", "-h", "help"].includes(name)) {
    (name === undefined ? process.stderr : process.stdout).write(helpText());
    return name === undefined ? EXIT.usage : EXIT.ok;
  }
  if (["--version", "-v", "-V"].includes(name)) {
    const { packageFile } = await import("../core/files.ts");
    const text = await readFile(packageFile("package.json"), "utf8");
    process.stdout.write(`${(JSON.parse(text) as { version: string }).version}\n`);
    return EXIT.ok;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) {
    const { reportFailures } = await import("./define.ts");
    return reportFailures(beforeSeparator(args), () => Promise.reject(unknownCommand(name)));
  }
  const command = await entry.load();
  const ownWords = command.ownWords(rest);
  if (ownWords.includes("--help") || ownWords.includes("-h")) {
    process.stdout.write(command.help(terminalWidth(process.stdout)));
    return EXIT.ok;
  }
  return command.run(rest);
}

/** The exit code of Node if the event loop is empty while a top-level await is pending. */
const UNSETTLED_AWAIT = 13;

/** Runs the command line, and exits. */
export async function run(args: readonly string[]): Promise<void> {
  process.once("exit", () => {
    if (process.exitCode !== UNSETTLED_AWAIT) return;
    process.exitCode = EXIT.usage;
    writeSync(2, "catenary: A loaded module waits for a promise that never settles: check its top-level await\n");
  });
  replaceWarnings();
  setCommands(Object.keys(COMMANDS));
  try {
    const code = await main(args);
    if (code !== undefined) exit(code);
  } catch (error) {
    exitWithError(error);
  }
}

/** Our own warnings are for users: without the process id, and the advice for programmers, that Node adds. */
function replaceWarnings(): void {
  const [usual] = process.listeners("warning");
  if (usual?.name !== "onWarning") return;
  process.off("warning", usual);
  process.on("warning", (warning) => {
    if (warning.name === "Warning") printStatus(`catenary: warning: ${oneLine(warning.message)}`);
    else usual.call(process, warning);
  });
}
