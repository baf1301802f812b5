// Limits how many calls pass in a period, with token buckets. A call whose bucket is empty is refused at once, with the
// time to wait before another attempt. Callers are distinguished only by their authenticated identity, never by what
// they claim about themselves. All callers without an identity share a bucket.

import type { Middleware } from "../../core/handler.ts";
import { choice, count, ms, required, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { McpError } from "../../protocol/errors.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { COUNTED_METHODS } from "../method-names.ts";

const OPTIONS = {
  calls: required("how many calls may be made", count("How many calls are allowed in each period, also all at once.")),
  per: choice("The period. Either `per` or `perMs` is required.", ["second", "minute", "hour"]),
  perMs: ms("The period in milliseconds."),
  by: choice("One limit for each caller, or one for all.", ["caller", "all"]).or("caller"),
  methods: COUNTED_METHODS,
};

/** Options of `rateLimit()`. */
export type RateLimitOptions = OptionsOf<typeof OPTIONS>;

const NAME = "rate-limit";
const PERIODS = { second: 1_000, minute: 60_000, hour: 3_600_000 } as const;
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
export const rateLimit: DefinedMiddleware<[options: RateLimitOptions]> = define({
  name: NAME,
  summary: "Limits how many calls may be made in a period.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createRateLimit,
});

function createRateLimit(options: ValuesOf<typeof OPTIONS>, { error }: DefinitionPlace): Middleware {
  const { calls, per, perMs = per && PERIODS[per] } = options;
  if (perMs === undefined) throw error("per", 'must be "second", "minute" or "hour", or `perMs` must be set');
  if (per !== undefined && options.perMs !== undefined) throw error("perMs", "and `per` exclude each other");
  const byCaller = options.by !== "all";
  const methods = new Set(options.methods);
  const buckets = new Buckets(calls, perMs);
  return (request, context, next) => {
    if (!methods.has(request.method)) return next(request, context);
    const waitMs = buckets.take(byCaller ? (context.caller.principal ?? "") : "");
    if (waitMs === 0) return next(request, context);
    const limit = `the limit is ${calls} calls in ${perMs} ms`;
    const message = `The middleware ${NAME} refused ${request.method}: ${limit}; try again in ${waitMs} ms`;
    return Promise.reject(McpError.of("rate_limited", message, { middlewareName: NAME, retryAfterMs: waitMs }));
  };
}

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
