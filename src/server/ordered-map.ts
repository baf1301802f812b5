// A shelf of registrations: by key, in the order in which they came, open to change while the server
// runs. Putting something under a known key replaces it in its place. Each key gets an order number that
// is never given again, which is what keeps cursors good. What the things are is not known here.

export interface Shelved<Entry> {
  readonly key: string;
  readonly order: number;
  readonly entry: Entry;
  /** What a list shows of the entry. */
  readonly shown: object;
}

/** Gives order numbers; shelves whose lists are shown as one share one. */
export type Counter = () => number;

export function counter(): Counter {
  let last = 0;
  return () => ++last;
}

export class Shelf<Entry> {
  readonly #things = new Map<string, Shelved<Entry>>();
  readonly #next: Counter;
  readonly #changed: () => void;
  #items: readonly Shelved<Entry>[] | undefined;
  #used = false;

  constructor(next: Counter, changed: () => void) {
    this.#next = next;
    this.#changed = changed;
  }

  /** Whether anything ever stood here: a list that has become empty is still a list. */
  get used(): boolean {
    return this.#used;
  }

  put(key: string, entry: Entry, shown: object): void {
    const order = this.#things.get(key)?.order ?? this.#next();
    this.#things.set(key, { key, order, entry, shown });
    this.#items = undefined;
    this.#used = true;
    this.#changed();
  }

  /** Whether it was there. */
  remove(key: string): boolean {
    const removed = this.#things.delete(key);
    if (removed) {
      this.#items = undefined;
      this.#changed();
    }
    return removed;
  }

  get(key: string): Entry | undefined {
    return this.#things.get(key)?.entry;
  }

  items(): readonly Shelved<Entry>[] {
    return (this.#items ??= [...this.#things.values()]);
  }
}
