// One call of an exchange-style caller that may outlive the request that began it. While its handler
// waits for an answer, the request is answered `input_required`; the retry attaches itself to the same
// run and waits for what comes next. A run knows nothing of states or callers' rights: rounds.ts does.

import { onAbort } from "../../core/async.ts";
import type { AskOptions } from "../../core/context.ts";
import type { Notification, Request, Result } from "../../core/handler.ts";
import type { Stop } from "../../core/stop.ts";
import type { Json } from "../../protocol/revision.ts";
import { ANSWERED } from "../calls/outcome.ts";

/** Questions that are put within this time go out together, in one round. */
const GATHER_MS = 3;
/** Log messages kept while no request is there to carry them. */
const KEPT_LOGS = 100;

interface Question {
  readonly request: Request;
  /** Its own signal is no longer waited for. */
  readonly forget: () => void;
  readonly resolve: (answer: Result) => void;
  readonly reject: (error: unknown) => void;
}

interface Turn {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Answers come from the caller: only an object can be one. */
function isAnswer(value: unknown): value is Result {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Nothing is asked by a run that is over. */
function isOver(): never {
  throw new Error(ANSWERED);
}

export class Run {
  readonly stop: Stop;
  readonly #questions = new Map<string, Question>();
  #given: Json | undefined;
  /** Makes the `input_required` result of a round; may throw, which ends the run. */
  #park: (inputRequests: Record<string, Request>) => Result;
  #outcome: { result: Result } | { error: unknown } | undefined;
  #turn: Turn | undefined;
  #sink: ((notification: Notification) => void) | undefined;
  #kept: Notification[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #nextKey = 1;
  #listening = false;

  constructor(
    stop: Stop,
    given: Json | undefined,
    sink: (notification: Notification) => void,
    park: (inputRequests: Record<string, Request>) => Result,
  ) {
    this.stop = stop;
    this.#given = given;
    this.#sink = sink;
    this.#park = park;
  }

  get finished(): boolean {
    return this.#outcome !== undefined;
  }

  /** The handler's promise, whenever it settles. */
  follow(outcome: Promise<Result>): void {
    outcome.then(
      (result) => this.#end({ result }),
      (error: unknown) => this.#end({ error }),
    );
  }

  notify(notification: Notification): void {
    if (this.#sink !== undefined) this.#sink(notification);
    else if (this.#outcome === undefined) this.#keep(notification);
  }

  ask(request: Request, options: AskOptions | undefined): Promise<Result> {
    let key = options?.key ?? String(this.#nextKey++);
    const given = this.#given !== undefined && Object.hasOwn(this.#given, key) ? this.#given[key] : undefined;
    if (isAnswer(given)) return Promise.resolve(given);
    while (this.#questions.has(key)) key = `${options?.key ?? ""}${this.#nextKey++}`;
    if (!this.#listening) {
      this.#listening = true;
      onAbort(this.stop.signal, () => this.#dropQuestions(this.stop.signal.reason));
    }
    return new Promise<Result>((resolve, reject) => {
      const signal = options?.signal;
      const over = this.stop.aborted ? this.stop.signal : signal?.aborted === true ? signal : undefined;
      if (over !== undefined || this.#outcome !== undefined) {
        reject(over === undefined ? new Error(ANSWERED) : over.reason);
        return;
      }
      const forget = onAbort(signal, () => {
        if (this.#questions.delete(key)) reject(signal?.reason);
      });
      this.#questions.set(key, { request, forget, resolve, reject });
      this.#gather();
    });
  }

  /** What comes next: the result, the error, or another `input_required`. */
  next(): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#turn = { resolve, reject };
      if (this.#outcome !== undefined) this.#settle();
    });
  }

  /** A retry came: its answers go to whoever asked; what is still open is asked again. */
  resume(answers: Json, sink: (notification: Notification) => void): Promise<Result> {
    this.#sink = sink;
    for (const notification of this.#kept.splice(0)) sink(notification);
    for (const [key, question] of this.#questions) {
      const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
      if (!isAnswer(answer)) continue;
      this.#questions.delete(key);
      question.forget();
      question.resolve(answer);
    }
    const next = this.next();
    if (this.#questions.size > 0) this.#gather();
    return next;
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      if (this.#turn === undefined || this.#questions.size === 0) return;
      const turn = this.#turn;
      this.#turn = undefined;
      this.#sink = undefined;
      try {
        turn.resolve(this.#park(Object.fromEntries([...this.#questions].map(([key, { request }]) => [key, request]))));
      } catch (error) {
        turn.reject(error);
        this.stop.abort(error);
      }
    }, GATHER_MS);
  }

  #keep(notification: Notification): void {
    // Of progress only the newest counts; of logs the newest few.
    if (notification.method === "notifications/progress") {
      this.#kept = this.#kept.filter(({ method }) => method !== notification.method);
    }
    this.#kept.push(notification);
    if (this.#kept.length > KEPT_LOGS) this.#kept.shift();
  }

  #dropQuestions(reason: unknown): void {
    clearTimeout(this.#gathering);
    for (const { forget, reject } of this.#questions.values()) {
      forget();
      reject(reason);
    }
    this.#questions.clear();
  }

  #end(outcome: { result: Result } | { error: unknown }): void {
    this.#outcome = outcome;
    // Most runs ask nothing, and an error with its stack costs more than the rest of them.
    if (this.#questions.size > 0) this.#dropQuestions(new Error(ANSWERED));
    this.#kept = [];
    // It may be kept for repetitions long after: what its caller sent may be large, and is not.
    this.#given = undefined;
    this.#park = isOver;
    if (this.#turn !== undefined) this.#settle();
  }

  #settle(): void {
    const turn = this.#turn;
    const outcome = this.#outcome;
    this.#turn = undefined;
    this.#sink = undefined;
    if (turn === undefined || outcome === undefined) return;
    if ("error" in outcome) turn.reject(outcome.error);
    else turn.resolve(outcome.result);
  }
}
