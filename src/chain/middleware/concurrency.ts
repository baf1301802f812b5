// Limits how many calls run at once: those of one caller, of one tool, or all. Further calls wait in a queue, and are
// refused if it is full or they wait too long. A call does not count while the caller answers a question, since a person
// may take long. Callers are distinguished only by their authenticated identity, as in rate-limit.ts.

import { callerKey } from "../../core/caller-key.ts";
import { copyContext } from "../../core/cancel.ts";
import { forwardAbort, Semaphore } from "../../core/async.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { choice, count, ms, required, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { McpError } from "../../protocol/errors.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { COUNTED_METHODS } from "../method-names.ts";

const OPTIONS = {
  calls: required("how many calls may run at once", count("How many calls may run at once.")),
  by: choice("One limit for each caller, each tool, or all.", ["caller", "tool", "all"]).or("caller"),
  queue: count("How many calls may wait at each limit.", 0).or(100),
  waitMs: ms("How long a call may wait.").or(30_000),
  methods: COUNTED_METHODS,
};

/** Options of `concurrency()`. */
export type ConcurrencyOptions = OptionsOf<typeof OPTIONS>;

const LISTEN = "subscriptions/listen";
/** So many limits are kept while no call uses them, so that the next one need not create it. */
const MAX_UNUSED = 100;

/**
 * Limits how many calls run at once, of each caller, of each tool, or in all. Further calls wait.
 *
 * @example
 * concurrency({ calls: 4, by: "tool" })
 */
export const concurrency: DefinedMiddleware<[options: number | ConcurrencyOptions]> = define({
  name: "concurrency",
  summary: "Limits how many calls run at once. Further calls wait.",
  options: OPTIONS,
  keepsLists: true,
  alternative: {
    option: "calls",
    what: "a number of calls",
    description: "How many calls of one caller may run at once.",
  },
  middleware: createConcurrency,
});

function createConcurrency(options: ValuesOf<typeof OPTIONS>, { error }: DefinitionPlace): Middleware {
  const { calls, by, queue, waitMs } = options;
  const methods = new Set(options.methods);
  if (methods.has(LISTEN)) throw error("methods", `must not have ${LISTEN}: subscriptions have no end`);
  const limits = new Map<string, Limit>();
  const keyOf = KEYS[by];
  const leave = (limit: Limit): void => {
    limit.users -= 1;
    if (limit.users === 0 && limits.size > MAX_UNUSED) limits.delete(limit.key);
  };
  return function concurrency(request, context, next) {
    if (!methods.has(request.method)) return next(request, context);
    const key = keyOf(request, context);
    const limit = limits.get(key) ?? { key, slots: new Semaphore(calls), users: 0 };
    const { slots } = limit;
    if (slots.isFull && slots.waiting >= queue) {
      return Promise.reject(refused(request, `${calls} calls run already, and ${queue} wait`));
    }
    if (limit.users === 0) limits.set(key, limit);
    limit.users += 1;
    if (!slots.isFull) {
      void slots.acquire();
      return runWithSlot(request, context, next, limit, leave);
    }
    const late = (): McpError => refused(request, `${calls} calls run already, and none ended in ${waitMs} ms`);
    return waitForSlot(slots, context.signal, waitMs, late).then(
      () => runWithSlot(request, context, next, limit, leave),
      (error: unknown) => {
        leave(limit);
        throw error;
      },
    );
  };
}

interface Limit {
  readonly key: string;
  readonly slots: Semaphore;
  /** Calls that run or wait. */
  users: number;
}

const KEYS: Readonly<Record<"caller" | "tool" | "all", (request: Request, context: Context) => string>> = {
  caller: (_request, { caller }) => callerKey(caller, "owner"),
  tool: ({ method, params }) => (method === "tools/call" ? `tool ${String(params["name"])}` : method),
  all: () => "",
};

/** The slot is not raced against the signal: one that is given as the caller leaves must be released. */
async function waitForSlot(slots: Semaphore, signal: AbortSignal, waitMs: number, late: () => McpError): Promise<void> {
  const wait = forwardAbort(signal);
  const timer = setTimeout(() => wait.abort(late()), waitMs);
  try {
    await slots.acquire(wait.signal);
  } finally {
    clearTimeout(timer);
    wait.forget();
  }
}

/** Runs a call that has a slot, and frees the slot. Without `finally`, which takes more than twice the time. */
function runWithSlot(
  request: Request,
  context: Context,
  next: Handler,
  limit: Limit,
  leave: (limit: Limit) => void,
): Promise<Result> {
  const slot = new HeldSlot(limit.slots, context);
  const ask: Context["ask"] = (question, options) => slot.without(() => context.ask(question, options));
  const passed = context.caller.canBeAsked ? copyContext(context, { ask }) : context;
  return next(request, passed).then(
    (result) => {
      slot.end();
      leave(limit);
      return result;
    },
    (error: unknown) => {
      slot.end();
      leave(limit);
      throw error;
    },
  );
}

/** The slot of one call, which is given up while the caller answers. */
class HeldSlot {
  readonly #slots: Semaphore;
  readonly #context: Context;
  #isHeld = true;
  #isOver = false;
  /** How many requests to the caller are unanswered. */
  #asking = 0;
  #taking: Promise<void> | undefined;

  constructor(slots: Semaphore, context: Context) {
    this.#slots = slots;
    this.#context = context;
  }

  /** Asks the caller. The answer waits until there is a slot again. */
  async without(ask: () => Promise<Result>): Promise<Result> {
    this.#asking += 1;
    this.#free();
    try {
      return await ask();
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0 && !this.#isOver) await (this.#taking ??= this.#take());
    }
  }

  end(): void {
    this.#isOver = true;
    this.#free();
  }

  #free(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#slots.release();
  }

  async #take(): Promise<void> {
    try {
      await this.#slots.acquire(this.#context.signal);
      this.#isHeld = true;
      // Meanwhile, the call may have ended, or asked again.
      if (this.#isOver || this.#asking > 0) this.#free();
    } finally {
      this.#taking = undefined;
    }
  }
}

function refused({ method }: Request, why: string): McpError {
  const message = `The middleware concurrency refused ${method}: ${why}; try again later`;
  return McpError.of("rate_limited", message, { middlewareName: "concurrency" });
}
