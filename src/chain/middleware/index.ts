// The subpath `catenary/middleware`: the built-in middleware, and the map that a config uses to find it by name.

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

export type {
  AskOptions,
  Caller,
  Context,
  Handler,
  LogLevel,
  Meta,
  Middleware,
  Notification,
  Params,
  Request,
  Result,
  SessionHints,
} from "../../core/handler.ts";
export { OptionError, type OptionsHelp } from "../../core/options.ts";
export type { AuditOptions } from "./audit.ts";
export type { AuthorizedItem, AuthorizeOptions, AuthorizeRule } from "./authorize.ts";
export type { BreakerOptions } from "./breaker.ts";
export type { CacheOptions, CacheRule } from "./cache.ts";
export type { ConcurrencyOptions } from "./concurrency.ts";
export type { ConfirmOptions } from "./confirm.ts";
export type { DescribeOptions, PromptDescription, ResourceDescription, ToolDescription } from "./describe.ts";
export type { FilterOptions, FilterRule } from "./filter.ts";
export type { InjectOptions, ToolInjection } from "./inject.ts";
export type { LogOptions, Severity } from "./log.ts";
export type { MetricsOptions } from "./metrics.ts";
export type { HeldItem, PinOptions } from "./pin.ts";
export type { RateLimitOptions } from "./rate-limit.ts";
export type { ReadOnlyOptions } from "./read-only.ts";
export type { RedactOptions } from "./redact.ts";
export type { SecretShape } from "../../protocol/redactor.ts";
export type { RenameOptions } from "./rename.ts";
export type { RetryOptions } from "./retry.ts";
export type { SearchOptions } from "./search.ts";
export type { ShapeOptions } from "./shape.ts";
export type { TimeoutOptions } from "./timeout.ts";
export type { TraceOptions } from "./trace.ts";
export type { ValidateOptions } from "./validate.ts";
export {
  audit,
  authorize,
  breaker,
  cache,
  concurrency,
  confirm,
  describe,
  filter,
  inject,
  log,
  metrics,
  pin,
  rateLimit,
  readOnly,
  redact,
  rename,
  retry,
  search,
  shape,
  timeout,
  trace,
  validate,
};

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
