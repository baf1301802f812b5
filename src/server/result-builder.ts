// Adds `resultType`, server info and cache hints to results, and cuts lists into pages. Also has what handlers of all
// kinds share: the errors they throw, and the input they ask for.

import type { Meta, Request } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import { page } from "../protocol/pages.ts";
import { META } from "../protocol/model/base.ts";
import type { CacheableResult, CompleteResultBase, Implementation } from "../protocol/model/index.ts";
import { HandlerErrors } from "./handler-errors.ts";
import { InputRequiredCodec } from "./input-required.ts";
import type { CacheHint, ServerOptions } from "./options.ts";
import type { ListEntry } from "./registrations.ts";

export class ResultBuilder {
  /** The server info, part of the `_meta` of every result. Results without other metadata share this frozen object. */
  readonly meta: Meta;
  /** Whether the server declares the logging capability, and sends log messages. */
  readonly logging: boolean;
  /** Reports the errors of all handlers, and turns them into what callers read. */
  readonly errors: HandlerErrors;
  /** Turns what handlers ask for with `inputRequired` into results, and reads the retries. */
  readonly inputs: InputRequiredCodec;
  readonly #cache: CacheHint;
  readonly #pageSize: number;

  constructor(server: ServerOptions) {
    const { name, version, title, description, websiteUrl, icons, pageSize = 1000 } = server;
    const info: Implementation = Object.freeze(defined({ name, version, title, description, websiteUrl, icons }));
    this.meta = Object.freeze({ [META.serverInfo]: info });
    this.logging = server.logging ?? true;
    this.errors = new HandlerErrors(server);
    this.inputs = new InputRequiredCodec(this.meta, server.sealKey);
    this.#cache = server.cache ?? { ttlMs: 0, cacheScope: "private" };
    this.#pageSize = pageSize;
  }

  complete<Fields extends object>(fields: Fields, meta?: unknown): Fields & CompleteResultBase {
    return { ...fields, resultType: "complete", _meta: withMeta(meta, this.meta) };
  }

  cacheable<Fields extends object>(
    fields: Fields,
    hint: CacheHint = this.#cache,
    meta?: unknown,
  ): Fields & CacheableResult {
    const { ttlMs, cacheScope } = hint;
    return { ...fields, ttlMs, cacheScope, resultType: "complete", _meta: withMeta(meta, this.meta) };
  }

  page<Item extends object>(
    { method, params }: Request,
    entries: readonly ListEntry<Item>[],
  ): { readonly items: readonly Item[]; readonly nextCursor: string | undefined } {
    const { items, nextCursor } = page(method, entries, params["cursor"], this.#pageSize);
    return { items: Object.freeze(items.map((entry) => entry.listItem)), nextCursor };
  }
}

/** Our server info replaces any other, since a handler may pass on the result of another server. */
export function withMeta(meta: unknown, added: Meta): Meta {
  return typeof meta === "object" && meta !== null ? { ...meta, ...added } : added;
}
