// A circuit breaker. If an upstream, or a tool, did not answer several times in a row, further calls of it fail at once
// for a while. Then one call may pass: if it is answered, all may pass again. There are no timers: the next call looks
// at the clock.

import { BoundedMap } from "../../core/collections.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Middleware, Request } from "../../core/handler.ts";
import { boolean, choice, count, ms, type OptionsOf } from "../../core/fields.ts";
import { isObject } from "../../core/values.ts";
import { trusted } from "../../protocol/compose.ts";
import { McpError } from "../../protocol/errors.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { Item } from "../catalogue.ts";
import { isNoAnswer } from "../router/failures.ts";

const OPTIONS = {
  failures: count("After how many failures in a row. Default: 5."),
  openMs: ms("For how long calls are refused. Default: 30,000."),
  by: choice("What failures are counted for. Default: upstream.", ["upstream", "tool"]),
  toolErrors: boolean("Whether a result with isError is a failure. Default: false."),
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

function createBreaker({ failures = 5, openMs = 30_000, by, toolErrors = false }: BreakerOptions): Middleware {
  const circuits = new Circuits(failures, openMs);
  const byTool = by === "tool";
  return trusted(function breaker(request, context, next) {
    const { method } = request;
    if (method === "subscriptions/listen" || context.isNotification === true) return next(request, context);
    if (byTool && method !== "tools/call") return next(request, context);
    const call = new GuardedCall(circuits, request);
    try {
      if (byTool) {
        const name = String(request.params["name"]);
        call.pass(name, `the tool ${name}`);
      } else {
        // An upstream that is not behind a gateway has no name.
        call.pass("", "the upstream");
        for (const upstream of upstreamsOf(context)) call.pass(upstream, `the upstream ${upstream}`);
      }
    } catch (error) {
      call.end("unclear");
      return Promise.reject(error);
    }
    return next(request, context).then(
      (result) => {
        call.end(toolErrors && result["isError"] === true ? "failed" : "worked");
        return result;
      },
      (error: unknown) => {
        call.end(call.isRefused || context.signal.aborted ? "unclear" : outcomeOf(error));
        throw error;
      },
    );
  });
}

/** The upstream that has what a request names, and those behind it if it is a gateway. */
function upstreamsOf({ item }: Context): readonly string[] {
  return item instanceof Item ? item.upstreams : [];
}

type Outcome = "worked" | "failed" | "unclear";

interface Circuit {
  /** Failures in a row. */
  failures: number;
  /** Until when calls are refused, if there were too many failures. */
  openUntil: number;
}

class Circuits {
  readonly #maxFailures: number;
  readonly #openMs: number;
  /** Only for what has failed. */
  readonly #circuits = new BoundedMap<string, Circuit>(MAX_CIRCUITS);

  constructor(maxFailures: number, openMs: number) {
    this.#maxFailures = maxFailures;
    this.#openMs = openMs;
  }

  /** Whether a call may pass: always, as a test whether calls work again, or not for a number of milliseconds. */
  enter(key: string): "always" | "test" | number {
    const circuit = this.#circuits.get(key);
    if (circuit === undefined || circuit.failures < this.#maxFailures) return "always";
    const now = performance.now();
    if (now < circuit.openUntil) return Math.ceil(circuit.openUntil - now);
    // Other calls are refused meanwhile. If the test never ends, there is another one after the same time.
    circuit.openUntil = now + this.#openMs;
    return "test";
  }

  /** Whether there is nothing to record about a call that worked, and nothing that could refuse one. */
  get isEmpty(): boolean {
    return this.#circuits.size === 0;
  }

  record(key: string, outcome: Outcome, wasTest: boolean): void {
    const circuit = this.#circuits.get(key);
    if (outcome === "failed") {
      const failures = (circuit?.failures ?? 0) + 1;
      this.#circuits.set(key, { failures, openUntil: performance.now() + this.#openMs });
    } else if (circuit !== undefined) {
      if (outcome === "worked") circuit.failures = 0;
      else if (wasTest) circuit.openUntil = 0;
    }
  }
}

/** One call, with the circuits that it passes: one for all, and that of the upstream as soon as it is known. */
class GuardedCall {
  readonly #circuits: Circuits;
  readonly #request: Request;
  /** The keys of the circuits. */
  readonly #passed: string[] = [];
  /** Those of them that the call tests. */
  #tests: string[] | undefined;
  isRefused = false;

  constructor(circuits: Circuits, request: Request) {
    this.#circuits = circuits;
    this.#request = request;
  }

  /** Throws if the circuit is open. */
  pass(key: string, what: string): void {
    // An attempt that `retry` makes is a part of the same call.
    if (this.#passed.includes(key)) return;
    const entered = this.#circuits.isEmpty ? "always" : this.#circuits.enter(key);
    if (typeof entered !== "number") {
      this.#passed.push(key);
      if (entered === "test") (this.#tests ??= []).push(key);
      return;
    }
    this.isRefused = true;
    const why = `${what} has failed several times in a row; try again in ${entered} ms`;
    const message = `The middleware ${NAME} refused ${this.#request.method}: ${why}`;
    throw McpError.of("unreachable", message, { middlewareName: NAME, retryAfterMs: entered });
  }

  /** A failure is that of the last upstream on the route. */
  end(outcome: Outcome): void {
    if (outcome !== "failed" && this.#circuits.isEmpty) return;
    const last = this.#passed.at(-1);
    for (const key of this.#passed) {
      const own = outcome === "failed" && key !== last ? "unclear" : outcome;
      this.#circuits.record(key, own, this.#tests?.includes(key) === true);
    }
  }
}

/** An error response is an answer. An error of other middleware says nothing about the upstream. */
function outcomeOf(error: unknown): Outcome {
  if (error instanceof ConnectionError) return error.isTemporary ? "failed" : "unclear";
  if (!(error instanceof McpError) || (isObject(error.data) && "middlewareName" in error.data)) return "unclear";
  return isNoAnswer(error) ? "failed" : "worked";
}
