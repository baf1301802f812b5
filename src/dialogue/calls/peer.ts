// A duplex connection to a server, of either style: sends requests with our ids, matches answers and progress to their
// calls, sends cancellations, and fails all pending calls when the connection closes. The backs (session/back.ts,
// stateless/duplex-back.ts) interpret the messages.

import { attempt, ignoreRejection, onAbort, unref, within } from "../../core/async.ts";
import { isCancelled, onCancel } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import { kindOf } from "../../core/options.ts";
import type { Context, Params, Result } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import {
  type ErrorMessage,
  type Id,
  isNotification,
  isRequest,
  isResponse,
  type Message,
  type NotificationMessage,
  plainId,
  type RequestMessage,
  type ResponseMessage,
} from "../../jsonrpc/message.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import type { Inbound, QuietCancel, SendOptions, Transport } from "../../transport/transport.ts";
import { type PendingCall, PendingCalls } from "./pending-calls.ts";
import { DEFAULT_TIMEOUTS, type Timeouts, timeoutsFor } from "./timeouts.ts";

/** A request of ours that is not answered yet. */
export type OutgoingCall = PendingCall<Context>;

/**
 * How to abandon a call that must not be cancelled by `notifications/cancelled`. The caller gets an error at once, but
 * the server's answer is still awaited.
 */
export interface Abandonment {
  /** Receives what the server sends for the call after the call was abandoned. */
  readonly context: Context;
  /** Receives an answer that comes after the call was abandoned. */
  readonly onLateAnswer: (answer: Params) => void;
}

/** How long the answer to an abandoned call is awaited. */
const ABANDONED_MS = 60_000;

/** Receives what the server sends on its own initiative; implemented by the backs. */
export interface PeerListener {
  /** `about`: the request on whose stream it came, if the transport knows. */
  onRequest(message: RequestMessage, about: Id | undefined): void;
  onNotification(message: NotificationMessage, about: Id | undefined): void;
  /** The server no longer knows the session. */
  onSessionLost?(): void;
  /** The server may have restarted. `mayHaveMissed`: notifications outside any call may have been missed. */
  onReopened?(mayHaveMissed: boolean): void;
}

export class Peer {
  readonly pending: PendingCalls<Context> = new PendingCalls("The server");
  /** By id. */
  readonly calls: PendingCalls<Context>["calls"] = this.pending.calls;
  listener: PeerListener;
  readonly #transport: Transport;
  readonly #timeouts: Timeouts;
  readonly #closeTimeoutMs: number | undefined;
  readonly #watchers = new Set<(reason: ConnectionError) => void>();
  /** Abandoned calls whose answer is still awaited. */
  readonly #abandoned = new Map<number, { readonly call: OutgoingCall } & Abandonment>();
  #closed: ConnectionError | undefined;

  /** `closeTimeoutMs`: for a transport that may never close. The others limit the time themselves. */
  constructor(transport: Transport, timeouts: Partial<Timeouts> = {}, closeTimeoutMs?: number) {
    // Used until the style is negotiated: answers pings and refuses everything else.
    this.listener = {
      onRequest: ({ id, method }) => {
        const error = methodNotFound(method).toBody();
        this.send({ jsonrpc: "2.0", id, ...(method === "ping" ? { result: {} } : { error }) });
      },
      onNotification: () => undefined,
    };
    this.#transport = transport;
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
    this.#closeTimeoutMs = closeTimeoutMs;
  }

  start(): Promise<void> {
    return this.#transport.start((inbound) => this.#receive(inbound));
  }

