// Registrations by key, in the order in which they were made. Replacing one keeps its position. Each key gets an
// order number, which is not reused after the key is deleted, so that cursors stay valid while the map changes.

export interface OrderedEntry<Value> {
  readonly key: string;
  readonly order: number;
  readonly value: Value;
  /** How the entry appears in a list. */
  readonly listItem: object;
}

/** Returns order numbers. Maps that are listed together share one counter. */
export type Counter = () => number;

export function createCounter(): Counter {
  let last = 0;
  return () => ++last;
}

export class OrderedMap<Value> {
  readonly #entries = new Map<string, OrderedEntry<Value>>();
  readonly #nextOrder: Counter;
  readonly #onChange: () => void;
  #list: readonly OrderedEntry<Value>[] | undefined;
  #wasUsed = false;

  constructor(nextOrder: Counter, onChange: () => void) {
    this.#nextOrder = nextOrder;
    this.#onChange = onChange;
  }

  /** Whether there ever was an entry. A server keeps declaring a list that has become empty. */
  get wasUsed(): boolean {
    return this.#wasUsed;
  }

  set(key: string, value: Value, listItem: object): void {
    const order = this.#entries.get(key)?.order ?? this.#nextOrder();
    this.#entries.set(key, { key, order, value, listItem });
    this.#list = undefined;
    this.#wasUsed = true;
    this.#onChange();
  }

  /** Returns whether the key was there. */
  delete(key: string): boolean {
    const wasThere = this.#entries.delete(key);
    if (wasThere) {
      this.#list = undefined;
      this.#onChange();
    }
    return wasThere;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value;
  }

  entries(): readonly OrderedEntry<Value>[] {
    return (this.#list ??= [...this.#entries.values()]);
  }
}
