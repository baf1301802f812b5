// The built-in middleware by the names that a config uses: how each is created from JSON, and what editors show for it.

import type { Middleware } from "../../core/handler.ts";
import type { OptionsHelp } from "../../core/options.ts";
import { AUDIT, audit } from "./audit.ts";
import { AUTHORIZE, authorize } from "./authorize.ts";
import { BREAKER, breaker } from "./breaker.ts";
import { CACHE, cache } from "./cache.ts";
import { CONCURRENCY, concurrency } from "./concurrency.ts";
import { CONFIRM, confirm } from "./confirm.ts";
import { DESCRIBE, describe } from "./describe.ts";
import { FILTER, filter } from "./filter.ts";
import { INJECT, inject } from "./inject.ts";
import { LOG, log } from "./log.ts";
import { METRICS, metrics } from "./metrics.ts";
import { PIN, pin } from "./pin.ts";
import { RATE_LIMIT, rateLimit } from "./rate-limit.ts";
import { READ_ONLY, readOnly } from "./read-only.ts";
import { REDACT, redact } from "./redact.ts";
import { RENAME, rename } from "./rename.ts";
import { RETRY, retry } from "./retry.ts";
import { SEARCH, search } from "./search.ts";
import { SHAPE, shape } from "./shape.ts";
import { TIMEOUT, timeout } from "./timeout.ts";
import { TRACE, trace } from "./trace.ts";
import { VALIDATE, validate } from "./validate.ts";

/**
 * Creates middleware from the options in a config, which may be any JSON. Relative paths in the options begin at
 * `folder`. `upstream` is the name of the server, if the middleware is for only one; `isShared`: because
 * the gateway has no other. Throws an `OptionError` if an option is invalid.
 */
export type MiddlewareFactory = (
  options?: unknown,
  folder?: string,
  upstream?: string,
  isShared?: boolean,
) => Middleware;

/** The built-in middleware, by the names that a config uses. */
export const MIDDLEWARE: ReadonlyMap<string, MiddlewareFactory> = new Map<string, MiddlewareFactory>([
  ["audit", (options, folder) => audit(options as never, folder)],
  ["authorize", (options) => authorize(options as never)],
  ["breaker", (options) => breaker(options as never)],
  ["cache", (options) => cache(options as never)],
  ["concurrency", (options) => concurrency(options as never)],
  ["confirm", (options) => confirm(options as never)],
  ["describe", (options) => describe(options as never)],
  ["filter", (options) => filter(options as never)],
  ["inject", (options) => inject(options as never)],
  ["log", (options) => log(options as never)],
  ["metrics", (options) => metrics(options as never)],
  ["pin", (options, folder, upstream, isShared) => pin(options as never, folder, upstream, isShared)],
  ["rate-limit", (options) => rateLimit(options as never)],
  ["read-only", (options) => readOnly(options as never)],
  ["redact", (options) => redact(options as never)],
  ["rename", (options) => rename(options as never)],
  ["retry", (options) => retry(options as never)],
  ["search", (options) => search(options as never)],
  ["shape", (options) => shape(options as never)],
  ["timeout", (options) => timeout(options as never)],
  ["trace", (options) => trace(options as never)],
  ["validate", (options) => validate(options as never)],
]);

/** What editors show for the built-in middleware, by the names that a config uses. */
export const MIDDLEWARE_HELP: ReadonlyMap<string, OptionsHelp> = new Map<string, OptionsHelp>([
  ["audit", AUDIT],
  ["authorize", AUTHORIZE],
  ["breaker", BREAKER],
  ["cache", CACHE],
  ["concurrency", CONCURRENCY],
  ["confirm", CONFIRM],
  ["describe", DESCRIBE],
  ["filter", FILTER],
  ["inject", INJECT],
  ["log", LOG],
  ["metrics", METRICS],
  ["pin", PIN],
  ["rate-limit", RATE_LIMIT],
  ["read-only", READ_ONLY],
  ["redact", REDACT],
  ["rename", RENAME],
  ["retry", RETRY],
  ["search", SEARCH],
  ["shape", SHAPE],
  ["timeout", TIMEOUT],
  ["trace", TRACE],
  ["validate", VALIDATE],
]);
