// A map with limits: entries go when their time is over, and the least recently used ones when there are too many or
// they are too large. One timer serves all entries of a map. Caches and tables of what clients may come back to use it.

import { MAX_DELAY_MS, unref } from "./async.ts";

/** The limits of an ExpiringMap. Without one, there is no such limit. */
export interface ExpiringMapOptions<Key, Value> {
  readonly maxEntries?: number | undefined;
  /** The maximum sum of the sizes that `set` was called with. */
  readonly maxSize?: number | undefined;
  /** How long an entry stays, unless `set` says it. */
  readonly ttlMs?: number | undefined;
  /** Called when the time of an entry is over. If it returns a number, the entry stays that many milliseconds longer. */
  readonly onExpired?: ((value: Value, key: Key) => number | void) | undefined;
  /** A monotonic clock, in milliseconds. */
  readonly now?: (() => number) | undefined;
}

interface Entry<Value> {
  readonly value: Value;
  readonly size: number;
  expiresAt: number;
}

/** The timer does not fire more often than this, however many entries there are. */
const MIN_SWEEP_MS = 1_000;

export class ExpiringMap<Key, Value> {
  /** The least recently used first, if their number or size is limited; else in the order in which they were added. */
  readonly #entries = new Map<Key, Entry<Value>>();
  readonly #maxEntries: number;
  readonly #maxSize: number;
  readonly #ttlMs: number;
  readonly #onExpired: ExpiringMapOptions<Key, Value>["onExpired"];
  readonly #now: () => number;
  /** The sum of the sizes of all entries. */
  totalSize = 0;
  #lastKey: Key | undefined;
  #last: Entry<Value> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #wakesAt = Infinity;

  constructor(options: ExpiringMapOptions<Key, Value>) {
    this.#maxEntries = options.maxEntries ?? Infinity;
    this.#maxSize = options.maxSize ?? Infinity;
    this.#ttlMs = options.ttlMs ?? Infinity;
    this.#onExpired = options.onExpired;
    this.#now = options.now ?? (() => performance.now());
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The value, whose entry is now the most recently used one. */
  get(key: Key): Value | undefined {
    // In the usual case, the entry is the one that was used last. It is then already at the end of the map.
    let entry = this.#last;
    if (entry === undefined || key !== this.#lastKey) {
      entry = this.#entries.get(key);
      if (entry === undefined) return undefined;
      if (this.#maxEntries !== Infinity || this.#maxSize !== Infinity) {
        this.#entries.delete(key);
        this.#entries.set(key, entry);
      }
      this.#lastKey = key;
      this.#last = entry;
    }
    return entry.expiresAt === Infinity || this.#isNeeded(key, entry) ? entry.value : undefined;
  }

  /** Unlike `get`, leaves the order as it is. */
  has(key: Key): boolean {
    const entry = this.#entries.get(key);
    return entry !== undefined && this.#isNeeded(key, entry);
  }

  /** How long the entry stays; 0 if there is none. */
  leftMs(key: Key): number {
    return Math.max(0, (this.#entries.get(key)?.expiresAt ?? 0) - this.#now());
  }

  set(key: Key, value: Value, ttlMs: number = this.#ttlMs, size = 0): void {
    this.delete(key);
    const now = ttlMs === Infinity ? 0 : this.#now();
    const entry: Entry<Value> = { value, size, expiresAt: now + ttlMs };
    this.#entries.set(key, entry);
    this.totalSize += size;
    this.#lastKey = key;
    this.#last = entry;
    if (ttlMs !== Infinity) this.#wakeAt(entry.expiresAt, now);
    if (this.#entries.size <= this.#maxEntries && this.totalSize <= this.#maxSize) return;
    for (const oldest of this.#entries.keys()) {
      this.delete(oldest);
      if (this.#entries.size <= this.#maxEntries && this.totalSize <= this.#maxSize) return;
    }
  }

  delete(key: Key): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.totalSize -= entry.size;
    if (entry === this.#last) this.#last = this.#lastKey = undefined;
    return true;
  }

  clear(): void {
    this.#entries.clear();
    this.totalSize = 0;
    this.#last = this.#lastKey = undefined;
    clearTimeout(this.#timer);
    this.#wakesAt = Infinity;
  }

  entries(): [key: Key, value: Value][] {
    const entries: [Key, Value][] = [];
    for (const [key, entry] of this.#entries) if (this.#isNeeded(key, entry)) entries.push([key, entry.value]);
    return entries;
  }

  keys(): Key[] {
    return this.entries().map(([key]) => key);
  }

  values(): Value[] {
    return this.entries().map(([, value]) => value);
  }

  /** Removes the entry if its time is over. */
  #isNeeded(key: Key, entry: Entry<Value>): boolean {
    const now = this.#now();
    if (entry.expiresAt > now) return true;
    // Not a second time, if `onExpired` looks for the entry.
    entry.expiresAt = Infinity;
    const longerMs = this.#onExpired?.(entry.value, key);
    if (typeof longerMs === "number") {
      entry.expiresAt = now + longerMs;
      this.#wakeAt(entry.expiresAt, now);
      return true;
    }
    if (this.#entries.get(key) === entry) this.delete(key);
    return false;
  }

  #wakeAt(time: number, now: number): void {
    const at = Math.max(time, now + Math.min(MIN_SWEEP_MS, this.#ttlMs));
    if (at >= this.#wakesAt) return;
    this.#wakesAt = at;
    clearTimeout(this.#timer);
    this.#timer = unref(setTimeout(() => this.#sweep(), Math.min(at - now, MAX_DELAY_MS)));
  }

  #sweep(): void {
    this.#wakesAt = Infinity;
    let next = Infinity;
    for (const [key, entry] of this.#entries) if (this.#isNeeded(key, entry)) next = Math.min(next, entry.expiresAt);
    if (next !== Infinity) this.#wakeAt(next, this.#now());
  }
}
