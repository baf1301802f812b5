// Collections whose members come and go thousands of times a second: a map, a set and a table of slots. Also compares
// arrays.

/** Whether two arrays have the same entries. */
export function isSameArray(one: readonly unknown[] | undefined, other: readonly unknown[]): boolean {
  return one === other || (one?.length === other.length && one.every((entry, index) => entry === other[index]));
}

const MAX_DELETIONS = 256;

/**
 * When V8 rebuilds the table of a Map or a Set, the old table still points to the new one. An old table that has survived
 * a minor collection keeps every later member in memory until the next full collection. So the whole collection is
 * replaced by a copy now and then.
 */
export class ChurningMap<Key, Value> {
  #entries = new Map<Key, Value>();
  #deletions = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  set(key: Key, value: Value): void {
    this.#entries.set(key, value);
  }

  delete(key: Key): boolean {
    if (!this.#entries.delete(key)) return false;
    this.#deletions += 1;
    // A large map is copied less often.
    if (this.#deletions >= MAX_DELETIONS + this.#entries.size) {
      this.#deletions = 0;
      this.#entries = new Map(this.#entries);
    }
    return true;
  }

  clear(): void {
    this.#entries = new Map();
  }

  /** A copy of the values, in the order in which their keys were added. */
  values(): Value[] {
    return [...this.#entries.values()];
  }
}

export class ChurningSet<T> extends ChurningMap<T, T> {
  add(member: T): void {
    this.set(member, member);
  }
}

/** Members in numbered slots, which later members use again, so that nothing is rebuilt. The cheapest of all to change. */
export class SlotTable<T> {
  readonly #slots: (T | undefined)[] = [];
  readonly #free: number[] = [];

  get size(): number {
    return this.#slots.length - this.#free.length;
  }

  add(member: T): number {
    const slot = this.#free.pop() ?? this.#slots.length;
    this.#slots[slot] = member;
    return slot;
  }

  remove(slot: number): boolean {
    if (this.#slots[slot] === undefined) return false;
    this.#slots[slot] = undefined;
    this.#free.push(slot);
    return true;
  }

  /** A copy: each slot with its member. */
  entries(): [slot: number, member: T][] {
    return this.#slots.flatMap((member, slot): [number, T][] => (member === undefined ? [] : [[slot, member]]));
  }
}
