// A circuit breaker. If an upstream, or a tool, did not answer several times in a row, further calls of it fail at once
// for a while. Then one call may pass: if it is answered, all may pass again. There are no timers: the next call looks
// at the clock.

import { ExpiringMap } from "../../core/expiring-map.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Middleware } from "../../core/handler.ts";
import { boolean, choice, count, ms, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { Item } from "../item.ts";
import { isNoAnswer } from "../router/failures.ts";

const OPTIONS = {
  failures: count("After how many failures in a row calls are refused.").or(5),
  openMs: ms("For how long calls are refused.").or(30_000),
  by: choice("What failures are counted for.", ["upstream", "tool"]).or("upstream"),
  toolErrors: boolean("Whether a result with `isError` is a failure too.").or(false),
};

/** Options of `breaker()`. */
export type BreakerOptions = OptionsOf<typeof OPTIONS>;

const NAME = "breaker";
const MAX_CIRCUITS = 1_000;

/**
 * Refuses calls for a while after an upstream did not answer several times in a row.
 *
 * @example
 * breaker({ failures: 3, openMs: 10_000 })
 */
export const breaker: DefinedMiddleware<[options?: BreakerOptions]> = define({
  name: NAME,
  summary: "Refuses calls for a while after an upstream did not answer several times in a row.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createBreaker,
});

function createBreaker({ failures: maxFailures, openMs, by, toolErrors }: ValuesOf<typeof OPTIONS>): Middleware {
  /** Only of what has failed. */
  const circuits = new ExpiringMap<string, Circuit>({ maxEntries: MAX_CIRCUITS });
  const byTool = by === "tool";
  const end = (outcome: Outcome, keys: readonly string[], tested: readonly Circuit[]): void => {
    if (outcome === "worked") {
      if (circuits.size > 0) for (const key of keys) closeCircuit(circuits.get(key));
      return;
    }
    for (const circuit of tested) circuit.openUntil = 0;
    if (outcome === "unclear") return;
    // A failure is that of the last upstream on the route.
    const key = keys.at(-1) ?? "";
    const failures = (circuits.get(key)?.failures ?? 0) + 1;
    circuits.set(key, { key, failures, openUntil: performance.now() + openMs });
  };
  return function breaker(request, context, next) {
    const { method, params } = request;
    if (method === "subscriptions/listen" || context.isNotification === true) return next(request, context);
    if (byTool && method !== "tools/call") return next(request, context);
    // An upstream that is not behind a gateway has no name.
    const upstreams = context.item instanceof Item ? context.item.upstreams : [];
    const keys = byTool ? [String(params["name"])] : ["", ...upstreams];
    let tested = NONE;
    if (circuits.size > 0) {
      const now = performance.now();
      tested = keys.flatMap((key) => circuits.get(key) ?? []).filter(({ failures }) => failures >= maxFailures);
      const open = tested.find(({ openUntil }) => now < openUntil);
      if (open !== undefined) {
        const what = byTool ? `tool ${open.key}` : open.key === "" ? "upstream" : `upstream ${open.key}`;
        return Promise.reject(refused(method, what, Math.ceil(open.openUntil - now)));
      }
      // Other calls are refused meanwhile. If the test never ends, there is another one after the same time.
      for (const circuit of tested) circuit.openUntil = now + openMs;
    }
    return next(request, context).then(
      (result) => {
        end(toolErrors && result["isError"] === true ? "failed" : "worked", keys, tested);
        return result;
      },
      (error: unknown) => {
        end(context.signal.aborted ? "unclear" : outcomeOf(error), keys, tested);
        throw error;
      },
    );
  };
}

type Outcome = "worked" | "failed" | "unclear";

interface Circuit {
  /** The name of the tool, or of the upstream. */
  readonly key: string;
  /** Failures in a row. */
  failures: number;
  /** Until when calls are refused, if there were too many failures. Then one call tests whether calls work again. */
  openUntil: number;
}

const NONE: readonly Circuit[] = [];

function closeCircuit(circuit: Circuit | undefined): void {
  if (circuit !== undefined) circuit.failures = 0;
}

function refused(method: string, what: string, retryAfterMs: number): McpError {
  const why = `the ${what} has failed several times in a row; try again in ${retryAfterMs} ms`;
  const message = `The middleware ${NAME} refused ${method}: ${why}`;
  return McpError.of("unreachable", message, { middlewareName: NAME, retryAfterMs });
}

/** An error response is an answer. An error of other middleware says nothing about the upstream. */
function outcomeOf(error: unknown): Outcome {
  if (error instanceof ConnectionError) return error.isTemporary ? "failed" : "unclear";
  if (!(error instanceof McpError) || (isObject(error.data) && "middlewareName" in error.data)) return "unclear";
  return isNoAnswer(error) ? "failed" : "worked";
}
