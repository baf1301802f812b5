// The calls in flight, and the only place where a request begins: `open`. The table knows each call from its arrival
// until its handler has returned. It refuses ids that are in use, gives the calls slots and places, cancels them, waits
// for them when the server shuts down, and sends their responses. A front answers them, in the style of the client.

import { attempt, MAX_DELAY_MS, Semaphore } from "../../core/async.ts";
import { CancelToken } from "../../core/cancel.ts";
import { ChurningMap } from "../../core/collections.ts";
import type {
  Caller,
  CallerIdentity,
  CallWire,
  Context,
  Notification,
  Result,
  WireObserver,
} from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import {
  type ErrorBody,
  type Id,
  type IdKey,
  idKey,
  type Message,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
} from "../../jsonrpc/message.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { McpError } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Envelope } from "../../protocol/params.ts";
import type { Carrier, CarrierListener } from "../../transport/carrier.ts";
import type { CallPlaces, CountedCall } from "./call-places.ts";
import { cancellationError, unsendableResponse } from "./errors.ts";
import { WatchedCarrier } from "./watched-carrier.ts";

/** Answers the calls of clients of one style: session or stateless. */
export interface Front {
  answer(call: ServerCall): Promise<{ readonly [key: string]: unknown }>;
  errorBody(error: unknown, message: CallMessage): ErrorBody;
  notify(call: ServerCall, notification: Notification): void;
}

/** What begins a call: a request, or a vendor's notification, which has no response. */
export type CallMessage = RequestMessage | NotificationMessage;

/** The error of a request to the client if the call that makes the request has already been answered. */
export const ALREADY_ANSWERED = "The call has been answered; it can no longer send requests to the client";

/** How long aborted calls get to answer before the connection is closed. */
const SETTLE_MS = 250;

/** How many of a client's notifications wait or run at once. */
const MAX_NOTIFICATIONS = 1_000;

/** A call in flight. Aborting it stops the work; cancelling also suppresses the response. */
export class ServerCall extends CancelToken implements CountedCall, CarrierListener, CallWire {
  message: CallMessage;
  readonly front: Front;
  readonly identity: CallerIdentity | undefined;
  /** The `_meta` of a stateless request, if it was read before. */
  envelope: Envelope | undefined;
  /** Another one once something observes the call. */
  carrier: Carrier;
  /** What observes the call on the wire. */
  watchers: readonly { readonly observer: WireObserver; readonly reader: object }[] | undefined;
  /** A subscription: a graceful shutdown does not wait for it. */
  readonly isBackground: boolean;
  readonly principal: string | undefined;
  readonly size: number;
  readonly length: number;
  readonly table: CallTable;
  /** Position in the order of arrival. */
  readonly sequence: number;
  readonly key: IdKey | ServerCall;
  countedAs: CountedCall["countedAs"];
  hasSlot: boolean;
  isCancelled: boolean;
  /** The response is being sent, so nothing more may be sent for this call. */
  isDone: boolean;
  /** The stateless client as handlers see it, and what it wants of this call; set by the front. */
  caller: Caller;
  revision: string;
  logLevel: Context["logLevel"];
  task: Context["task"];
  /** Created with the first request to the client; aborted when the call is answered. */
  clientRequests: AbortController | undefined;
  #progress: IncreasingProgress | undefined;

  constructor(
    table: CallTable,
    sequence: number,
    key: IdKey | undefined,
    message: CallMessage,
    carrier: Carrier,
    identity: CallerIdentity | undefined,
    front: Front,
    envelope: Envelope | undefined,
  ) {
    super();
    const { method } = message;
    this.table = table;
    this.sequence = sequence;
    // `cancel` does not reach a call without an id, and the only call of its HTTP request.
    this.key = key ?? this;
    this.message = message;
    this.carrier = carrier;
    this.watchers = undefined;
    this.identity = identity;
    this.front = front;
    this.envelope = envelope;
    this.isBackground = method === "subscriptions/listen";
    this.principal = identity?.principal;
    this.size = method === "ping" || carrier.isPart === true ? 0 : 1;
    this.length = carrier.bodyLength ?? 0;
    this.countedAs = "nothing";
    this.hasSlot = false;
    this.isCancelled = false;
    this.isDone = false;
    this.caller = INTERNAL_CALLER;
    this.revision = "";
    this.logLevel = undefined;
    this.task = undefined;
    this.clientRequests = undefined;
    this.#progress = undefined;
  }

