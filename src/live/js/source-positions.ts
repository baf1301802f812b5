// Edits to source text that keep every line in place, and maps from a column of the edited text back to the column that
// the user wrote: one map for our own edits, one for removed types.

/** Maps a column of an edited line to a column of the written line. Text up to the next anchor has the same offset. */
interface Anchor {
  readonly column: number;
  readonly written: number;
  /** Whether generated text begins here. All of it maps to the one column `written`. */
  readonly isGenerated: boolean;
}

/** By line, counted from 1. */
export type ColumnMap = ReadonlyMap<number, readonly Anchor[]>;

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface Edited {
  readonly text: string;
  readonly columns: ColumnMap;
}

/** Line and column, both counted from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Replaces everything except line breaks with spaces. */
export function blank(text: string): string {
  return text.replaceAll(/[^\n\r\u2028\u2029]/g, " ");
}

export class SourceEdits {
  readonly #source: string;
  readonly #edits: Edit[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text });
  }

  /** Always keeps the lines; also keeps the columns if the new text is not longer than the old. */
  replace(start: number, end: number, text: string): void {
    const old = this.#source.slice(start, end);
    const lines = old.split("\n");
    const [first = ""] = lines;
    const padded = text.length <= first.length ? text + " ".repeat(first.length - text.length) : text;
    this.#edits.push({ start, end, text: [padded, ...lines.slice(1).map(blank)].join("\n") });
  }

  blank(start: number, end: number): void {
    this.replace(start, end, "");
  }

  apply(): Edited {
    const columns = new Map<number, Anchor[]>();
    // Edits at one position stay in the order in which they were made.
    const edits = this.#edits.toSorted((one, other) => one.start - other.start || one.end - other.end);
    const parts: string[] = [];
    let from = 0;
    let edited: Position = { line: 1, column: 1 };
    let written: Position = edited;
    for (const { start, end, text } of edits) {
      const kept = this.#source.slice(from, start);
      parts.push(kept, text);
      edited = advance(edited, kept);
      written = advance(written, kept);
      // Text that is not longer than what it replaces keeps its columns.
      if (text.length > end - start) addAnchor(columns, edited, written, true);
      edited = advance(edited, text);
      written = advance(written, this.#source.slice(start, end));
      addAnchor(columns, edited, written, false);
      from = end;
    }
    return { text: parts.join("") + this.#source.slice(from), columns };
  }
}

function addAnchor(
  columns: Map<number, Anchor[]>,
  { line, column }: Position,
  written: Position,
  isGenerated: boolean,
): void {
  const anchor = { column, written: written.column, isGenerated };
  const known = columns.get(line);
  if (known === undefined) columns.set(line, [anchor]);
  else known.push(anchor);
}

export function positionAt(text: string, at: number): Position {
  return advance({ line: 1, column: 1 }, text.slice(0, at));
}

function advance({ line, column }: Position, text: string): Position {
  const lines = text.split("\n");
  const last = lines.at(-1)?.length ?? 0;
  return lines.length === 1 ? { line, column: column + last } : { line: line + lines.length - 1, column: last + 1 };
}

/** Maps a column of the edited text to the column that the user wrote. */
export function writtenColumn(columns: ColumnMap | undefined, line: number, column: number): number {
  const last = columns?.get(line)?.findLast((anchor) => anchor.column <= column);
  if (last === undefined) return column;
  return last.isGenerated ? last.written : last.written + column - last.column;
}

/** Maps a column that the user wrote to the column of the edited text. */
export function editedColumn(columns: ColumnMap, line: number, column: number): number {
  const last = columns.get(line)?.findLast(({ isGenerated, written }) => !isGenerated && written <= column);
  return last === undefined ? column : last.column + column - last.written;
}

/** Where types were removed from a line. The tools that remove types do not report where, so the lines are compared. */
interface TypeGap {
  /** The number of characters before the first removed type. */
  readonly prefix: number;
  /** Where the text after the last removed type begins in the stripped line, counted from 0. */
  readonly suffixStart: number;
  /** How many columns that text has moved to the left. */
  readonly moved: number;
}

/** By line, counted from 1; lines that did not change are absent. */
export type TypeGaps = ReadonlyMap<number, TypeGap>;

/** Both texts must have the same number of lines. */
export function findTypeGaps(written: string, stripped: string): TypeGaps {
  const gaps = new Map<number, TypeGap>();
  if (written === stripped) return gaps;
  const lines = stripped.split("\n");
  for (const [at, line] of written.split("\n").entries()) {
    const other = lines[at] ?? "";
    // In a line of the same length, spaces have replaced the types.
    if (other.length !== line.length) gaps.set(at + 1, findTypeGap(line, other));
  }
  return gaps;
}

function findTypeGap(written: string, stripped: string): TypeGap {
  const max = Math.min(written.length, stripped.length);
  let prefix = 0;
  while (prefix < max && written[prefix] === stripped[prefix]) prefix += 1;
  let suffix = 0;
  while (suffix < max - prefix && written.at(-1 - suffix) === stripped.at(-1 - suffix)) suffix += 1;
  return { prefix, suffixStart: stripped.length - suffix, moved: written.length - stripped.length };
}

/**
 * Maps a column of the stripped text to the column that the user wrote, both counted from 1. Undefined between the
 * first and the last removed type, where the column is uncertain.
 */
export function columnWithTypes(gaps: TypeGaps | undefined, line: number, column: number): number | undefined {
  const gap = gaps?.get(line);
  if (gap === undefined || column <= gap.prefix) return column;
  return column > gap.suffixStart ? column + gap.moved : undefined;
}
