// Mid-call questions as `input_required` rounds, for exchange-style callers. A handler that asks is left
// waiting in memory; the caller gets the questions and a sealed `requestState`, and its retry finds the
// waiting run again. The state expires and is bound to the principal, the method and a digest of the
// arguments. A round that was answered once keeps its outcome: repeating it never runs anything twice.
// A `requestState` that this front did not seal belongs to whoever is behind it and passes untouched.

import { onAbort, attempt, ignoreRejection, unref } from "../../core/async.ts";
import type { Context, Handler, Notification, Request, Result, AskOptions } from "../../core/handler.ts";
import { createSeal, digest, type Seal } from "../../core/seal.ts";
import { CANCEL_TOKEN, type CancelToken } from "../../core/cancel.ts";
import { ASKABLE, checkAsk } from "../../protocol/asks.ts";
import { isObject } from "../../core/objects.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { type Flight, ANSWERED } from "../calls/in-flight.ts";
import { checkSayable } from "../calls/client-requests.ts";
import type { Json } from "../../protocol/revision.ts";

export interface RoundsOptions {
  /** Seals states; random for each process unless it is given. */
  readonly sealKey?: string | Uint8Array;
  /** How long a call waits for its caller to come back. */
  readonly ttlMs?: number;
  /** Calls that may wait at once, in all and for each principal. */
  readonly maxParked?: number;
  readonly maxParkedPerCaller?: number;
}

/** A request of an exchange-style caller, ready to be run. */
export interface Call {
  readonly revision: string;
  readonly caller: Context["caller"];
  readonly logLevel: Context["logLevel"];
  readonly flight: Flight;
  notify(notification: Notification): void;
}

/** A caller that answers nothing is asked again, but not for ever. */
const MOST_ROUNDS = 100;

interface Parked {
  readonly run: Run;
  readonly principal: string;
  /** What its caller was allowed to do when it began. */
  readonly scopes: readonly string[];
  round: number;
  deadline: number;
  readonly answered: Map<number, Answered>;
}

/** What an answered round leads to, for all retries that bring its state. */
interface Answered {
  readonly next: Promise<Result>;
  /** Retries that wait for it: the run goes on as long as there is one. */
  readonly waiting: Set<Call>;
  isOver: boolean;
}

interface Sealed {
  readonly run: string;
  readonly round: number;
  readonly principal: string;
  readonly digest: string;
}

