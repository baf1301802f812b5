// Caches results, each for its time, by a monotonic clock. A change notification drops the results that it concerns;
// results that are still on their way are then not cached. The client caches what servers allow (`slot`); the
// middleware `cache` has rules of its own.

import { ExpiringMap } from "../core/expiring-map.ts";
import type { Notification, Request, Result } from "../core/handler.ts";
import { CACHEABLE } from "./lists.ts";
import { covers } from "./subscription.ts";

export interface CacheOptions {
  /** The current time in milliseconds. All processes that use the same key must share this clock. */
  /** The maximum number of results. The least recently used one is dropped first. */
  readonly maxEntries?: number;
  /** The maximum size of all results together. Default: no limit. */
  readonly maxBytes?: number;
}

/** The cache entry of one request. */
export interface CacheSlot {
  /** The cached result, if there is one that is still fresh. */
  readonly result: Result | undefined;
  /** Caches the result if it has a `ttlMs` and no result of its method was invalidated since `slot()` was called. */
  store(result: Result): void;
}

/** A cached result, and for how long it is still fresh. */
export interface CachedResult {
  readonly result: Result;
  readonly leftMs: number;
}

/** What to cache, and for how long. */
export interface NewEntry {
  readonly result: Result;
  readonly ttlMs: number;
  /** What `changesOf` returned before the request was sent. */
  readonly changes: number;
  /** The size of the result. Default: 0. */
  readonly bytes?: number;
}

interface Entry {
  readonly method: string;
  readonly uri: unknown;
  readonly result: Result;
}

/** The methods whose results a notification invalidates. */
const INVALIDATED: ReadonlyMap<string, readonly string[]> = new Map([
  ["notifications/tools/list_changed", ["tools/list", "tools/call"]],
  ["notifications/prompts/list_changed", ["prompts/list", "prompts/get"]],
  ["notifications/resources/list_changed", ["resources/list", "resources/templates/list"]],
  ["notifications/resources/updated", ["resources/read"]],
]);

export class Cache {
  readonly #entries: ExpiringMap<string, Entry>;
  /** For each method, how often its results were invalidated. */
  readonly #changes = new Map<string, number>();
  readonly #maxBytes: number;

  constructor({ maxEntries = 500, maxBytes = Infinity }: CacheOptions = {}) {
    this.#entries = new ExpiringMap({ maxEntries, maxSize: maxBytes });
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns undefined if such results are never cached. `identity` is any string that identifies the caller. */
  slot({ method, params }: Request, identity: string = ""): CacheSlot | undefined {
    if (!CACHEABLE.has(method) || params["inputResponses"] !== undefined || params["requestState"] !== undefined) {
      return undefined;
    }
    const key = `${method} ${JSON.stringify(params)} ${identity}`;
    const changes = this.changesOf(method);
    return {
      result: this.get(key)?.result,
      store: (result) => {
        const { ttlMs, resultType } = result;
        if (typeof ttlMs !== "number" || (resultType !== undefined && resultType !== "complete")) return;
        this.put(key, { method, params }, { result, ttlMs, changes });
      },
    };
  }

  /** How often results of the method were invalidated. */
  changesOf(method: string): number {
    return this.#changes.get(method) ?? 0;
  }

  get(key: string): CachedResult | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : { result: entry.result, leftMs: this.#entries.leftMs(key) };
  }

  /** Caches a result, unless it is too large or results of its method were invalidated meanwhile. */
  put(key: string, { method, params }: Request, { result, ttlMs, changes, bytes = 0 }: NewEntry): void {
    if (!(ttlMs > 0) || bytes > this.#maxBytes || this.changesOf(method) !== changes) return;
    this.#entries.set(key, { method, uri: params["uri"], result }, ttlMs, bytes);
  }

  /** Drops the results that a change notification concerns. */
  invalidate({ method, params }: Notification): void {
    const methods = INVALIDATED.get(method);
    if (methods === undefined) return;
    for (const invalidated of methods) this.#changes.set(invalidated, (this.#changes.get(invalidated) ?? 0) + 1);
    const uri = params?.["uri"];
    this.#deleteWhere((entry) => methods.includes(entry.method) && concerns(entry.uri, uri));
  }

  /** Drops all results of a method. */
  forget(method: string): void {
    this.#changes.set(method, (this.#changes.get(method) ?? 0) + 1);
    this.#deleteWhere((entry) => entry.method === method);
  }

  clear(): void {
    this.#entries.clear();
  }

  #deleteWhere(isStale: (entry: Entry) => boolean): void {
    for (const [key, entry] of this.#entries.entries()) if (isStale(entry)) this.#entries.delete(key);
  }
}

/** The updated resource may be a part of the cached one, or contain it. */
function concerns(cached: unknown, updated: unknown): boolean {
  if (typeof cached !== "string" || typeof updated !== "string") return true;
  return covers(cached, updated) || covers(updated, cached);
}
