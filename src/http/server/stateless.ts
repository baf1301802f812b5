// Serves the stateless style over HTTP: each POST is one self-contained request. Its headers must agree with its body,
// some errors have their own status, and a disconnect cancels the request. Only parked calls are kept between requests:
// their handlers wait until the client retries the request with the input that it was asked for.

import type { FairLimit } from "../../core/fair-limit.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { encode } from "../../jsonrpc/codec.ts";
import {
  isNotification,
  isResponse,
  type Message,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
} from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import { type SseWriter, formatEvent } from "./sse.ts";
import type { Inbound, ReplyOptions } from "../../transport/transport.ts";
import { envelope, StatelessFront, type StatelessFrontOptions } from "../../dialogue/stateless/front.ts";
import { cancellationError } from "../../dialogue/calls/errors.ts";
import { untrackedCall, type InFlightCall, runRequest, SETTLE_MS } from "../../dialogue/calls/in-flight.ts";
import { ParkedCalls, type ParkedCallsOptions } from "../../dialogue/stateless/parked-calls.ts";
import { checkHeaders } from "../headers.ts";
import { errorResponse, statusOf, takePlace, NEVER_ABORTED, type Release } from "./admission.ts";
import { encodeResponse, type Reply } from "./reply.ts";

export class StatelessEndpoint {
  readonly #front: StatelessFront;
  readonly #parkedCalls: ParkedCalls;
  readonly #listens: FairLimit;
  readonly #calls = new Map<InFlightCall, StatelessInbound>();
  #onIdle: (() => void) | undefined;

  constructor(
    handler: Handler,
    options: StatelessFrontOptions,
    parkedCalls: ParkedCallsOptions | undefined,
    listens: FairLimit,
  ) {
    this.#parkedCalls = new ParkedCalls(parkedCalls);
    this.#front = new StatelessFront(handler, this.#parkedCalls, options);
    this.#listens = listens;
  }

  /** Resolves when the response was sent or, after a disconnect, when the handler has returned. */
  async post(message: Message, reply: Reply, caller: Partial<Caller>, release: Release): Promise<void> {
    if (isResponse(message)) {
      const problem = "Responses cannot be posted in this revision: send inputResponses in a retry of the request";
      reply.sendJson(errorResponse(400, problem), 400);
    } else if (isNotification(message)) {
      reply.sendEmpty(202);
      if (isVendorMethod(message.method)) await this.#takeVendor(message, caller);
    } else await this.#answer(message, reply, caller, release);
  }

  /** A vendor's notification. It has no stream, so nothing can be sent back. */
  async #takeVendor(message: NotificationMessage, caller: Partial<Caller>): Promise<void> {
    const inbound: Inbound = { kind: "message", message, caller, gone: NEVER_ABORTED, reply: async () => undefined };
    await this.#front.takeVendor(message, inbound, untrackedCall(false)).catch(() => undefined);
  }

  async #answer(message: RequestMessage, reply: Reply, caller: Partial<Caller>, release: Release): Promise<void> {
    const { id, method } = message;
    try {
      const { name } = envelope(message.params ?? {});
      checkHeaders(message, name, reply.request.headers);
    } catch (error) {
      reply.sendJson({ jsonrpc: "2.0", id, error: this.#front.errorBody(error, message) }, 400);
      return;
    }
    const isListen = method === "subscriptions/listen";
    if (isListen) takePlace(this.#listens, caller.principal, "subscriptions");
    const call = untrackedCall(isListen);
    const inbound = new StatelessInbound(message, reply, caller);
    // `promise` is set once the call runs; the client may have disconnected before that.
    const running: { promise?: Promise<ResponseMessage> } = {};
    const cancel = (): void => {
      this.#cancel(call);
      release(running.promise);
    };
    reply.request.onDisconnect(cancel);
    // The client had already disconnected, so `cancel` was called at once.
    if (call.cancelled) {
      if (isListen) this.#listens.release(caller.principal);
      return;
    }
    inbound.onDestroyed = cancel;
    reply.onSilence(() => inbound.openStream());
    this.#calls.set(call, inbound);
    running.promise = runRequest(this.#front, message, inbound, call);
    try {
      const response = await running.promise;
      call.done = true;
      if (!call.cancelled) inbound.finish(response);
    } finally {
      if (isListen) this.#listens.release(caller.principal);
      this.#calls.delete(call);
      if (this.#calls.size === 0) this.#onIdle?.();
    }
  }

  /** Ends subscriptions at once; other calls may finish within `graceMs`. */
  async close(graceMs: number): Promise<void> {
    const reason = new Error("The connection is closed");
    for (const call of this.#calls.keys()) if (call.background) call.cancelToken.abort(reason);
    await this.#drain(graceMs);
    for (const call of this.#calls.keys()) call.cancelToken.abort(reason);
    await this.#drain(SETTLE_MS);
    // The handlers that still run ignore their signal. Their clients get an error now.
    for (const [call, inbound] of this.#calls) {
      if (call.cancelled) continue;
      call.cancelled = true;
      const error = McpError.of("unreachable", "The server was shut down before the request was answered").toBody();
      inbound.finish({ jsonrpc: "2.0", id: inbound.message.id, error });
    }
    this.#parkedCalls.close();
  }

  async #drain(ms: number): Promise<void> {
    if (this.#calls.size === 0 || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#onIdle = undefined;
  }

  #cancel(call: InFlightCall): void {
    if (call.done || call.cancelled) return;
    call.cancelled = true;
    call.cancelToken.abort(cancellationError("it disconnected", "the caller"));
  }
}

/** A request, and the HTTP reply that carries its response and notifications. */
class StatelessInbound implements Inbound {
  readonly kind = "message";
  readonly message: RequestMessage;
  readonly caller: Partial<Caller>;
  /** Called when the stream closes before the response: the client has left, or was disconnected as too slow. */
  onDestroyed: (() => void) | undefined;
  readonly #reply: Reply;
  #stream: SseWriter | undefined;
  #isClosed = false;

  constructor(message: RequestMessage, reply: Reply, caller: Partial<Caller>) {
    this.message = message;
    this.#reply = reply;
    this.caller = caller;
  }

  get gone(): AbortSignal {
    return this.#reply.request.isDisconnected || this.#isClosed ? AbortSignal.abort() : NEVER_ABORTED;
  }

  openStream(): SseWriter {
    return (this.#stream ??= this.#reply.openStream(() => {
      this.#isClosed = true;
      this.onDestroyed?.();
    }));
  }

  async reply(message: Message | readonly Message[], _options?: ReplyOptions): Promise<void> {
    if (!this.#isClosed) this.openStream().send(formatEvent({ event: "message", data: encode(message) }));
  }

  /** Sends the response and ends the reply. */
  finish(response: ResponseMessage): void {
    this.onDestroyed = undefined;
    if (this.#stream === undefined)
      this.#reply.sendJson(response, "error" in response ? statusOf(response.error) : 200);
    else {
      this.#stream.send(formatEvent({ event: "message", data: encodeResponse(response) }));
      this.#stream.end();
    }
  }
}
