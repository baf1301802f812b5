// A duplex connection to a server, of either style: sends requests with our ids, matches answers and progress to their
// calls, sends cancellations, and fails all pending calls when the connection closes. The backs (session/back.ts,
// stateless/duplex-back.ts) interpret the messages.

import { attempt, ignoreRejection, unref, within } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { kindOf } from "../../core/options.ts";
import type { Context, Params, Result, WireObserver, WirePassage } from "../../core/handler.ts";
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
import type { Revision } from "../../protocol/revision.ts";
import {
  type Inbound,
  type QuietCancel,
  reportsRequests,
  type SendOptions,
  type Transport,
} from "../../transport/transport.ts";
import { type PendingCall, PendingCalls, type Timeouts } from "./pending-calls.ts";

/** A request of ours that is not answered yet, or abandoned. */
export interface OutgoingCall extends Pick<PendingCall, "id" | "method" | "context"> {
  touch?(): void;
  onWait?(isWaiting: boolean): void;
}

/**
 * How to abandon a call that must not be cancelled by `notifications/cancelled`. The caller gets an error at once, but
 * the server's answer is still awaited.
 */
export interface Abandonment {
  /** Receives what the server sends for the call after the call was abandoned. */
  readonly context: Context;
  readonly onLateAnswer: (answer: Params) => void;
}

const ABANDONED_MS = 60_000;

/** Receives what the server sends on its own initiative; implemented by the backs. */
export interface PeerListener {
  readonly revision?: Revision;
  /** `about`: the request on whose stream it came, if the transport knows. */
  onRequest(message: RequestMessage, about: Id | undefined): void;
  onNotification(message: NotificationMessage, about: Id | undefined): void;
  onSessionLost?(): void;
  /** The server may have restarted. `mayHaveMissed`: notifications outside any call may have been missed. */
  onReopened?(mayHaveMissed: boolean): void;
}

export class Peer {
  readonly calls: PendingCalls;
  listener: PeerListener;
  readonly #transport: Transport;
  readonly #reportsRequests: boolean;
  readonly #closeTimeoutMs: number | undefined;
  /** Abandoned calls whose answer is still awaited. */
  readonly #abandoned = new Map<unknown, { readonly call: OutgoingCall } & Abandonment>();

  /** `closeTimeoutMs`: for a transport that may never close. The others limit the time themselves. */
  constructor(transport: Transport, timeouts?: Partial<Timeouts>, closeTimeoutMs?: number) {
    // Used until the style is negotiated: answers pings and refuses everything else.
    this.listener = {
      onRequest: ({ id, method }) => {
        const error = methodNotFound(method).toBody();
        this.send({ jsonrpc: "2.0", id, ...(method === "ping" ? { result: {} } : { error }) });
      },
      onNotification: () => undefined,
    };
    this.#transport = transport;
    this.#reportsRequests = reportsRequests(transport);
    this.calls = new PendingCalls("The server", timeouts);
    this.#closeTimeoutMs = closeTimeoutMs;
  }

  start(): Promise<void> {
    return this.#transport.start(this.#receive);
  }

