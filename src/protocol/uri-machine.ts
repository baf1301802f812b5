// The matcher under uri-template.ts: a template becomes a small machine, and a URI runs through it.
// It stands apart because it is the part that meets hostile input. No regular expression is made from
// anything a peer sends: the machine notes each pair of (choice, place in the text) that it has tried and
// never tries it twice, so the work is at most choices x length, whatever the URI. It does not decode.

/** One instruction. All have all fields, used or not, so that the engine sees one shape. */
interface Op {
  readonly kind: "text" | "open" | "close" | "one" | "some" | "fork" | "end";
  readonly text: string;
  readonly unit: number;
  /** Which value an "open" begins. */
  readonly slot: number;
  /** Units that a "one" or a "some" does not take. */
  readonly stops: Stops;
  /** Which row of what was tried belongs to a "some" or a "fork". */
  readonly mark: number;
  readonly next: number;
  /** Where a "fork" goes when `next` has failed. */
  other: number;
}

/** 1 for each ASCII unit at which a value ends. */
export type Stops = Uint8Array;

export function stopsAt(letters: string): Stops {
  const stops = new Uint8Array(128);
  for (const letter of letters) stops[letter.charCodeAt(0)] = 1;
  return stops;
}

export interface Program {
  readonly ops: readonly Op[];
  readonly start: number;
  /** How many instructions are a choice and must be remembered. */
  readonly marks: number;
}

export interface Run {
  /** Triples of slot, start and end in the order in which they stand in the text; undefined: no match. */
  readonly found: readonly number[] | undefined;
  readonly steps: number;
}

/** The place of the end, where laying begins. */
export const END = 0;

const NOWHERE: Stops = stopsAt("");
const BLANK: Op = { kind: "end", text: "", unit: 0, slot: 0, stops: NOWHERE, mark: 0, next: END, other: END };

/** Lays instructions back to front: each call takes the place that comes after and returns its own. */
export class Assembler {
  readonly #ops: Op[] = [BLANK];
  #marks = 0;

  #add(op: Partial<Op> & Pick<Op, "kind" | "next">): number {
    return this.#ops.push({ ...BLANK, ...op }) - 1;
  }

  text(text: string, next: number): number {
    return text === "" ? next : this.#add({ kind: "text", text, unit: text.charCodeAt(0), next });
  }

  /** A value that is captured, of at least 0 or 1 units and no more than the rest needs it to have. */
  value(slot: number, stops: Stops, least: 0 | 1, next: number): number {
    const some = this.#add({ kind: "some", stops, mark: this.#marks++, next: this.#add({ kind: "close", next }) });
    return this.#add({ kind: "open", slot, next: least === 0 ? some : this.#add({ kind: "one", stops, next: some }) });
  }

  /** A captured value of no length. */
  nothing(slot: number, next: number): number {
    return this.#add({ kind: "open", slot, next: this.#add({ kind: "close", next }) });
  }

  /** Tries `first`, then `second`. */
  either(first: number, second: number): number {
    return this.#add({ kind: "fork", mark: this.#marks++, next: first, other: second });
  }

  /** A loop: `body` is laid so that it comes back to the fork; leaving is tried before going round again. */
  loop(next: number, body: (again: number) => number): number {
    const fork = this.either(next, END);
    this.#ops[fork]!.other = body(fork);
    return fork;
  }

  program(start: number): Program {
    return { ops: this.#ops, start, marks: this.#marks };
  }
}

export function run({ ops, start, marks }: Program, text: string): Run {
  const first = ops[start]!;
  // Most URIs that do not match differ at once; nothing is set up for them.
  if (first.kind === "text" && !text.startsWith(first.text)) return { found: undefined, steps: 1 };
  const width = text.length + 1;
  const tried = new Uint32Array((marks * width + 31) >>> 5);
  // Both lists are cut back by their own counts: setting the length of an array is slow.
  const found: number[] = [];
  let held = 0;
  // Triples of instruction, place, and how much of `found` held when the choice was put off.
  const later: number[] = [];
  let waiting = 0;
  let steps = 0;
  let at = start;
  let place = 0;
  for (;;) {
    const op = ops[at]!;
    let going = true;
    steps++;
    switch (op.kind) {
      case "text":
        going = text.charCodeAt(place) === op.unit && (op.text.length === 1 || text.startsWith(op.text, place));
        place += op.text.length;
        break;
      case "open":
        found[held++] = op.slot;
        found[held++] = place;
        break;
      case "close":
        found[held++] = place;
        break;
      case "one":
        going = takes(op.stops, text, place);
        place++;
        break;
      case "some":
      case "fork": {
        const bit = op.mark * width + place;
        const cell = tried[bit >>> 5]!;
        going = (cell & (1 << (bit & 31))) === 0;
        if (!going) break;
        tried[bit >>> 5] = cell | (1 << (bit & 31));
        if (op.kind === "some" && !takes(op.stops, text, place)) break;
        later[waiting++] = op.kind === "fork" ? op.other : at;
        later[waiting++] = op.kind === "fork" ? place : place + 1;
        later[waiting++] = held;
        break;
      }
      case "end":
        if (place === text.length) return { found: found.slice(0, held), steps };
        going = false;
    }
    if (going) {
      at = op.next;
      continue;
    }
    if (waiting === 0) return { found: undefined, steps };
    // What was found before the put-off choice still stands: only deeper choices wrote after it.
    held = later[--waiting]!;
    place = later[--waiting]!;
    at = later[--waiting]!;
  }
}

function takes(stops: Stops, text: string, place: number): boolean {
  if (place >= text.length) return false;
  const unit = text.charCodeAt(place);
  return unit >= 128 || stops[unit] === 0;
}
