// Adds `resultType`, server info and cache hints to results, and cuts lists into pages.

import type { Meta, Result } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import type { Implementation } from "../protocol/model/index.ts";
import { META } from "../protocol/model/base.ts";
import { page, type PageItem } from "../protocol/lists.ts";
import type { CacheHint, ServerOptions } from "./options.ts";
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
  readonly #cache: CacheHint;
  readonly #pageSize: number;

  constructor(server: ServerOptions) {
    const { name, version, title, description, websiteUrl, icons, pageSize = 1000 } = server;
    const info: Implementation = Object.freeze(defined({ name, version, title, description, websiteUrl, icons }));
    this.meta = Object.freeze({ [META.serverInfo]: info });
    this.logging = server.logging;
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

  list(method: string, field: string, entries: readonly ListEntry[], cursor: unknown): Result {
    const { items, nextCursor } = page(method, entries, cursor, this.#pageSize);
    const listItems = items.map((entry) => entry.listItem);
    return this.cacheable(nextCursor === undefined ? { [field]: listItems } : { [field]: listItems, nextCursor });
  }

  /** Our server info replaces any other, since a handler may pass on the result of another server. */
  #metaWith(meta: unknown): Meta {
    return typeof meta === "object" && meta !== null ? { ...meta, ...this.meta } : this.meta;
  }
}

function isPlain(fields: object): fields is { readonly content: unknown; readonly isError: unknown } {
  return "content" in fields && "isError" in fields && Reflect.ownKeys(fields).length === 2;
}
