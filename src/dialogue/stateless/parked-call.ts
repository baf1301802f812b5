// A call that can outlive the request that began it. While its handler waits for input, the request is answered
// `input_required`; the retry attaches to the same call and waits for what comes next. Separate from parked-calls.ts,
// which finds it again, because a server loads it only when a handler asks a stateless client.

import { onAbort } from "../../core/async.ts";
import type { CancelToken } from "../../core/cancel.ts";
import type { AskOptions, Notification, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { PendingInputs } from "../../tasks/pending-inputs.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import { ALREADY_ANSWERED, type ServerCall } from "../calls/call-table.ts";

/** The outcome of an answered round, for all retries that send its state. */
interface AnsweredRound {
  readonly next: Promise<Result>;
  /** Retries that wait for the outcome. The call is cancelled when the last of them is cancelled. */
  readonly waiting: Set<ServerCall>;
  isSettled: boolean;
}

/** Input requests that are made within this time are sent in one round. */
const GATHER_MS = 3;
/** How many notifications are kept while there is no request to send them with. */
const MAX_KEPT_NOTIFICATIONS = 100;

export class ParkedCall {
  readonly id: string = crypto.randomUUID();
  readonly principal: string;
  readonly #scopes: readonly string[];
  readonly #answered = new Map<number, AnsweredRound>();
  round = 0;
  /** Whether it takes one of the places of calls whose handlers still run. */
  hasPlace = false;
  readonly #cancelToken: CancelToken;
  /** What observes the call, and so its retries. */
  #watchers: ServerCall["watchers"];
  readonly #inputs = new PendingInputs(() => this.#gather());
  /** Answers that the client sent with its first request. */
  #responses: Json;
  /** Makes the `input_required` result of a round; may throw, which cancels the call. */
  #park: ((parked: ParkedCall, inputRequests: Json) => Result) | undefined;
  #outcome: Promise<Result> | undefined;
  /** Answers the client's request that currently waits for the call. */
  #waiter: ((next: Result | Promise<Result>) => void) | undefined;
  #notify: ((notification: Notification) => void) | undefined;
  #keptNotifications: Notification[] = [];
  #gathering: NodeJS.Timeout | undefined;
  #unnamed = 0;

  constructor(
    { params }: Request,
    call: ServerCall,
    waiter: (next: Result | Promise<Result>) => void,
    park: (parked: ParkedCall, inputRequests: Json) => Result,
  ) {
    this.principal = call.principal ?? "";
    this.#scopes = call.caller.scopes ?? [];
    this.#cancelToken = call;
    this.#watchers = call.watchers;
    const responses = params["requestState"] === undefined ? params["inputResponses"] : undefined;
    this.#responses = isObject(responses) ? responses : {};
    this.#waiter = waiter;
    this.#notify = (notification) => call.notify(notification);
    this.#park = park;
    const { signal } = this.#cancelToken;
    onAbort(signal, () => this.#rejectInputs(signal.reason));
  }

  get isFinished(): boolean {
    return this.#outcome !== undefined;
  }

  /** Whether a retry waits for what comes next. */
  get isAwaited(): boolean {
    return this.#answered.get(this.round)?.isSettled === false;
  }

  cancel(reason: unknown): void {
    this.#cancelToken.abort(reason);
  }

  notify(notification: Notification): void {
    if (this.#notify !== undefined) this.#notify(notification);
    else if (this.#outcome === undefined) this.#keep(notification);
  }

  async ask(request: Request, options: AskOptions = {}): Promise<Result> {
    const key = options.key ?? String((this.#unnamed += 1));
    // An answer to a question that was never asked counts only for a key that the author of the handler has published.
    const response =
      options.key !== undefined && Object.hasOwn(this.#responses, key) ? this.#responses[key] : undefined;
    if (isObject(response)) return response;
    this.#cancelToken.signal.throwIfAborted();
    return this.#inputs.ask(request, { ...options, key });
  }

  /** Answers a retry with the state of a round. */
  retry(round: number, { params }: Request, call: ServerCall): Promise<Result> {
    const requiredScopes = this.#scopes.filter((scope) => call.caller.scopes?.includes(scope) !== true);
    if (requiredScopes.length > 0) {
      // We do not know which scopes the call needs, so the retry must have all scopes of the first request.
      throw McpError.of("access_denied", "The call was begun with scopes that its retry lacks", { requiredScopes });
    }
    for (const { observer, reader } of this.#watchers ?? []) call.reportTo(observer, reader);
    const known = this.#answered.get(round);
    if (known !== undefined) return this.#wait(known, call);
    const responses = params["inputResponses"] ?? {};
    if (!isObject(responses)) throw invalidParams("inputResponses must be an object of answers by key");
    call.signal.throwIfAborted();
    const waiting = new Set([call]);
    const next = this.#resume(responses, (notification) => {
      const [first] = waiting;
      first?.notify(notification);
    });
    const answered: AnsweredRound = { next, waiting, isSettled: false };
    this.#answered.set(round, answered);
    const settle = (): void => {
      answered.isSettled = true;
      waiting.clear();
    };
    next.then(settle, settle);
    return this.#wait(answered, call);
  }

  /** Waits for the outcome. Cancelling a retry affects only that retry; cancelling the last one cancels the call. */
  #wait(answered: AnsweredRound, call: ServerCall): Promise<Result> {
    const { next, waiting } = answered;
    if (answered.isSettled) return next;
    const { signal } = call;
    waiting.add(call);
    return new Promise<Result>((resolve, reject) => {
      const forget = onAbort(signal, () => {
        if (!waiting.delete(call)) return;
        if (waiting.size === 0) this.cancel(signal.reason);
        else reject(signal.reason);
      });
      next.then(resolve, reject).finally(forget);
    });
  }

  /** Takes the answers of a retry; input requests that are still open are sent again. */
  #resume(answers: Json, notify: (notification: Notification) => void): Promise<Result> {
    if (this.#outcome !== undefined) return this.#outcome;
    this.#notify = notify;
    for (const notification of this.#keptNotifications.splice(0)) notify(notification);
    const next = new Promise<Result>((resolve) => {
      this.#waiter = resolve;
    });
    this.#inputs.take(answers);
    this.#gather();
    return next;
  }

  /** Called with the outcome of the handler, which has settled. */
  end(outcome: Promise<Result>): void {
    this.#outcome = outcome;
    this.#watchers = undefined;
    this.#rejectInputs(new Error(ALREADY_ANSWERED));
    this.#keptNotifications = [];
    // The call may be kept for repeated retries, so release what its client sent, which may be large.
    this.#responses = {};
    this.#park = undefined;
    this.#settle(outcome);
  }

  #gather(): void {
    if (this.#inputs.size === 0) return;
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      const { requests } = this.#inputs;
      if (this.#waiter === undefined || requests === undefined || this.#park === undefined) return;
      try {
        this.#settle(this.#park(this, requests));
      } catch (error) {
        this.#settle(Promise.reject(error));
        this.cancel(error);
      }
    }, GATHER_MS);
  }

  #settle(next: Result | Promise<Result>): void {
    this.#waiter?.(next);
    this.#waiter = undefined;
    this.#notify = undefined;
  }

  /** Keeps a notification until the client retries. Of progress notifications, only the newest is kept. */
  #keep(notification: Notification): void {
    if (notification.method === "notifications/progress") {
      this.#keptNotifications = this.#keptNotifications.filter(({ method }) => method !== notification.method);
    }
    this.#keptNotifications.push(notification);
    if (this.#keptNotifications.length > MAX_KEPT_NOTIFICATIONS) this.#keptNotifications.shift();
  }

  #rejectInputs(reason: unknown): void {
    clearTimeout(this.#gathering);
    this.#inputs.drop(reason);
  }
}
