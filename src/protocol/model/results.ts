// What requests and results have in common: the `_meta` of a request, pages, and how long a result keeps.
// Types only; they stand apart because every subject builds on them.

import type { Meta } from "../../core/handler.ts";

export interface RequestParams {
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

export interface PageParams extends RequestParams {
  /** Opaque; an empty string is a cursor like any other. */
  readonly cursor?: string;
}

export interface CompleteResultBase {
  readonly resultType?: "complete";
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

export type CacheScope = "public" | "private";

export interface CacheableResult extends CompleteResultBase {
  /** For how long the result may be used again. Left out by an end that knows no caching: not at all. */
  readonly ttlMs?: number;
  readonly cacheScope?: CacheScope;
}

export interface PageResult extends CacheableResult {
  readonly nextCursor?: string;
}

/** What a request without a result of its own answers. */
export type EmptyResult = CompleteResultBase;
