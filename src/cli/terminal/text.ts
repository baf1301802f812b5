// Makes text fit for a terminal. Untrusted text may contain escape sequences that move the cursor, rename the window or
// paste into the shell, and characters that reverse the reading direction: they are escaped. Widths are approximate, which
// is enough to keep a line from wrapping: East Asian characters and emoji count two columns, combining marks none.

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
  const escape = (unit: number): string => `\\u${unit.toString(16).padStart(4, "0")}`;
  return json.replace(UNSAFE, (characters) =>
    Array.from(characters.split(""), (unit) => escape(unit.charCodeAt(0))).join(""),
  );
}

function escaped(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

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
  /** Columns are not padded beyond this width, so that a long name does not push others off the screen. Default: 48. */
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

/** A word of a command line that a user may copy, quoted for a shell if it has to be. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
