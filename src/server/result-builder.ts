// What every result of a server has around it: its kind, who the server is, and how long it keeps. The
// server's own `_meta` is one frozen object, made once. Lists are cut into pages here.

import { defined } from "../core/objects.ts";
import type { Meta, Result } from "../core/handler.ts";
import type { CacheScope, Icon, Implementation } from "../protocol/model/index.ts";
import { META } from "../protocol/model/meta.ts";
import { page, type PageItem } from "../protocol/pages.ts";
import type { TaskLimits } from "./options.ts";
import type { MadeResult } from "./tool-result.ts";

/**
 * How long a result may be used again, and by whom.
 *
 * @example
 * createServer({ name: "notes", version: "1.0.0", cache: { ttlMs: 60_000, cacheScope: "private" } });
 */
export interface CacheHint {
  /** In milliseconds; 0: not at all. */
  readonly ttlMs: number;
  /** "public": the same for every caller, so that what stands between may share it. */
  readonly cacheScope: CacheScope;
}

/** What a server says of itself, and how it behaves. */
export interface ServerInfo {
  /** What programs call it. */
  readonly name: string;
  /** Of the server, not of the protocol. */
  readonly version: string;
  /** For people: how a program shows the server, where that is not its name. */
  readonly title?: string;
  /** For people: what the server is for. */
  readonly description?: string;
  /** Where people can read more. */
  readonly websiteUrl?: string;
  /** Pictures for programs that show the server. */
  readonly icons?: readonly Icon[];
  /** For the model: how to use this server. */
  readonly instructions?: string;
  /** Whether callers may hear of changed lists; true where it is left out. */
  readonly listChanged?: boolean;
  /** Whether callers may hear of changed resources; true where it is left out. */
  readonly subscribe?: boolean;
  /**
   * Whether log messages are promised; where it is left out, they are when some handler takes a context. With
   * false, what handlers log is dropped.
   */
  readonly logging?: boolean;
  /** How many items a page of a list holds; 1000 where it is left out. */
  readonly pageSize?: number;
  /**
   * Seals what is kept with the caller between rounds. Servers that answer for each other share one; where it is left
   * out, each server has a random one of its own.
   */
  readonly sealKey?: string | Uint8Array;
  /** For lists and reads; nothing may be kept where it is left out. */
  readonly cache?: CacheHint;
  /** How many tasks there may be, and for how long, for tools that can be run as one. */
  readonly tasks?: TaskLimits;
}

/** An item of a list, with what the wire shows of it. */
export interface Listed extends PageItem {
  readonly shown: object;
}

export class Frame {
  readonly meta: Meta;
  /** Whether log messages are promised; undefined until something says so. */
  logging: boolean | undefined;
  readonly #cache: CacheHint;
  readonly #pageSize: number;

  constructor(server: ServerInfo) {
    checkNames(server);
    const { name, version, title, description, websiteUrl, icons, pageSize = 1000 } = server;
    if (!Number.isInteger(pageSize) || pageSize < 1) throw new TypeError("pageSize must be a whole number above 0");
    const info: Implementation = Object.freeze(defined({ name, version, title, description, websiteUrl, icons }));
    this.meta = Object.freeze({ [META.serverInfo]: info });
    this.logging = server.logging;
    this.#cache = checkedCache("createServer()", server.cache) ?? { ttlMs: 0, cacheScope: "private" };
    this.#pageSize = pageSize;
  }

  complete(fields: object, meta?: unknown): Result {
    // Most results of tools are just this, and a literal costs a fraction of a copy.
    if (isPlain(fields) && meta === undefined) {
      return { content: fields.content, isError: fields.isError, resultType: "complete", _meta: this.meta };
    }
    return { ...fields, resultType: "complete", _meta: this.metaWith(meta) };
  }

  made({ content, structuredContent, isError }: MadeResult): Result {
    return { content, structuredContent, isError, resultType: "complete", _meta: this.meta };
  }

  cacheable(fields: object, hint: CacheHint = this.#cache, meta?: unknown): Result {
    const { ttlMs, cacheScope } = hint;
    return { ...fields, ttlMs, cacheScope, resultType: "complete", _meta: this.metaWith(meta) };
  }

  list(method: string, field: string, items: readonly Listed[], cursor: unknown): Result {
    const { items: part, nextCursor } = page(method, items, cursor, this.#pageSize);
    const shown = part.map((item) => item.shown);
    return this.cacheable(nextCursor === undefined ? { [field]: shown } : { [field]: shown, nextCursor });
  }

  /** Ours last: a result that was made elsewhere is now ours. */
  metaWith(meta: unknown): Meta {
    return typeof meta === "object" && meta !== null ? { ...meta, ...this.meta } : this.meta;
  }
}

/** Programs without types may give anything, or nothing. */
function checkNames(server: unknown): void {
  const { name, version } = Object(server) as Record<string, unknown>;
  const missing = Object.entries({ name, version }).filter(([, value]) => typeof value !== "string");
  if (missing.length === 0) return;
  const what = missing.map(([field]) => `a ${field}`).join(" and ");
  throw new TypeError(
    `createServer() needs ${what}, as text; the form is createServer({ name: "notes", version: "1.0.0" })`,
  );
}

/** Throws where a hint would make results that no caller may accept; `owner` is for the error's text. */
export function checkedCache(owner: string, cache: CacheHint | undefined): CacheHint | undefined {
  if (cache === undefined) return undefined;
  // Programs without types may give anything.
  const { ttlMs, cacheScope } = Object(cache) as Partial<CacheHint>;
  if (!Number.isInteger(ttlMs) || Number(ttlMs) < 0) {
    throw new TypeError(`${owner}: cache.ttlMs must be a whole number of milliseconds, 0 or more`);
  }
  if (cacheScope !== "public" && cacheScope !== "private") {
    throw new TypeError(`${owner}: cache.cacheScope must be "public" or "private"`);
  }
  return cache;
}

function isPlain(fields: object): fields is { readonly content: unknown; readonly isError: unknown } {
  return "content" in fields && "isError" in fields && Reflect.ownKeys(fields).length === 2;
}
