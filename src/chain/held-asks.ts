// What a session-style end asks outside any call, such as for roots right after the handshake. Somebody must answer
// it: a call of a caller that can be asked, if one is under way or comes soon. The question waits for that, a short
// while; then the end is told that nobody is there.

import type { AskOptions, Context } from "../core/context.ts";
import type { Request, Result } from "../core/handler.ts";
import { onAbort } from "../core/abort.ts";
import { McpError } from "../protocol/errors.ts";

/** How long a question waits for somebody who can be asked. */
const HOLD_MS = 10_000;
const MOST_HELD = 16;

export class HeldAsks {
  /** Calls under way whose callers can be asked, the youngest last. */
  readonly #calls = new Set<Context>();
  readonly #waiting = new Set<() => void>();

  /** A call whose caller can be asked. */
  async during(context: Context, call: () => Promise<Result>): Promise<Result> {
    this.#calls.add(context);
    for (const wake of [...this.#waiting]) wake();
    try {
      return await call();
    } finally {
      this.#calls.delete(context);
    }
  }

  async ask(question: Request, options?: AskOptions): Promise<Result> {
    const until = performance.now() + HOLD_MS;
    for (;;) {
      const context = [...this.#calls].at(-1) ?? (await this.#next(question, until, options?.signal));
      try {
        return await context.ask(question, options);
      } catch (error) {
        // Its call ended before its caller could answer: another may come.
        const isOver = !this.#calls.has(context) && options?.signal?.aborted !== true;
        if (!isOver || performance.now() > until) throw error;
      }
    }
  }

  #next({ method }: Request, until: number, signal: AbortSignal | undefined): Promise<Context> {
    return new Promise<Context>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        forget();
        this.#waiting.delete(wake);
      };
      const refuse = (): void => {
        settle();
        const why = `Nobody is there to answer ${method}: no call of a caller that can be asked is under way`;
        reject(McpError.of("missing_capability", why, { requiredCapabilities: {} }));
      };
      const wake = (): void => {
        settle();
        const context = [...this.#calls].at(-1);
        if (context === undefined) refuse();
        else resolve(context);
      };
      const forget = onAbort(signal, () => {
        settle();
        reject(signal?.reason as Error);
      });
      const timer = setTimeout(refuse, Math.max(0, until - performance.now()));
      if (this.#waiting.size >= MOST_HELD) refuse();
      else this.#waiting.add(wake);
    });
  }
}
