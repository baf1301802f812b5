// Adds `resultType`, server info and cache hints to results, and cuts lists into pages. Also the ordered map that holds
// the registrations which a list shows.

import type { Meta, Request, Result } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import type { Implementation } from "../protocol/model/index.ts";
import { META } from "../protocol/model/base.ts";
import { page, type PageItem } from "../protocol/lists.ts";
import { HandlerErrors } from "./handler-errors.ts";
import type { CacheHint, ServerOptions } from "./options.ts";
import { Sessions } from "./sessions.ts";
import type { TrustedResult } from "./tool-result.ts";

/** An entry of a list; `listItem` is what clients see. */
export interface ListEntry extends PageItem {
  readonly listItem: object;
}

export class ResultBuilder {
  /** The server info, part of the `_meta` of every result. Results without other metadata share this frozen object. */
  readonly meta: Meta;
  /** Whether the server declares the logging capability; undefined until an option or a handler decides it. */
  logging: boolean | undefined;
  /** Reports the errors of all handlers, and turns them into what callers read. */
  readonly errors: HandlerErrors;
  readonly sessions: Sessions = new Sessions();
  readonly #cache: CacheHint;
  readonly #pageSize: number;

  constructor(server: ServerOptions) {
    const { name, version, title, description, websiteUrl, icons, pageSize = 1000 } = server;
    const info: Implementation = Object.freeze(defined({ name, version, title, description, websiteUrl, icons }));
    this.meta = Object.freeze({ [META.serverInfo]: info });
    this.logging = server.logging;
    this.errors = new HandlerErrors(server);
    this.#cache = server.cache ?? { ttlMs: 0, cacheScope: "private" };
    this.#pageSize = pageSize;
  }

  complete(fields: object, meta?: unknown): Result {
    // Most tool results have just these two fields, and a literal is much cheaper than a spread.
    if (isPlain(fields) && meta === undefined) {
      return { content: fields.content, isError: fields.isError, resultType: "complete", _meta: this.meta };
    }
    return { ...fields, resultType: "complete", _meta: this.#metaWith(meta) };
  }

  trusted({ content, structuredContent, isError }: TrustedResult): Result {
    return { content, structuredContent, isError, resultType: "complete", _meta: this.meta };
  }

  cacheable(fields: object, hint: CacheHint = this.#cache, meta?: unknown): Result {
    const { ttlMs, cacheScope } = hint;
    return { ...fields, ttlMs, cacheScope, resultType: "complete", _meta: this.#metaWith(meta) };
  }

  list({ method, params }: Request, field: string, entries: readonly ListEntry[]): Result {
    const { items, nextCursor } = page(method, entries, params["cursor"], this.#pageSize);
    return this.cacheable(defined({ [field]: Object.freeze(items.map((entry) => entry.listItem)), nextCursor }));
  }

  /**
   * Declares logging if the handler has a context parameter, since it may log then. A parameter that `length` does not
   * count (rest, default) is not noticed; `context.log` then throws an error that says what to do.
   */
  noteHandler(handler: { readonly length: number }, contextPosition = 2): void {
    if (handler.length >= contextPosition) this.logging ??= true;
  }

  /** Our server info replaces any other, since a handler may pass on the result of another server. */
  #metaWith(meta: unknown): Meta {
    return typeof meta === "object" && meta !== null ? { ...meta, ...this.meta } : this.meta;
  }
}

function isPlain(fields: object): fields is { readonly content: unknown; readonly isError: unknown } {
  return "content" in fields && "isError" in fields && Reflect.ownKeys(fields).length === 2;
}

interface OrderedEntry<Value> extends ListEntry {
  readonly value: Value;
}

/**
 * Registrations by key, in the order in which they were made. Each gets an order number, which is not reused after the
 * key is deleted, so that cursors stay valid while the map changes.
 */
export class OrderedMap<Value> {
  /** Whether there ever was an entry. A server keeps declaring a list that has become empty. */
  wasUsed = false;
  readonly #entries = new Map<string, OrderedEntry<Value>>();
  readonly #onChange: () => void;
  readonly #counter: { last: number };
  #list: readonly OrderedEntry<Value>[] | undefined;

  /** Maps that are listed together share one counter of order numbers. */
  constructor(onChange: () => void, counter: { last: number } = { last: 0 }) {
    this.#onChange = onChange;
    this.#counter = counter;
  }

  set(key: string, value: Value, listItem: object): void {
    // All callers get this object, so middleware that changes it must fail.
    this.#entries.set(key, { key, order: ++this.#counter.last, value, listItem: Object.freeze(listItem) });
    this.#list = undefined;
    this.wasUsed = true;
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
