// Sends requests to a stateless client during a call. The handler waits in memory while its client gets
// `input_required` with a sealed `requestState`, and the client's retry finds the parked call by that state. The state
// expires and is bound to the principal, the method and a digest of the arguments. A round is one `input_required` and
// its retry. Its outcome is kept, so that repeating a retry never runs anything twice. A `requestState` that was sealed
// with another key is not ours. The handler gets it unchanged.

import { onAbort, attempt, ignoreRejection, unref } from "../../core/async.ts";
import type { Context, Handler, Notification, Request, Result, AskOptions } from "../../core/handler.ts";
import { createSeal, digest, type Seal } from "../../core/seal.ts";
import { CANCEL_TOKEN, type CancelToken, type ContextBeforeSignal } from "../../core/cancel.ts";
import { INPUT_METHODS, checkClientRequest } from "../../protocol/client-requests.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { type InFlightCall, ALREADY_ANSWERED } from "../calls/in-flight.ts";
import { checkEncodable } from "../calls/client-requests.ts";
import type { Json } from "../../protocol/revision.ts";

export interface ParkedCallsOptions {
  /** The key that seals states. By default each connection, or HTTP endpoint, has a random one. */
  readonly sealKey?: string | Uint8Array;
  /** How long a call waits for its client to retry. */
  readonly ttlMs?: number;
  /** How many calls may be parked at once. */
  readonly maxParked?: number;
  /** How many calls of one principal may be parked at once. */
  readonly maxParkedPerCaller?: number;
}

/** A request of a stateless client, ready to run. */
export interface StatelessCall {
  readonly revision: string;
  readonly caller: Context["caller"];
  readonly logLevel: Context["logLevel"];
  readonly session: Context["session"];
  readonly inFlight: InFlightCall;
  notify(notification: Notification): void;
}

/** How many times one call may ask for input, so that a client that never answers is not asked forever. */
const MAX_ROUNDS = 100;

interface ParkedCall {
  readonly call: ResumableCall;
  readonly principal: string;
  /** The scopes of the client when the call began. */
  readonly scopes: readonly string[];
  round: number;
  deadline: number;
  readonly answered: Map<number, AnsweredRound>;
}

/** The outcome of an answered round, for all retries that send its state. */
interface AnsweredRound {
  readonly next: Promise<Result>;
  /** Retries that wait for the outcome. The call is cancelled when the last of them is cancelled. */
  readonly waiting: Set<StatelessCall>;
  isSettled: boolean;
}

interface SealedState {
  readonly id: string;
  readonly round: number;
  readonly principal: string;
  readonly digest: string;
}

