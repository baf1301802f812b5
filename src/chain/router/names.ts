// Puts the names of many upstreams into one list. A name that only one upstream has stays as it is. A name that several
// have gets the label of its upstream as a prefix: `notes.search`. With the option "always", every name gets a prefix.
// The same lists give the same names, and every shown name belongs to exactly one item of one upstream.

import type { Handler } from "../../core/handler.ts";
import { checksum } from "../../protocol/lists.ts";

export type NamesOption = "when-needed" | "always";

/** The prefixes of an upstream. */
export interface Label {
  /** For the names of tools and prompts. */
  readonly name: string;
  /** For URIs and the ids of tasks. */
  readonly scheme: string;
}

/** An upstream of the router; `index` is its position among all. */
export interface RoutedUpstream {
  readonly index: number;
  readonly name: string;
  readonly label: Label;
  readonly handler: Handler;
}

/** An upstream by its index, and the upstream's own name of an item. */
export interface Route {
  readonly upstream: number;
  readonly name: string;
}

const MAX_LABEL_LENGTH = 32;

/**
 * Upstream names may contain any characters. Labels contain only characters that tool names and URI schemes allow. They
 * are unique and not empty, and contain no dot, so that the first dot ends the label. A valid name is its own label.
 */
export function createLabels(names: readonly string[]): readonly Label[] {
  const labels = uniqueLabels(names, (name) => name.replaceAll(/[^A-Za-z0-9_-]/g, "_"));
  const schemes = uniqueLabels(names, (name) =>
    name
      .toLowerCase()
      .replaceAll(/[^a-z0-9+-]/g, "-")
      .replace(/^(?![a-z])/, "e-"),
  );
  return names.map((_name, index) => ({ name: labels[index] ?? "", scheme: schemes[index] ?? "" }));
}

function uniqueLabels(names: readonly string[], clean: (name: string) => string): readonly string[] {
  const cleaned = names.map((name) => clean(name) || "upstream");
  const fits = (label: string): boolean => label.length <= MAX_LABEL_LENGTH;
  const unchanged = cleaned.map((label, index) => (fits(label) && label === names[index] ? label : undefined));
  const taken = new Set(unchanged);
  return cleaned.map((label, index) => {
    const own = unchanged[index];
    if (own !== undefined) return own;
    let free = label;
    for (let salt = 0; !fits(free) || taken.has(free); salt += 1) {
      const sum = checksum(`${salt} ${names[index] ?? ""}`);
      free = `${label.slice(0, MAX_LABEL_LENGTH - 1 - sum.length)}-${sum}`;
    }
    taken.add(free);
    return free;
  });
}

/** Adds the label of an upstream to a name. A salt above 0 gives a different result, in case the first is taken. */
export type PrefixName = (upstream: number, name: string, salt: number) => string;

/** Some model APIs refuse longer names. */
const MAX_NAME_LENGTH = 64;

export function prefixToolName(labels: readonly Label[]): PrefixName {
  return (upstream, name, salt) => {
    const prefix = `${labels[upstream]?.name ?? ""}.`;
    const whole = prefix + name;
    if (whole.length <= MAX_NAME_LENGTH && salt === 0) return whole;
    const suffix = `-${checksum(`${salt} ${name}`)}`;
    return prefix + truncate(name, MAX_NAME_LENGTH - prefix.length - suffix.length) + suffix;
  };
}

/** Labels contain no dot and are all different, so two prefixed URIs are never the same. */
function prefixUri(labels: readonly Label[]): PrefixName {
  return (upstream, uri) => `${labels[upstream]?.scheme ?? ""}.${uri}`;
}

/** Does not cut a surrogate pair in two. */
function truncate(text: string, maxLength: number): string {
  const part = text.slice(0, maxLength);
  return /[\uD800-\uDBFF]$/.test(part) && part.length < text.length ? part.slice(0, -1) : part;
}

/**
 * The names that are shown for given lists. A prefixed name has priority: if another upstream lists a name equal to it,
 * that name gets a prefix too, so that no upstream can take over a name of another.
 */
export class NameTable {
  /** The upstreams that have a name. */
  readonly #owners = new Map<string, number[]>();
  readonly #routes = new Map<string, Route>();
  /** For each upstream, the prefixed names by the upstream's own names. */
  readonly #prefixed: readonly Map<string, string>[];

