// Finds the caller that answers a request of an upstream to its client (elicitation, sampling, roots). A request
// outside of any call waits for a call whose caller can answer. A stateless caller gets a request as the result of the
// call that the request belongs to. If the upstream does not say which call that is, calls of stateless callers that
// can answer run one after another, so that the request can only belong to the running call.

import { ignoreRejection, onAbort, unref } from "../../core/async.ts";
import type { AskOptions, Context, Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";

/** How long a request waits for a caller that can answer. */
const STRAY_REQUEST_TIMEOUT_MS = 10_000;
const MAX_WAITING = 16;

interface SentRequest {
  /** The call whose caller was asked. */
  readonly via: Context;
  readonly answer: Promise<Result>;
}

/** Handles requests that a session-style upstream sends outside of any call, such as `roots/list` after its start. */
export class StrayRequests {
  /** Running calls whose callers can be asked, newest last. */
  readonly #calls = new Set<Context>();
  /** Waiting requests. Each is sent to the caller of the next call. */
  readonly #waiting = new Set<(via: Context) => Promise<Result>>();

  /**
   * Runs a call whose caller can be asked. Waiting requests are answered first, because a short call would end before
   * its caller could answer. A long call does not wait for them.
   */
  async during(context: Context, call: () => Promise<Result>, isLong = false): Promise<Result> {
    this.#calls.add(context);
    try {
      const sent = [...this.#waiting].map((send) => send(context));
      if (sent.length > 0 && !isLong) await Promise.allSettled(sent);
      return await call();
    } finally {
      this.#calls.delete(context);
    }
  }

  async ask(question: Request, options?: AskOptions): Promise<Result> {
    const until = performance.now() + STRAY_REQUEST_TIMEOUT_MS;
    for (;;) {
      const newest = [...this.#calls].at(-1);
      const { via, answer } =
        newest === undefined
          ? await this.#waitForCaller(question, until, options)
          : { via: newest, answer: newest.ask(question, options) };
      try {
        return await answer;
      } catch (error) {
        // If the call ended before its caller could answer, wait for another call.
        const isOver = !this.#calls.has(via) && options?.signal?.aborted !== true;
        if (!isOver || performance.now() > until) throw error;
      }
    }
  }

  #waitForCaller(question: Request, until: number, options: AskOptions | undefined): Promise<SentRequest> {
    const signal = options?.signal;
    return new Promise<SentRequest>((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(timer);
        forget();
        this.#waiting.delete(send);
      };
      const refuse = (): void => {
        settle();
        const message = `No client can answer ${question.method}: no call from a client that can answer is running`;
        reject(McpError.of("missing_capability", message, { requiredCapabilities: {} }));
      };
      const send = (via: Context): Promise<Result> => {
        settle();
        const answer = ignoreRejection(via.ask(question, options));
        resolve({ via, answer });
        return answer;
      };
      const forget = onAbort(signal, () => {
        settle();
        reject(signal?.reason as Error);
      });
      const timer = setTimeout(refuse, Math.max(0, until - performance.now()));
      if (this.#waiting.size >= MAX_WAITING) refuse();
      else this.#waiting.add(send);
    });
  }
}

/** How long a call waits for the calls before it. */
const QUEUE_TIMEOUT_MS = 60_000;
/** If a caller takes longer to answer, other calls get another session. Programs answer at once, people do not. */
const PARKED_AFTER_MS = 2_000;

/** Tells the pool that this session cannot take the call. The call was not sent, so another session can take it. */
export const SESSION_BUSY: Error = new Error("The session cannot take the call");

/**
 * Runs calls one after another. A call may have to wait a long time for its caller's answer. After a while it counts as
 * parked, and all other calls get another session. That session does not have the state that earlier calls left.
 */
export class AskableCallQueue {
  #last: Promise<void> = Promise.resolve();
  #waiting = 0;
  /** How many requests to the caller of the running call are unanswered. */
  #asking = 0;
  #parkTimer: NodeJS.Timeout | undefined;
  #isParked = false;
  readonly #leaving = new Set<() => void>();

  /** Whether the running call has waited so long for its caller that others should not wait for it. */
  get isParked(): boolean {
    return this.#isParked;
  }

  /** Runs `ask`, which sends a request to the caller of the running call. */
  async asking<T>(ask: () => Promise<T>): Promise<T> {
    if (this.#asking === 0) this.#parkTimer = unref(setTimeout(() => this.#park(), PARKED_AFTER_MS));
    this.#asking += 1;
    try {
      return await ask();
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) {
        clearTimeout(this.#parkTimer);
        this.#isParked = false;
      }
    }
  }

  #park(): void {
    this.#isParked = true;
    for (const leave of [...this.#leaving]) leave();
  }

  /** Runs the work when all earlier work is done. Rejects with the signal's reason if it is aborted before that. */
  async run<T>(signal: AbortSignal, upstream: string, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.isParked) throw SESSION_BUSY;
    const before = this.#last;
    let done = (): void => undefined;
    const turn = new Promise<void>((resolve) => {
      done = resolve;
    });
    // If this call gives up early, later calls must still wait for the calls before it.
    this.#last = before.then(() => turn);
    this.#waiting += 1;
    try {
      if (this.#waiting > 1) await this.#wait(before, signal, upstream);
      return await work();
    } finally {
      this.#waiting -= 1;
      done();
    }
  }

  async #wait(before: Promise<void>, signal: AbortSignal, upstream: string): Promise<void> {
    let forget = (): void => undefined;
    let timer: NodeJS.Timeout | undefined;
    let leave = (): void => undefined;
    const late = new Promise<never>((_, reject) => {
      leave = () => reject(SESSION_BUSY);
      this.#leaving.add(leave);
      forget = onAbort(signal, () => reject(signal.reason as Error));
      timer = setTimeout(() => {
        const why = "another call is running, and the upstream does not say to which call its requests belong";
        const advice = "try again later, or set `share` to per-request";
        reject(
          McpError.of("rate_limited", `${upstream} was busy for ${QUEUE_TIMEOUT_MS / 1_000} s: ${why}; ${advice}`),
        );
      }, QUEUE_TIMEOUT_MS);
    });
    try {
      await Promise.race([before, late]);
    } finally {
      clearTimeout(timer);
      forget();
      this.#leaving.delete(leave);
    }
  }
}
