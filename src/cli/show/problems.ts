// Prints problems of a config: position, message, the line of the file with a caret below it, and the hint. Secrets in
// the line are covered, since a client may write our output to its log.

import type { Problem } from "../../config/index.ts";
import { truncate, widthOf } from "../terminal/layout.ts";
import { paint, terminalWidth } from "../terminal/output.ts";
import { sanitize, sanitizeFor } from "../terminal/sanitize.ts";

type Screen = Pick<NodeJS.WriteStream, "isTTY" | "columns">;

/** The width of an excerpt if the output is not a terminal. */
const DEFAULT_WIDTH = 120;

export function problemLines(file: string, text: string, problems: readonly Problem[], stream: Screen): string[] {
  // A byte order mark does not count as a column.
  const source = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  return problems.flatMap((problem) => [
    messageLine(file, problem, stream),
    ...excerptLines(source[problem.line - 1], problem, stream),
    ...(problem.hint === undefined ? [] : [`  ${sanitizeFor(stream, problem.hint)}`]),
  ]);
}

function messageLine(file: string, { line, column, severity, message }: Problem, stream: Screen): string {
  const position = paint("bold", sanitizeFor(stream, `${file}:${line}:${column}:`), stream);
  const label = paint(severity === "error" ? ["bold", "red"] : ["bold", "yellow"], `${severity}:`, stream);
  return `${position} ${label} ${sanitizeFor(stream, message)}`;
}

/** None for an empty line, as at the end of a file. */
function excerptLines(source: string | undefined, { line, column }: Problem, stream: Screen): string[] {
  if (source === undefined || source.trim() === "") return [];
  const number = String(line);
  const width = terminalWidth(stream) ?? DEFAULT_WIDTH;
  const { text, before } = excerpt(source, column, Math.max(width - number.length - 5, 20));
  const bar = paint("dim", "|", stream);
  return [
    `  ${paint("dim", number, stream)} ${bar} ${text}`.trimEnd(),
    `  ${" ".repeat(number.length)} ${bar} ${" ".repeat(before)}${paint(["bold", "green"], "^", stream)}`,
  ];
}

/** "2 errors, 1 warning". */
export function tally(problems: readonly Problem[]): string {
  const count = (severity: Problem["severity"]): string[] => {
    const found = problems.filter((problem) => problem.severity === severity).length;
    return found === 0 ? [] : [plural(found, severity)];
  };
  return [...count("error"), ...count("warning")].join(", ");
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export interface Excerpt {
  readonly text: string;
  /** The number of terminal columns before the marked position. */
  readonly before: number;
}

const SECRET_KEY = /token|secret|password|passwd|passphrase|credential|auth|cookie|api_?key|private|_key$|^key$/i;
/** A key and its string value, which may be unterminated. */
const KEY_AND_VALUE = /("(?:[^"\\]|\\.)*"\s*:\s*")((?:[^"\\]|\\.)*)/g;
/** After these words, or by its looks: long, with digits, and neither a path nor a word. */
const SECRET_VALUE =
  /((?:bearer|basic)\s+|--?[a-z-]*(?:token|secret|password|key)(?:[= ]|"\s*,\s*"))([^\s"]+)|[A-Za-z0-9_+=-]{24,}/gi;

/** Cuts a line to a width around a column (from 1), and covers secrets. */
export function excerpt(line: string, column: number, width: number): Excerpt {
  const covered = coverSecrets(line);
  const at = Math.max(0, Math.min(column - 1, covered.length));
  const front = printable(covered.slice(0, at));
  const rest = printable(covered.slice(at));
  // The front gets half of the width, or more if the rest is short.
  const max = Math.max(Math.floor(width / 2), width - widthOf(rest));
  const cut = widthOf(front) <= max ? front : `...${lastColumns(front, max - 3)}`;
  return { text: cut + truncate(width - widthOf(cut), rest), before: widthOf(cut) };
}

function printable(text: string): string {
  return sanitize(text).replaceAll("\t", "  ");
}

function lastColumns(text: string, columns: number): string {
  const characters = [...text];
  let width = 0;
  let from = characters.length;
  while (from > 0 && width + widthOf(characters[from - 1] ?? "") <= columns) {
    from -= 1;
    width += widthOf(characters[from] ?? "");
  }
  return characters.slice(from).join("");
}

/** Keeps the length, so that columns stay valid. */
function coverSecrets(line: string): string {
  const pairs = line.replace(KEY_AND_VALUE, (whole, name: string, value: string) =>
    SECRET_KEY.test(name) && !isReference(value) ? name + stars(value) : whole,
  );
  return pairs.replace(SECRET_VALUE, (whole, word: string | undefined, key: string | undefined) => {
    if (word !== undefined && key !== undefined) return isReference(key) ? whole : word + stars(key);
    return /\d/.test(whole) && /[A-Za-z]/.test(whole) ? stars(whole) : whole;
  });
}

/** A reference such as ${TOKEN} is not a secret. */
function isReference(text: string): boolean {
  return /\$\{[^}]*\}?/.test(text);
}

function stars(text: string): string {
  return "*".repeat(text.length);
}
