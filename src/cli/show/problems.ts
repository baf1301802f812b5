// Prints the problems of a config and the errors of commands. A problem is printed with its position, its message, the
// line of the file with a caret below it, and a hint. Secrets in that line are replaced by asterisks, since a client
// may write our output to its log.

import type { Problem } from "../../config/index.ts";
import { hintFor, paint, printStatus, sanitizeFor, terminalWidth } from "../terminal/output.ts";
import { sanitize, truncate, widthOf } from "../terminal/text.ts";

type Screen = Pick<NodeJS.WriteStream, "isTTY" | "columns">;

/** The width of an excerpt if the output is not a terminal. */
const DEFAULT_WIDTH = 120;

export function problemLines(file: string, text: string, problems: readonly Problem[], stream: Screen): string[] {
  // A byte order mark does not count as a column.
  const source = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  const covered = new Map<number, string>();
  const lineAt = (number: number): string | undefined => {
    const line = covered.get(number) ?? (source[number - 1] && coverSecrets(source[number - 1] ?? ""));
    if (line !== undefined) covered.set(number, line);
    return line;
  };
  return problems.flatMap((problem) => [
    messageLine(file, problem, stream),
    ...excerptLines(lineAt(problem.line), problem, stream),
    ...(problem.hint === undefined ? [] : [`  ${hintFor(stream, problem.hint)}`]),
  ]);
}

/** Prints the problems on stderr. */
export function printProblems(file: string, text: string, problems: readonly Problem[]): void {
  problemLines(file, text, problems, process.stderr).forEach(printStatus);
}

function messageLine(file: string, { line, column, severity, message }: Problem, stream: Screen): string {
  const position = paint("bold", sanitizeFor(stream, `${file}:${line}:${column}:`), stream);
  const label = paint(severity === "error" ? ["bold", "red"] : ["bold", "yellow"], `${severity}:`, stream);
  return `${position} ${label} ${hintFor(stream, message)}`;
}

/** Returns nothing for an empty line, such as the end of the file. */
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
    const count = problems.filter((problem) => problem.severity === severity).length;
    return count === 0 ? [] : [plural(count, severity)];
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
/** A key whose value is the name of a variable. */
const VARIABLE_KEY = /env_?var\b/i;
/** A key and its string value, which may be unterminated, in JSON or in TOML. */
const KEY_AND_VALUE = /((?:"(?:[^"\\]|\\.)*"|(?<![\w-])[\w-]+)\s{0,99}[:=]\s{0,99}")((?:[^"\\]|\\.)*)/g;
/**
 * Matches a value that follows one of these words, or 24 or more characters in a row without slashes and dots, which
 * paths have. `coverSecrets` replaces such a row only if it contains a letter and a digit.
 */
const SECRET_VALUE =
  /((?:bearer|basic)\s+|--?[a-z-]{0,40}(?:token|secret|password|key)(?:[= ]|"\s*,\s*"))([^\s"]+)|[A-Za-z0-9_+=-]{24,}/gi;
/** The user name and password in a URL, and keys of services that can be told by how they begin. */
const KNOWN_SECRET =
  /(?<=:\/\/)[^\s"/@]{1,500}(?=@)|\b(?:sk|pk|rk)[-_][\w-]{4,}|\b(?:gh[a-z]|github_pat|npm|hf)_\w{6,}|\b(?:glpat|xox[a-z])-[\w-]{6,}/g;

/** The host and the path of a URL. Many servers have a key in the path. */
const URL_PATH = /(https?:\/\/[^\s"/]{1,300}\/)([^\s"]+)/g;

/** Cuts a line to a width around a column (counted from 1). */
export function excerpt(line: string, column: number, width: number): Excerpt {
  const at = Math.max(0, Math.min(column - 1, line.length));
  // A line may be very long and have many problems, so only the part around the column is looked at.
  const front = printable(line.slice(Math.max(0, at - 4 * width), at));
  const rest = printable(line.slice(at, at + 4 * width));
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

/** Replaces secrets by asterisks. Keeps the length of the line, so that columns stay valid. */
export function coverSecrets(line: string): string {
  const pairs = line.replace(KEY_AND_VALUE, (whole, name: string, value: string) =>
    SECRET_KEY.test(name) && !VARIABLE_KEY.test(name) && !isReference(value) ? name + stars(value) : whole,
  );
  const known = pairs.replace(KNOWN_SECRET, (whole) => (isReference(whole) ? whole : stars(whole)));
  const withPaths = known.replace(
    URL_PATH,
    (_whole, host: string, path: string) => host + path.split("/").map(coverPart).join("/"),
  );
  return withPaths.replace(SECRET_VALUE, (whole, word: string | undefined, key: string | undefined) => {
    if (word !== undefined && key !== undefined) return isReference(key) ? whole : word + stars(key);
    return /\d/.test(whole) && /[A-Za-z]/.test(whole) ? stars(whole) : whole;
  });
}

/** A part of a path that has letters and digits may be a key. */
function coverPart(part: string): string {
  return part.length >= 6 && /\d/.test(part) && /[A-Za-z]/.test(part) && !isReference(part) ? stars(part) : part;
}

/** A reference such as ${TOKEN} is not a secret. */
function isReference(text: string): boolean {
  return /\$\{[^}]*\}?/.test(text);
}

function stars(text: string): string {
  return "*".repeat(text.length);
}