  async close(budgetMs?: number): Promise<void> {
    this.#finish(new ConnectionError("closed", "The connection was closed"));
    const closing = attempt(() => this.#transport.close(budgetMs));
    const limitMs = this.#closeTimeoutMs;
    await (limitMs === undefined ? closing : within(budgetMs ?? limitMs, closing));
  }

  /** Sends a request. `params` may be a function of the id, because progress tokens are made from it. */
  async call(
    method: string,
    params: Params | ((id: number) => Params),
    context: Context,
    abandonment?: Abandonment,
  ): Promise<Result> {
    if (this.#closed !== undefined) throw unsent(this.#closed);
    if (isCancelled(context)) throw cancelled(context);
    // Specification, basic/utilities/cancellation: the notification must not cancel `initialize` or a call that creates
    // a task.
    const cancel = (reason: string): void => {
      if (abandonment !== undefined && quiet !== undefined) this.#abandon(call, abandonment, quiet);
      else if (method !== "initialize") this.#cancel(id, reason);
    };
    const timeouts = timeoutsFor(method, context, this.#timeouts);
    const call = this.pending.open(method, timeouts, context, (error) => cancel(error.message));
    const { id } = call;
    const quiet = abandonment && { abandoned: new AbortController(), expired: new AbortController() };
    const abort = (): void => {
      if (this.pending.fail(call, cancelled(context))) cancel(reasonOf(context));
    };
    const forget = onCancel(context, abort);
    try {
      // Suspend the idle timeout while we wait for something other than the server, such as a person signing in.
      const onWait = (isWaiting: boolean): void => (isWaiting ? this.pending.hold(call) : this.pending.release(call));
      const sentParams = typeof params === "function" ? params(id) : params;
      const message: RequestMessage = { jsonrpc: "2.0", id, method, params: sentParams };
      const sent = this.#transport.send(message, new CallSendOptions(context, onWait, quiet));
      sent.then(undefined, (error: unknown) => {
        this.#abandoned.delete(id);
        this.pending.fail(call, error as Error);
      });
    } catch (error) {
      // A transport may throw instead of rejecting.
      this.pending.fail(call, error as Error);
    }
    try {
      return await call.answer;
    } finally {
      forget();
    }
  }

  notify(method: string, params?: Params): void {
    this.send({ jsonrpc: "2.0", method, ...(params === undefined ? undefined : { params }) });
  }

  send(message: Message): void {
    if (this.#closed === undefined) void ignoreRejection(attempt(() => this.#transport.send(message)));
  }

  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  /** The call with this id, abandoned calls included. */
  findCall(id: unknown): OutgoingCall | undefined {
    return typeof id === "number" ? (this.calls.get(id) ?? this.#abandoned.get(id)?.call) : undefined;
  }

  /** Ends our subscription with this id, as the server asked. A server cannot end other calls in this way. */
  endSubscription(id: unknown): void {
    const call = this.calls.get(id as number);
    if (call?.method === "subscriptions/listen")
      this.pending.settle(call, { jsonrpc: "2.0", id: call.id, result: { resultType: "complete" } });
  }

  /** Resolves when the signal is aborted; rejects if the connection closes first. */
  async untilClosed(signal: AbortSignal): Promise<void> {
    if (this.#closed !== undefined) throw this.#closed;
    if (signal.aborted) return;
    await new Promise<void>((resolve, reject) => {
      const fail = (reason: ConnectionError): void => {
        forget();
        this.#watchers.delete(fail);
        reject(reason);
      };
      const forget = onAbort(signal, () => {
        this.#watchers.delete(fail);
        resolve();
      });
      this.#watchers.add(fail);
    });
  }

  #receive(inbound: Inbound): void {
    // A transport of the user may pass on a message as it is, or what decodeInbound() returns for one to ignore.
    if (typeof (inbound as Inbound | undefined)?.kind !== "string") return this.#finish(notInbound(inbound));
    switch (inbound.kind) {
      case "message":
        return this.#take(inbound.message, inbound.about);
      case "batch":
        for (const item of inbound.items) {
          if ("message" in item) this.#take(item.message, inbound.about);
          else if (item.answerable !== true) this.#failMalformed(item.fault);
        }
        return;
      case "fault":
        if (inbound.fault.id === null) return;
        // An invalid request of the server is answered.
        if (inbound.answerable === true) this.send(inbound.fault);
        else this.#failMalformed(inbound.fault);
        return;
      case "hang-up":
        // Passed on to the caller, if the caller's transport can hang up too.
        this.findCall(inbound.about)?.context.hangUp?.(inbound.retryMs ?? 0);
        return;
      case "lost":
        return this.listener.onSessionLost?.();
      case "reopened":
      case "gap":
        return this.listener.onReopened?.(inbound.kind === "gap");
      case "end":
        return this.#finish(connectionEnded(inbound.error));
    }
  }

  /** Fails the call that a malformed answer belongs to, so that the call does not have to time out. */
  #failMalformed({ id, error: { data } }: ErrorMessage): void {
    const details = isObject(data) ? data["details"] : data;
    const why = typeof details === "string" ? `: ${details}` : "";
    const call = id === null ? undefined : this.calls.get(plainId(id) as number);
    if (call === undefined) return;
    this.pending.fail(call, new ConnectionError("protocol", `The server's answer is not a valid message${why}`));
  }

  #take(message: Message, about: Id | undefined): void {
    if (isResponse(message)) {
      const call = this.pending.find(message);
      if (call === undefined) this.#takeLate(message);
      else this.pending.settle(call, message);
    } else if (isRequest(message)) this.listener.onRequest(message, about);
    else if (isNotification(message)) this.listener.onNotification(message, about);
  }

  /** Answers to abandoned calls are delivered; other late or unknown answers are dropped. */
  #takeLate(message: ResponseMessage): void {
    const id = plainId(message.id);
    const late = this.#abandoned.get(id as number);
    if (late === undefined) return;
    this.#abandoned.delete(late.call.id);
    if ("result" in message) late.onLateAnswer(message.result);
  }

  #abandon(call: OutgoingCall, abandonment: Abandonment, { abandoned, expired }: QuietControl): void {
    this.#abandoned.set(call.id, { ...abandonment, call: { ...call, context: abandonment.context } });
    const expire = (): void => {
      this.#abandoned.delete(call.id);
      expired.abort();
    };
    unref(setTimeout(expire, ABANDONED_MS));
    abandoned.abort();
  }

  #cancel(requestId: number, reason: string): void {
    this.notify("notifications/cancelled", { requestId, reason });
  }