  reportTo(observer: WireObserver, reader: object): void {
    const { message, carrier, revision, watchers = [] } = this;
    if (this.isDone || watchers.some((watcher) => watcher.reader === reader)) return;
    this.watchers = [...watchers, { observer, reader }];
    this.carrier = new WatchedCarrier(carrier, message, observer, revision);
  }

  /** Sends a notification to the client, until the call is answered. */
  notify(notification: Notification): void {
    if (!this.isDone && !this.isCancelled) this.front.notify(this, notification);
  }

  /** The progress notification to send for this call; undefined if it is dropped. */
  progressEvent(notification: Notification): Notification | undefined {
    const meta = this.message.params?.["_meta"];
    this.#progress ??= new IncreasingProgress(isObject(meta) ? meta["progressToken"] : undefined);
    return this.#progress.next(notification);
  }

  /** Releases what the client sent, which may be large: a parked call keeps its token. */
  forget(): void {
    this.message = NO_MESSAGE;
    this.envelope = undefined;
    this.context = undefined;
    this.watchers = undefined;
  }

  /** Called when the client has left, or was disconnected as too slow, before the response. */
  onGone(): void {
    this.table.abandon(this, cancellationError("it disconnected", "the caller"));
  }
}

export const SHUT_DOWN = "The server was shut down before the request was answered";

/** In place of the method of a message that cannot begin a call. */
const REFUSED = "";

const NO_MESSAGE: CallMessage = { jsonrpc: "2.0", method: REFUSED };

/** Throws if what a handler returned is not a result. Handlers are user code. */
export function checkResult(method: string, result: unknown): asserts result is Result {
  if (!isObject(result)) throw McpError.of("internal_error", `The handler's result of ${method} is not an object`);
}

export interface CallTableOptions {
  /** How many calls run at once; the others wait in the order of arrival. Default: all run. */
  readonly maxRunning?: number;
  /** Runs one call at a time, pings too, and answers in order. */
  readonly isSequential?: boolean;
  /** Whether the ids of requests tell them apart: not over HTTP without sessions, where each client has its own. */
  readonly hasIds?: boolean;
  readonly places?: CallPlaces | undefined;
  /** The error for calls that still run when the table closes. Default: they get no answer. */
  readonly unanswered?: string | undefined;
}

export class CallTable {
  readonly #calls = new ChurningMap<IdKey | ServerCall, ServerCall>();
  readonly #slots: Semaphore | undefined;
  readonly #maxRunning: number;
  readonly #isSequential: boolean;
  readonly #hasIds: boolean;
  readonly #places: CallPlaces | undefined;
  readonly #unanswered: string | undefined;
  #count = 0;
  /** Vendors' notifications that wait or run. */
  #notifications = 0;
  /** Cancelled calls that had a slot and whose handler still runs. */
  #abandoned = 0;
  #closed: { readonly reason: unknown } | undefined;
  /** Called with each call that ends, and without one if nothing may wait any longer. */
  readonly #watchers = new Set<(ended?: ServerCall) => void>();