  async close(budgetMs?: number): Promise<void> {
    this.#finish(new ConnectionError("closed", "The connection was closed"));
    const closing = attempt(() => this.#transport.close(budgetMs));
    const limitMs = this.#closeTimeoutMs;
    await (limitMs === undefined ? closing : within(budgetMs ?? limitMs, closing));
  }

  /** Sends a request. `params` may be a function of the id, because progress tokens are made from it. */
  call(
    method: string,
    params: Params | ((id: number) => Params),
    context: Context,
    abandonment?: Abandonment,
  ): Promise<Result> {
    const call = this.calls.open(method, context);
    const { id } = call;
    const quiet = abandonment && { abandoned: new AbortController(), expired: new AbortController() };
    // Specification, basic/utilities/cancellation: the notification must not cancel `initialize` or a call that creates
    // a task.
    const onStop = (reason: unknown): void => {
      if (this.calls.closed.aborted) return;
      if (abandonment !== undefined && quiet !== undefined) this.#abandon(call, abandonment, quiet);
      else if (method !== "initialize") this.#cancel(call, errorMessage(reason));
    };
    call.onStop = onStop;
    try {
      const sentParams = typeof params === "function" ? params(id) : params;
      const message: RequestMessage = { jsonrpc: "2.0", id, method, params: sentParams };
      if (context.observer?.wire !== undefined && !this.#reportsRequests) this.report(context, "client", message);
      const sent = this.#transport.send(message, new CallSendOptions(this.calls, call, quiet));
      sent.then(undefined, (error: unknown) => {
        this.#abandoned.delete(id);
        this.calls.get(id)?.fail(error);
      });
    } catch (error) {
      // A transport may throw instead of rejecting.
      call.fail(error);
    }
    return call.answer;
  }

  notify(method: string, params?: Params): void {
    this.send({ jsonrpc: "2.0", method, ...(params === undefined ? undefined : { params }) });
  }

  send(message: Message): void {
    if (!this.calls.closed.aborted) void ignoreRejection(attempt(() => this.#transport.send(message)));
  }

  /** Tells what observes the call of this context that a message of the call passes. */
  report({ observer }: Pick<Context, "observer">, sender: WirePassage["sender"], message: Message): void {
    observer?.wire?.passed({ side: "upstream", sender, message, revision: this.listener.revision?.name });
  }

  /** The call with this id, abandoned calls included. */
  findCall(id: unknown): OutgoingCall | undefined {
    return this.calls.get(id) ?? this.#abandoned.get(id)?.call;
  }

  /** Ends our subscription with this id, as the server asked. A server cannot end other calls in this way. */
  endSubscription(id: unknown): void {
    const call = this.calls.get(id);
    if (call?.method === "subscriptions/listen")
      call.settle({ jsonrpc: "2.0", id: call.id, result: { resultType: "complete" } });
  }

  readonly #receive = (inbound: Inbound): void => {
    switch (inbound?.kind) {
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
      default:
        return this.#finish(notInbound(inbound));
    }
  };

  /** Fails the call that a malformed answer belongs to, so that the call does not have to time out. */
  #failMalformed({ id, error: { data } }: ErrorMessage): void {
    const details = isObject(data) ? data["details"] : data;
    const why = typeof details === "string" ? `: ${details}` : "";
    const call = id === null ? undefined : this.calls.get(plainId(id));
    call?.fail(new ConnectionError("protocol", `The server's answer is not a valid message${why}`));
  }

  #take(message: Message, requestId: Id | undefined): void {
    if (isResponse(message)) {
      const call = this.calls.find(message);
      if (call === undefined) this.#takeLate(message);
      else {
        if (call.context.observer?.wire !== undefined) this.report(call.context, "server", message);
        call.settle(message);
      }
    } else if (isRequest(message)) this.listener.onRequest(message, requestId);
    else if (isNotification(message)) this.listener.onNotification(message, requestId);
  }

  /** Answers to abandoned calls are delivered; other late or unknown answers are dropped. */
  #takeLate(message: ResponseMessage): void {
    const id = plainId(message.id);
    const late = this.#abandoned.get(id);
    if (late === undefined) return;
    this.#abandoned.delete(late.call.id);
    if ("result" in message) late.onLateAnswer(message.result);
  }

  #abandon({ id, method }: PendingCall, abandonment: Abandonment, { abandoned, expired }: QuietControl): void {
    this.#abandoned.set(id, { ...abandonment, call: { id, method, context: abandonment.context } });
    const expire = (): void => {
      this.#abandoned.delete(id);
      expired.abort();
    };
    unref(setTimeout(expire, ABANDONED_MS));
    abandoned.abort();
  }

  #cancel({ id: requestId, context }: PendingCall, reason: string): void {
    const message = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, reason } } as const;
    this.report(context, "client", message);
    this.send(message);
  }

  #finish(reason: ConnectionError): void {
    if (this.calls.closed.aborted) return;
    this.#abandoned.clear();
    this.calls.close(reason);
  }
}

type QuietControl = { readonly [Signal in keyof QuietCancel]: AbortController };

/** This is a class with getters, because the signal is created when it is first read, and stdio never reads it. */
class CallSendOptions implements SendOptions {
  readonly onWait: (isWaiting: boolean) => void;
  readonly quiet: QuietCancel | undefined;
  readonly #context: Context;

  /** Keeps the id and not the call: a transport may keep its options for longer than the call and its result. */
  constructor(calls: PendingCalls, { id, context }: PendingCall, quiet: QuietControl | undefined) {
    this.quiet = quiet && { abandoned: quiet.abandoned.signal, expired: quiet.expired.signal };
    this.#context = context;
    // Transports may take it out of the options.
    this.onWait = (isWaiting) => calls.get(id)?.onWait(isWaiting);
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get headers(): Context["headers"] {
    return this.#context.headers;
  }

  get wire(): WireObserver | undefined {
    return this.#context.observer?.wire;
  }
}

function connectionEnded(error: Error | undefined): ConnectionError {
  if (error instanceof ConnectionError) return error;
  return new ConnectionError("closed", "The server closed the connection", { cause: error });
}

/** The error for a transport of a user that passes on a message as it is, or what decodeInbound() returns to ignore one. */
function notInbound(value: unknown): ConnectionError {
  return new ConnectionError(
    "protocol",
    `The transport called its \`receive\` with ${kindOf(value)} in place of { kind, message, ... }; decodeInbound() of ` +
      "catenary/stdio makes one from a text, or undefined if the text must be ignored",
  );
}
