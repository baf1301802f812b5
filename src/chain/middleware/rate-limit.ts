// Limits how many calls pass in a period, with token buckets. A call that finds its bucket empty is refused at once, with
// the time after which to try again. Callers are distinguished by their authenticated identity only, never by what they say
// of themselves; all callers without one share a bucket.

import type { Middleware } from "../../core/handler.ts";
import { OptionReader } from "../../core/options.ts";
import { McpError } from "../../protocol/errors.ts";
import { methodsOption } from "../method-names.ts";

export interface RateLimitOptions {
  /** How many calls may be made at once, and in each period. */
  readonly calls: number;
  /** The period; `perMs` gives it in milliseconds instead. */
  readonly per?: "second" | "minute" | "hour";
  readonly perMs?: number;
  /** One bucket for each caller, or one for all; `caller`. */
  readonly by?: "caller" | "all";
  /** The methods that count as calls; tools/call, prompts/get, resources/read and completion/complete. */
  readonly methods?: readonly string[];
}

const PERIODS = { second: 1_000, minute: 60_000, hour: 3_600_000 } as const;
const COUNTED: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read", "completion/complete"]);
const MAX_CALLERS = 10_000;

interface Bucket {
  /** Calls left. */
  level: number;
  /** The time of that level. */
  at: number;
}

export function rateLimit(options: RateLimitOptions): Middleware {
  const read = new OptionReader(NAME, options, ["calls", "per", "perMs", "by", "methods"]);
  const calls = read.count("calls");
  if (calls === undefined) throw read.error("calls", "is required: how many calls may be made");
  const per = read.choice("per", ["second", "minute", "hour"]);
  const perMs = read.ms("perMs") ?? (per && PERIODS[per]);
  if (perMs === undefined) throw read.error("per", 'must be "second", "minute" or "hour", or `perMs` must be set');
  if (per !== undefined && read.any("perMs") !== undefined) {
    throw read.error("perMs", "and `per` exclude each other");
  }
  const byCaller = (read.choice("by", ["caller", "all"]) ?? "caller") === "caller";
  const methods = methodsOption(read) ?? COUNTED;
  const buckets = new Buckets(calls, perMs);
  const middleware: Middleware = (request, context, next) => {
    if (!methods.has(request.method)) return next(request, context);
    const waitMs = buckets.take(byCaller ? (context.caller.principal ?? "") : "");
    if (waitMs === 0) return next(request, context);
    const message = `The middleware ${NAME} refused ${request.method}: the limit is ${calls} calls in ${perMs} ms; try again in ${waitMs} ms`;
    return Promise.reject(McpError.of("rate_limited", message, { middlewareName: NAME, retryAfterMs: waitMs }));
  };
  // The name in a config, so that a chain calls it the same.
  return Object.defineProperty(middleware, "name", { value: NAME });
}

const NAME = "rate-limit";
/** Tolerates rounding errors, so that a call that is due now is not refused. */
const ROUNDING = 1e-6;

export class Buckets {
  readonly #calls: number;
  readonly #perMs: number;
  /** Least recently used first. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(calls: number, perMs: number) {
    this.#calls = calls;
    this.#perMs = perMs;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one call and returns 0, or returns the milliseconds until there is one. */
  take(key: string, now: number = performance.now()): number {
    const known = this.#buckets.get(key);
    const level = known === undefined ? this.#calls : this.#levelOf(known, now);
    if (level < 1 - ROUNDING) return Math.max(1, Math.ceil(((1 - level) * this.#perMs) / this.#calls - ROUNDING));
    this.#buckets.delete(key);
    this.#buckets.set(key, { level: Math.max(0, level - 1), at: now });
    if (this.#buckets.size > MAX_CALLERS) this.#evict(now);
    return 0;
  }

  #levelOf({ level, at }: Bucket, now: number): number {
    return Math.min(this.#calls, level + ((now - at) * this.#calls) / this.#perMs);
  }

  /** Drops full buckets, which are the same as none, and the least recently used one if there are still too many. */
  #evict(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (this.#buckets.size <= MAX_CALLERS && this.#levelOf(bucket, now) < this.#calls) return;
      this.#buckets.delete(key);
    }
  }
}
