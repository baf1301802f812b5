// Changes to a text that leave every line where it is, and the way back: from a column of what was made to the column
// that was written. What is changed, and why, is for the rewriting.

/** On its line: behind `column`, everything stands so many characters further to the right than it was written. */
interface Anchor {
  readonly column: number;
  readonly shift: number;
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
      made = after(after(made, kept), text);
      written = after(after(written, kept), this.#source.slice(start, end));
      from = end;
      const anchor = { column: made.column, shift: made.column - written.column };
      const known = anchors.get(made.line);
      if (known === undefined) anchors.set(made.line, [anchor]);
      else known.push(anchor);
    }
    return { text: parts.join("") + this.#source.slice(from), anchors };
  }
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
  return Math.max(1, column - (last?.shift ?? 0));
}
