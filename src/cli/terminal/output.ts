// Output of the commands: data on stdout, messages on stderr, colours only on a terminal. Data is sanitized here
// only for a terminal. printBytes never sanitizes, so its callers check first that stdout is not a terminal.

import { existsSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { styleText } from "node:util";
import { errorMessage } from "../../core/values.ts";
import { EXIT } from "../command.ts";

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
  writeStatus(text);
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
  exit(code, `catenary: ${sanitizeFor(process.stderr, errorMessage(error))}\n`);
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

/** Prints text that is already safe, such as our own text with colours, and adds no newline. */
export function printTrusted(text: string): void {
  process.stdout.write(text);
}

export function printBytes(bytes: Uint8Array): void {
  process.stdout.write(bytes);
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

/** A longer line is passed on in pieces. */
const MAX_LINE_LENGTH = 8_192;
/** More lines of one program within a second are left out, and their number is passed on as a line. */
export const MAX_LINES_PER_SECOND = 500;

/** Splits chunks of the stderr of a program into lines. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  #rest = "";
  /** The lines passed on since then, and those left out. */
  #since = 0;
  #passed = 0;
  #leftOut = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  readonly add = (chunk: string): void => {
    const lines = `${this.#rest}${chunk}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#pass(line);
    if (this.#rest.length > MAX_LINE_LENGTH) this.#passRest();
  };

  /** Passes on an incomplete last line, and the number of lines that were left out. */
  flush(): void {
    this.#passRest();
    this.#reportLeftOut();
  }

  #passRest(): void {
    if (this.#rest !== "") this.#pass(this.#rest);
    this.#rest = "";
  }

  #pass(line: string): void {
    if (this.#leftOut > 0) {
      this.#leftOut += 1;
      return;
    }
    if (this.#passed === 0) this.#since = performance.now();
    if (this.#passed >= MAX_LINES_PER_SECOND) {
      const leftMs = this.#since + 1_000 - performance.now();
      if (leftMs > 0) {
        this.#leftOut = 1;
        this.#timer = setTimeout(() => this.#reportLeftOut(), leftMs).unref();
        return;
      }
      this.#since = performance.now();
      this.#passed = 0;
    }
    this.#passed += 1;
    this.#onLine(line);
  }

  #reportLeftOut(): void {
    clearTimeout(this.#timer);
    const count = this.#leftOut;
    this.#leftOut = 0;
    this.#passed = 0;
    if (count > 0) this.#onLine(`(${count} lines left out: more than ${MAX_LINES_PER_SECOND} in a second)`);
  }
}

// Measures, truncates and aligns text in terminal columns, and sanitizes it. The width is an approximation, which is
// good enough to keep a line from wrapping: East Asian characters and emoji count two columns, combining marks none.

const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]$/u;

export function widthOf(text: string): number {
  let width = 0;
  for (const character of text) width += characterWidth(character);
  return width;
}

/** Cuts the text to a width and marks the cut with "...". */
export function truncate(width: number, text: string): string {
  if (widthOf(text) <= width) return text;
  const available = Math.max(width - 3, 0);
  let cut = "";
  let used = 0;
  for (const character of text) {
    used += characterWidth(character);
    if (used > available) break;
    cut += character;
  }
  return `${cut}${"...".slice(0, width)}`;
}

/** Fills the text with spaces up to a width. */
export function pad(width: number, text: string): string {
  return text + " ".repeat(Math.max(width - widthOf(text), 0));
}

function characterWidth(character: string): number {
  if (character <= "\x7e") return 1;
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

export interface TableOptions {
  readonly indent?: number;
  /** Lines are cut to this width; default: unlimited. */
  readonly width?: number | undefined;
  /** Columns are not padded beyond this width, so that a long name does not push others off the screen. Default: 32. */
  readonly maxColumn?: number;
}

/** Formats rows as aligned columns. The last column may have any length. */
export function formatTable(
  rows: readonly (readonly string[])[],
  { indent = 0, width, maxColumn = 48 }: TableOptions = {},
): string {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: Math.max(count - 1, 0) }, (_, column) =>
    Math.min(maxColumn, Math.max(...rows.map((row) => widthOf(row[column] ?? "")))),
  );
  return rows
    .map((row) => {
      const cells = row.map((cell, column) => pad(widths[column] ?? 0, cell));
      const line = (" ".repeat(indent) + cells.join("  ")).trimEnd();
      return `${width === undefined ? line : truncate(width, line)}\n`;
    })
    .join("");
}

/** A finite decimal number; undefined for anything else. */
export function parseNumber(text: string): number | undefined {
  const number = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
  // JSON cannot express infinity.
  return Number.isFinite(number) ? number : undefined;
}

// Escapes control characters in untrusted text before printing it. Text from a server may contain escape sequences that
// move the cursor, rename the window or paste into the shell, and characters that reverse the reading direction. Only
// terminals need this, so data for a pipe or a file is not sanitized.

/** Control characters except newline and tab, direction marks, and invisible characters. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

export function sanitize(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(UNSAFE, escaped);
}

/** Sanitizes and joins all lines into one. */
export function oneLine(text: string): string {
  return sanitize(text).replace(/\s+/g, " ").trim();
}

/** Sanitizes JSON text. The result is still JSON with the same value. */
export function sanitizeJson(json: string): string {
  return json.replace(UNSAFE, (found) =>
    Array.from({ length: found.length }, (_, at) => jsonEscape(found.charCodeAt(at))).join(""),
  );
}

export function isTerminal(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true;
}

/** Sanitizes only if the stream is a terminal. */
export function sanitizeFor(stream: { readonly isTTY?: boolean }, text: string): string {
  return isTerminal(stream) ? sanitize(text) : text;
}

function escaped(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

function jsonEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}

/** A word of a command line that a user may copy, quoted for a shell if it has to be. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** How the user has started this program, for commands that we print. */
export function ownCommand(): string {
  const [, script = "catenary"] = process.argv;
  const isInstalledHere = existsSync(join("node_modules", ".bin", "catenary"));
  if (isInstalledHere || /[/\\](?:_npx|\.bin)[/\\]/.test(script)) return "npx catenary";
  if (basename(script) === "catenary") return "catenary";
  const below = relative(process.cwd(), script);
  return `node ${quoteWord(below.startsWith("..") ? script : below)}`;
}
