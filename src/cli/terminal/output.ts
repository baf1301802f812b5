// Output of the commands: data on stdout, messages on stderr, colours only on a terminal. Data is sanitized here
// only for a terminal. printTrusted never sanitizes, so for bytes its callers check that stdout is not a terminal.

import { existsSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { styleText } from "node:util";
import { errorMessage } from "../../core/values.ts";
import { EXIT } from "../command.ts";
import { quoteWord, sanitize, sanitizeJson } from "./text.ts";

// If stderr is closed, the error cannot be reported anywhere; the command continues.
process.stderr.on("error", () => undefined);

let writeError: Error | undefined;

// A closed pipe or terminal is not a failure of the command; a full disk is.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  const isClosed = error.code === "EPIPE" || (error.code === "EIO" && isTerminal(process.stdout));
  if (!isClosed) writeError ??= error;
});

/** The first error from writing to stdout. */
export function stdoutError(): Error | undefined {
  return writeError;
}

type Style = Parameters<typeof styleText>[0];

/** If more than this is unread, lines are left out. */
const MAX_UNREAD_BYTES = 1024 * 1024;

let linesLeftOut = 0;

const describeLeftOut = (note: string): string => `catenary: ${note}\n`;

/**
 * Writes lines to stderr. While its reader does not read, further lines are left out, since they would fill our memory.
 * Later, a line with their number is written, in the form of `describe`.
 */
export function writeLines(text: string, describe: (note: string) => string = describeLeftOut): void {
  const { stderr } = process;
  if (stderr.writableLength <= MAX_UNREAD_BYTES) {
    stderr.write(text);
    return;
  }
  const isFirst = linesLeftOut === 0;
  linesLeftOut += Math.max(1, text.split("\n").length - 1);
  if (!isFirst) return;
  stderr.once("drain", () => {
    const note = `${linesLeftOut} lines were left out here, because stderr was not read`;
    linesLeftOut = 0;
    stderr.write(describe(note));
  });
}

let writeStatus = (text: string): void => writeLines(`${text}\n`);

/** Writes a line to stderr. */
export function printStatus(text: string): void {
  writeStatus(asTyped(process.stderr, text));
}

/** As `printStatus`, for text that may quote others. */
export function printNotice(text: string): void {
  printStatus(sanitizeFor(process.stderr, text));
}

/** Passes what `printStatus` would write to another function. */
export function directStatus(write: (text: string) => void): void {
  writeStatus = write;
}

/** Adds colours if the stream is a terminal, and neither NO_COLOR nor TERM=dumb is set. */
export function paint(style: Style, text: string, stream: { readonly isTTY?: boolean } = process.stderr): string {
  const { NO_COLOR, TERM } = process.env;
  const hasColour = isTerminal(stream) && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
  // By itself, styleText would look at stdout, whatever the stream.
  return hasColour ? styleText(style, text, { validateStream: false }) : text;
}

/** Prints an error and exits, since a loaded module may keep the process alive. */
export function exitWithError(error: unknown): void {
  const code = error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage;
  exit(code, `catenary: ${hintFor(process.stderr, errorMessage(error))}\n`);
}

/** Exits once everything written has been flushed. */
export function exit(code: number, lastLine = ""): void {
  process.exitCode = code;
  process.stdout.write("", () => process.stderr.write(lastLine, () => process.exit(code)));
}

/** Prints data unchanged; on a terminal, sanitized and with a final newline. */
export function printRaw(text: string): void {
  if (!isTerminal(process.stdout)) process.stdout.write(text);
  else printText(text);
}

/** Prints text with a final newline; on a terminal, sanitized. */
export function printText(text: string): void {
  const safe = sanitizeFor(process.stdout, text);
  process.stdout.write(text.endsWith("\n") ? safe : `${safe}\n`);
}

/** Prints bytes, or text that is already safe, such as our own text with colours, and adds no newline. */
export function printTrusted(data: string | Uint8Array): void {
  process.stdout.write(data);
}

/** Prints JSON on several lines. */
export function printValue(value: unknown): void {
  const text = JSON.stringify(value, undefined, 2);
  process.stdout.write(`${isTerminal(process.stdout) ? sanitizeJson(text) : text}\n`);
}

/** Prints JSON: on several lines to a terminal, otherwise on one. */
export function printJson(value: unknown): void {
  if (isTerminal(process.stdout)) printValue(value);
  else process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** The width of the terminal; undefined if the stream is not a terminal, or reports 0 because the width is unknown. */
export function terminalWidth(stream: { readonly isTTY?: boolean; readonly columns?: number }): number | undefined {
  const { columns = 0 } = stream;
  return isTerminal(stream) && columns > 0 ? columns : undefined;
}

export function isTerminal(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true;
}

/** Sanitizes only if the stream is a terminal. */
export function sanitizeFor(stream: { readonly isTTY?: boolean }, text: string): string {
  return isTerminal(stream) ? sanitize(text) : text;
}

/** Finds our commands in a message; undefined if this is not the program `catenary`. */
let commandsInText: RegExp | undefined;

export function setCommands(names: readonly string[]): void {
  commandsInText = new RegExp(`(?<!npx |[\\w./-])catenary(?= (?:${names.join("|")}|--help)\\b)`, "g");
}

/** For a terminal: commands in our own message as the user starts them, such as `npx catenary add` for `catenary add`. */
function asTyped(stream: { readonly isTTY?: boolean }, text: string): string {
  return commandsInText === undefined || !isTerminal(stream) ? text : text.replace(commandsInText, ownCommand);
}

/** Our own message, which may quote others: sanitized, and with commands as the user starts them. */
export function hintFor(stream: { readonly isTTY?: boolean }, text: string): string {
  return asTyped(stream, sanitizeFor(stream, text));
}

/** How the user has started this program, for commands that we print. */
export function ownCommand(): string {
  const [, script = "catenary"] = process.argv;
  const isLocal = /[/\\](?:_npx|\.bin)[/\\]/.test(script);
  if (basename(script) === "catenary" && !isLocal) return "catenary";
  if (isLocal || existsSync(join("node_modules", ".bin", "catenary"))) return "npx catenary";
  const below = relative(process.cwd(), script);
  return `node ${quoteWord(below.startsWith("..") ? script : below)}`;
}
