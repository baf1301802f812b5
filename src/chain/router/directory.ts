// What is known of one kind of names in all ends: whose each is, and what it is shown as. It is told what ends list and
// asks nobody itself. What an end that is away listed last still counts, so that the names of others do not change
// while it is gone.

import type { RoutedUpstream } from "./member.ts";
import { type Make, Names, type NamesOption, type Target } from "./names.ts";

export interface DirectoryOptions {
  readonly ends: readonly RoutedUpstream[];
  readonly option: NamesOption;
  readonly make: Make;
  /** What stands before the names of an end. */
  labelOf(end: RoutedUpstream): string;
  /** Whether what begins with a label is always taken for what the label says. */
  readonly isStrict: boolean;
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
    return (this.#names ??= this.#merged());
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

  /**
   * What a caller's word leads to. Only what is shown leads anywhere: a link in front that hides a name must not have to
   * know in which other ways it could be said.
   */
  find(text: string): Target | undefined {
    return this.names.target(text) ?? (this.isAlways ? this.explicit(text) : undefined);
  }

  /** What it is shown as, where a caller says it with a label that it does not have here. */
  otherwise(text: string): string | undefined {
    const said = this.explicit(text);
    if (said === undefined || !this.names.owners(said.name).includes(said.end)) return undefined;
    return this.names.shown(said.end, said.name);
  }

  /** What the word says by itself, known or not: a label that stands before a name. */
  explicit(text: string): Target | undefined {
    const dot = text.indexOf(".");
    const end = dot === -1 ? undefined : this.#byLabel.get(text.slice(0, dot));
    return end === undefined ? undefined : { end, name: text.slice(dot + 1) };
  }

  #merged(): Names {
    const { option, make, isStrict } = this.#options;
    const lists = this.#lists.map((list) => list ?? []);
    return new Names(lists, option, make, (name) => isStrict && this.explicit(name) !== undefined);
  }
}

function isSame(one: readonly string[] | undefined, other: readonly string[]): boolean {
  return one?.length === other.length && one.every((name, index) => name === other[index]);
}