  #finish(reason: ConnectionError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#abandoned.clear();
    this.pending.failAll(reason);
    for (const watcher of [...this.#watchers]) watcher(reason);
  }
}

/** A copy of the failure that closed the connection, for a later request that is not sent. */
export function unsent({ kind, problem, subject, hint, diagnostics, cause }: ConnectionError): ConnectionError {
  return new ConnectionError(kind, problem, { cause, mayHaveRun: false, subject, hint, diagnostics });
}

function reasonOf({ signal }: Context): string {
  return errorMessage(signal.reason);
}

function cancelled(context: Context): ConnectionError {
  return new ConnectionError("cancelled", `Cancelled: ${reasonOf(context)}`, { cause: context.signal.reason });
}

/** Controls the signals of a `QuietCancel`. */
type QuietControl = { readonly [Signal in keyof QuietCancel]: AbortController };

/** This is a class with getters, because the signal is created when it is first read, and stdio never reads it. */
class CallSendOptions implements SendOptions {
  readonly onWait: (isWaiting: boolean) => void;
  readonly quiet: QuietCancel | undefined;
  readonly #context: Context;

  constructor(context: Context, onWait: (isWaiting: boolean) => void, quiet: QuietControl | undefined) {
    this.onWait = onWait;
    this.quiet = quiet && { abandoned: quiet.abandoned.signal, expired: quiet.expired.signal };
    this.#context = context;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get headers(): Context["headers"] {
    return this.#context.headers;
  }
}

function connectionEnded(error: Error | undefined): ConnectionError {
  if (error instanceof ConnectionError) return error;
  return new ConnectionError("closed", "The server closed the connection", { cause: error });
}

function notInbound(value: unknown): ConnectionError {
  return new ConnectionError(
    "protocol",
    `The transport called its \`receive\` with ${kindOf(value)} in place of { kind, message, ... }; decodeInbound() of ` +
      "catenary/stdio makes one from a text, or undefined if the text must be ignored",
  );
}