  constructor(options: CallTableOptions) {
    const { maxRunning = Infinity, isSequential = false, hasIds = false, places, unanswered } = options;
    this.#maxRunning = isSequential ? 1 : maxRunning;
    this.#slots = this.#maxRunning === Infinity ? undefined : new Semaphore(this.#maxRunning);
    this.#isSequential = isSequential;
    this.#hasIds = hasIds;
    this.#places = places;
    this.#unanswered = unanswered;
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  /**
   * Begins a call: answers it with the front and sends the response by the carrier. A request whose id is in use gets an
   * error. Throws a CallRefused if there is no place for it.
   */
  open(
    message: CallMessage,
    carrier: Carrier,
    identity: CallerIdentity | undefined,
    front: Front,
    envelope?: Envelope,
  ): void {
    const sequence = (this.#count += 1);
    let key: IdKey | undefined;
    if (this.#hasIds && "id" in message) {
      const ofId = idKey(message.id);
      if (!this.#calls.has(ofId)) key = ofId;
      // In a sequence, the call with this id is answered before this one begins.
      else if (!this.#isSequential) {
        const { method } = message;
        const error = McpError.of("invalid_request", "A request with this id is still in flight", { method });
        return this.refuse(message.id, front.errorBody(error, message), carrier);
      }
    }
    if (!("id" in message) && this.#notifications >= MAX_NOTIFICATIONS) return;
    const call = new ServerCall(this, sequence, key, message, carrier, identity, front, envelope);
    this.#places?.take(call);
    this.#begin(call);
  }

  /** Answers a message that cannot begin a call. In a sequence, the calls before it are answered first. */
  refuse(id: Id | null, error: ErrorBody, carrier: Carrier): void {
    const message = { jsonrpc: "2.0", id: id as Id, method: REFUSED } as const;
    const sequence = (this.#count += 1);
    this.#begin(new ServerCall(this, sequence, undefined, message, carrier, undefined, new Refusal(error), undefined));
  }

  #begin(call: ServerCall): void {
    if (this.#closed !== undefined) call.abort(this.#closed.reason);
    if (!("id" in call.message)) this.#notifications += 1;
    this.#calls.set(call.key, call);
    call.carrier.watch?.(call);
    void this.#run(call);
  }

  /** Runs the call and sends the response, unless it was cancelled. */
  async #run(call: ServerCall): Promise<void> {
    const { message, front } = call;
    // A ping needs no slot: it asks whether the server is alive, not whether it is idle.
    const isWork = message.method !== "ping" && message.method !== REFUSED && !call.isBackground;
    if (
      this.#slots !== undefined &&
      this.#closed === undefined &&
      (isWork || (this.#isSequential && !call.isBackground))
    ) {
      const turn = this.#slots.acquire();
      if (turn !== undefined) await turn;
      call.hasSlot = true;
      if (call.isCancelled) {
        call.hasSlot = false;
        this.#slots.release();
        return this.#end(call);
      }
    }
    const { id } = message as RequestMessage;
    let response: ResponseMessage;
    try {
      if (call.aborted) throw McpError.of("shutting_down", "The connection is closed", { method: message.method });
      response = { jsonrpc: "2.0", id, result: await front.answer(call) };
    } catch (error) {
      // What a handler throws because the table closes says nothing to the caller, and may be secret.
      const isSecret = this.#closed !== undefined && !(error instanceof McpError);
      const shown = isSecret ? McpError.of("unreachable", this.#unanswered ?? SHUT_DOWN) : error;
      response = { jsonrpc: "2.0", id, error: front.errorBody(shown, message) };
    }
    call.isDone = true;
    call.clientRequests?.abort(new Error(ALREADY_ANSWERED));
    const { carrier } = call;
    if (!call.isCancelled && "id" in message) {
      try {
        const sending = carrier.finish(response);
        if (sending !== undefined) await sending;
      } catch (error) {
        // The client must not wait forever for a response that cannot be sent.
        const replacement = unsendableResponse(response, error);
        if (!carrier.isGone) await attempt(async () => carrier.finish(replacement)).catch(() => undefined);
      }
      if (call.isBackground && !carrier.isAlone && "result" in response) carrier.send(subscriptionEnded(id));
    }
    this.#end(call);
  }

  /** Called when the handler has returned and the response is sent. */
  #end(call: ServerCall): void {
    call.isDone = true;
    if (call.hasSlot) {
      if (!call.isCancelled || this.#abandoned > this.#maxRunning) this.#slots?.release();
      if (call.isCancelled) this.#abandoned -= 1;
    }
    this.#places?.release(call);
    if (!("id" in call.message)) this.#notifications -= 1;
    call.forget();
    this.#remove(call);
  }

  #remove(call: ServerCall): void {
    // After a cancellation the client may have used the same id again.
    if (this.#calls.get(call.key) !== call) return;
    this.#calls.delete(call.key);
    if (this.#watchers.size > 0) for (const watcher of [...this.#watchers]) watcher(call);
  }

  /** `message`: with which the client cancels it. */
  cancel(id: Id, reason: unknown, message: NotificationMessage): void {
    const call = this.#calls.get(idKey(id));
    if (call === undefined || call.message.method === "initialize") return;
    call.carrier.received?.(message);
    this.abandon(call, reason);
  }

  /**
   * Cancels a call: it gets no response. It frees its slot at once, since its handler may ignore the signal. At most as
   * many cancelled calls as there are slots keep running without one.
   */
  abandon(call: ServerCall, reason: unknown): void {
    if (call.isDone || call.isCancelled) return;
    call.isCancelled = true;
    call.abort(reason);
    if (call.hasSlot) {
      this.#abandoned += 1;
      if (this.#abandoned <= this.#maxRunning) this.#slots?.release();
    }
    this.#places?.abandon(call);
    call.carrier.drop();
    this.#remove(call);
  }

  /** Resolves when the calls that arrived before this one have ended, except subscriptions, or after `graceMs`. */
  drainedBefore(call: ServerCall, graceMs: number): Promise<void> {
    return this.#until(({ isBackground, sequence }) => isBackground || sequence >= call.sequence, graceMs);
  }

  /** Aborts every call, including those that begin later. Those that wait for a slot are answered. */
  abortAll(reason: unknown): void {
    if (this.#closed !== undefined) return;
    this.#closed = { reason };
    for (const call of this.#calls.values()) call.abort(reason);
    this.#slots?.releaseAll();
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** Ends subscriptions at once; other calls may go on for `graceMs`, and get a moment to answer when they are aborted. */
  async close(graceMs: number, reason: Error): Promise<void> {
    for (const call of this.#calls.values()) if (call.isBackground) call.abort(reason);
    if (graceMs > 0) await this.#until(() => false, graceMs);
    this.abortAll(reason);
    await this.#until(() => false, SETTLE_MS);
    // The handlers that still run ignore their signal. Their clients get an error now.
    const unanswered = this.#unanswered;
    for (const call of unanswered === undefined ? [] : this.#calls.values()) {
      call.isCancelled = true;
      this.#places?.abandon(call);
      this.#remove(call);
      if (!("id" in call.message)) continue;
      const error = McpError.of("unreachable", unanswered ?? "").toBody();
      void call.carrier.finish({ jsonrpc: "2.0", id: call.message.id, error });
    }
  }

  /** Waits only for calls that are in flight now, not for later ones. */
  async #until(isIgnored: (call: ServerCall) => boolean, graceMs: number): Promise<void> {
    const awaited = new Set(this.#calls.values().filter((call) => !isIgnored(call)));
    if (awaited.size === 0) return;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#watchers.delete(watch);
        resolve();
      };
      const watch = (ended?: ServerCall): void => {
        if (ended === undefined || (awaited.delete(ended) && awaited.size === 0)) finish();
      };
      const timer = setTimeout(finish, Math.min(graceMs, MAX_DELAY_MS));
      this.#watchers.add(watch);
    });
  }
}

/** Answers a message that cannot begin a call. */
class Refusal implements Front {
  readonly #error: ErrorBody;

  constructor(error: ErrorBody) {
    this.#error = error;
  }

  answer(): Promise<never> {
    return Promise.reject(new Error(this.#error.message));
  }

  errorBody(): ErrorBody {
    return this.#error;
  }

  notify(): void {}
}

/**
 * A subscription on lines ends with a response and a notification: the specification's pages on cancellation and on
 * subscriptions each require one of them.
 */
function subscriptionEnded(requestId: Id): Message {
  const params = { requestId, reason: "The subscription has ended", _meta: { [META.subscriptionId]: requestId } };
  return { jsonrpc: "2.0", method: "notifications/cancelled", params };
}

/**
 * Adds the client's token to progress notifications. Drops them if the client sent no token, or if the value does not
 * increase. The latter happens if the call is run again with the client's input.
 */
export class IncreasingProgress {
  readonly #token: unknown;
  #last = -Infinity;

  constructor(token: unknown) {
    this.#token = token;
  }

  next({ method, params }: Notification): Notification | undefined {
    const progress = params?.["progress"];
    if (this.#token === undefined || typeof progress !== "number" || !(progress > this.#last)) return undefined;
    this.#last = progress;
    return { method, params: { ...params, progressToken: this.#token } };
  }
}
