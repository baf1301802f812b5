// The response to one HTTP request. Its head is delayed until there is a JSON-RPC message to send: a response is sent
// as a JSON body, any other message as the first event of an SSE stream. A stream is also opened after a long silence,
// because proxies close connections that look dead.

import { encode } from "../../jsonrpc/codec.ts";
import { isResponse, type ErrorBody, type Id, type Message, type ResponseMessage } from "../../jsonrpc/message.ts";
import { SseWriter } from "./sse.ts";
import { SharedTimer } from "./shared-timer.ts";
import { ByteBudget } from "../../core/budgets.ts";
import type { HttpRequest, UnsentResponse } from "./http-request.ts";
import { unsendableResponse } from "../../dialogue/calls/errors.ts";
import type { HttpLimits } from "./options.ts";

type Headers = Readonly<Record<string, string>>;

/** The status and headers to send with an error that is an authorization failure. */
export interface Denial {
  readonly status: number;
  readonly headers: Headers;
}

/** Called if a reply is silent for long. An object, because a function for each request costs more. */
export interface SilenceListener {
  onSilence(): void;
}

const JSON_TYPE: Headers = { "content-type": "application/json" };
const TICK_MS = 1_000;

/**
 * What all replies of a server share: a timer for open streams, one for pending replies, and the budget of bytes that
 * clients have not read.
 */
export class ReplyTimers {
  readonly budget: ByteBudget;
  readonly #limits: HttpLimits;
  readonly pending: SharedTimer<Reply>;
  readonly #streams: SharedTimer<SseWriter>;

  constructor(limits: HttpLimits) {
    this.#limits = limits;
    this.budget = new ByteBudget({ peerBytes: limits.unreadBytes, totalBytes: limits.heldBytes });
    this.#streams = new SharedTimer(Math.min(TICK_MS, limits.keepAliveMs, limits.lingeringMs), (stream, now) =>
      stream.tick(now),
    );
    this.pending = new SharedTimer(Math.min(TICK_MS, limits.silenceMs), (reply, now) => {
      if (now - reply.since >= limits.silenceMs) reply.silenceElapsed();
    });
  }

  /** `onClose` may be called before this returns, if the client has already disconnected. */
  openStream(request: HttpRequest, headers: Headers, onClose: (stream: SseWriter) => void): SseWriter {
    const closed = (_how: unknown, unsent?: UnsentResponse): void => {
      this.#streams.delete(stream);
      this.hold(unsent);
      onClose(stream);
    };
    const stream: SseWriter = new SseWriter(request.stream(headers), this.#limits, closed, this.budget);
    this.#streams.add(stream);
    request.onDisconnect(() => stream.destroy());
    return stream;
  }

  /** Counts a response until the client has read it, and limits how long it may take to read on. */
  hold(unsent: UnsentResponse | undefined): void {
    if (unsent === undefined) return;
    unsent.onClose(() => this.budget.release(unsent));
    if (unsent.heldBytes > this.#limits.lingeringBytes) unsent.limitStall(this.#limits.lingeringMs);
    this.budget.update(unsent);
  }

  close(): void {
    this.#streams.clear();
    this.pending.clear();
  }
}

export class Reply {
  readonly request: HttpRequest;
  readonly since: number = performance.now();
  /** The id of the JSON-RPC request; null until the request has been read. */
  id: Id | null = null;
  /** Sent with the response, whether JSON or SSE. */
  headers: Headers;
  /** Decides which errors are authorization failures. Never throws. */
  denialFor: ((error: ErrorBody) => Denial | undefined) | undefined;
  readonly #timers: ReplyTimers;
  #silenceListener: SilenceListener | undefined;
  #hasStarted = false;

  constructor(request: HttpRequest, headers: Headers, timers: ReplyTimers) {
    this.request = request;
    this.headers = headers;
    this.#timers = timers;
  }

  /** Whether the response head has been sent. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** Calls the listener once if nothing has been sent for `limits.silenceMs`. */
  watchSilence(listener: SilenceListener): void {
    this.#silenceListener = listener;
    this.#timers.pending.add(this);
  }

  silenceElapsed(): void {
    this.#timers.pending.delete(this);
    if (!this.#hasStarted && !this.request.isDisconnected) this.#silenceListener?.onSilence();
  }

  /** Sends a response as a JSON body. An authorization failure has its own status instead of `status`. Never throws. */
  sendJson(message: ResponseMessage | readonly Message[], status = 200): void {
    if (this.#hasStarted) return;
    this.#start();
    const denial = "error" in message ? this.denialFor?.(message.error) : undefined;
    const headers =
      denial === undefined ? jsonHeaders(this.headers) : { ...JSON_TYPE, ...this.headers, ...denial.headers };
    this.#timers.hold(this.request.respond(denial?.status ?? status, headers, encodeResponse(message)));
  }

  /** Sends a response without a body. */
  sendEmpty(status: number): void {
    if (this.#hasStarted) return;
    this.#start();
    this.request.respond(status, this.headers);
  }

  /** Starts an SSE response; at most once. */
  openStream(onClose: (stream: SseWriter) => void): SseWriter {
    this.#start();
    return this.#timers.openStream(this.request, this.headers, onClose);
  }

  #start(): void {
    this.#hasStarted = true;
    this.#timers.pending.delete(this);
  }
}

function jsonHeaders(headers: Headers): Headers {
  for (const _name in headers) return { ...JSON_TYPE, ...headers };
  return JSON_TYPE;
}

/** Encodes a message. A response that cannot be encoded becomes an error response. Throws for any other message. */
export function encodeResponse(message: Message | readonly Message[]): string {
  try {
    return encode(message);
  } catch (error) {
    if (!Array.isArray(message) && !isResponse(message as Message)) throw error;
    if (Array.isArray(message))
      return encode((message as ResponseMessage[]).map((one) => unsendableResponse(one, error)));
    return encode(unsendableResponse(message as ResponseMessage, error));
  }
}
