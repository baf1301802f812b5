// Names of many ends in one list. A name that one end alone has stays as it is; one that several have, or all of them
// by choice, is made longer by the end's label. A made name counts for more than one that an end chose: where the two
// are the same, the chosen one is made longer too, so that no end can take the place of another's. Pure: the same
// lists give the same names, and every name that is shown leads back to one end and one name of it.

import { checkSum } from "./check-sum.ts";
import type { Label } from "./labels.ts";

export type NamesOption = "when-needed" | "always";

/** One name of one end; the end is its place among all. */
export interface Target {
  readonly end: number;
  readonly name: string;
}

/** A salt above 0 asks for another one, because the first is taken. */
export type Make = (end: number, name: string, salt: number) => string;

/** Longer names are refused by some models' interfaces. */
const MOST_LETTERS = 64;

export function toolNames(labels: readonly Label[]): Make {
  return (end, name, salt) => {
    const front = `${labels[end]?.name ?? ""}.`;
    const whole = front + name;
    if (whole.length <= MOST_LETTERS && salt === 0) return whole;
    const sum = `-${checkSum(`${salt} ${name}`)}`;
    return front + firstOf(name, MOST_LETTERS - front.length - sum.length) + sum;
  };
}

/** Without half a character at its end. */
function firstOf(text: string, most: number): string {
  const part = text.slice(0, most);
  return /[\uD800-\uDBFF]$/.test(part) && part.length < text.length ? part.slice(0, -1) : part;
}

export class Names {
  /** By the end's own name: which ends have it. */
  readonly #owners = new Map<string, number[]>();
  /** By the name that is shown. */
  readonly #shown = new Map<string, Target>();
  /** By end and own name: the made name, where there is one. */
  readonly #made: readonly Map<string, string>[];

  /** One list for each end. A name that is reserved is made longer, whoever has it. */
  constructor(
    lists: readonly (readonly string[])[],
    option: NamesOption,
    make: Make,
    isReserved: (name: string) => boolean = () => false,
  ) {
    this.#made = lists.map(() => new Map<string, string>());
    for (const [end, names] of lists.entries()) {
      for (const name of names) {
        const owners = this.#owners.get(name);
        if (owners === undefined) this.#owners.set(name, [end]);
        else if (owners.at(-1) !== end) owners.push(end);
      }
    }
    const longer = new Set<string>();
    for (const [name, { length }] of this.#owners) {
      if (option === "always" || length > 1 || isReserved(name)) longer.add(name);
    }
    // What is added on the way is come to as well.
    for (const name of longer) {
      for (const end of this.owners(name)) {
        const made = this.#make(end, name, make);
        if (this.#owners.has(made)) longer.add(made);
      }
    }
    for (const [name, [end = 0]] of this.#owners) if (!longer.has(name)) this.#shown.set(name, { end, name });
  }

  /** What the name leads to, where it is one of those that are shown. */
  target(shown: string): Target | undefined {
    return this.#shown.get(shown);
  }

  /** What a name of an end is shown as. One that was in no list is as it is. */
  shown(end: number, name: string): string {
    return this.#made[end]?.get(name) ?? name;
  }

  /** The ends that have this name, in their order. */
  owners(name: string): readonly number[] {
    return this.#owners.get(name) ?? [];
  }

  /** Whether any name of this end is shown otherwise. */
  isChanged(end: number): boolean {
    return (this.#made[end]?.size ?? 0) > 0;
  }

  #make(end: number, name: string, make: Make): string {
    let made = make(end, name, 0);
    for (let salt = 1; this.#shown.has(made); salt += 1) made = make(end, name, salt);
    this.#shown.set(made, { end, name });
    this.#made[end]?.set(name, made);
    return made;
  }
}
