// The matcher under uri-template.ts: a template becomes a small machine, and a URI runs through it.
// It stands apart because it is the part that meets hostile input. No regular expression is made from
// anything a peer sends: the machine notes each pair of (choice, place in the text) that it has tried and
// never tries it twice, so the work is at most choices x length, whatever the URI. It does not decode.

/** One instruction. All have all fields, used or not, so that the engine sees one shape. */
export interface Op {
  readonly kind: "text" | "open" | "close" | "one" | "some" | "fork" | "end";
  readonly text: string;
  /** Which value an "open" begins. */
  readonly slot: number;
  /** Units that a "one" or a "some" does not take. */
  readonly stops: Stops;
  /** Which row of what was tried belongs to a "some" or a "fork". */
  readonly mark: number;
  /** Nothing follows an "end". */
  readonly next: Op | undefined;
  /** Where a "fork" goes when `next` has failed. */
  other: Op | undefined;
}

/** 1 for each ASCII unit at which a value ends. */
export type Stops = Uint8Array;

export function stopsAt(letters: string): Stops {
  const stops = new Uint8Array(128);
  for (const letter of letters) stops[letter.charCodeAt(0)] = 1;
  return stops;
}

export interface Program {
  readonly start: Op;
  /** How many instructions are a choice and must be remembered. */
  readonly marks: number;
}

export interface Run {
  /** Triples of slot, start and end in the order in which they stand in the text; undefined: no match. */
  readonly found: readonly number[] | undefined;
  readonly steps: number;
}

/** The last instruction, where laying begins. */
export const END: Op = {
  kind: "end",
  text: "",
  slot: 0,
  stops: stopsAt(""),
  mark: 0,
  next: undefined,
  other: undefined,
};

/** Lays instructions back to front: each call takes the one that comes after and returns its own. */
export class Assembler {
  #marks = 0;

  text(text: string, next: Op): Op {
    return text === "" ? next : { ...END, kind: "text", text, next };
  }

  /** A value that is captured, of at least 0 or 1 units and no more than the rest needs it to have. */
  value(slot: number, stops: Stops, least: 0 | 1, next: Op): Op {
    const some: Op = { ...END, kind: "some", stops, mark: this.#marks++, next: { ...END, kind: "close", next } };
    return { ...END, kind: "open", slot, next: least === 0 ? some : { ...END, kind: "one", stops, next: some } };
  }

  /** A captured value of no length. */
  nothing(slot: number, next: Op): Op {
    return { ...END, kind: "open", slot, next: { ...END, kind: "close", next } };
  }

  /** Tries `first`, then `second`. */
  either(first: Op, second: Op): Op {
    return { ...END, kind: "fork", mark: this.#marks++, next: first, other: second };
  }

  /** A loop: `body` is laid so that it comes back to the fork; leaving is tried before going round again. */
  loop(next: Op, body: (again: Op) => Op): Op {
    const fork = this.either(next, END);
    fork.other = body(fork);
    return fork;
  }

  program(start: Op): Program {
    return { start, marks: this.#marks };
  }
}

export function run({ start, marks }: Program, text: string): Run {
  // Most URIs that do not match differ at once; nothing is set up for them.
  if (start.kind === "text" && !text.startsWith(start.text)) return { found: undefined, steps: 1 };
  const width = text.length + 1;
  const tried = new Uint32Array((marks * width + 31) >>> 5);
  // The lists are cut back by their own counts: setting the length of an array is slow.
  const found: number[] = [];
  let held = 0;
  // Choices that were put off: where they go on, and pairs of place and how much of `found` held then.
  const later: (Op | undefined)[] = [];
  const laterAt: number[] = [];
  let waiting = 0;
  let steps = 0;
  let op: Op | undefined = start;
  let place = 0;
  for (;;) {
    let going = op !== undefined;
    steps++;
    switch (op?.kind) {
      case "text":
        going = text.startsWith(op.text, place);
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
        const cell = tried[bit >>> 5] as number;
        going = (cell & (1 << (bit & 31))) === 0;
        if (!going) break;
        tried[bit >>> 5] = cell | (1 << (bit & 31));
        const fork = op.kind === "fork";
        if (!fork && !takes(op.stops, text, place)) break;
        laterAt[2 * waiting] = fork ? place : place + 1;
        laterAt[2 * waiting + 1] = held;
        later[waiting++] = fork ? op.other : op;
        break;
      }
      case "end":
        if (place === text.length) return { found: found.slice(0, held), steps };
        going = false;
        break;
      case undefined:
    }
    if (going) {
      op = op?.next;
      continue;
    }
    if (waiting === 0) return { found: undefined, steps };
    // What was found before the put-off choice still stands: only deeper choices wrote after it.
    op = later[--waiting];
    place = laterAt[2 * waiting] as number;
    held = laterAt[2 * waiting + 1] as number;
  }
}

function takes(stops: Stops, text: string, place: number): boolean {
  if (place >= text.length) return false;
  const unit = text.charCodeAt(place);
  return unit >= 128 || stops[unit] === 0;
}
