// The response to one HTTP request. Its head is delayed until there is a JSON-RPC message to send: a response is sent
// as a JSON body, any other message as the first event of an SSE stream. A stream is also opened after a long silence,
// because proxies close connections that look dead.

import { unref } from "../../core/async.ts";
import { ByteBudget } from "../../core/budgets.ts";
import type { ByteHolder } from "../../core/budgets.ts";
import { ChurningSet } from "../../core/collections.ts";
import { unsendableResponse } from "../../dialogue/calls/errors.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { isResponse } from "../../jsonrpc/message.ts";
import type { ErrorBody, Id, Message, ResponseMessage } from "../../jsonrpc/message.ts";
import type { HttpRequest, StreamSink, UnsentResponse } from "./http-request.ts";
import type { FixedLimits, LimitValues } from "./options.ts";

// Writes server-sent events, and disconnects clients that read too slowly, so that unread data cannot fill the memory.
// It has no timer, so `tick` must be called about once a second.

/** One event; every part is optional. Without `data` it only sets the id or the reconnection time. */
export interface SseEvent {
  readonly id?: string;
  readonly event?: string;
  /** Milliseconds after which a disconnected client reconnects. */
  readonly retry?: number;
  readonly data?: string;
}

export type StreamLimits = Pick<FixedLimits, "unreadBytes" | "lingeringBytes" | "lingeringMs"> &
  Pick<LimitValues, "keepAliveMs">;

const COMMENT = ":\n\n";

export class SseWriter implements ByteHolder {
  readonly #sink: StreamSink;
  readonly #limits: StreamLimits;
  readonly #budget: ByteBudget;
  readonly #onClose: (how: "ended" | "destroyed", unsent?: UnsentResponse) => void;
  #isClosed = false;
  /** Whether anything was written since the last tick. True at first, so that the first tick sets `#silentSince`. */
  #hasWritten = true;
  #silentSince = 0;
  #lingersSince: number | undefined;

