// The rows of Traffic: up to 100,000 calls with what is nested under them, in plain arrays outside of all signals. A view
// is the flat list of those that a filter shows, and is changed only where rows have changed, so that two thousand calls
// a second cost little; a new filter is applied in slices, between which the page can draw.

import type { Filter } from "../../../src/console/filter.ts";
import type { CallRow } from "../../../src/console/types.ts";

/** A row, in its place. */
export interface Entry {
  row: CallRow;
  parent: Entry | undefined;
  /** What is nested under it, in order. */
  nested: Entry[] | undefined;
  /** Whether a person has folded or unfolded it. */
  isOpen: boolean | undefined;
}

/** So many more than are kept may be there before the oldest go, so that they go in one piece. */
const SLACK = 2_000;
/** What has more nested rows than this is folded at first. */
const MAX_UNFOLDED = 20;
/** A slice of a filter, in milliseconds. */
const SLICE_MS = 6;
const SLICE_ROWS = 500;

export class Rows {
  /** Logical calls, by id. */
  roots: Entry[] = [];
  max: number;
  readonly #byId = new Map<number, Entry>();
  /** Nested rows whose parent is not here, by its id: they stand for themselves until it comes. */
  readonly #orphans = new Map<number, Entry[]>();
  readonly #texts = new Map<string, string>();

  constructor(max: number) {
    this.max = max;
  }

  get size(): number {
    return this.#byId.size;
  }

  get newestId(): number {
    return this.#newestId;
  }
  #newestId = 0;

  get(id: number): Entry | undefined {
    return this.#byId.get(id);
  }

  clear(): void {
    this.roots = [];
    this.#byId.clear();
    this.#orphans.clear();
    this.#newestId = 0;
  }

  /** Adds new rows and replaces changed ones. Returns the logical calls that changed, and those that are none any more. */
  apply(rows: readonly CallRow[]): { readonly touched: ReadonlySet<Entry>; readonly gone: readonly Entry[] } {
    const touched = new Set<Entry>();
    const gone: Entry[] = [];
    const added: Entry[] = [];
    for (const row of rows) {
      const known = this.#byId.get(row.id);
      if (known === undefined) this.#add(this.#thrifty(row), added, gone, touched);
      else {
        known.row = this.#thrifty(row);
        touched.add(rootOf(known));
      }
    }
    this.#insert(added.filter(({ parent }) => parent === undefined));
    if (gone.length > 0) {
      const left = new Set(gone);
      this.roots = this.roots.filter((root) => !left.has(root));
      for (const entry of gone) touched.delete(entry);
    }
    return { touched, gone };
  }

  /** Forgets what is older than the gateway keeps. Returns the id of the first call that stays, if something went. */
  trim(): number | undefined {
    const limit = this.#newestId - this.max;
    const [oldest] = this.roots;
    if (oldest === undefined || oldest.row.id > limit - SLACK) return undefined;
    const end = indexOfRoot(this.roots, limit + 1);
    for (const entry of this.roots.slice(0, end)) this.#forget(entry);
    this.roots = this.roots.slice(end);
    return limit + 1;
  }

  #add(row: CallRow, added: Entry[], gone: Entry[], touched: Set<Entry>): void {
    const parent = row.parent === undefined ? undefined : this.#byId.get(row.parent);
    const entry: Entry = { row, parent, nested: undefined, isOpen: undefined };
    this.#byId.set(row.id, entry);
    if (row.id > this.#newestId) this.#newestId = row.id;
    if (parent !== undefined) insertNested(parent, entry);
    else {
      added.push(entry);
      if (row.parent !== undefined) this.#orphans.set(row.parent, [...(this.#orphans.get(row.parent) ?? []), entry]);
    }
    const children = this.#orphans.get(row.id);
    if (children !== undefined) {
      this.#orphans.delete(row.id);
      for (const child of children) {
        child.parent = entry;
        insertNested(entry, child);
        gone.push(child);
      }
    }
    touched.add(rootOf(entry));
  }

