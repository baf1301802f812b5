// Limits how many calls pass in a period, with token buckets. A call whose bucket is empty is refused at once, with the
// time to wait before another attempt. Callers are distinguished only by their authenticated identity, never by what
// they claim about themselves. All callers without an identity share a bucket.

import { callerKey } from "../../core/caller-key.ts";
import type { Middleware } from "../../core/handler.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
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
    const waitMs = buckets.take(byCaller ? callerKey(context.caller, "owner") : "");
    if (waitMs === 0) return next(request, context);
    const limit = `the limit is ${calls} calls in ${perMs} ms`;
    const message = `The middleware ${NAME} refused ${request.method}: ${limit}; try again in ${waitMs} ms`;
    return Promise.reject(McpError.of("rate_limited", message, { middlewareName: NAME, retryAfterMs: waitMs }));
  };
}

/** In milliseconds. Tolerates rounding errors, so that a call that is due now is not refused. */
const ROUNDING = 1e-3;

interface Bucket {
  /** When it has all its calls again, if none is taken. */
  fullAt: number;
}

export class Buckets {
  readonly #perMs: number;
  readonly #msPerCall: number;
  readonly #now: () => number;
  readonly #buckets: ExpiringMap<string, Bucket>;

  constructor(calls: number, perMs: number, now = (): number => performance.now()) {
    this.#perMs = perMs;
    this.#msPerCall = perMs / calls;
    this.#now = now;
    // A full bucket is the same as none.
    const onExpired = ({ fullAt }: Bucket): number | void => (fullAt > now() ? fullAt - now() : undefined);
    this.#buckets = new ExpiringMap({ maxEntries: MAX_CALLERS, ttlMs: perMs, onExpired, now });
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one call from the bucket and returns 0, or returns the milliseconds until the bucket has one. */
  take(key: string): number {
    const bucket = this.#buckets.get(key);
    const now = this.#now();
    const fullAt = Math.max(bucket?.fullAt ?? 0, now) + this.#msPerCall;
    const waitMs = fullAt - now - this.#perMs;
    if (waitMs > ROUNDING) return Math.max(1, Math.ceil(waitMs - ROUNDING));
    if (bucket === undefined) this.#buckets.set(key, { fullAt }, fullAt - now);
    else bucket.fullAt = fullAt;
    return 0;
  }
}
