// Matches a URI against a compiled template. It is separate because it handles hostile input. It builds no regular
// expression from input. It tries each choice (where a value ends, or which alternative follows) at most once per
// position, so the work is at most choices x length.

/** One instruction. All have the same fields, so that V8 sees one shape. */
export interface Op {
  readonly kind: "text" | "open" | "close" | "one" | "some" | "fork" | "end";
  readonly text: string;
  /** The value that an "open" begins. */
  readonly slot: number;
  /** Characters that a "one" (one character) or a "some" (any number of characters) does not match. */
  readonly stops: Stops;
  /** The row of a "some" or a "fork" in the table of the positions that it was tried at. */
  readonly mark: number;
  /** Undefined for an "end". */
  readonly next: Op | undefined;
  /** Where a "fork" continues if `next` fails. */
  other: Op | undefined;
}

/** 1 for each ASCII character that ends a value. */
export type Stops = Uint8Array;

export function stopsAt(chars: string): Stops {
  const stops = new Uint8Array(128);
  for (const char of chars) stops[char.charCodeAt(0)] = 1;
  return stops;
}

export interface Program {
  readonly start: Op;
  /** The number of choices: "some" and "fork" instructions. */
  readonly marks: number;
}

export interface MatchRun {
  /** Triples of slot, start and end, in the order of the text; undefined if there is no match. */
  readonly found: readonly number[] | undefined;
  readonly steps: number;
}

/** The last instruction of every program. */
export const END: Op = {
  kind: "end",
  text: "",
  slot: 0,
  stops: stopsAt(""),
  mark: 0,
  next: undefined,
  other: undefined,
};

/** Builds a program back to front: each call takes the following instruction and returns a new one. */
export class ProgramBuilder {
  #marks = 0;

  text(text: string, next: Op): Op {
    return text === "" ? next : { ...END, kind: "text", text, next };
  }

  /** Captures a value of at least `min` characters, as short as the rest allows. */
  value(slot: number, stops: Stops, min: 0 | 1, next: Op): Op {
    const some: Op = { ...END, kind: "some", stops, mark: this.#marks++, next: { ...END, kind: "close", next } };
    return { ...END, kind: "open", slot, next: min === 0 ? some : { ...END, kind: "one", stops, next: some } };
  }

  /** Captures an empty value. */
  emptyValue(slot: number, next: Op): Op {
    return { ...END, kind: "open", slot, next: { ...END, kind: "close", next } };
  }

  /** Tries `first`, then `second`. */
  either(first: Op, second: Op): Op {
    return { ...END, kind: "fork", mark: this.#marks++, next: first, other: second };
  }

  /** A loop: `body` must lead back to the fork; leaving the loop is tried first. */
  loop(next: Op, body: (again: Op) => Op): Op {
    const fork = this.either(next, END);
    fork.other = body(fork);
    return fork;
  }

  program(start: Op): Program {
    return { start, marks: this.#marks };
  }
}

export function run({ start, marks }: Program, text: string): MatchRun {
  // Fast path: most URIs that do not match differ at the start.
  if (start.kind === "text" && !text.startsWith(start.text)) return { found: undefined, steps: 1 };
  const width = text.length + 1;
  const tried = new Uint32Array((marks * width + 31) >>> 5);
  // Counters hold the current lengths of these arrays, since setting the length of an array is slow.
  const found: number[] = [];
  let foundCount = 0;
  // Postponed choices: the instruction, and pairs of position and `foundCount`.
  const postponed: (Op | undefined)[] = [];
  const postponedAt: number[] = [];
  let postponedCount = 0;
  let steps = 0;
  let op: Op | undefined = start;
  let position = 0;
  for (;;) {
    let isMatching = op !== undefined;
    steps++;
    switch (op?.kind) {
      case "text":
        isMatching = text.startsWith(op.text, position);
        position += op.text.length;
        break;
      case "open":
        found[foundCount++] = op.slot;
        found[foundCount++] = position;
        break;
      case "close":
        found[foundCount++] = position;
        break;
      case "one":
        isMatching = matches(op.stops, text, position);
        position++;
        break;
      case "some":
      case "fork": {
        const bit = op.mark * width + position;
        const cell = tried[bit >>> 5] as number;
        isMatching = (cell & (1 << (bit & 31))) === 0;
        if (!isMatching) break;
        tried[bit >>> 5] = cell | (1 << (bit & 31));
        const isFork = op.kind === "fork";
        if (!isFork && !matches(op.stops, text, position)) break;
        postponedAt[2 * postponedCount] = isFork ? position : position + 1;
        postponedAt[2 * postponedCount + 1] = foundCount;
        postponed[postponedCount++] = isFork ? op.other : op;
        break;
      }
      case "end":
        if (position === text.length) return { found: found.slice(0, foundCount), steps };
        isMatching = false;
        break;
      case undefined:
    }
    if (isMatching) {
      op = op?.next;
      continue;
    }
    if (postponedCount === 0) return { found: undefined, steps };
    // Values found before the postponed choice are intact, since later values are written after them.
    op = postponed[--postponedCount];
    position = postponedAt[2 * postponedCount] as number;
    foundCount = postponedAt[2 * postponedCount + 1] as number;
  }
}

function matches(stops: Stops, text: string, position: number): boolean {
  if (position >= text.length) return false;
  const unit = text.charCodeAt(position);
  return unit >= 128 || stops[unit] === 0;
}
