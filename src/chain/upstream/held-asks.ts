// What a session-style end asks outside any call, such as for roots right after the handshake. Somebody must answer
// it: a call of a caller that can be asked, if one is under way or comes soon. The question waits for that, a short
// while; then the end is told that nobody is there.

import type { AskOptions, Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { onAbort, ignoreRejection } from "../../core/async.ts";
import { McpError } from "../../protocol/errors.ts";

/** How long a question waits for somebody who can be asked. */
const HOLD_MS = 10_000;
const MOST_HELD = 16;

/** A question on its way to a caller. */
interface Asked {
  readonly by: Context;
  readonly answer: Promise<Result>;
}

export class HeldAsks {
  /** Calls under way whose callers can be asked, the youngest last. */
  readonly #calls = new Set<Context>();
  /** Questions that wait; each is put to whoever comes. */
  readonly #waiting = new Set<(by: Context) => Promise<Result>>();

  /**
   * A call whose caller can be asked. What has waited for one is asked first: a quick call would be over before its
   * caller could answer. Of a long one, which will be there for a while, at the same time.
   */
  async during(context: Context, call: () => Promise<Result>, isLong = false): Promise<Result> {
    this.#calls.add(context);
    try {
      const asked = [...this.#waiting].map((put) => put(context));
      if (asked.length > 0 && !isLong) await Promise.allSettled(asked);
      return await call();
    } finally {
      this.#calls.delete(context);
    }
  }

  async ask(question: Request, options?: AskOptions): Promise<Result> {
    const until = performance.now() + HOLD_MS;
    for (;;) {
      const youngest = [...this.#calls].at(-1);
      const { by, answer } =
        youngest === undefined
          ? await this.#next(question, until, options)
          : { by: youngest, answer: youngest.ask(question, options) };
      try {
        return await answer;
      } catch (error) {
        // Its call ended before its caller could answer: another may come.
        const isOver = !this.#calls.has(by) && options?.signal?.aborted !== true;
        if (!isOver || performance.now() > until) throw error;
      }
    }
  }

  /** The question, put to the next who comes. */
  #next(question: Request, until: number, options: AskOptions | undefined): Promise<Asked> {
    const signal = options?.signal;
    return new Promise<Asked>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        forget();
        this.#waiting.delete(put);
      };
      const refuse = (): void => {
        settle();
        const why = `Nobody is there to answer ${question.method}: no call of a caller that can be asked is under way`;
        reject(McpError.of("missing_capability", why, { requiredCapabilities: {} }));
      };
      const put = (by: Context): Promise<Result> => {
        settle();
        const answer = ignoreRejection(by.ask(question, options));
        resolve({ by, answer });
        return answer;
      };
      const forget = onAbort(signal, () => {
        settle();
        reject(signal?.reason as Error);
      });
      const timer = setTimeout(refuse, Math.max(0, until - performance.now()));
      if (this.#waiting.size >= MOST_HELD) refuse();
      else this.#waiting.add(put);
    });
  }
}
