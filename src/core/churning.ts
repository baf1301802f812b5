// A set and a map whose members come and go thousands of times a second. When V8 rebuilds the table of a Set or a Map,
// the old table still points to the new one. An old table that has survived a minor collection keeps every later member
// in memory until the next full collection. So the whole collection is replaced by a copy now and then.

const MAX_DELETIONS = 256;

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

  /** Returns whether there was such an entry. */
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

export class ChurningSet<T> {
  readonly #members = new ChurningMap<T, T>();

  get size(): number {
    return this.#members.size;
  }

  add(member: T): void {
    this.#members.set(member, member);
  }

  has(member: T): boolean {
    return this.#members.has(member);
  }

  delete(member: T): void {
    this.#members.delete(member);
  }

  clear(): void {
    this.#members.clear();
  }

  /** A copy of the members, in the order in which they were added. */
  all(): T[] {
    return this.#members.values();
  }
}
