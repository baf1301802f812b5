// Output of the commands: data on stdout, messages on stderr, colours only on a terminal. Data is sanitized here
// only for a terminal. printBytes never sanitizes, so its callers check first that stdout is not a terminal.

import { styleText } from "node:util";
import { errorMessage } from "../../core/values.ts";
import { EXIT } from "../command.ts";
import { isTerminal, sanitizeFor, sanitizeJson } from "./text.ts";

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

let writeStatus = (text: string): void => void process.stderr.write(`${text}\n`);

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

/** Splits chunks of text, such as the stderr of a program, into lines. */
export class LineSplitter {
  readonly #onLine: (line: string) => void;
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  readonly add = (chunk: string): void => {
    const lines = `${this.#rest}${chunk}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#onLine(line);
    if (this.#rest.length > MAX_LINE_LENGTH) this.flush();
  };

  /** Passes on an incomplete last line. */
  flush(): void {
    if (this.#rest !== "") this.#onLine(this.#rest);
    this.#rest = "";
  }
}