  /** One list for each upstream. `isReserved`: whether a name gets a prefix although no other upstream has it. */
  constructor(
    lists: readonly (readonly string[])[],
    option: NamesOption,
    prefix: PrefixName,
    isReserved: (name: string, owner: number) => boolean = () => false,
  ) {
    this.#prefixed = lists.map(() => new Map<string, string>());
    for (const [upstream, names] of lists.entries()) {
      for (const name of names) {
        const owners = this.#owners.get(name);
        if (owners === undefined) this.#owners.set(name, [upstream]);
        else if (owners.at(-1) !== upstream) owners.push(upstream);
      }
    }
    const colliding = new Set<string>();
    for (const [name, [owner = 0, ...others]] of this.#owners) {
      if (option === "always" || others.length > 0 || isReserved(name, owner)) colliding.add(name);
    }
    // The loop also visits the names that it adds.
    for (const name of colliding) {
      for (const upstream of this.owners(name)) {
        const prefixed = this.#add(upstream, name, prefix);
        if (this.#owners.has(prefixed)) colliding.add(prefixed);
      }
    }
    for (const [name, [upstream = 0]] of this.#owners) {
      if (!colliding.has(name)) this.#routes.set(name, { upstream, name });
    }
  }

  /** The upstream and own name of a shown name. */
  route(shown: string): Route | undefined {
    return this.#routes.get(shown);
  }

  /** The name that is shown for an upstream's own name; the own name itself if it has no prefix. */
  shown(upstream: number, name: string): string {
    return this.#prefixed[upstream]?.get(name) ?? name;
  }

  /** The upstreams that have this name, in order. */
  owners(name: string): readonly number[] {
    return this.#owners.get(name) ?? [];
  }

  /** Whether any name of this upstream has a prefix. */
  hasPrefixes(upstream: number): boolean {
    return (this.#prefixed[upstream]?.size ?? 0) > 0;
  }

  #add(upstream: number, name: string, prefix: PrefixName): string {
    let prefixed = prefix(upstream, name, 0);
    for (let salt = 1; this.#routes.has(prefixed); salt += 1) prefixed = prefix(upstream, name, salt);
    this.#routes.set(prefixed, { upstream, name });
    this.#prefixed[upstream]?.set(name, prefixed);
    return prefixed;
  }
}

/** For this long after all upstreams were listed, an unknown name does not cause another listing. */
const FRESH_MS = 1_000;

/**
 * What is known about the names of one kind of items in all upstreams. `View` and `Lists` read the lists and set them
 * here. The last list of an unavailable upstream still counts, so that the names of the others do not change meanwhile.
 */
export class NameIndex {
  readonly #option: NamesOption;
  readonly #isUri: boolean;
  readonly #prefix: PrefixName;
  readonly #byLabel: ReadonlyMap<string, number>;
  readonly #lists: (readonly string[] | undefined)[];
  readonly #problems = new Map<number, string>();
  #table: NameTable | undefined;
  #listedAt = -Infinity;
  #changes = 0;
  #seenChanges = 0;

  /** `kind`: which labels are the prefixes. */
  constructor(upstreams: readonly RoutedUpstream[], option: NamesOption, kind: keyof Label) {
    const labels = upstreams.map(({ label }) => label);
    this.#option = option;
    this.#isUri = kind === "scheme";
    this.#prefix = this.#isUri ? prefixUri(labels) : prefixToolName(labels);
    this.#byLabel = new Map(labels.map((label, index) => [label[kind], index]));
    this.#lists = upstreams.map(() => undefined);
  }

  get names(): NameTable {
    return (this.#table ??= this.#createTable());
  }

  /** Whether every name has a label. */
  get isAlways(): boolean {
    return this.#option === "always";
  }

  /** Whether no listing of all upstreams has finished yet, and some upstream was never listed. */
  get isCold(): boolean {
    return this.#listedAt === -Infinity && this.#lists.includes(undefined);
  }

  /** The number of change notifications so far. */
  get changes(): number {
    return this.#changes;
  }

  /** Whether an upstream has reported a change since the last listing began. */
  get isStale(): boolean {
    return this.#changes !== this.#seenChanges;
  }

  get isFresh(): boolean {
    return !this.isStale && performance.now() - this.#listedAt < FRESH_MS;
  }

  isKnown(upstream: number): boolean {
    return this.#lists[upstream] !== undefined;
  }

  /** The last list of an upstream. */
  listOf(upstream: number): readonly string[] {
    return this.#lists[upstream] ?? [];
  }

  /** Why some upstreams could not be listed. */
  get problems(): readonly string[] {
    return [...this.#problems.values()];
  }

  setList(upstream: number, list: readonly string[]): void {
    this.#problems.delete(upstream);
    if (isSameList(this.#lists[upstream], list)) return;
    this.#lists[upstream] = list;
    this.#table = undefined;
  }

  setProblem(upstream: number, problem: string): void {
    this.#problems.set(upstream, problem);
  }

  /** Records that all upstreams were listed. `changes` is the number of changes when the listing began. */
  setListed(changes: number): void {
    this.#seenChanges = changes;
    this.#listedAt = performance.now();
  }

  changed(): void {
    this.#changes += 1;
  }

  /**
   * The route of a name that a caller sent. Only shown names have a route, so that middleware that hides a name need
   * not know other forms of it.
   */
  find(text: string): Route | undefined {
    const route = this.names.route(text);
    if (route !== undefined || !this.isAlways) return route;
    // The upstream may have a name that is not listed. It must be in the form in which it would be shown.
    const unlisted = this.parseLabel(text);
    return unlisted && this.#prefix(unlisted.upstream, unlisted.name, 0) === text ? unlisted : undefined;
  }

  /** The shown name for a name with an unneeded label: `search` for `notes.search` if no other upstream has it. */
  shownFor(text: string): string | undefined {
    const route = this.parseLabel(text);
    if (route === undefined || !this.names.owners(route.name).includes(route.upstream)) return undefined;
    return this.names.shown(route.upstream, route.name);
  }

  /** Splits a name into label and rest, whether or not the upstream has it. */
  parseLabel(text: string): Route | undefined {
    const dot = text.indexOf(".");
    const upstream = dot === -1 ? undefined : this.#byLabel.get(text.slice(0, dot));
    return upstream === undefined ? undefined : { upstream, name: text.slice(dot + 1) };
  }

  #createTable(): NameTable {
    const lists = this.#lists.map((list) => list ?? []);
    // A name that begins with the label of another upstream would look like one of that upstream.
    return new NameTable(lists, this.#option, this.#prefix, (name, owner) => {
      const route = this.parseLabel(name);
      return route !== undefined && (this.#isUri || route.upstream !== owner);
    });
  }
}

function isSameList(one: readonly string[] | undefined, other: readonly string[]): boolean {
  return one?.length === other.length && one.every((name, index) => name === other[index]);
}