  #insert(added: Entry[]): void {
    added.sort((one, other) => one.row.id - other.row.id);
    const [first] = added;
    const last = added.at(-1);
    if (first === undefined || last === undefined) return;
    if (first.row.id > (this.roots.at(-1)?.row.id ?? 0)) for (const entry of added) this.roots.push(entry);
    else if (last.row.id < (this.roots[0]?.row.id ?? 0)) this.roots = added.concat(this.roots);
    else this.roots = this.roots.concat(added).toSorted((one, other) => one.row.id - other.row.id);
  }

  #forget(entry: Entry): void {
    this.#byId.delete(entry.row.id);
    this.#orphans.delete(entry.row.id);
    for (const child of entry.nested ?? []) this.#forget(child);
  }

  /** The row with strings that are shared with other rows: names repeat. */
  #thrifty(row: CallRow): CallRow {
    const texts = this.#texts;
    const share = (text: string | undefined): string | undefined => {
      if (text === undefined || text.length > 200) return text;
      const known = texts.get(text);
      if (known !== undefined) return known;
      if (texts.size > 20_000) texts.clear();
      texts.set(text, text);
      return text;
    };
    const { name, server, client, principal } = row;
    const own = row as { -readonly [Field in keyof CallRow]: CallRow[Field] };
    own.method = share(row.method) ?? "";
    if (name !== undefined) own.name = share(name);
    if (server !== undefined) own.server = share(server);
    if (client !== undefined) own.client = share(client);
    if (principal !== undefined) own.principal = share(principal);
    return own;
  }
}

/** The rows that a filter shows, one line each. */
export class View {
  lines: Entry[] = [];
  /** How many lines have gone at the beginning, less those that came there: how far the others have moved. */
  base = 0;
  /** Changes when lines or their rows have changed. */
  version = 0;
  /** Changes when another filter is used. */
  builds = 0;
  readonly #rows: Rows;
  #filter: Filter | undefined;
  /** The calls that the gateway has found, for a filter that looks into bodies. */
  #found: ReadonlySet<number> | undefined;
  #run = 0;
  #isBuilding = false;
  readonly #late = new Set<Entry>();

  constructor(rows: Rows) {
    this.#rows = rows;
  }

