// Results that an end allows to be used again: lists, what was read, and what the end says of itself, for as
// long as their `ttlMs` says, by a clock that only goes forward. A change that the end tells of drops what it
// touches, also what is still on its way. What was made for one identity is not shown to another: a client that may
// prove another at any time says with each request whose it is.

import type { Notification, Request, Result } from "../core/handler.ts";
import { CACHEABLE } from "../protocol/cacheable.ts";

export interface CacheOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
  /** Results that are kept; the least recently used goes first. */
  readonly maxEntries?: number;
}

/** The place of one request's result. */
export interface Slot {
  /** A result that is still fresh. */
  readonly kept: Result | undefined;
  /** Keeps the result if it may be kept and nothing has changed since the slot was taken. */
  keep(result: Result): void;
}

interface Entry {
  readonly method: string;
  readonly uri: unknown;
  readonly result: Result;
  readonly until: number;
}

const TOUCHED: ReadonlyMap<string, readonly string[]> = new Map([
  ["notifications/tools/list_changed", ["tools/list"]],
  ["notifications/prompts/list_changed", ["prompts/list"]],
  ["notifications/resources/list_changed", ["resources/list", "resources/templates/list"]],
  ["notifications/resources/updated", ["resources/read"]],
]);

export class Cache {
  /** In the order of their last use. */
  readonly #entries = new Map<string, Entry>();
  /** How often the results of each method were found to have changed. */
  readonly #changes = new Map<string, number>();
  readonly #now: () => number;
  readonly #max: number;

  constructor(options: CacheOptions = {}) {
    this.#now = options.now ?? (() => performance.now());
    this.#max = options.maxEntries ?? 500;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Undefined where the result of such a request is never kept. `identity` is whose it is, in any words. */
  slot({ method, params }: Request, identity: string = ""): Slot | undefined {
    if (!CACHEABLE.has(method) || params["inputResponses"] !== undefined || params["requestState"] !== undefined)
      return undefined;
    const key = `${method} ${JSON.stringify(params)} ${identity}`;
    const changes = this.#changes.get(method);
    return {
      kept: this.#get(key),
      keep: (result) => {
        if (this.#changes.get(method) === changes) this.#put(key, { method, uri: params["uri"] }, result);
      },
    };
  }

  /** An end told of a change. */
  changed({ method, params }: Notification): void {
    const methods = TOUCHED.get(method);
    if (methods === undefined) return;
    for (const touched of methods) this.#changes.set(touched, (this.#changes.get(touched) ?? 0) + 1);
    const uri = params?.["uri"];
    for (const [key, entry] of this.#entries) {
      if (methods.includes(entry.method) && concerns(entry.uri, uri)) this.#entries.delete(key);
    }
  }

  /** What was kept of a list no longer fits what the end knows. */
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
    if (entry.until <= this.#now()) return undefined;
    this.#entries.set(key, entry);
    return entry.result;
  }

  #put(key: string, of: Pick<Entry, "method" | "uri">, result: Result): void {
    const { ttlMs, resultType } = result;
    if (typeof ttlMs !== "number" || !(ttlMs > 0) || (resultType !== undefined && resultType !== "complete")) return;
    this.#entries.delete(key);
    this.#entries.set(key, { ...of, result, until: this.#now() + ttlMs });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#max) break;
      this.#entries.delete(oldest);
    }
  }
}

/** An update may name a part of what was read, or the whole of it: dropping too much costs one more request. */
function concerns(kept: unknown, updated: unknown): boolean {
  if (typeof kept !== "string" || typeof updated !== "string") return true;
  return kept.startsWith(updated) || updated.startsWith(kept);
}
