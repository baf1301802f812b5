// Sends requests to a stateless client during a call. The handler waits in memory while its client gets
// `input_required` with a sealed `requestState`, and the client's retry finds the parked call by that state. The state
// expires and is bound to the principal, the method and a digest of the arguments. A round is one `input_required` and
// its retry. Its outcome is kept, so that repeating a retry never runs anything twice. A `requestState` that was sealed
// with another key is not ours. The handler gets it unchanged.

import { attempt, ignoreRejection } from "../../core/async.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { FairLimit } from "../../core/fair-limit.ts";
import type { Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import { callDigest, Seal } from "../../core/seal.ts";
import { CANCEL_TOKEN } from "../../core/cancel.ts";
import { INPUT_METHODS, checkClientRequest } from "../../protocol/client-requests.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { ALREADY_ANSWERED, type ServerCall } from "../calls/call-table.ts";
import { checkEncodable } from "../calls/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import type { ParkedCall } from "./parked-call.ts";

/** Limits of calls that wait for an answer of their client, and the key that seals their state. */
export interface ParkedCallsOptions {
  /** The key that seals states. By default each connection, or HTTP endpoint, has a random one. */
  readonly sealKey?: string | Uint8Array | undefined;
  /** How long a call waits for its client to retry. */
  readonly ttlMs?: number | undefined;
  /** How many calls may be parked at once. */
  readonly maxParked?: number | undefined;
}

/** Loaded on first use, since most calls ask for nothing. One import for all calls, so that they stay in order. */
let loading: Promise<typeof import("./parked-call.ts")> | undefined;

/** How many calls of one principal may be parked, or a tenth of `maxParked` if that is more: others need places too. */
const MAX_PARKED_PER_CALLER = 100;

/** How many times one call may ask for input, so that a client that never answers is not asked forever. */
const MAX_ROUNDS = 100;

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
  /** The places of calls whose handlers still run. */
  readonly #places: FairLimit;
  readonly #parked: ExpiringMap<string, ParkedCall>;

  constructor(options: ParkedCallsOptions = {}) {
    this.#seal = new Seal(options.sealKey);
    this.#ttlMs = options.ttlMs ?? 600_000;
    this.#max = options.maxParked ?? 1_000;
    this.#places = new FairLimit(this.#max, Math.max(MAX_PARKED_PER_CALLER, this.#max / 10));
    this.#parked = new ExpiringMap({
      ttlMs: this.#ttlMs,
      // A call does not expire while its client waits for it, however long it runs.
      onExpired: (parked) =>
        parked.isAwaited ? this.#ttlMs : this.#drop(parked, "The client did not come back in time"),
    });
  }

  get isEmpty(): boolean {
    return this.#parked.size === 0;
  }

  /** Runs a request, or resumes the parked call that a retry belongs to. `notify` replaces that of the call. */
  handle(request: Request, call: ServerCall, handler: Handler, notify?: Context["notify"]): Promise<Result> {
    const state = request.params["requestState"];
    if (typeof state === "string" && state.startsWith(this.#prefix)) return this.#resume(request, call, state);
    if (call.caller.canBeAsked && INPUT_METHODS.has(request.method)) return this.#begin(request, call, handler);
    const ask: Context["ask"] = (input) => ignoreRejection(refuseInput(input, request, call));
    if (notify !== undefined) return handler(request, contextOf(call, notify, ask));
    const notifyCaller = (notification: Notification): void => call.notify(notification);
    return handler(request, contextOf(call, notifyCaller, ask));
  }

  /**
   * The beginning of our states. It contains a fingerprint of the key, so that each of several chained gateways
   * recognizes its own states. It is a getter, so that no key is created before it is needed.
   */
  get #prefix(): string {
    return `round.${this.#seal.id}.`;
  }

  close(): void {
    for (const parked of this.#parked.values()) this.#drop(parked, "The connection is closed");
    this.#parked.clear();
  }

  /** Runs a call that may ask. It becomes a parked call when it asks for the first time. */
  #begin(request: Request, call: ServerCall, handler: Handler): Promise<Result> {
    let parked: ParkedCall | undefined;
    let isOver = false;
    let resolve!: (next: Result | Promise<Result>) => void;
    const answer = new Promise<Result>((settle) => {
      resolve = settle;
    });
    const notify = (notification: Notification): void =>
      parked === undefined ? call.notify(notification) : parked.notify(notification);
    const askOnce: Context["ask"] = async (inputRequest, options) => {
      const input = checkInput(inputRequest, request, call);
      const { ParkedCall } = await (loading ??= import("./parked-call.ts"));
      if (isOver) throw new Error(ALREADY_ANSWERED);
      const park = (parked: ParkedCall, inputRequests: Json): Result => this.#park(parked, request, inputRequests);
      parked ??= new ParkedCall(request, call, resolve, park);
      return parked.ask(input, options);
    };
    const ask: Context["ask"] = (input, options) => ignoreRejection(askOnce(input, options));
    const running = attempt(() => handler(request, contextOf(call, notify, ask)));
    const end = (): void => {
      isOver = true;
      if (parked === undefined) return resolve(running);
      parked.end(running);
      this.#release(parked);
    };
    running.then(end, end);
    return answer;
  }

  #park(parked: ParkedCall, request: Request, inputRequests: Json): Result {
    const { id, principal } = parked;
    if (parked.round === 0) this.#take(parked);
    parked.round += 1;
    if (parked.round > MAX_ROUNDS)
      throw McpError.of("rate_limited", `${request.method} has asked for input ${MAX_ROUNDS} times`);
    this.#parked.set(id, parked);
    const sealed: SealedState = { id, round: parked.round, principal, digest: callDigest(request) };
    const requestState = this.#prefix + this.#seal.seal(sealed, this.#ttlMs);
    return { resultType: "input_required", inputRequests, requestState };
  }

  #resume(request: Request, call: ServerCall, state: string): Promise<Result> {
    const sealed = this.#seal.open(state.slice(this.#prefix.length)) as SealedState | undefined;
    if (sealed === undefined) throw invalidParams("requestState was altered or has expired; call again without it");
    if (sealed.principal !== (call.caller.principal ?? "") || sealed.digest !== callDigest(request)) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    const parked = this.#parked.get(sealed.id);
    if (parked === undefined)
      throw invalidParams("The call that requestState belongs to is no longer waiting; call again without it");
    const answer = parked.retry(sealed.round, request, call);
    // The outcome, even if it is an error, is kept for repeated retries until the state expires.
    const keep = (): void => {
      if (this.#parked.has(sealed.id)) this.#parked.set(sealed.id, parked);
    };
    answer.then(keep, keep);
    return answer;
  }

  #take(parked: ParkedCall): void {
    if (this.#places.take(parked.principal) !== undefined) {
      throw McpError.of("rate_limited", "Too many calls wait for their clients' answers; finish some of them first");
    }
    parked.hasPlace = true;
    if (this.#parked.size < 2 * this.#max) return;
    // Finished calls are kept only for repeated retries, so the oldest can be evicted.
    const finished = this.#parked.values().find(({ isFinished }) => isFinished);
    if (finished !== undefined) this.#parked.delete(finished.id);
  }

  #release(parked: ParkedCall): void {
    if (parked.hasPlace) this.#places.release(parked.principal);
    parked.hasPlace = false;
  }

  #drop(parked: ParkedCall, reason: string): void {
    this.#release(parked);
    parked.cancel(new Error(reason));
  }
}

/** Without spreads, which would slow down every call. */
function contextOf(call: ServerCall, notify: Context["notify"], ask: Context["ask"]): Context {
  const { revision, caller, logLevel, task } = call;
  return call.attachTo({ [CANCEL_TOKEN]: call, revision, caller, logLevel, task, notify, ask, wire: call });
}

/** Returns what to ask the client. Throws if it cannot be asked that during this request. */
function checkInput({ method, params }: Request, asking: Request, { caller }: ServerCall): Request {
  if (!INPUT_METHODS.has(asking.method)) {
    const message = `A client of this revision cannot be asked during ${asking.method}`;
    throw McpError.of("invalid_request", message, { method });
  }
  // The newest revision has no ids of elicitations. Untyped code may leave the params out.
  const { elicitationId: _unknown, ...known } = params ?? {};
  const input: Request = { method, params: known };
  checkClientRequest(input, caller.capabilities);
  checkEncodable(method, input.params);
  return input;
}

/** Rejects with the reason why the client cannot be asked. */
async function refuseInput(input: Request, asking: Request, call: ServerCall): Promise<never> {
  checkInput(input, asking, call);
  throw McpError.of("internal_error", "The client cannot be asked during this call");
}
