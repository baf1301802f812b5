// Caches results for as long as their `ttlMs` allows, by a monotonic clock: lists, reads and the server's description
// of itself. A change notification drops the results it concerns, including those still on their way. Results are kept
// apart by identity, since a client may change its identity at any time.

import type { Notification, Request, Result } from "../core/handler.ts";
import { CACHEABLE } from "../protocol/lists.ts";

export interface CacheOptions {
  /** Returns the milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Max results. The least recently used is dropped first. */
  readonly maxEntries?: number;
}

/** The cache entry of one request. */
export interface CacheSlot {
  /** The cached result, if there is one that is still fresh. */
  readonly result: Result | undefined;
  /** Caches the result if it allows that and nothing has changed since the slot was taken. */
  store(result: Result): void;
}

interface Entry {
  readonly method: string;
  readonly uri: unknown;
  readonly result: Result;
  readonly expires: number;
}

/** By notification: the methods whose results it invalidates. */
const INVALIDATED: ReadonlyMap<string, readonly string[]> = new Map([
  ["notifications/tools/list_changed", ["tools/list"]],
  ["notifications/prompts/list_changed", ["prompts/list"]],
  ["notifications/resources/list_changed", ["resources/list", "resources/templates/list"]],
  ["notifications/resources/updated", ["resources/read"]],
]);

export class Cache {
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  /** By method: how often its results were invalidated. */
  readonly #changes = new Map<string, number>();
  readonly #now: () => number;
  readonly #maxEntries: number;

  constructor(options: CacheOptions = {}) {
    this.#now = options.now ?? (() => performance.now());
    this.#maxEntries = options.maxEntries ?? 500;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Undefined if results of this request are never cached. `identity` is any string that identifies the caller. */
  slot({ method, params }: Request, identity: string = ""): CacheSlot | undefined {
    if (!CACHEABLE.has(method) || params["inputResponses"] !== undefined || params["requestState"] !== undefined) {
      return undefined;
    }
    const key = `${method} ${JSON.stringify(params)} ${identity}`;
    const changes = this.#changes.get(method);
    return {
      result: this.#get(key),
      store: (result) => {
        if (this.#changes.get(method) === changes) this.#put(key, { method, uri: params["uri"] }, result);
      },
    };
  }

  /** Drops the results that a change notification concerns. */
  invalidate({ method, params }: Notification): void {
    const methods = INVALIDATED.get(method);
    if (methods === undefined) return;
    for (const invalidated of methods) this.#changes.set(invalidated, (this.#changes.get(invalidated) ?? 0) + 1);
    const uri = params?.["uri"];
    for (const [key, entry] of this.#entries) {
      if (methods.includes(entry.method) && concerns(entry.uri, uri)) this.#entries.delete(key);
    }
  }

  /** Drops all results of a method. */
  forget(method: string): void {
    this.#changes.set(method, (this.#changes.get(method) ?? 0) + 1);
    for (const [key, entry] of this.#entries) if (entry.method === method) this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  #get(key: string): Result | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    if (entry.expires <= this.#now()) return undefined;
    this.#entries.set(key, entry);
    return entry.result;
  }

  #put(key: string, request: Pick<Entry, "method" | "uri">, result: Result): void {
    const { ttlMs, resultType } = result;
    if (typeof ttlMs !== "number" || !(ttlMs > 0) || (resultType !== undefined && resultType !== "complete")) return;
    this.#entries.delete(key);
    this.#entries.set(key, { ...request, result, expires: this.#now() + ttlMs });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries) break;
      this.#entries.delete(oldest);
    }
  }
}

/** An update may name a part of what was read, or the whole. Dropping too much only costs one more request. */
function concerns(cached: unknown, updated: unknown): boolean {
  if (typeof cached !== "string" || typeof updated !== "string") return true;
  return cached.startsWith(updated) || updated.startsWith(cached);
}
