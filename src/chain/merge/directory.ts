// What is known of one kind of names in all ends: whose each is, and what it is shown as. It is told what ends list and
// asks nobody itself. What an end that is away listed last still counts, so that the names of others do not change
// while it is gone.

import type { MergedEnd } from "./member.ts";
import { type Make, Names, type NamesOption, type Target } from "./names.ts";

export interface DirectoryOptions {
  readonly ends: readonly MergedEnd[];
  readonly option: NamesOption;
  readonly make: Make;
  /** What stands before the names of an end. */
  labelOf(end: MergedEnd): string;
}

/** For so long after all ends were asked, a name that is not known is not asked for again. */
const FRESH_MS = 1_000;

export class Directory {
  readonly #options: DirectoryOptions;
  readonly #byLabel: ReadonlyMap<string, number>;
  readonly #lists: (readonly string[] | undefined)[];
  readonly #problems = new Map<number, string>();
  #names: Names | undefined;
  #askedAt = -Infinity;
  #changes = 0;
  #seen = 0;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    this.#byLabel = new Map(options.ends.map((end) => [options.labelOf(end), end.index]));
    this.#lists = options.ends.map(() => undefined);
  }

  get names(): Names {
    const { option, make } = this.#options;
    return (this.#names ??= new Names(
      this.#lists.map((list) => list ?? []),
      option,
      make,
    ));
  }

  /** Whether every name is shown with a label. */
  get isAlways(): boolean {
    return this.#options.option === "always";
  }

  /** Whether nobody was ever asked for some of it. */
  get isCold(): boolean {
    return this.#askedAt === -Infinity && this.#lists.includes(undefined);
  }

  /** How often ends have said that something is new. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether that was since they were last asked. */
  get isStale(): boolean {
    return this.#changes !== this.#seen;
  }

  get isFresh(): boolean {
    return !this.isStale && performance.now() - this.#askedAt < FRESH_MS;
  }

  isKnown(end: number): boolean {
    return this.#lists[end] !== undefined;
  }

  /** What the end listed last. */
  listOf(end: number): readonly string[] {
    return this.#lists[end] ?? [];
  }

  /** Why some ends could not be asked. */
  get problems(): readonly string[] {
    return [...this.#problems.values()];
  }

  note(end: number, list: readonly string[]): void {
    this.#problems.delete(end);
    if (isSame(this.#lists[end], list)) return;
    this.#lists[end] = list;
    this.#names = undefined;
  }

  noteProblem(end: number, problem: string): void {
    this.#problems.set(end, problem);
  }

  /** All ends were asked, beginning after so many changes. */
  noteAll(changes: number): void {
    this.#seen = changes;
    this.#askedAt = performance.now();
  }

  changed(): void {
    this.#changes += 1;
  }

  /** What a caller's word leads to: a name that is shown, or an end's name with its label. */
  find(text: string): Target | undefined {
    return this.names.target(text) ?? this.#labelled(text);
  }

  /** What the word says by itself, known or not: a label that stands before a name. */
  explicit(text: string): Target | undefined {
    const dot = text.indexOf(".");
    const end = dot === -1 ? undefined : this.#byLabel.get(text.slice(0, dot));
    return end === undefined ? undefined : { end, name: text.slice(dot + 1) };
  }

  /** Whether a word names its end, so that no other end can be meant. */
  isExplicit(text: string, { end }: Target): boolean {
    return this.explicit(text)?.end === end;
  }

  #labelled(text: string): Target | undefined {
    const said = this.explicit(text);
    if (said !== undefined && this.#has(said)) return said;
    // An end whose own name is no label is also known by that name.
    for (const { index, name } of this.#options.ends) {
      const whole = text.startsWith(`${name}.`) ? { end: index, name: text.slice(name.length + 1) } : undefined;
      if (whole !== undefined && this.#has(whole)) return whole;
    }
    return undefined;
  }

  #has({ end, name }: Target): boolean {
    return this.names.owners(name).includes(end);
  }
}

function isSame(one: readonly string[] | undefined, other: readonly string[]): boolean {
  return one?.length === other.length && one.every((name, index) => name === other[index]);
}