  /** Applies a filter to all rows. Resolves to false if another one was applied meanwhile. */
  async use(filter: Filter | undefined, found?: ReadonlySet<number>): Promise<boolean> {
    this.#filter = filter?.isEmpty === true ? undefined : filter;
    this.#found = found;
    this.#run += 1;
    const run = this.#run;
    this.#isBuilding = true;
    this.#late.clear();
    const lines: Entry[] = [];
    const { roots } = this.#rows;
    let deadline = performance.now() + SLICE_MS;
    for (let at = 0; at < roots.length; at += SLICE_ROWS) {
      for (const root of roots.slice(at, at + SLICE_ROWS)) if (this.#shows(root)) pushLines(lines, root);
      if (performance.now() < deadline) continue;
      // Slices come one after the other.
      await nextTask();
      if (run !== this.#run) return false;
      deadline = performance.now() + SLICE_MS;
    }
    // Rows may have gone meanwhile.
    const first = this.#rows.roots[0]?.row.id ?? 0;
    this.lines = (lines[0]?.row.id ?? first) < first ? lines.slice(lowerBound(lines, first)) : lines;
    this.builds += 1;
    this.#isBuilding = false;
    this.update(this.#late, []);
    this.#late.clear();
    this.version += 1;
    return true;
  }

  /** Brings the lines of these calls up to date. */
  update(touched: ReadonlySet<Entry>, gone: readonly Entry[]): void {
    if (this.#isBuilding) {
      for (const root of touched) this.#late.add(root);
      for (const root of gone) this.#late.delete(root);
      return;
    }
    this.version += 1;
    if (gone.length > 0) {
      // They have another call now, so they are not found by it.
      const left = new Set(gone);
      this.lines = this.lines.filter((line) => !left.has(line));
    }
    const before: Entry[] = [];
    const first = this.lines[0];
    const firstId = first === undefined ? Number.POSITIVE_INFINITY : rootOf(first).row.id;
    for (const root of [...touched].toSorted((one, other) => one.row.id - other.row.id)) {
      const lines: Entry[] = [];
      if (this.#shows(root)) pushLines(lines, root);
      if (root.row.id < firstId && first !== undefined) for (const line of lines) before.push(line);
      else this.#replace(root.row.id, lines);
    }
    if (before.length > 0) {
      this.lines = before.concat(this.lines);
      this.base -= before.length;
    }
  }

  /** Forgets the lines of calls before this one. */
  trim(firstId: number): void {
    if (this.#isBuilding) return;
    const end = lowerBound(this.lines, firstId);
    if (end === 0) return;
    this.lines = this.lines.slice(end);
    this.base += end;
  }

  get isFiltered(): boolean {
    return this.#filter !== undefined;
  }

  /** How many logical calls it shows. */
  countCalls(): number {
    let sum = 0;
    for (const { parent } of this.lines) if (parent === undefined) sum += 1;
    return sum;
  }

  /** The index of the line of a row, or -1. */
  indexOf(entry: Entry | undefined): number {
    if (entry === undefined) return -1;
    const id = rootOf(entry).row.id;
    for (let at = lowerBound(this.lines, id); at < this.lines.length; at++) {
      const line = this.lines[at];
      if (line === entry) return at;
      if (line === undefined || rootOf(line).row.id !== id) return -1;
    }
    return -1;
  }

  #shows(root: Entry): boolean {
    const filter = this.#filter;
    if (filter === undefined) return true;
    if (this.#found !== undefined) return this.#found.has(root.row.id);
    return !filter.excludes(root.row) && someMatches(root, filter);
  }

  /** Replaces the lines of one logical call. */
  #replace(id: number, lines: readonly Entry[]): void {
    const all = this.lines;
    const last = all.at(-1);
    if (last === undefined || rootOf(last).row.id < id) {
      for (const line of lines) all.push(line);
      return;
    }
    const from = lowerBound(all, id);
    let to = from;
    let isSame = true;
    for (let line = all[to]; line !== undefined && rootOf(line).row.id === id; line = all[++to]) {
      isSame &&= line === lines[to - from];
    }
    if (!isSame || to - from !== lines.length) all.splice(from, to - from, ...lines);
  }
}

export function rootOf(entry: Entry): Entry {
  let root = entry;
  while (root.parent !== undefined) root = root.parent;
  return root;
}

/** How many rows are nested under it, at all depths. */
export function countNested(entry: Entry): number {
  let sum = 0;
  for (const child of entry.nested ?? []) sum += 1 + countNested(child);
  return sum;
}

export function isUnfolded(entry: Entry): boolean {
  return entry.isOpen ?? (entry.nested?.length ?? 0) <= MAX_UNFOLDED;
}

function someMatches(entry: Entry, filter: Filter): boolean {
  return filter.matches(entry.row) || (entry.nested?.some((child) => someMatches(child, filter)) ?? false);
}

function pushLines(lines: Entry[], entry: Entry): void {
  lines.push(entry);
  if (entry.nested === undefined || !isUnfolded(entry)) return;
  for (const child of entry.nested) pushLines(lines, child);
}

function insertNested(parent: Entry, entry: Entry): void {
  const nested = (parent.nested ??= []);
  let at = nested.length;
  while (at > 0 && (nested[at - 1]?.row.id ?? 0) > entry.row.id) at -= 1;
  nested.splice(at, 0, entry);
}

/** The first index whose call is not before this one. */
function lowerBound(lines: readonly Entry[], id: number): number {
  let low = 0;
  let high = lines.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const line = lines[middle];
    if (line !== undefined && rootOf(line).row.id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

const indexOfRoot: (roots: readonly Entry[], id: number) => number = lowerBound;

/** The next task, after the browser could draw and answer keys. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
