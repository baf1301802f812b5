// Limits how long requests take: in total, without progress, or both. A request over the limit is aborted and fails at
// once, even if the upstream ignores the abort. The clock stops while the caller answers a request of the upstream.
// Subscriptions are not limited.

import { attempt, forwardAbort, type ForwardedAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../../core/handler.ts";
import { ms, type OptionsOf } from "../../core/fields.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { methodNames } from "../method-names.ts";

const OPTIONS = {
  totalMs: ms("Milliseconds that a request may take in total."),
  idleMs: ms("Milliseconds that a request may take without progress."),
  methods: methodNames("Only requests of these methods are limited. Default: all."),
};

/** Options of `timeout()`. */
export type TimeoutOptions = OptionsOf<typeof OPTIONS>;

const LISTEN = "subscriptions/listen";

/**
 * Limits how long requests take: in total (`totalMs`, or a number), without progress (`idleMs`), or both.
 *
 * @example
 * timeout({ idleMs: 30_000, totalMs: 600_000 })
 */
export const timeout: DefinedMiddleware<[options: number | TimeoutOptions]> = define({
  name: "timeout",
  summary: "Cancels requests that take too long.",
  options: OPTIONS,
  keepsLists: true,
  alternative: {
    option: "totalMs",
    what: "a number of milliseconds",
    description: "Milliseconds that a request may take in total.",
  },
  middleware: createTimeout,
});

function createTimeout(options: TimeoutOptions, { error }: DefinitionPlace): Middleware {
  const { totalMs, idleMs } = options;
  const methods = options.methods && new Set(options.methods);
  if (totalMs === undefined && idleMs === undefined) throw error("totalMs", "or `idleMs` is required");
  if (methods?.has(LISTEN) === true) throw error("methods", `must not have ${LISTEN}: subscriptions have no end`);
  return function timeout(request, context, next) {
    return request.method === LISTEN || methods?.has(request.method) === false
      ? next(request, context)
      : new LimitedCall(request, context, totalMs ?? Infinity, idleMs ?? Infinity).run(next);
  };
}

class LimitedCall {
  readonly #request: Request;
  readonly #context: Context;
  readonly #totalMs: number;
  readonly #idleMs: number;
  readonly #stop: ForwardedAbort;
  /** What was left of `totalMs` when the clock was last started. */
  #leftMs: number;
  #progressAt: number;
  /** When the clock was last started. */
  #since: number;
  /** How many requests to the caller are unanswered. */
  #asking = 0;
  #timer: NodeJS.Timeout | undefined;
  #reject: (error: ConnectionError) => void = () => undefined;

  constructor(request: Request, context: Context, totalMs: number, idleMs: number) {
    this.#request = request;
    this.#context = context;
    this.#totalMs = totalMs;
    this.#idleMs = idleMs;
    this.#stop = forwardAbort(context.signal);
    this.#leftMs = totalMs;
    this.#since = this.#progressAt = performance.now();
  }

  async run(next: Handler): Promise<Result> {
    const { signal } = this.#stop;
    const context: Context = {
      ...this.#context,
      signal,
      notify: (notification) => this.#notify(notification),
      ask: (question, options) => this.#ask(() => this.#context.ask(question, options)),
    };
    this.#startTimer();
    try {
      return await new Promise<Result>((resolve, reject) => {
        this.#reject = reject;
        attempt(() => next(this.#request, context)).then(resolve, reject);
      });
    } finally {
      clearTimeout(this.#timer);
      this.#stop.forget();
    }
  }

  #notify(notification: Notification): void {
    // The timer is not restarted here: when it fires, it reads this time.
    if (notification.method === "notifications/progress") this.#progressAt = performance.now();
    this.#context.notify(notification);
  }

  /** Stops the clock while the caller answers. */
  async #ask(ask: () => Promise<Result>): Promise<Result> {
    if (this.#asking++ === 0) {
      clearTimeout(this.#timer);
      this.#leftMs -= performance.now() - this.#since;
    }
    try {
      return await ask();
    } finally {
      if (--this.#asking === 0) {
        this.#since = this.#progressAt = performance.now();
        if (!this.#stop.signal.aborted) this.#startTimer();
      }
    }
  }

  #startTimer(): void {
    const now = performance.now();
    const total = this.#since + this.#leftMs - now;
    const idle = this.#progressAt + this.#idleMs - now;
    this.#timer = setTimeout(() => this.#check(), Math.max(1, Math.min(total, idle)));
  }

  #check(): void {
    const now = performance.now();
    const { method } = this.#request;
    if (now >= this.#since + this.#leftMs) {
      this.#fail(`${method} did not finish within ${this.#totalMs} ms; raise \`totalMs\` to allow more`);
    } else if (now >= this.#progressAt + this.#idleMs) {
      this.#fail(`${method} reported no progress for ${this.#idleMs} ms; raise \`idleMs\` to allow more`);
    } else this.#startTimer();
  }

  #fail(message: string): void {
    this.#reject(new ConnectionError("timeout", message));
    // The abort gets another error object. `next` may reject with the reason of the abort, and compose.ts would then
    // take the same object for an error of the upstream, and not add the name of this middleware.
    this.#stop.abort(new Error(message));
  }
}
