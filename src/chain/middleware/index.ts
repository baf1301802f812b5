// The subpath `catenary/middleware`: the built-in middleware. Those that change what callers see are in ../transforms.
// ../README.md says how to add one.

export type { ClientCapabilities } from "../../core/handler.ts";
export type * from "../../core/handler-types.ts";
export { audit, type AuditOptions } from "./audit.ts";
export { authorize, type AuthorizedItem, type AuthorizeOptions, type AuthorizeRule } from "../transforms/authorize.ts";
export { breaker, type BreakerOptions } from "./breaker.ts";
export { cache, type CacheOptions, type CacheRule } from "./cache.ts";
export { concurrency, type ConcurrencyOptions } from "./concurrency.ts";
export { confirm, type ConfirmOptions } from "./confirm.ts";
export {
  describe,
  type DescribeOptions,
  type PromptDescription,
  type ResourceDescription,
  type ToolDescription,
} from "../transforms/describe.ts";
export { filter, type FilterOptions, type FilterRule } from "../transforms/filter.ts";
export { inject, type InjectOptions, type ToolInjection } from "../transforms/inject.ts";
export { log, type LogOptions, type Severity } from "./log.ts";
export { metrics, type MetricsOptions } from "./metrics.ts";
export { pin, type HeldItem, type PinOptions } from "../transforms/pin.ts";
export { rateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { readOnly, type ReadOnlyOptions } from "../transforms/read-only.ts";
export { redact, type RedactOptions } from "./redact.ts";
export type { SecretShape } from "../../core/secret-shapes.ts";
export { rename, type RenameOptions } from "../transforms/rename.ts";
export { retry, type RetryOptions } from "./retry.ts";
export { search, type SearchOptions } from "../transforms/search.ts";
export { shape, type ShapeOptions } from "../transforms/shape.ts";
export { timeout, type TimeoutOptions } from "./timeout.ts";
export { trace, type TraceOptions } from "./trace.ts";
export { validate, type ValidateOptions } from "./validate.ts";
