// The door `catenary/links`: the links that come with the package, each in a file of its own.

export { filter, type FilterOptions, type Shown } from "./filter.ts";
export { log, type LogOptions, type Severity } from "./log.ts";
export { OptionError } from "../../core/options.ts";
export { rateLimit, type RateLimitOptions } from "./rate-limit.ts";
export { LINKS, type MiddlewareFactory } from "./registry.ts";
export { rename, type RenameOptions } from "./rename.ts";
export { retry, type RetryOptions } from "./retry.ts";
export { timeout, type TimeoutOptions } from "./timeout.ts";
