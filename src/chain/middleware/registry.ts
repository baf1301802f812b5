// The built-in links by the names that a config file calls them by. Options come from there as plain JSON, of any shape:
// each link looks at its own, and refuses what it cannot use with an `OptionError` that names the option.

import type { Link } from "../../core/handler.ts";
import { filter } from "./filter.ts";
import { log } from "./log.ts";
import { rateLimit } from "./rate-limit.ts";
import { rename } from "./rename.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

/** Makes a link of what was written for it; undefined where nothing was. */
export type MiddlewareFactory = (options?: unknown) => Link;

export const LINKS: ReadonlyMap<string, MiddlewareFactory> = new Map<string, MiddlewareFactory>([
  ["filter", (options) => filter(options as never)],
  ["log", (options) => log(options as never)],
  ["rate-limit", (options) => rateLimit(options as never)],
  ["rename", (options) => rename(options as never)],
  ["retry", (options) => retry(options as never)],
  ["timeout", (options) => timeout(options as never)],
]);
