// `command`: makes a command from one declaration. Its flags (flags.ts) and usage give the parser, the help, the words
// that a shell completes, and docs/reference/cli.md. An error is printed, and determines the exit code.

import { McpError } from "../protocol/errors.ts";
import { beforeSeparator, UsageError } from "./command.ts";
import { flagLines, MARKDOWN_LINK, parseFlags, wrap, type Flags, type ParsedLine } from "./flags.ts";
import { requiredPages, toFailure } from "./show/failures.ts";
import { printJson, hintFor, stdoutError } from "./terminal/output.ts";

/** A command in the table of all commands (commands/index.ts). */
export interface CommandEntry {
  /** Its line in `catenary --help`. */
  readonly summary: string;
  /** Each command is imported only when it is used, so that --help stays fast. */
  readonly load: () => Promise<Command>;
}

export interface Command {
  readonly name: string;
  /** "Usage:" and the forms of the command line. */
  readonly usage: string;
  readonly flags: Flags;
  /** The exit codes and their meaning. */
  readonly exits: string;
  /** The text of `catenary NAME --help`. */
  help(width?: number): string;
  /** Those of its arguments that are not for another program, which it starts. */
  ownWords(args: readonly string[]): readonly string[];
  /** Resolves to the exit code, or to undefined if the command keeps running. */
  run(args: readonly string[]): Promise<number | undefined>;
}

interface Declaration<F extends Flags> {
  readonly name: string;
  /** What follows `catenary NAME`; a line for each form. */
  readonly usage: string;
  /** Paragraphs, which are wrapped. Those with an indented line stay as they are. */
  readonly about: string;
  readonly flags: F;
  /** What the help says after the flags. */
  readonly notes?: string;
  readonly exits: string;
  /** The arguments of the command that are not for another program. By default, those before `--`. */
  readonly ownWords?: Command["ownWords"];
}

interface Parsed<F extends Flags, Line extends ParsedLine<F>> extends Declaration<F> {
  /** How the arguments are read. Default: as flags and words. */
  readonly parse?: (args: readonly string[], usage: string) => Line;
  /** How many arguments there may be beside the flags. Default: 0. */
  readonly words?: number;
  /** What is missing if there is no argument. Undefined if none is needed. */
  readonly needs?: string;
  run(line: Line): Promise<number | undefined>;
}

/** A command that parses its arguments itself. */
interface Unparsed<F extends Flags> extends Declaration<F> {
  runArguments(args: readonly string[]): Promise<number | undefined>;
}

/** The width of the help, unless the terminal is narrower. */
const HELP_WIDTH = 100;

export function command<const F extends Flags, Line extends ParsedLine<F> = ParsedLine<F>>(
  declared: Parsed<F, Line> | Unparsed<F>,
): Command {
  const { name, about, flags, notes, exits, ownWords = beforeSeparator } = declared;
  const forms = declared.usage.split("\n").map((form) => `catenary ${name} ${form}`);
  const usage = `Usage: ${forms.join("\n       ")}\n`;
  const run = async (args: readonly string[]): Promise<number | undefined> => {
    if ("runArguments" in declared) return declared.runArguments(args);
    const { needs, words: limit = 0, parse } = declared;
    const line = parse === undefined ? (parseFlags(name, args, flags) as Line) : parse(args, usage);
    if (line.words.length === 0 && needs !== undefined) throw new UsageError(`${name} needs ${needs}\n\n${usage}`);
    if (line.words.length > limit) throw unexpectedArguments(name, line.words.slice(limit), usage);
    return declared.run(line);
  };
  return {
    ...{ name, usage, flags, exits, ownWords },
    help: (width = HELP_WIDTH) => {
      const parts = [about, flagLines(flags, width).join("\n"), notes ?? "", `Exit codes: ${exits}`];
      return `${usage}\n${parts
        .filter((part) => part !== "")
        .map((part) => paragraphs(part, width))
        .join("\n\n")}\n`;
    },
    run: (args) => reportFailures(ownWords(args), () => run(args)),
  };
}

export function unexpectedArguments(name: string, words: readonly string[], usage: string): UsageError {
  return new UsageError(`${name}: unexpected argument ${words.join(" ")}\n\n${usage}`);
}

function paragraphs(text: string, width: number): string {
  const wrapped = text
    .replaceAll(/^\n+|\s+$/g, "")
    .replaceAll(MARKDOWN_LINK, "$1")
    .split("\n\n")
    .map((part) => (/^ |\n /.test(part) ? part : wrap(part, width).join("\n")));
  return wrapped.join("\n\n");
}

/** Prints an error, with --json also as a document, and resolves to its exit code. `ownWords`: the arguments of the command. */
export async function reportFailures(
  ownWords: readonly string[],
  run: () => Promise<number | undefined>,
): Promise<number | undefined> {
  try {
    const exit = await run();
    const writeError = stdoutError();
    if (writeError !== undefined) throw new Error(`Cannot write to stdout: ${writeError.message}`);
    return exit;
  } catch (error) {
    const { exit, ...document } = toFailure(error);
    if (ownWords.includes("--json")) printJson({ error: document });
    const code = error instanceof McpError ? ` (${error.code})` : "";
    const pages = requiredPages(error).map((page) => `Visit this page first: ${page}`);
    for (const line of [`catenary: ${document.message}${code}`, ...pages]) {
      process.stderr.write(`${hintFor(process.stderr, line)}\n`);
    }
    return exit;
  }
}
