// Puts the names of many upstreams into one list. A name that only one upstream has stays as it is. A name that several
// have gets the label of its upstream as a prefix: `notes_search`. With the option "always", every name gets a prefix.
// Names of tools and prompts that model APIs refuse are shown in a valid form. Every shown name belongs to exactly one
// item of one upstream, and a name that was shown before (shown-names.ts) stays with its item.

import { isSameArray } from "../../core/collections.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { callListener } from "../../core/listeners.ts";
import type { Handler } from "../../core/handler.ts";
import { checksum } from "../../protocol/pages.ts";
import { startVersion } from "../catalogue.ts";
import type { ListItem } from "./pages.ts";
import { cleanName, type Label } from "./labels.ts";
import { VALID_NAME, type NamedKind, type ShownNames } from "./shown-names.ts";

/** When names get the label of their upstream. */
export type NamesOption = "when-needed" | "always";

/** An upstream of the router; `index` is its position among all. */
export interface RoutedUpstream {
  readonly index: number;
  readonly name: string;
  readonly label: Label;
  readonly names: NamesOption;
  readonly handler: Handler;
  /** Whether it runs, so that it can answer at once. Absent if that is not known. */
  readonly isUp?: () => boolean;
}

/** An upstream by its index, and the upstream's own name of an item. */
export interface Route {
  readonly upstream: number;
  readonly name: string;
}

/** Clients put a prefix of their own before a name, so names are shorter than the APIs require. */
export const MAX_NAME_LENGTH = 48;
/** Model APIs accept only letters, digits, _ and - in names, and words of names are mostly joined by _. */
export const SEPARATOR = "_";

/** The forms in which a name can be shown. A salt above 0 gives a different form, in case the first is taken. */
export interface NameForms {
  /** Without a label. */
  plain(name: string, salt: number): string;
  /** With the label of the upstream. */
  labelled(upstream: number, name: string, salt: number): string;
}

/** The name itself if it is valid and short enough. Otherwise a valid name that ends with a checksum of the name. */
export function validName(name: string, salt = 0): string {
  if (salt === 0 && name.length <= MAX_NAME_LENGTH && VALID_NAME.test(name)) return name;
  return withChecksum(name, `${salt} ${name}`);
}

/** A valid name that begins like `name` and ends with a checksum of `summed`. */
export function withChecksum(name: string, summed: string): string {
  const suffix = `-${checksum(summed)}`;
  return (cleanName(name) || "unnamed").slice(0, MAX_NAME_LENGTH - suffix.length) + suffix;
}

/**
 * With the labels `a` and `a_b`, the tool `b_c` of `a` and the tool `c` of `a_b` would both be `a_b_c`. The name belongs
 * to the longer label; the other gets a checksum, even if the upstream with the longer label is not there.
 */
function toolNameForms(labels: readonly Label[], others: readonly Label[] = []): NameForms {
  const prefixes = [...labels, ...others].map(({ name }) => name + SEPARATOR);
  return {
    plain: (name, salt) => validName(name, salt),
    labelled: (upstream, name, salt) => {
      const prefix = prefixes[upstream] ?? "";
      const whole = prefix + name;
      const isOthers = prefixes.some((other) => other.length > prefix.length && whole.startsWith(other));
      if (salt === 0 && !isOthers && whole.length <= MAX_NAME_LENGTH && VALID_NAME.test(whole)) return whole;
      return withChecksum(whole, `${salt} ${prefix} ${name}`);
    },
  };
}

/** Labels contain no dot and are all different, so two prefixed URIs are never the same. */
function uriForms(labels: readonly Label[]): NameForms {
  return {
    plain: (uri) => uri,
    labelled: (upstream, uri) => `${labels[upstream]?.scheme ?? ""}.${uri}`,
  };
}

interface NamedRoute extends Route {
  /** The name without a label. */
  readonly plain: string;
}

export interface NameTableOptions {
  readonly forms: NameForms;
  /** Whether all names of this upstream get a label. */
  readonly isAlways: (upstream: number) => boolean;
  /** Whether a name gets a label although no other upstream has it. */
  readonly isReserved?: (name: string, upstream: number) => boolean;
  /** The name under which an item was shown before. */
  readonly shownBefore?: (upstream: number, name: string) => string | undefined;
  /** Whether a name was shown for another upstream. */
  readonly isOthers?: (shownName: string, upstream: number) => boolean;
}

