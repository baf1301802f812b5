// The way back of one visit. Its head is held back until the first message is known: nothing but the answer makes
// one JSON body, anything before it makes an event stream, and so does a long silence, because whoever stands
// between takes a connection for dead on which nothing happens. What the events carry besides messages (ids, places
// to come back to) is for the style that opened the stream.

import { encode } from "../../jsonrpc/codec.ts";
import { isResponse, type ErrorBody, type Id, type Message, type ResponseMessage } from "../../jsonrpc/message.ts";
import { SseWriter } from "./sse.ts";
import { SharedTimer } from "./shared-timer.ts";
import type { HttpRequest } from "./http-request.ts";
import { unsendable } from "../../dialogue/batch.ts";
import type { HttpLimits } from "./options.ts";

type Headers = Readonly<Record<string, string>>;

/** An error that has a status and headers of its own, such as a challenge. */
export interface Denied {
  readonly status: number;
  readonly headers: Headers;
}

const JSON_TYPE: Headers = { "content-type": "application/json" };
const TICK_MS = 1_000;

/** What all open streams and all held answers of a front share: two timers, and the limits. */
export class ReplyTimers {
  readonly #limits: HttpLimits;
  readonly #open: SharedTimer<SseWriter>;
  readonly #held: SharedTimer<Reply>;

  constructor(limits: HttpLimits) {
    this.#limits = limits;
    this.#open = new SharedTimer(Math.min(TICK_MS, limits.keepAliveMs, limits.lingeringMs), (stream, now) =>
      stream.tick(now),
    );
    this.#held = new SharedTimer(Math.min(TICK_MS, limits.silenceMs), (way, now) => {
      if (now - way.since >= limits.silenceMs) way.break();
    });
  }

  /** `ended` may be called before this returns, where the caller is gone already. */
  open(visit: HttpRequest, headers: Headers, ended: (stream: SseWriter) => void): SseWriter {
    const stream: SseWriter = new SseWriter(visit.stream(headers), this.#limits, () => {
      this.#open.delete(stream);
      ended(stream);
    });
    this.#open.add(stream);
    visit.onGone(() => stream.cut());
    return stream;
  }

  hold(way: Reply): void {
    this.#held.add(way);
  }

  release(way: Reply): void {
    this.#held.delete(way);
  }

  close(): void {
    this.#open.clear();
    this.#held.clear();
  }
}

export class Reply {
  readonly visit: HttpRequest;
  readonly since: number = performance.now();
  /** Of the request that it is the way back of, once that has been read. */
  id: Id | null = null;
  /** Sent with the head, whichever it will be. */
  headers: Headers;
  /** Which errors are denials; none where nobody has said. Never throws. */
  denial: ((error: ErrorBody) => Denied | undefined) | undefined;
  readonly #streams: ReplyTimers;
  #silent: (() => void) | undefined;
  #begun = false;

  constructor(visit: HttpRequest, headers: Headers, streams: ReplyTimers) {
    this.visit = visit;
    this.headers = headers;
    this.#streams = streams;
  }

  /** Whether a head is out. */
  get begun(): boolean {
    return this.#begun;
  }

  /** Calls back once where nothing was sent for too long. */
  hold(silent: () => void): void {
    this.#silent = silent;
    this.#streams.hold(this);
  }

  /** The silence was too long. */
  break(): void {
    this.#streams.release(this);
    if (!this.#begun && !this.visit.isGone) this.#silent?.();
  }

  /** The one answer, as JSON. `status` is for errors that have none of their own. Never throws. */
  whole(message: ResponseMessage | readonly Message[], status = 200): void {
    if (this.#begun) return;
    this.#begin();
    const denied = "error" in message ? this.denial?.(message.error) : undefined;
    const headers = { ...JSON_TYPE, ...this.headers, ...denied?.headers };
    this.visit.answer(denied?.status ?? status, headers, encodeResponse(message));
  }

  /** An answer without a body. */
  empty(status: number): void {
    if (this.#begun) return;
    this.#begin();
    this.visit.answer(status, this.headers);
  }

  /** The head of an event stream; once. */
  events(ended: (stream: SseWriter) => void): SseWriter {
    this.#begin();
    return this.#streams.open(this.visit, this.headers, ended);
  }

  #begin(): void {
    this.#begun = true;
    this.#streams.release(this);
  }
}

/** An answer that cannot be encodeResponse is replaced by one that says so: nobody is left waiting. Throws for all else. */
export function encodeResponse(message: Message | readonly Message[]): string {
  try {
    return encode(message);
  } catch (error) {
    if (!Array.isArray(message) && !isResponse(message as Message)) throw error;
    if (Array.isArray(message)) return encode((message as ResponseMessage[]).map((one) => unsendable(one, error)));
    return encode(unsendable(message as ResponseMessage, error));
  }
}