export class Rounds {
  readonly #seal: Seal;
  readonly #ttlMs: number;
  readonly #max: number;
  readonly #maxPerCaller: number;
  readonly #parked = new Map<string, Parked>();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: RoundsOptions = {}) {
    this.#seal = createSeal(options.sealKey);
    this.#ttlMs = options.ttlMs ?? 600_000;
    this.#max = options.maxParked ?? 1_000;
    this.#maxPerCaller = options.maxParkedPerCaller ?? 100;
  }

  /** Runs a request, or lets a retry go on with the run that waits for it. */
  handle(request: Request, call: Call, handler: Handler): Promise<Result> {
    const state = request.params["requestState"];
    if (typeof state === "string" && state.startsWith(this.#prefix)) return this.#resume(request, call, state);
    return this.#begin(request, call, handler);
  }

  /** Names the key, so that fronts behind each other know their own states; a key costs nothing until it is used. */
  get #prefix(): string {
    return `round.${this.#seal.id}.`;
  }

  close(): void {
    clearInterval(this.#sweeper);
    for (const { run } of this.#parked.values()) run.stop.abort(new Error("The connection is closed"));
    this.#parked.clear();
  }

  #begin(request: Request, call: Call, handler: Handler): Promise<Result> {
    let id: string | undefined;
    const given = request.params["requestState"] === undefined ? request.params["inputResponses"] : undefined;
    const { stop } = call.flight;
    const run = new Run(
      stop,
      isObject(given) ? given : undefined,
      (event) => call.notify(event),
      (inputRequests) => {
        id ??= crypto.randomUUID();
        return this.#park(id, run, request, call, inputRequests);
      },
    );
    const context: Context = stop.lend({
      [CANCEL_TOKEN]: stop,
      revision: call.revision,
      caller: call.caller,
      ...(call.logLevel === undefined ? undefined : { logLevel: call.logLevel }),
      notify: (notification) => run.notify(notification),
      ask: (question, options) => ignoreRejection(ask(question, options)),
    });
    const ask: Context["ask"] = async ({ method, params: given }, options) => {
      if (!ASKABLE.has(request.method)) {
        throw McpError.of("invalid_request", `A caller of this revision cannot be asked during ${request.method}`, {
          method,
        });
      }
      // Whoever writes JavaScript may leave the params out.
      const question = { method, params: given ?? {} };
      checkAsk(question, call.caller.capabilities);
      checkSayable(method, question.params);
      return run.ask(question, options);
    };
    const next = run.next();
    run.follow(attempt(() => handler(request, context)));
    return next;
  }

  #park(id: string, run: Run, request: Request, call: Call, inputRequests: Record<string, Request>): Result {
    const principal = call.caller.principal ?? "";
    let parked = this.#parked.get(id);
    if (parked === undefined) {
      this.#checkRoom(principal);
      parked = { run, principal, scopes: call.caller.scopes ?? [], round: 0, deadline: 0, answered: new Map() };
      this.#parked.set(id, parked);
      this.#sweeper ??= unref(setInterval(() => this.#sweep(), Math.min(this.#ttlMs, 5_000)));
    }
    parked.round += 1;
    if (parked.round > MOST_ROUNDS)
      throw McpError.of("rate_limited", `${request.method} has asked for ${MOST_ROUNDS} rounds`);
    parked.deadline = performance.now() + this.#ttlMs;
    const sealed: Sealed = { run: id, round: parked.round, principal, digest: digestOf(request) };
    const requestState = this.#prefix + this.#seal.seal(sealed, this.#ttlMs);
    return { resultType: "input_required", inputRequests, requestState };
  }

  #resume(request: Request, call: Call, state: string): Promise<Result> {
    const sealed = this.#seal.open(state.slice(this.#prefix.length)) as Sealed | undefined;
    if (sealed === undefined) throw invalidParams("requestState was altered or has expired; call again without it");
    if (sealed.principal !== (call.caller.principal ?? "") || sealed.digest !== digestOf(request)) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    const parked = this.#parked.get(sealed.run);
    if (parked === undefined)
      throw invalidParams("The call that requestState belongs to no longer waits; call again without it");
    const requiredScopes = parked.scopes.filter((scope) => call.caller.scopes?.includes(scope) !== true);
    if (requiredScopes.length > 0) {
      // Nobody here knows which of them the call needs; a token that has lost some of them may not go on with it.
      throw McpError.of("access_denied", "The call was begun with scopes that its retry lacks", { requiredScopes });
    }
    const known = parked.answered.get(sealed.round);
    if (known !== undefined) return this.#wait(known, parked.run, call);
    const responses = request.params["inputResponses"] ?? {};
    if (!isObject(responses)) throw invalidParams("inputResponses must be an object of answers by key");
    call.flight.stop.signal.throwIfAborted();
    // Its caller is back: it is no longer waited for, however long it works.
    parked.deadline = Infinity;
    const waiting = new Set([call]);
    const next = parked.run.resume(responses, (event) => {
      const [first] = waiting;
      first?.notify(event);
    });
    const answered: Answered = { next, waiting, isOver: false };
    parked.answered.set(sealed.round, answered);
    // Kept for repetitions, for as long as a state lives; an error that nobody repeats must not look unhandled.
    const keep = (): void => {
      answered.isOver = true;
      waiting.clear();
      parked.deadline = performance.now() + this.#ttlMs;
    };
    next.then(keep, keep);
    return this.#wait(answered, parked.run, call);
  }

  /** One that is cancelled leaves the others alone; the last takes the run with it. */
  #wait(answered: Answered, run: Run, call: Call): Promise<Result> {
    const { next, waiting } = answered;
    if (answered.isOver) return next;
    const { signal } = call.flight.stop;
    waiting.add(call);
    return new Promise<Result>((resolve, reject) => {
      const forget = onAbort(signal, () => {
        if (!waiting.delete(call)) return;
        if (waiting.size === 0) run.stop.abort(signal.reason);
        else reject(signal.reason as Error);
      });
      next.then(resolve, reject).finally(forget);
    });
  }

  #checkRoom(principal: string): void {
    let waiting = 0;
    let mine = 0;
    let finished: string | undefined;
    for (const [id, parked] of this.#parked) {
      if (parked.run.finished) finished ??= id;
      else {
        waiting += 1;
        if (parked.principal === principal) mine += 1;
      }
    }
    // A finished run is kept only for callers who repeat themselves: the oldest makes room.
    if (finished !== undefined && this.#parked.size >= 2 * this.#max) this.#parked.delete(finished);
    if (waiting >= this.#max || mine >= this.#maxPerCaller) {
      throw McpError.of("rate_limited", "Too many calls wait for their callers' answers; finish some of them first");
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const [id, { run, deadline }] of this.#parked) {
      if (deadline > now) continue;
      this.#parked.delete(id);
      run.stop.abort(new Error("The caller did not come back in time"));
    }
    if (this.#parked.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** Blind to what a retry adds. */
function digestOf({ method, params }: Request): string {
  const { _meta, inputResponses: _answers, requestState: _state, ...rest } = params;
  return digest([method, rest]);
}

// One call of an exchange-style caller that may outlive the request that began it. While its handler
// waits for an answer, the request is answered `input_required`; the retry attaches itself to the same
// run and waits for what comes next. A run knows nothing of states or callers' rights: rounds.ts does.


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
  readonly stop: CancelToken;
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
    stop: CancelToken,
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
