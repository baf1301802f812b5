// A map with a maximum number of entries. If it is full, a new entry replaces the least recently used one.

export class BoundedMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #maxEntries: number;
  #last: Key | undefined;

  constructor(maxEntries: number) {
    this.#maxEntries = maxEntries;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    // In the usual case, the entry is the one that was used last. It is then already at the end of the map.
    if (value === undefined || key === this.#last) return value;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#last = key;
    return value;
  }

  /** Whether the condition holds for every entry. */
  every(holds: (value: Value, key: Key) => boolean): boolean {
    for (const [key, value] of this.#entries) if (!holds(value, key)) return false;
    return true;
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#last = key;
    if (this.#entries.size <= this.#maxEntries) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}
