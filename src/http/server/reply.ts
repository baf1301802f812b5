// The response to one HTTP request, and the carrier of the call that came with it. Its head is delayed until there is a
// JSON-RPC message to send: a response is sent as a JSON body, any other message as the first event of an SSE stream. A
// stream is also opened after a long silence, because proxies close connections that look dead. With a log, the stream
// belongs to a session and can be resumed; without one, the call ends when the client disconnects.

import type { Identity } from "../../core/authentication.ts";
import { BodyLimiter, ByteBudget } from "../../core/byte-budget.ts";
import type { RawHead } from "../../core/handler.ts";
import { unsendableResponse } from "../../dialogue/calls/errors.ts";
import { decode, encode } from "../../jsonrpc/codec.ts";
import { type ErrorBody, type Id, isBatch, type Message, type ResponseMessage } from "../../jsonrpc/message.ts";
import type { Carrier, CarrierListener } from "../../transport/carrier.ts";
import type { Inbound } from "../../transport/transport.ts";
import { NO_HEADERS } from "./guard.ts";
import {
  type BodyLimits,
  type BodyReceiver,
  HttpError,
  type HttpRequest,
  STREAM_HEADERS,
  type UnsentResponse,
} from "./http-request.ts";
import type { FixedLimits, LimitValues } from "./options.ts";
import type { ReplayStream } from "./replay-stream.ts";
import { SharedTimer } from "./shared-timer.ts";
import { formatEvent, SseWriter } from "./sse-writer.ts";
import { statusOf } from "./statuses.ts";

type Headers = Readonly<Record<string, string>>;

/** The parsed body of a POST: one message, or a batch. */
export type ParsedBody = Extract<Inbound, { readonly kind: "message" | "batch" }>;

/** From this length on, the characters of a body count until its request is finished. */
const LONG_BODY_LENGTH = 64 * 1024;

/** The status and headers to send with an error that is an authorization failure. */
export interface Denial {
  readonly status: number;
  readonly headers: Headers;
}

const JSON_TYPE: Headers = { "content-type": "application/json" };
const TICK_MS = 1_000;

/**
 * What all replies of a server share: a timer for open streams, one for pending replies, and the budget of bytes that
 * clients have not read.
 */
export class ReplyTimers {
  readonly budget: ByteBudget;
  readonly limits: LimitValues & FixedLimits;
  readonly bodyLimits: BodyLimits;
  readonly pending: SharedTimer<HttpReply>;
  /** Sends the response for an error that ended a request. */
  readonly fail: (reply: HttpReply, error: unknown) => void;
  readonly #streams: SharedTimer<SseWriter>;

  constructor(limits: LimitValues & FixedLimits, fail: (reply: HttpReply, error: unknown) => void) {
    this.limits = limits;
    this.fail = fail;
    this.budget = new ByteBudget({ peerBytes: limits.unreadBytes, totalBytes: limits.heldBytes });
    const { messageBytes, bodyMs } = limits;
    this.bodyLimits = { messageBytes, bodyMs, bodies: new BodyLimiter(limits.requests, this.budget) };
    this.#streams = new SharedTimer(Math.min(TICK_MS, limits.keepAliveMs, limits.lingeringMs), (stream, now) =>
      stream.tick(now),
    );
    this.pending = new SharedTimer(Math.min(TICK_MS, limits.silenceMs), (reply, now) => {
      if (now - reply.since >= limits.silenceMs) reply.silenceElapsed();
    });
  }

  /** `onClose` may be called before this returns, if the client has already disconnected. */
  openStream(request: HttpRequest, headers: Headers, onClose: (stream: SseWriter) => void): SseWriter {
    const closed = (unsent?: UnsentResponse): void => {
      this.#streams.delete(stream);
      if (unsent !== undefined) this.hold(unsent);
      onClose(stream);
    };
    const stream: SseWriter = new SseWriter(request.stream(headers), this.limits, closed, this.budget);
    this.#streams.add(stream);
    request.onDisconnect(stream);
    return stream;
  }

  /** Counts a response until the client has read it, and limits how long it may take to read on. */
  hold(unsent: UnsentResponse): void {
    unsent.onClose(() => this.budget.release(unsent));
    if (unsent.heldBytes > this.limits.lingeringBytes) unsent.limitStall(this.limits.lingeringMs);
    this.budget.update(unsent);
  }

  close(): void {
    this.#streams.clear();
    this.pending.clear();
  }
}

