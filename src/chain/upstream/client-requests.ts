// Finds the caller that answers a request of an upstream to its client (elicitation, sampling, roots). A request
// outside of any call waits for a call whose caller can answer. If the upstream does not say to which call a request
// belongs, calls whose callers can be asked run one after another, so that it can only belong to the running call.

import { deferred, ignoreRejection, onAbort, unref, withTimeout } from "../../core/async.ts";
import type { AskOptions, Context, Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";

/** How long a request waits for a caller that can answer. */
const STRAY_REQUEST_TIMEOUT_MS = 10_000;
const MAX_WAITING = 16;

/** The error for a request of the upstream that no client can be given. */
export function refusal(message: string): McpError {
  return McpError.of("missing_capability", message, { requiredCapabilities: {} });
}

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
  async runCall(context: Context, call: () => Promise<Result>, isLong = false): Promise<Result> {
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

  async #waitForCaller(question: Request, until: number, options: AskOptions | undefined): Promise<SentRequest> {
    const { method } = question;
    const refused = refusal(`No client can answer ${method}: no call from a client that can answer is running`);
    if (this.#waiting.size >= MAX_WAITING) throw refused;
    const signal = options?.signal ?? new AbortController().signal;
    const sent = deferred<SentRequest>();
    const send = (via: Context): Promise<Result> => {
      this.#waiting.delete(send);
      const answer = ignoreRejection(via.ask(question, options));
      sent.resolve({ via, answer });
      return answer;
    };
    this.#waiting.add(send);
    try {
      return await withTimeout(Math.max(0, until - performance.now()), signal, () => sent.promise);
    } catch (error) {
      throw signal.aborted ? error : refused;
    } finally {
      this.#waiting.delete(send);
    }
  }
}

/** If a caller takes longer to answer, other calls get another session. Programs answer at once, people do not. */
const PARKED_AFTER_MS = 2_000;

/** Tells the pool that this session cannot take the call. The call was not sent, so another session can take it. */
export const SESSION_BUSY: Error = new Error("The session cannot take the call");

/**
 * Runs calls one after another. A call may have to wait a long time for its caller's answer. After a while it counts as
 * parked, and all other calls get another session. That session does not have the state that earlier calls left.
 */
export class AskableCallQueue {
  #running = 0;
  /** How many of the running calls belong to each run of code. */
  readonly #runs = new Map<string, number>();
  /** How many requests to the caller of the running call are unanswered. */
  #asking = 0;
  #parkTimer: NodeJS.Timeout | undefined;
  #isParked = false;
  /** For each waiting call, functions that start it and that send it to another session. */
  readonly #waiting = new Set<{ start(): void; leave(): void }>();

  /** Whether the running call has waited so long for its caller that others should not wait for it. */
  get isParked(): boolean {
    return this.#isParked;
  }

  /**
   * Runs the work when all earlier work is done, or at once if `waits` is false. Rejects with the signal's reason if it
   * is aborted before that, and with SESSION_BUSY if earlier work is parked. `run`: the run of code that makes the call.
   */
  async run<T>(signal: AbortSignal, work: () => Promise<T>, waits = true, run?: string): Promise<T> {
    signal.throwIfAborted();
    if (this.#isParked) throw SESSION_BUSY;
    if (this.#running === 0 || !waits) this.#running += 1;
    else await this.#wait(signal);
    this.#count(run, 1);
    try {
      return await work();
    } finally {
      this.#running -= 1;
      this.#count(run, -1);
      const [next] = this.#waiting;
      if (this.#running === 0) next?.start();
    }
  }

  #count(run: string | undefined, change: number): void {
    if (run === undefined) return;
    const count = (this.#runs.get(run) ?? 0) + change;
    if (count === 0) this.#runs.delete(run);
    else this.#runs.set(run, count);
  }

  /**
   * Runs `ask`, which sends a request to the caller of the running call. If all running calls belong to one run of code,
   * it does not matter which of them asks, since the caller of the run answers.
   */
  async asking<T>(ask: () => Promise<T>): Promise<T> {
    const [ofOneRun] = this.#runs.values();
    if (this.#running > 1 && ofOneRun !== this.#running) {
      throw refusal("Several calls are running, and the upstream does not say to which of them its request belongs");
    }
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
    for (const waiting of [...this.#waiting]) waiting.leave();
  }

  /**
   * Waits until `start` is called, which counts this call as running. A call that leaves is removed at once: if it were
   * started in the same tick, it would count as running forever.
   */
  async #wait(signal: AbortSignal): Promise<void> {
    const turn = deferred();
    const waiting = { start: (): void => undefined, leave: (): void => undefined };
    const leave = (error: unknown): void => {
      if (this.#waiting.delete(waiting)) turn.reject(error);
    };
    waiting.start = () => {
      if (!this.#waiting.delete(waiting)) return;
      this.#running += 1;
      turn.resolve();
    };
    waiting.leave = () => leave(SESSION_BUSY);
    this.#waiting.add(waiting);
    const forget = onAbort(signal, () => leave(signal.reason));
    await turn.promise.finally(forget);
  }
}