export class ParkedCalls {
  readonly #seal: Seal;
  readonly #ttlMs: number;
  readonly #max: number;
  readonly #maxPerCaller: number;
  readonly #parked = new Map<string, ParkedCall>();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(options: ParkedCallsOptions = {}) {
    this.#seal = createSeal(options.sealKey);
    this.#ttlMs = options.ttlMs ?? 600_000;
    this.#max = options.maxParked ?? 1_000;
    this.#maxPerCaller = options.maxParkedPerCaller ?? 100;
  }

  /** Runs a request, or resumes the parked call that a retry belongs to. */
  handle(request: Request, call: StatelessCall, handler: Handler): Promise<Result> {
    const state = request.params["requestState"];
    if (typeof state === "string" && state.startsWith(this.#prefix)) return this.#resume(request, call, state);
    return this.#begin(request, call, handler);
  }

  /**
   * The beginning of our states. It contains a fingerprint of the key, so that each of several chained gateways
   * recognizes its own states. It is a getter, so that no key is created before it is needed.
   */
  get #prefix(): string {
    return `round.${this.#seal.id}.`;
  }

  close(): void {
    clearInterval(this.#sweeper);
    for (const { call } of this.#parked.values()) call.cancelToken.abort(new Error("The connection is closed"));
    this.#parked.clear();
  }

  #begin(request: Request, call: StatelessCall, handler: Handler): Promise<Result> {
    let id: string | undefined;
    const given = request.params["requestState"] === undefined ? request.params["inputResponses"] : undefined;
    const { cancelToken } = call.inFlight;
    const resumable = new ResumableCall(
      cancelToken,
      isObject(given) ? given : undefined,
      (notification) => call.notify(notification),
      (inputRequests) => {
        id ??= crypto.randomUUID();
        return this.#park(id, resumable, request, call, inputRequests);
      },
    );
    // Without spreads, which would slow down every call.
    const { revision, caller, logLevel, session } = call;
    const context: Context = cancelToken.attachTo({
      [CANCEL_TOKEN]: cancelToken,
      revision,
      caller,
      logLevel,
      session,
      notify: (notification) => resumable.notify(notification),
      ask: (input, options) => ignoreRejection(ask(input, options)),
    } as ContextBeforeSignal);
    const ask: Context["ask"] = async ({ method, params }, options) => {
      if (!INPUT_METHODS.has(request.method)) {
        throw McpError.of("invalid_request", `A client of this revision cannot be asked during ${request.method}`, {
          method,
        });
      }
      // The newest revision has no ids of elicitations. Untyped code may leave the params out.
      const { elicitationId: _unknown, ...known } = params ?? {};
      const input = { method, params: known };
      checkClientRequest(input, caller.capabilities);
      checkEncodable(method, input.params);
      return resumable.ask(input, options);
    };
    const next = resumable.next();
    resumable.follow(attempt(() => handler(request, context)));
    return next;
  }

  #park(
    id: string,
    resumable: ResumableCall,
    request: Request,
    { caller }: StatelessCall,
    inputRequests: Record<string, Request>,
  ): Result {
    const principal = caller.principal ?? "";
    let parked = this.#parked.get(id);
    if (parked === undefined) {
      this.#checkLimits(principal);
      const scopes = caller.scopes ?? [];
      parked = { call: resumable, principal, scopes, round: 0, deadline: 0, answered: new Map() };
      this.#parked.set(id, parked);
      this.#sweeper ??= unref(setInterval(() => this.#sweep(), Math.min(this.#ttlMs, 5_000)));
    }
    parked.round += 1;
    if (parked.round > MAX_ROUNDS)
      throw McpError.of("rate_limited", `${request.method} has asked for input ${MAX_ROUNDS} times`);
    parked.deadline = performance.now() + this.#ttlMs;
    const sealed: SealedState = { id, round: parked.round, principal, digest: digestOf(request) };
    const requestState = this.#prefix + this.#seal.seal(sealed, this.#ttlMs);
    return { resultType: "input_required", inputRequests, requestState };
  }

  #resume(request: Request, call: StatelessCall, state: string): Promise<Result> {
    const sealed = this.#seal.open(state.slice(this.#prefix.length)) as SealedState | undefined;
    if (sealed === undefined) throw invalidParams("requestState was altered or has expired; call again without it");
    if (sealed.principal !== (call.caller.principal ?? "") || sealed.digest !== digestOf(request)) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    const parked = this.#parked.get(sealed.id);
    if (parked === undefined)
      throw invalidParams("The call that requestState belongs to is no longer waiting; call again without it");
    const requiredScopes = parked.scopes.filter((scope) => call.caller.scopes?.includes(scope) !== true);
    if (requiredScopes.length > 0) {
      // We do not know which scopes the call needs, so the retry must have all scopes of the first request.
      throw McpError.of("access_denied", "The call was begun with scopes that its retry lacks", { requiredScopes });
    }
    const known = parked.answered.get(sealed.round);
    if (known !== undefined) return this.#wait(known, parked.call, call);
    const responses = request.params["inputResponses"] ?? {};
    if (!isObject(responses)) throw invalidParams("inputResponses must be an object of answers by key");
    call.inFlight.cancelToken.signal.throwIfAborted();
    // The client has retried, so the call no longer expires, however long it runs.
    parked.deadline = Infinity;
    const waiting = new Set([call]);
    const next = parked.call.resume(responses, (notification) => {
      const [first] = waiting;
      first?.notify(notification);
    });
    const answered: AnsweredRound = { next, waiting, isSettled: false };
    parked.answered.set(sealed.round, answered);
    // The outcome, even if it is an error, is kept for repeated retries until the state expires.
    const keep = (): void => {
      answered.isSettled = true;
      waiting.clear();
      parked.deadline = performance.now() + this.#ttlMs;
    };
    next.then(keep, keep);
    return this.#wait(answered, parked.call, call);
  }

  /** Waits for the outcome. Cancelling a retry affects only that retry; cancelling the last one cancels the call. */
  #wait(answered: AnsweredRound, resumable: ResumableCall, call: StatelessCall): Promise<Result> {
    const { next, waiting } = answered;
    if (answered.isSettled) return next;
    const { signal } = call.inFlight.cancelToken;
    waiting.add(call);
    return new Promise<Result>((resolve, reject) => {
      const forget = onAbort(signal, () => {
        if (!waiting.delete(call)) return;
        if (waiting.size === 0) resumable.cancelToken.abort(signal.reason);
        else reject(signal.reason as Error);
      });
      next.then(resolve, reject).finally(forget);
    });
  }

  #checkLimits(principal: string): void {
    let waiting = 0;
    let own = 0;
    let finished: string | undefined;
    for (const [id, parked] of this.#parked) {
      if (parked.call.isFinished) finished ??= id;
      else {
        waiting += 1;
        if (parked.principal === principal) own += 1;
      }
    }
    // Finished calls are kept only for repeated retries, so the oldest can be evicted.
    if (finished !== undefined && this.#parked.size >= 2 * this.#max) this.#parked.delete(finished);
    if (waiting >= this.#max || own >= this.#maxPerCaller) {
      throw McpError.of("rate_limited", "Too many calls wait for their clients' answers; finish some of them first");
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const [id, { call, deadline }] of this.#parked) {
      if (deadline > now) continue;
      this.#parked.delete(id);
      call.cancelToken.abort(new Error("The client did not come back in time"));
    }
    if (this.#parked.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** Leaves out the params that may differ in a retry. */
function digestOf({ method, params }: Request): string {
  const { _meta, inputResponses: _answers, requestState: _state, ...rest } = params;
  return digest([method, rest]);
}

/** Input requests that are made within this time are sent in one round. */
const GATHER_MS = 3;
/** How many notifications are kept while there is no request to send them with. */
const MAX_KEPT_NOTIFICATIONS = 100;

interface InputRequest {
  readonly request: Request;
  /** Removes the listener on the signal of the input request. */
  readonly forget: () => void;
  readonly resolve: (answer: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** The client's request that currently waits for the call. */
interface Waiter {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

function isAnswer(value: unknown): value is Result {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parkFinished(): never {
  throw new Error(ALREADY_ANSWERED);
}

/**
 * A call that can outlive the request that began it. While its handler waits for input, the request is answered
 * `input_required`; the retry attaches to the same call and waits for what comes next.
 */
class ResumableCall {
  readonly cancelToken: CancelToken;
  readonly #inputs = new Map<string, InputRequest>();
  /** Answers that the client sent with its first request. */
  #given: Json | undefined;
  /** Makes the `input_required` result of a round; may throw, which cancels the call. */
  #park: (inputRequests: Record<string, Request>) => Result;
  #outcome: { result: Result } | { error: unknown } | undefined;
  #waiter: Waiter | undefined;
  #notify: ((notification: Notification) => void) | undefined;
  #kept: Notification[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #nextKey = 1;
  #isListening = false;

  constructor(
    cancelToken: CancelToken,
    given: Json | undefined,
    notify: (notification: Notification) => void,
    park: (inputRequests: Record<string, Request>) => Result,
  ) {
    this.cancelToken = cancelToken;
    this.#given = given;
    this.#notify = notify;
    this.#park = park;
  }

  get isFinished(): boolean {
    return this.#outcome !== undefined;
  }

  /** Takes the outcome of the handler when it settles. */
  follow(outcome: Promise<Result>): void {
    outcome.then(
      (result) => this.#end({ result }),
      (error: unknown) => this.#end({ error }),
    );
  }

  notify(notification: Notification): void {
    if (this.#notify !== undefined) this.#notify(notification);
    else if (this.#outcome === undefined) this.#keep(notification);
  }

  ask(request: Request, options: AskOptions | undefined): Promise<Result> {
    let key = options?.key ?? String(this.#nextKey++);
    const given = this.#given !== undefined && Object.hasOwn(this.#given, key) ? this.#given[key] : undefined;
    if (isAnswer(given)) return Promise.resolve(given);
    while (this.#inputs.has(key)) key = `${options?.key ?? ""}${this.#nextKey++}`;
    const { cancelToken } = this;
    if (!this.#isListening) {
      this.#isListening = true;
      onAbort(cancelToken.signal, () => this.#rejectInputs(cancelToken.signal.reason));
    }
    return new Promise<Result>((resolve, reject) => {
      const signal = options?.signal;
      const aborted = cancelToken.aborted ? cancelToken.signal : signal?.aborted === true ? signal : undefined;
      if (aborted !== undefined || this.#outcome !== undefined) {
        reject(aborted === undefined ? new Error(ALREADY_ANSWERED) : aborted.reason);
        return;
      }
      const forget = onAbort(signal, () => {
        if (this.#inputs.delete(key)) reject(signal?.reason);
      });
      this.#inputs.set(key, { request, forget, resolve, reject });
      this.#gather();
    });
  }

  /** Resolves to the next result: the final one, or another `input_required`. */
  next(): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      this.#waiter = { resolve, reject };
      if (this.#outcome !== undefined) this.#settle();
    });
  }

  /** Takes the answers of a retry; input requests that are still open are sent again. */
  resume(answers: Json, notify: (notification: Notification) => void): Promise<Result> {
    this.#notify = notify;
    for (const notification of this.#kept.splice(0)) notify(notification);
    for (const [key, input] of this.#inputs) {
      const answer = Object.hasOwn(answers, key) ? answers[key] : undefined;
      if (!isAnswer(answer)) continue;
      this.#inputs.delete(key);
      input.forget();
      input.resolve(answer);
    }
    const next = this.next();
    if (this.#inputs.size > 0) this.#gather();
    return next;
  }

  #gather(): void {
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      if (this.#waiter === undefined || this.#inputs.size === 0) return;
      const waiter = this.#waiter;
      this.#waiter = undefined;
      this.#notify = undefined;
      try {
        waiter.resolve(this.#park(Object.fromEntries([...this.#inputs].map(([key, { request }]) => [key, request]))));
      } catch (error) {
        waiter.reject(error);
        this.cancelToken.abort(error);
      }
    }, GATHER_MS);
  }

  /** Keeps a notification until the client retries. Of progress notifications, only the newest is kept. */
  #keep(notification: Notification): void {
    if (notification.method === "notifications/progress") {
      this.#kept = this.#kept.filter(({ method }) => method !== notification.method);
    }
    this.#kept.push(notification);
    if (this.#kept.length > MAX_KEPT_NOTIFICATIONS) this.#kept.shift();
  }

  #rejectInputs(reason: unknown): void {
    clearTimeout(this.#gathering);
    for (const { forget, reject } of this.#inputs.values()) {
      forget();
      reject(reason);
    }
    this.#inputs.clear();
  }

  #end(outcome: { result: Result } | { error: unknown }): void {
    this.#outcome = outcome;
    // Most calls ask nothing, and creating the error with its stack would cost more than the rest of the call.
    if (this.#inputs.size > 0) this.#rejectInputs(new Error(ALREADY_ANSWERED));
    this.#kept = [];
    // The call may be kept for repeated retries, so release what its client sent, which may be large.
    this.#given = undefined;
    this.#park = parkFinished;
    if (this.#waiter !== undefined) this.#settle();
  }

  #settle(): void {
    const waiter = this.#waiter;
    const outcome = this.#outcome;
    this.#waiter = undefined;
    this.#notify = undefined;
    if (waiter === undefined || outcome === undefined) return;
    if ("error" in outcome) waiter.reject(outcome.error);
    else waiter.resolve(outcome.result);
  }
}