/** The session of a reply, which logs its stream so that the client can resume it. */
export interface ReplyLog {
  /** Whether a stream may end before the response. */
  readonly canHangUp: boolean;
  /** Whether the client can resume a stream. If not, the call ends when it disconnects. */
  readonly canResume: boolean;
  beforeResponse(reply: HttpReply, response: ResponseMessage | readonly ResponseMessage[]): void;
  openStream(reply: HttpReply): ReplayStream;
  /** Sends a message that the client of the reply can no longer get outside of any request. */
  divert(message: Message): void;
  /** Called when the reply has been answered, or will not be. */
  onDone(reply: HttpReply): void;
}

/** Takes the message of a POST. May throw. */
export interface MessageReceiver {
  take(body: ParsedBody, reply: HttpReply): void;
}

export class HttpReply implements Carrier, BodyReceiver {
  readonly request: HttpRequest;
  readonly since: number;
  readonly isAlone: true;
  /** Who sends the request, if callers are authenticated. */
  identity: Identity | undefined;
  /** The id of the JSON-RPC request; null until the request has been read. */
  id: Id | null;
  /** The length of a long body. */
  bodyLength: number;
  /** Sent with the response, whether JSON or SSE. */
  headers: Headers;
  /** Decides which errors are authorization failures. Never throws. */
  denialFor: ((error: ErrorBody) => Denial | undefined) | undefined;
  readonly #timers: ReplyTimers;
  /** What wants to know the head of the response. */
  #headListeners: ((head: RawHead) => void)[] | undefined;
  #receiver: MessageReceiver | undefined;
  #log: ReplyLog | undefined;
  #call: CarrierListener | undefined;
  #stream: SseWriter | undefined;
  #replay: ReplayStream | undefined;
  hasStarted: boolean;
  /** Whether the response has been sent, or there will be none. */
  #isDone: boolean;

  constructor(request: HttpRequest, headers: Headers, timers: ReplyTimers) {
    this.request = request;
    this.since = performance.now();
    this.isAlone = true;
    this.identity = undefined;
    this.id = null;
    this.bodyLength = 0;
    this.headers = headers;
    this.denialFor = undefined;
    this.#timers = timers;
    this.#headListeners = undefined;
    this.#receiver = undefined;
    this.#log = undefined;
    this.#call = undefined;
    this.#stream = undefined;
    this.#replay = undefined;
    this.hasStarted = false;
    this.#isDone = false;
  }

  get limits(): LimitValues {
    return this.#timers.limits;
  }

