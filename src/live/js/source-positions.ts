// Changes to a text that leave every line where it is, and the way back: from a column of what was made to the column
// that was written. What is changed, and why, is for the rewriting.

/** On its line: what stands in `column` was written in `written`, and so is what follows, as far from it as there. */
interface Anchor {
  readonly column: number;
  readonly written: number;
  /** Here begins what nobody has written: all of it stands for this one place. */
  readonly isMade: boolean;
}

export type Anchors = ReadonlyMap<number, readonly Anchor[]>;

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

export interface Edited {
  readonly text: string;
  /** By line, counted from 1. */
  readonly anchors: Anchors;
}

/** The same lines with nothing on them. */
export function blank(text: string): string {
  return text.replaceAll(/[^\n\r\u2028\u2029]/g, " ");
}

export class Edits {
  readonly #source: string;
  readonly #edits: Edit[] = [];

  constructor(source: string) {
    this.#source = source;
  }

  insert(at: number, text: string): void {
    this.#edits.push({ start: at, end: at, text });
  }

  /** The new text takes the columns of the old one where it is not longer, and always its lines. */
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
    const anchors = new Map<number, Anchor[]>();
    // Those at one place stay in the order in which they were asked for.
    const edits = this.#edits.toSorted((one, other) => one.start - other.start || one.end - other.end);
    const parts: string[] = [];
    let from = 0;
    let made: Place = { line: 1, column: 1 };
    let written: Place = made;
    for (const { start, end, text } of edits) {
      const kept = this.#source.slice(from, start);
      parts.push(kept, text);
      made = after(made, kept);
      written = after(written, kept);
      // What takes no more room than was there keeps its columns.
      if (text.length > end - start) set(anchors, made, written, true);
      made = after(made, text);
      written = after(written, this.#source.slice(start, end));
      set(anchors, made, written, false);
      from = end;
    }
    return { text: parts.join("") + this.#source.slice(from), anchors };
  }
}

function set(anchors: Map<number, Anchor[]>, { line, column }: Place, written: Place, isMade: boolean): void {
  const anchor = { column, written: written.column, isMade };
  const known = anchors.get(line);
  if (known === undefined) anchors.set(line, [anchor]);
  else known.push(anchor);
}

export interface Place {
  /** Both are counted from 1. */
  readonly line: number;
  readonly column: number;
}

export function place(text: string, at: number): Place {
  return after({ line: 1, column: 1 }, text.slice(0, at));
}

function after({ line, column }: Place, text: string): Place {
  const lines = text.split("\n");
  const last = lines.at(-1)?.length ?? 0;
  return lines.length === 1 ? { line, column: column + last } : { line: line + lines.length - 1, column: last + 1 };
}

/** The column that was written. */
export function writtenColumn(anchors: Anchors | undefined, line: number, column: number): number {
  const last = anchors?.get(line)?.findLast((anchor) => anchor.column <= column);
  if (last === undefined) return column;
  return last.isMade ? last.written : last.written + column - last.column;
}

/** The column to which what was written in this one has come. */
export function madeColumn(anchors: Anchors, line: number, column: number): number {
  const last = anchors.get(line)?.findLast(({ isMade, written }) => !isMade && written <= column);
  return last === undefined ? column : last.column + column - last.written;
}

// Where types were taken out of a line, and what followed moved to the left: the way back to the columns that were
// written, as far as there is one. What stands before the first gap and behind the last is found again; of what is
// between them only the line is known. Apart from edits.ts, because who takes out the types does not say where.

interface Gap {
  /** Characters at the beginning of the line that were kept. */
  readonly before: number;
  /** Where the end that was kept begins, from 0, and how far it has moved. */
  readonly behind: number;
  readonly moved: number;
}

/** By line, counted from 1; those that stayed as they were are absent. */
export type TypeGaps = ReadonlyMap<number, Gap>;

/** Both have the same lines. */
export function typeGaps(written: string, bare: string): TypeGaps {
  const gaps = new Map<number, Gap>();
  if (written === bare) return gaps;
  const lines = bare.split("\n");
  for (const [at, line] of written.split("\n").entries()) {
    const other = lines[at] ?? "";
    // Where it is as long as before, types have become blanks.
    if (other.length !== line.length) gaps.set(at + 1, gapOf(line, other));
  }
  return gaps;
}

function gapOf(written: string, bare: string): Gap {
  const most = Math.min(written.length, bare.length);
  let before = 0;
  while (before < most && written[before] === bare[before]) before += 1;
  let kept = 0;
  while (kept < most - before && written.at(-1 - kept) === bare.at(-1 - kept)) kept += 1;
  return { before, behind: bare.length - kept, moved: written.length - bare.length };
}

/** Undefined where it cannot be known. Columns are counted from 1. */
export function columnWithTypes(gaps: TypeGaps | undefined, line: number, column: number): number | undefined {
  const gap = gaps?.get(line);
  if (gap === undefined || column <= gap.before) return column;
  return column > gap.behind ? column + gap.moved : undefined;
}
