// A map that holds so many entries and no more: the one that was longest out of use makes room.

export class Recent<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #most: number;
  #last: Key | undefined;

  constructor(most: number) {
    this.#most = most;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    // Most often it is the one that was used last, and its place is right.
    if (value === undefined || key === this.#last) return value;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#last = key;
    return value;
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#last = key;
    if (this.#entries.size <= this.#most) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}
