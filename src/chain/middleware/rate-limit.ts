// A limit on how many calls go through in a time, by buckets: a bucket holds so many calls, is emptied by one with each,
// and fills again evenly. A call that finds it empty is refused at once and told when to come again. Callers are told
// apart by what the wire proves of them, never by what they say of themselves: all of whom it proves nothing share one
// bucket.

import type { Link } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { OptionError, OptionReader } from "../../core/options.ts";
import { methodsOption } from "../method-names.ts";

export interface RateLimitOptions {
  /** So many calls may be made at once, and in each period. */
  readonly calls: number;
  /** The period; or as milliseconds: `perMs`. */
  readonly per?: "second" | "minute" | "hour";
  readonly perMs?: number;
  /** Whether each caller has a bucket of its own; `caller`. */
  readonly by?: "caller" | "all";
  /** What counts as a call; tools/call, prompts/get, resources/read and completion/complete. */
  readonly methods?: readonly string[];
}

const PERIODS = { second: 1_000, minute: 60_000, hour: 3_600_000 } as const;
const COUNTED: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read", "completion/complete"]);
/** Callers that are kept in mind. */
const MOST_CALLERS = 10_000;

interface Bucket {
  /** Calls that are in it. */
  level: number;
  /** When that was. */
  at: number;
}

export function rateLimit(options: RateLimitOptions): Link {
  const read = new OptionReader("rate-limit", options, ["calls", "per", "perMs", "by", "methods"]);
  const calls = read.count("calls");
  if (calls === undefined) throw read.error("calls", "must say how many calls may be made");
  const per = read.choice("per", ["second", "minute", "hour"]);
  const perMs = read.ms("perMs") ?? (per && PERIODS[per]);
  if (perMs === undefined) throw read.error("per", 'must be "second", "minute" or "hour"; or `perMs` says it');
  if (per !== undefined && read.any("perMs") !== undefined)
    throw new OptionError(NAME, "perMs", "and `per` are one too many");
  const byCaller = (read.choice("by", ["caller", "all"]) ?? "caller") === "caller";
  const methods = methodsOption(read) ?? COUNTED;
  const buckets = new Buckets(calls, perMs);
  return {
    name: NAME,
    run: (request, context, next) => {
      if (!methods.has(request.method)) return next(request, context);
      const waitMs = buckets.take(byCaller ? (context.caller.principal ?? "") : "");
      if (waitMs === 0) return next(request, context);
      const message = `The link ${NAME} refuses ${request.method}: ${calls} calls in ${perMs} ms; try again in ${waitMs} ms`;
      return Promise.reject(McpError.of("rate_limited", message, { middlewareName: NAME, retryAfterMs: waitMs }));
    },
  };
}

const NAME = "rate-limit";
const ROUNDING = 1e-6;

export class Buckets {
  readonly #calls: number;
  readonly #perMs: number;
  /** Those that were used longest ago come first. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(calls: number, perMs: number) {
    this.#calls = calls;
    this.#perMs = perMs;
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Takes one call out; where there is none, the milliseconds until there will be. */
  take(key: string, now: number = performance.now()): number {
    const kept = this.#buckets.get(key);
    const level = kept === undefined ? this.#calls : this.#levelOf(kept, now);
    // Fractions are not exact: one that is due at this moment must not be a thousandth late.
    if (level < 1 - ROUNDING) return Math.max(1, Math.ceil(((1 - level) * this.#perMs) / this.#calls - ROUNDING));
    this.#buckets.delete(key);
    this.#buckets.set(key, { level: Math.max(0, level - 1), at: now });
    if (this.#buckets.size > MOST_CALLERS) this.#forget(now);
    return 0;
  }

  #levelOf({ level, at }: Bucket, now: number): number {
    return Math.min(this.#calls, level + ((now - at) * this.#calls) / this.#perMs);
  }

  /** A bucket that is full again is as good as none; if all are in use, the one that was used longest ago goes. */
  #forget(now: number): void {
    for (const [key, bucket] of this.#buckets) {
      if (this.#buckets.size <= MOST_CALLERS && this.#levelOf(bucket, now) < this.#calls) return;
      this.#buckets.delete(key);
    }
  }
}