  /**
   * `onClose` is called once: by `end`, by `destroy`, or when a slow client is disconnected. The owner must call
   * `destroy` if the client disconnects. An ended stream may have a part that is not sent yet.
   */
  constructor(
    sink: StreamSink,
    limits: StreamLimits,
    onClose: (how: "ended" | "destroyed", unsent?: UnsentResponse) => void = () => {},
    budget: ByteBudget = new ByteBudget({ peerBytes: limits.unreadBytes, totalBytes: Infinity }),
  ) {
    this.#sink = sink;
    this.#limits = limits;
    this.#onClose = onClose;
    this.#budget = budget;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Bytes written that have not been sent to the client yet. */
  get heldBytes(): number {
    return this.#sink.bufferedBytes;
  }

  /** Sends one or more events made by `formatEvent`. */
  send(text: string): void {
    if (this.#isClosed) return;
    if (!this.#budget.admits(this)) return this.destroy();
    this.#hasWritten = true;
    this.#sink.write(text);
    if (this.#sink.bufferedBytes > 0) this.#budget.update(this);
  }

  /** Sends a comment, which every client skips. */
  comment(text = ""): void {
    this.send(text === "" ? COMMENT : `: ${text.replaceAll(/\r\n|\r|\n/g, "\n: ")}\n\n`);
  }

  /** `now` must be monotonic. */
  tick(now: number): void {
    if (this.#isClosed) return;
    if (this.#sink.bufferedBytes <= this.#limits.lingeringBytes) this.#lingersSince = undefined;
    else if (this.#lingersSince === undefined) this.#lingersSince = now;
    else if (now - this.#lingersSince >= this.#limits.lingeringMs) return this.destroy();
    if (this.#hasWritten) {
      this.#hasWritten = false;
      this.#silentSince = now;
    } else if (now - this.#silentSince >= this.#limits.keepAliveMs) {
      this.comment();
    }
  }

  /** Ends the stream once everything sent so far is written. */
  end(): void {
    if (!this.#close()) return;
    this.#onClose("ended", this.#sink.end());
  }

  /** Disconnects at once; unsent data is lost. */
  destroy(): void {
    if (!this.#close()) return;
    this.#sink.destroy();
    this.#onClose("destroyed");
  }

  disconnect(): void {
    this.destroy();
  }

  #close(): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#budget.release(this);
    return true;
  }
}

/** Formats an event for the stream. */
export function formatEvent(parts: SseEvent): string {
  const { id, event, retry, data } = parts;
  let text = "";
  if (id !== undefined) text += `id: ${oneLine("id", id)}\n`;
  if (event !== undefined) text += `event: ${oneLine("event", event)}\n`;
  if (retry !== undefined) text += `retry: ${Math.max(0, Math.ceil(retry))}\n`;
  if (data !== undefined) text += `data: ${hasLineBreak(data) ? data.replaceAll(/\r\n|\r|\n/g, "\ndata: ") : data}\n`;
  return `${text}\n`;
}

function hasLineBreak(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

function oneLine(field: string, text: string): string {
  // Clients ignore an id that contains NUL, and read what follows a line break as another field.
  if (hasLineBreak(text) || text.includes("\0")) throw new TypeError(`the ${field} of an event must be a single line`);
  return text;
}

// One interval timer for many members, such as open streams and incomplete request bodies, so that none needs its own
// timer. It runs only while it has members, and never keeps the process alive.

export class SharedTimer<T> extends ChurningSet<T> {
  readonly #tickMs: number;
  readonly #act: (member: T, now: number) => void;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Calls `act` for each member at each tick; `now` is monotonic. Removes a member if `act` throws. */
  constructor(tickMs: number, act: (member: T, now: number) => void) {
    super();
    this.#tickMs = tickMs;
    this.#act = act;
  }

  /** After `delete`, an empty timer stops at its next tick. Otherwise it would restart for each member that comes. */
  override add(member: T): void {
    this.set(member, member);
    this.#timer ??= unref(setInterval(() => this.#tick(), this.#tickMs));
  }

  /** Removes all members and stops the timer. */
  override clear(): void {
    super.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    if (this.size === 0) return this.clear();
    const now = performance.now();
    for (const member of this.all()) {
      if (!this.has(member)) continue;
      try {
        this.#act(member, now);
      } catch {
        // An exception in a timer would end the process.
        this.delete(member);
      }
    }
  }
}

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
  readonly limits: LimitValues & FixedLimits;
  readonly pending: SharedTimer<Reply>;
  readonly #streams: SharedTimer<SseWriter>;

  constructor(limits: LimitValues & FixedLimits) {
    this.limits = limits;
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
    const stream: SseWriter = new SseWriter(request.stream(headers), this.limits, closed, this.budget);
    this.#streams.add(stream);
    request.onDisconnect(() => stream.destroy());
    return stream;
  }

  /** Counts a response until the client has read it, and limits how long it may take to read on. */
  hold(unsent: UnsentResponse | undefined): void {
    if (unsent === undefined) return;
    unsent.onClose(() => this.budget.release(unsent));
    if (unsent.heldBytes > this.limits.lingeringBytes) unsent.limitStall(this.limits.lingeringMs);
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

  get limits(): LimitValues {
    return this.#timers.limits;
  }

  /** Calls the listener once if nothing has been sent for `silenceMs`. */
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
    this.#timers.hold(this.request.respond(denial?.status ?? status, headers, encodeResponse(message, this.limits)));
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

/**
 * Encodes a message. A response that cannot be encoded, or is too long, becomes an error response. Throws for any other
 * message.
 */
export function encodeResponse(message: Message | readonly Message[], { messageBytes }: LimitValues): string {
  try {
    return encode(message, messageBytes);
  } catch (error) {
    if (!Array.isArray(message) && !isResponse(message as Message)) throw error;
    if (Array.isArray(message))
      return encode((message as ResponseMessage[]).map((one) => unsendableResponse(one, error)));
    return encode(unsendableResponse(message as ResponseMessage, error));
  }
}