/** The names that are shown for given lists, one for each upstream. */
export class NameTable {
  /** The upstreams that have an item with this plain name. */
  readonly #owners = new Map<string, number[]>();
  readonly #routes = new Map<string, Route>();
  /** For each upstream, the shown names by the upstream's own names, where they differ. */
  readonly #changed: readonly Map<string, string>[];
  readonly #forms: NameForms;

  constructor(lists: readonly (readonly string[])[], options: NameTableOptions) {
    const { forms, isAlways, isReserved, shownBefore, isOthers = () => false } = options;
    this.#forms = forms;
    this.#changed = lists.map(() => new Map<string, string>());
    const items = lists.flatMap((names, upstream) =>
      [...new Set(names)].map((name): NamedRoute => ({ upstream, name, plain: forms.plain(name, 0) })),
    );
    for (const { upstream, plain } of items) {
      const owners = this.#owners.get(plain);
      if (owners === undefined) this.#owners.set(plain, [upstream]);
      else if (owners.at(-1) !== upstream) owners.push(upstream);
    }
    const free: NamedRoute[] = [];
    const labelled: NamedRoute[] = [];
    for (const item of items) {
      const { upstream, name, plain } = item;
      const before = shownBefore?.(upstream, name);
      if (before !== undefined && !this.#routes.has(before)) this.#set(before, item);
      else if (isAlways(upstream) || this.owners(plain).length > 1) labelled.push(item);
      else if (isReserved?.(plain, upstream) === true || isOthers(plain, upstream)) labelled.push(item);
      else free.push(item);
    }
    const add = (item: NamedRoute, form: (salt: number) => string): void => {
      let salt = 0;
      while (this.#routes.has(form(salt)) || isOthers(form(salt), item.upstream)) salt += 1;
      this.#set(form(salt), item);
    };
    const label = (item: NamedRoute): void => add(item, (salt) => forms.labelled(item.upstream, item.name, salt));
    // Names with a label have priority, and own names that are valid before those that had to be changed.
    labelled.forEach(label);
    const [unchanged, changed] = [
      free.filter((candidate) => candidate.name === candidate.plain),
      free.filter((candidate) => candidate.name !== candidate.plain),
    ];
    for (const item of unchanged)
      if (this.#routes.has(item.plain)) label(item);
      else this.#set(item.plain, item);
    for (const item of changed) add(item, (salt) => forms.plain(item.name, salt));
  }

  /** The upstream and own name of a shown name. */
  route(shownName: string): Route | undefined {
    return this.#routes.get(shownName);
  }

  /** The name that is shown for an upstream's own name. */
  shownName(upstream: number, name: string): string {
    return this.#changed[upstream]?.get(name) ?? name;
  }

  /** The upstreams that have this name, in order. */
  owners(name: string): readonly number[] {
    return this.#owners.get(name) ?? this.#owners.get(this.#forms.plain(name, 0)) ?? [];
  }

  /** Whether any name of this upstream is shown with a prefix. */
  hasPrefixes(upstream: number): boolean {
    return (this.#changed[upstream]?.size ?? 0) > 0;
  }

  #set(shownName: string, { upstream, name }: NamedRoute): void {
    this.#routes.set(shownName, { upstream, name });
    if (shownName !== name) this.#changed[upstream]?.set(name, shownName);
  }
}

/** Pages of one list that are kept. */
const MAX_KEPT = 100;
/** For this long after all upstreams were listed, an unknown name does not cause another listing. */
const FRESH_MS = 1_000;

/** How the names of tools and prompts are shown, for all views of a router. */
export interface Naming {
  readonly shownNames: ShownNames;
  /** The labels of all upstreams of the gateway, by name. A view may have only some of them. */
  readonly labels: ReadonlyMap<string, Label>;
  /** Called with names of an upstream that model APIs refuse, once for each name. */
  readonly onWarning?: ((upstream: string, message: string) => void) | undefined;
}

/**
 * What is known about the names of one kind of items in all upstreams. view.ts and lists.ts read the lists and set them
 * here. The last list of an unavailable upstream still counts, so that the names of the others do not change meanwhile.
 */
export class NameIndex {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #forms: NameForms;
  /** Undefined for URIs, which are not remembered. */
  readonly #named: (Naming & { readonly kind: NamedKind }) | undefined;
  /** The upstreams of the gateway that are not in this view, with their labels. */
  readonly #hidden: readonly (readonly [name: string, label: Label])[];
  readonly #lists: (readonly string[] | undefined)[];
  readonly #items: (readonly ListItem[] | undefined)[] = [];
  #edits = startVersion();
  /** Whose names were shown last. */
  #shownTable: NameTable | undefined;
  #kept: { readonly version: number; readonly values: ExpiringMap<string, unknown> } = {
    version: -1,
    values: new ExpiringMap({ maxEntries: MAX_KEPT }),
  };
  readonly #problems = new Map<number, string>();
  #table: NameTable | undefined;
  /** Of the remembered names, when the table was made. */
  #tableVersion = 0;
  #listedAt = -Infinity;
  #changes = 0;
  #seenChanges = 0;

  /** `kind` and `naming` are for names of tools and prompts; without them, the items are URIs. */
  constructor(upstreams: readonly RoutedUpstream[], naming?: Naming, kind: NamedKind = "tools") {
    const labels = upstreams.map(({ label }) => label);
    this.#upstreams = upstreams;
    this.#named = naming && { ...naming, kind };
    const current = new Set(upstreams.map(({ name }) => name));
    this.#hidden = [...(naming?.labels ?? [])].filter(([name]) => !current.has(name));
    const others = this.#hidden.map(([, label]) => label);
    this.#forms = naming === undefined ? uriForms(labels) : toolNameForms(labels, others);
    this.#lists = upstreams.map(() => undefined);
  }

  get names(): NameTable {
    const version = this.#named?.shownNames.version ?? 0;
    if (this.#table === undefined || version !== this.#tableVersion) this.#table = this.#createTable();
    this.#tableVersion = version;
    return this.#table;
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

  /** `items`: the definitions, in the order of the names. */
  setList(upstream: number, list: readonly string[], items: readonly ListItem[] = []): void {
    this.#problems.delete(upstream);
    const hasNames = isSameArray(this.#lists[upstream], list);
    if (hasNames && isSameArray(this.#items[upstream], items)) return;
    this.#edits += 1;
    this.#items[upstream] = items;
    this.#lists[upstream] = list;
    if (!hasNames) this.#table = undefined;
  }

  /** Another number when names may lead elsewhere, or definitions have changed. */
  get version(): number {
    return this.#edits + (this.#named?.shownNames.version ?? 0);
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
    this.#edits += 1;
    this.#changes += 1;
  }

  /**
   * The route of a name that a caller sent. Only shown names have a route, so that middleware that hides a name need
   * not know other forms of it.
   */
  find(text: string): Route | undefined {
    return this.names.route(text) ?? this.#findUnlisted(text);
  }

  /** The route of a name that was shown before, if its upstream could not be listed since the start. */
  findAway(text: string): Route | undefined {
    const owner = this.#named?.shownNames.owner(this.#named.kind, text);
    const upstream = owner && this.#upstreams.find(({ name }) => name === owner.upstream);
    if (owner === undefined || upstream === undefined || this.isKnown(upstream.index)) return undefined;
    return { upstream: upstream.index, name: owner.name };
  }

  /** An upstream may have a name that it does not list. It must be in the form in which it would be shown. */
  #findUnlisted(text: string): Route | undefined {
    const route = this.parseLabel(text);
    if (route === undefined || this.#upstreams[route.upstream]?.names !== "always") return undefined;
    if (this.#isOthers(text, route.upstream)) return undefined;
    return this.#forms.labelled(route.upstream, route.name, 0) === text ? route : undefined;
  }

  /** The shown name for a name with an unneeded label: `search` for `notes_search` if no other upstream has it. */
  shownFor(text: string): string | undefined {
    const route = this.parseLabel(text);
    if (route === undefined || !this.names.owners(route.name).includes(route.upstream)) return undefined;
    return this.names.shownName(route.upstream, route.name);
  }

  /** Splits a name into label and rest, whether or not the upstream has it. The longest label counts. */
  parseLabel(text: string): Route | undefined {
    let longest = "";
    let route: Route | undefined;
    for (const { index, label } of this.#upstreams) {
      const prefix = this.#named === undefined ? `${label.scheme}.` : `${label.name}${SEPARATOR}`;
      if (!text.startsWith(prefix) || prefix.length <= longest.length) continue;
      longest = prefix;
      route = { upstream: index, name: text.slice(prefix.length) };
    }
    return route;
  }

  /** A value that is made of the lists as they are now, and again only when they have changed. */
  kept<Value>(key: string, make: () => Value): Value {
    if (this.#kept.version !== this.version)
      this.#kept = { version: this.version, values: new ExpiringMap({ maxEntries: MAX_KEPT }) };
    const { values } = this.#kept;
    const known = values.get(key) as Value | undefined;
    if (known !== undefined) return known;
    const value = make();
    values.set(key, value);
    return value;
  }

  /** Called when the names are shown to a caller: from now on, they stay with their items. */
  setShown(): void {
    if (
      this.#named === undefined ||
      (this.#shownTable === this.names && this.#tableVersion === this.#named.shownNames.version)
    )
      return;
    const { kind, shownNames } = this.#named;
    for (const { index, name } of this.#upstreams) {
      const pairs = this.listOf(index).map((ownName) => [ownName, this.names.shownName(index, ownName)] as const);
      rememberShown(this.#named, kind, name, pairs);
    }
    this.#tableVersion = shownNames.version;
    this.#shownTable = this.#table;
  }

  #isOthers(shownName: string, upstream: number): boolean {
    const owner = this.#named?.shownNames.owner(this.#named.kind, shownName);
    if (owner === undefined || owner.upstream === this.#upstreams[upstream]?.name) return false;
    return this.#named?.labels.has(owner.upstream) === true;
  }

  #createTable(): NameTable {
    const lists = this.#lists.map((list) => list ?? []);
    const named = this.#named;
    const options = { forms: this.#forms, isAlways: (at: number): boolean => this.#upstreams[at]?.names === "always" };
    // A URI that begins with a label would look like one of that upstream.
    if (named === undefined) {
      return new NameTable(lists, { ...options, isReserved: (uri) => this.parseLabel(uri) !== undefined });
    }
    /** The upstreams whose items have these names with a label, whether or not they need one. */
    const reserved = new Map<string, number>();
    /** If nothing is known of an upstream, all names with its label are reserved. */
    const unknown = new Set<number>();
    for (const { index, name: upstream } of this.#upstreams) {
      const names = this.#lists[index] ?? [...named.shownNames.ownNames(named.kind, upstream)];
      if (names.length === 0 && !this.isKnown(index)) unknown.add(index);
      for (const name of names) reserved.set(this.#forms.labelled(index, name, 0), index);
    }
    for (const [upstream, label] of this.#hidden) {
      const form = toolNameForms([label]);
      for (const name of named.shownNames.ownNames(named.kind, upstream)) reserved.set(form.labelled(0, name, 0), -1);
    }
    return new NameTable(lists, {
      ...options,
      isReserved: (name, upstream) => {
        const labelled = unknown.size === 0 ? undefined : this.parseLabel(name)?.upstream;
        if (labelled !== undefined && labelled !== upstream && unknown.has(labelled)) return true;
        return (reserved.get(name) ?? upstream) !== upstream;
      },
      isOthers: (shownName, upstream) => this.#isOthers(shownName, upstream),
      shownBefore: (upstream, name) =>
        named.shownNames.shownName(named.kind, this.#upstreams[upstream]?.name ?? "", name),
    });
  }
}

const MAX_WARNED = 5;

/** Remembers the names that are shown for items of an upstream, and warns of those that model APIs would refuse. */
export function rememberShown(
  { shownNames, onWarning }: Naming,
  kind: NamedKind,
  upstream: string,
  pairs: Iterable<readonly [name: string, shown: string]>,
): void {
  const changes: string[] = [];
  for (const [name, shownName] of pairs) {
    const isNew = shownNames.add(kind, upstream, name, shownName);
    if (isNew && !VALID_NAME.test(name) && !shownNames.isWarned(kind, upstream, name))
      changes.push(`${JSON.stringify(name)} as ${shownName}`);
  }
  if (changes.length === 0) return;
  const [noun, verb] = changes.length === 1 ? [kind.slice(0, -1), "has a name"] : [kind, "have names"];
  const more = changes.length > MAX_WARNED ? ` and ${changes.length - MAX_WARNED} more` : "";
  const message =
    `${changes.length} ${noun} ${verb} that model APIs refuse (allowed: 1 to 64 letters, digits, _ and -); ` +
    `shown instead: ${changes.slice(0, MAX_WARNED).join(", ")}${more}`;
  callListener("onWarning", onWarning, [upstream, message]);
}
