// Serves the stateless style over HTTP: each POST is one self-contained request. Its headers must agree with its body,
// some errors have their own status, and a disconnect cancels the request. Only parked calls are kept between requests:
// their handlers wait until the client retries the request with the input that it was asked for.

import { ChurningSet } from "../../core/collections.ts";
import type { FairLimit } from "../../core/budgets.ts";
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
import { readEnvelope, type Envelope } from "../../protocol/params.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import { type SseWriter, formatEvent } from "./sse.ts";
import type { Inbound } from "../../transport/transport.ts";
import { StatelessFront, type StatelessFrontOptions } from "../../dialogue/stateless/front.ts";
import { cancellationError } from "../../dialogue/calls/errors.ts";
import { untrackedCall, type InFlightCall, runRequest, SETTLE_MS } from "../../dialogue/calls/in-flight.ts";
import { ParkedCalls, type ParkedCallsOptions } from "../../dialogue/stateless/parked-calls.ts";
import { checkHeaders } from "../headers.ts";
import { errorResponse, statusOf, takePlace, NEVER_ABORTED, type Release, type SharedLimits } from "./admission.ts";
import { encodeResponse, type Reply, type SilenceListener } from "./reply.ts";

export class StatelessEndpoint {
  readonly #front: StatelessFront;
  readonly #parkedCalls: ParkedCalls;
  readonly #listens: FairLimit;
  readonly #fail: SharedLimits["fail"];
  readonly #calls = new ChurningSet<StatelessInbound>();
  #onIdle: (() => void) | undefined;

  constructor(
    handler: Handler,
    options: StatelessFrontOptions,
    parkedCalls: ParkedCallsOptions | undefined,
    listens: FairLimit,
    { fail }: SharedLimits,
  ) {
    this.#parkedCalls = new ParkedCalls(parkedCalls);
    this.#front = new StatelessFront(handler, this.#parkedCalls, options);
    this.#listens = listens;
    this.#fail = fail;
  }

  /** Calls `release` when the response was sent, or the client has disconnected. */
  post(message: Message, reply: Reply, caller: Partial<Caller>, release: Release): void {
    if (isResponse(message)) {
      const problem = "Responses cannot be posted in this revision: send inputResponses in a retry of the request";
      reply.sendJson(errorResponse(400, problem), 400);
    } else if (isNotification(message)) {
      reply.sendEmpty(202);
      if (isVendorMethod(message.method)) return this.#takeVendor(message, caller, release);
    } else return this.#answer(message, reply, caller, release);
    release();
  }

  /** A vendor's notification. It has no stream, so nothing can be sent back. */
  #takeVendor(message: NotificationMessage, caller: Partial<Caller>, release: Release): void {
    const inbound: Inbound = { kind: "message", message, caller, gone: NEVER_ABORTED, reply: async () => undefined };
    const done = (): void => release();
    this.#front.takeVendor(message, inbound, untrackedCall(false)).then(done, done);
  }

  #answer(message: RequestMessage, reply: Reply, caller: Partial<Caller>, release: Release): void {
    const { id, method } = message;
    let envelope: Envelope;
    try {
      envelope = readEnvelope(message.params ?? {});
      checkHeaders(message, envelope.name, reply.request.headers);
    } catch (error) {
      reply.sendJson({ jsonrpc: "2.0", id, error: this.#front.errorBody(error, message) }, 400);
      return release();
    }
    const isListen = method === "subscriptions/listen";
    const call = untrackedCall(isListen, envelope);
    const inbound = new StatelessInbound(message, reply, caller, call, release);
    const cancel = (): void => inbound.cancel();
    reply.request.onDisconnect(cancel);
    // The client had already disconnected, so `cancel` was called at once.
    if (call.cancelled) return;
    if (isListen) takePlace(this.#listens, caller.principal, "subscriptions");
    reply.watchSilence(inbound);
    this.#calls.add(inbound);
    inbound.running = runRequest(this.#front, message, inbound, call);
    const settle = (response: ResponseMessage): void => {
      this.#end(inbound);
      if (call.cancelled) return;
      try {
        inbound.finish(response);
      } catch (error) {
        this.#fail(reply, error);
      }
    };
    const failed = (error: unknown): void => {
      this.#end(inbound);
      this.#fail(reply, error);
    };
    inbound.running.then(settle, failed);
  }

  #end(inbound: StatelessInbound): void {
    const { call, caller } = inbound;
    call.done = true;
    this.#calls.delete(inbound);
    if (call.background) this.#listens.release(caller.principal);
    inbound.release();
    if (this.#calls.size === 0) this.#onIdle?.();
  }

  /** Ends subscriptions at once; other calls may finish within `graceMs`. */
  async close(graceMs: number): Promise<void> {
    const reason = new Error("The connection is closed");
    for (const { call } of this.#calls.all()) if (call.background) call.cancelToken.abort(reason);
    await this.#drain(graceMs);
    for (const { call } of this.#calls.all()) call.cancelToken.abort(reason);
    await this.#drain(SETTLE_MS);
    // The handlers that still run ignore their signal. Their clients get an error now.
    for (const inbound of this.#calls.all()) {
      const { call } = inbound;
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
}

/** A request, and the HTTP reply that carries its response and notifications. */
class StatelessInbound implements Inbound, SilenceListener {
  readonly kind = "message";
  readonly message: RequestMessage;
  readonly caller: Partial<Caller>;
  readonly call: InFlightCall;
  readonly release: Release;
  /** Set once the call runs; the client may disconnect before that. */
  running: Promise<ResponseMessage> | undefined;
  readonly #reply: Reply;
  #stream: SseWriter | undefined;
  #isClosed = false;
  #isFinished = false;

  constructor(message: RequestMessage, reply: Reply, caller: Partial<Caller>, call: InFlightCall, release: Release) {
    this.message = message;
    this.#reply = reply;
    this.caller = caller;
    this.call = call;
    this.release = release;
  }

  /** Called when the client has left, or was disconnected as too slow, before the response. */
  cancel(): void {
    const { call } = this;
    if (!call.done && !call.cancelled) {
      call.cancelled = true;
      call.cancelToken.abort(cancellationError("it disconnected", "the caller"));
    }
    this.release(this.running);
  }

  onSilence(): void {
    this.openStream();
  }

  get gone(): AbortSignal {
    return this.#reply.request.isDisconnected || this.#isClosed ? AbortSignal.abort() : NEVER_ABORTED;
  }

  openStream(): SseWriter {
    return (this.#stream ??= this.#reply.openStream(() => {
      if (!this.#isFinished) this.cancel();
      this.#isClosed = true;
    }));
  }

  async reply(message: Message | readonly Message[]): Promise<void> {
    if (!this.#isClosed) this.openStream().send(formatEvent({ event: "message", data: encode(message) }));
  }

  /** Sends the response and ends the reply. */
  finish(response: ResponseMessage): void {
    this.#isFinished = true;
    if (this.#stream === undefined)
      this.#reply.sendJson(response, "error" in response ? statusOf(response.error) : 200);
    else {
      this.#stream.send(formatEvent({ event: "message", data: encodeResponse(response) }));
      this.#stream.end();
    }
  }
}
