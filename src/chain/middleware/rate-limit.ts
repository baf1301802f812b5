// Limits how many calls pass in a period, with token buckets. A call whose bucket is empty is refused at once, with the
// time to wait before another attempt. Callers are distinguished only by their authenticated identity, never by what
// they claim about themselves. All callers without an identity share a bucket.

import type { Middleware } from "../../core/handler.ts";
import { OPTION_SCHEMAS, OptionReader, type OptionsHelp } from "../../core/options.ts";
import { McpError } from "../../protocol/errors.ts";
import { METHODS_SCHEMA, methodsOption } from "../method-names.ts";

/** Options of `rateLimit()`. */
export interface RateLimitOptions {
  /** How many calls are allowed in each period. They may all come at once. */
  readonly calls: number;
  /** The period. Set either `per` or `perMs`. */
  readonly per?: "second" | "minute" | "hour" | undefined;
  /** The period in milliseconds. */
  readonly perMs?: number | undefined;
  /** One bucket for each caller, or one for all callers. Default: `caller`. */
  readonly by?: "caller" | "all" | undefined;
  /** The methods that count as calls. Default: tools/call, prompts/get, resources/read and completion/complete. */
  readonly methods?: readonly string[] | undefined;
}

export const RATE_LIMIT: OptionsHelp<RateLimitOptions> = {
  summary: "Limits how many calls may be made in a period.",
  options: {
    calls: { ...OPTION_SCHEMAS.count, description: "How many calls are allowed in each period." },
    per: { enum: ["second", "minute", "hour"], description: "The period. Set either `per` or `perMs`." },
    perMs: { ...OPTION_SCHEMAS.ms, description: "The period in milliseconds." },
    by: { enum: ["caller", "all"], description: "One limit for each caller, or one for all. Default: caller." },
    methods: { ...METHODS_SCHEMA, description: "The methods that count as calls." },
  },
  required: ["calls"],
};

const PERIODS = { second: 1_000, minute: 60_000, hour: 3_600_000 } as const;
const COUNTED: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read", "completion/complete"]);
const MAX_CALLERS = 10_000;

interface Bucket {
  /** Calls left. */
  level: number;
  /** When `level` was updated. */
  at: number;
}

/**
 * Limits how many calls pass in a period. A call over the limit is refused at once, with the time to wait.
 *
 * @example
 * rateLimit({ calls: 60, per: "minute" })
 */
export function rateLimit(options: RateLimitOptions): Middleware {
  const read = new OptionReader(NAME, options, Object.keys(RATE_LIMIT.options));
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
    const limit = `the limit is ${calls} calls in ${perMs} ms`;
    const message = `The middleware ${NAME} refused ${request.method}: ${limit}; try again in ${waitMs} ms`;
    return Promise.reject(McpError.of("rate_limited", message, { middlewareName: NAME, retryAfterMs: waitMs }));
  };
  // The name of the middleware in a config. It is not a valid function name, so it is set here.
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
  /** The most recently used. */
  #last: Bucket | undefined;

  constructor(calls: number, perMs: number) {
    this.#calls = calls;
    this.#perMs = perMs;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one call from the bucket and returns 0, or returns the milliseconds until the bucket has one. */
  take(key: string, now: number = performance.now()): number {
    const known = this.#buckets.get(key);
    const level = known === undefined ? this.#calls : this.#levelOf(known, now);
    if (level < 1 - ROUNDING) return Math.max(1, Math.ceil(((1 - level) * this.#perMs) / this.#calls - ROUNDING));
    const left = Math.max(0, level - 1);
    if (known !== undefined && known === this.#last) {
      known.level = left;
      known.at = now;
      return 0;
    }
    this.#buckets.delete(key);
    this.#last = { level: left, at: now };
    this.#buckets.set(key, this.#last);
    if (this.#buckets.size > MAX_CALLERS) this.#evict(now);
    return 0;
  }

  #levelOf({ level, at }: Bucket, now: number): number {
    return Math.min(this.#calls, level + ((now - at) * this.#calls) / this.#perMs);
  }

  /** Drops the least recently used bucket, and the next ones while they are full: a full bucket is the same as none. */
  #evict(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (this.#buckets.size <= MAX_CALLERS && this.#levelOf(bucket, now) < this.#calls) return;
      this.#buckets.delete(key);
    }
  }
}