  /** Reads the body, and passes the message to the receiver. Sends the response if it is not valid. */
  readMessage(receiver: MessageReceiver): void {
    checkContentType(this.request.headers["content-type"]);
    this.#receiver = receiver;
    this.request.readBody(this.#timers.bodyLimits, this);
  }

  onBody(text: string): void {
    const decoded = decode(text, this.#timers.limits);
    if (text.length >= LONG_BODY_LENGTH) this.bodyLength = text.length;
    if (decoded.kind === "fault") {
      // An invalid response from the client has the id of a request of ours. An error with this id would look to the
      // client like the answer to one of its own requests.
      return this.sendJson(decoded.answerable ? decoded.fault : { ...decoded.fault, id: null }, 400);
    }
    // Set here, so that later errors contain the id of the request.
    if (decoded.kind === "message" && "method" in decoded.message && "id" in decoded.message)
      this.id = decoded.message.id;
    try {
      this.#receiver?.take(decoded.kind === "message" ? decoded : withoutResponses(decoded), this);
    } catch (error) {
      this.onError(error);
    }
  }

  onError(error: unknown): void {
    this.#timers.fail(this, error);
  }

  /** Whether the client has disconnected and cannot resume. */
  get isGone(): boolean {
    if (this.#replay !== undefined) return !this.#replay.isReachable;
    return this.#stream === undefined ? this.request.isDisconnected : this.#stream.isClosed;
  }

  watchHead(listener: (head: RawHead) => void): RawHead {
    (this.#headListeners ??= []).push(listener);
    const { method, path, headers } = this.request;
    return { line: `${method} ${path}`, headers };
  }

  #reportHead(status: number, headers: Headers): void {
    for (const listener of this.#headListeners ?? []) listener({ line: status, headers });
  }

  /** Begins to carry a call, of the session whose log this is. Call this before the call begins. */
  carry(log?: ReplyLog): void {
    this.#log = log;
    this.#timers.pending.add(this);
  }

  watch(call: CarrierListener): void {
    this.#call = call;
    if (this.#log?.canResume !== true) this.request.onDisconnect(this);
  }

  /** Called when the client has disconnected. */
  disconnect(): void {
    if (!this.#isDone && this.#log?.canResume !== true) this.#call?.onGone();
  }

  /** Opens a stream if nothing has been sent for `silenceMs`. */
  silenceElapsed(): void {
    this.#timers.pending.delete(this);
    if (this.hasStarted || this.request.isDisconnected) return;
    this.#write();
  }

  send(message: Message): void {
    if (this.#isDone) return;
    if (!this.isGone) this.#write(encode(message, this.#timers.limits.messageBytes), false);
    else this.#log?.divert(message);
  }

  finish(response: ResponseMessage | readonly ResponseMessage[]): undefined {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#log?.beforeResponse(this, response);
    if (!this.isGone) {
      if (this.#stream === undefined && this.#replay === undefined) {
        // Only stateless clients get statuses other than 200.
        const isError = this.#log === undefined && "error" in response;
        this.sendJson(response, isError ? statusOf(response.error) : 200);
      } else this.#write(encodeResponse(response, this.#timers.limits), true);
    }
    this.#log?.onDone(this);
  }

  drop(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    if (this.#replay !== undefined) this.#replay.finish();
    else if (this.#stream !== undefined) this.#stream.end();
    // This stream sends no event id, so the client does not try to resume it.
    else if (!this.isGone) this.openStream().end();
    this.#log?.onDone(this);
  }

  /** Closes the connection of the stream, except in revisions that forbid this before the response. */
  hangUp(retryMs: number): void {
    if (this.#isDone || this.isGone || this.#log?.canHangUp !== true) return;
    this.#write();
    this.#replay?.hangUp(retryMs);
  }

  /** Writes a message to the stream, which is opened first if it is not open. */
  #write(text?: string, isLast = false): void {
    const log = this.#log;
    if (log !== undefined) {
      this.#replay ??= log.openStream(this);
      if (text !== undefined) this.#replay.send(text, isLast);
      return;
    }
    this.#stream ??= this.openStream();
    if (text !== undefined) this.#stream.send(formatEvent({ event: "message", data: text }));
    if (isLast) this.#stream.end();
  }

  /** Sends a response as a JSON body. An authorization failure has its own status instead of `status`. Never throws. */
  sendJson(message: ResponseMessage | readonly ResponseMessage[], status = 200): void {
    if (this.hasStarted) return;
    this.#start();
    const denial = "error" in message ? this.denialFor?.(message.error) : undefined;
    const isPlain = denial === undefined && this.headers === NO_HEADERS;
    const headers = isPlain ? JSON_TYPE : { ...JSON_TYPE, ...this.headers, ...denial?.headers };
    const text = encodeResponse(message, this.#timers.limits);
    if (this.#headListeners !== undefined) this.#reportHead(denial?.status ?? status, headers);
    const unsent = this.request.respond(denial?.status ?? status, headers, text);
    if (unsent !== undefined) this.#timers.hold(unsent);
  }

  /** Sends a response without a body. */
  sendEmpty(status: number): void {
    if (this.hasStarted) return;
    this.#start();
    this.request.respond(status, this.headers);
  }

  /** Starts an SSE response; at most once. */
  openStream(onClose?: (stream: SseWriter) => void): SseWriter {
    this.#start();
    if (this.#headListeners !== undefined) this.#reportHead(200, { ...STREAM_HEADERS, ...this.headers });
    return this.#timers.openStream(this.request, this.headers, (stream) => {
      onClose?.(stream);
      this.disconnect();
    });
  }

  #start(): void {
    this.hasStarted = true;
    this.#timers.pending.delete(this);
  }
}

/** Responses to us are never answered, so invalid ones are left out of a batch. */
function withoutResponses(batch: ParsedBody & { readonly kind: "batch" }): ParsedBody {
  return { kind: "batch", items: batch.items.filter((item) => !("fault" in item) || item.answerable !== false) };
}

/**
 * Throws a 415 unless the body is JSON. Any web page can post some of the other types, such as plain text, without a
 * CORS preflight.
 */
function checkContentType(type: string | undefined): void {
  if (type === "application/json") return;
  if (type?.split(";", 1)[0]?.trim().toLowerCase() === "application/json") return;
  const problem = type === undefined ? "it is missing" : `got ${JSON.stringify(type)}`;
  throw new HttpError(415, `The header Content-Type must be application/json; ${problem}`);
}

/** Encodes a response. One that cannot be encoded, or is too long, becomes an error response. */
function encodeResponse(response: ResponseMessage | readonly ResponseMessage[], { messageBytes }: LimitValues): string {
  try {
    return encode(response, messageBytes);
  } catch (error) {
    if (isBatch(response)) return encode(response.map((single) => unsendableResponse(single, error)));
    return encode(unsendableResponse(response, error));
  }
}
