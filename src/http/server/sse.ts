// Server-sent events on a sink, and what becomes of a reader that does not read: too much unread at once, or a good
// deal of it for too long, and it is hung up on, so that nobody else waits for it and no memory is filled. It keeps
// no timer: somebody calls `tick` about once a second. What the events say, and whether they can be had again by
// their ids, is for others.

import type { StreamSink } from "./http-request.ts";

/** One event; every part may be missing. Without `data` it tells the reader its id or its patience, and no more. */
export interface SseEvent {
  readonly id?: string;
  readonly event?: string;
  /** Milliseconds after which a reader that was cut off comes again. */
  readonly retry?: number;
  readonly data?: string;
}

export interface StreamLimits {
  /** More than this unread when there is more to say: cut at once. */
  readonly unreadBytes: number;
  /** More than `lingeringBytes` unread all through `lingeringMs`: cut. */
  readonly lingeringBytes: number;
  readonly lingeringMs: number;
  /** A comment after so long a silence. */
  readonly keepAliveMs: number;
}

const COMMENT = ":\n\n";

export class SseWriter {
  readonly #sink: StreamSink;
  readonly #limits: StreamLimits;
  readonly #over: (how: "ended" | "cut") => void;
  #isOver = false;
  /** Something was encodeResponse since the last tick. */
  #spoke = true;
  #silentSince = 0;
  #lingersSince: number | undefined;

  /** `over` is called once: by `end`, by `cut`, or where the reader's slowness led to a cut; not where it hangs up. */
  constructor(sink: StreamSink, limits: StreamLimits, over: (how: "ended" | "cut") => void = () => {}) {
    this.#sink = sink;
    this.#limits = limits;
    this.#over = over;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Bytes that were encodeResponse and that the reader has not taken. */
  get waiting(): number {
    return this.#sink.waiting;
  }

  /** What `formatEvent` made: one event, or several. */
  send(text: string): void {
    if (this.#isOver) return;
    // Looked at before, not after: a long event does not make a slow reader of one who had read all that came before it.
    if (this.#sink.waiting > this.#limits.unreadBytes) return this.cut();
    this.#spoke = true;
    this.#sink.write(text);
  }

  /** A line that every reader skips. */
  comment(text = ""): void {
    this.send(text === "" ? COMMENT : `: ${text.replaceAll(/\r\n|\r|\n/g, "\n: ")}\n\n`);
  }

  /** `now` never goes back. */
  tick(now: number): void {
    if (this.#isOver) return;
    if (this.#sink.waiting <= this.#limits.lingeringBytes) this.#lingersSince = undefined;
    else if (this.#lingersSince === undefined) this.#lingersSince = now;
    else if (now - this.#lingersSince >= this.#limits.lingeringMs) return this.cut();
    if (this.#spoke) {
      this.#spoke = false;
      this.#silentSince = now;
    } else if (now - this.#silentSince >= this.#limits.keepAliveMs) {
      this.comment();
    }
  }

  /** What was sent before still goes out. */
  end(): void {
    if (!this.#finish()) return;
    this.#sink.end();
    this.#over("ended");
  }

  /** What has not gone out is lost. */
  cut(): void {
    if (!this.#finish()) return;
    this.#sink.cut();
    this.#over("cut");
  }

  #finish(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    return true;
  }
}

/** An event as it goes over the wire. */
export function formatEvent(parts: SseEvent): string {
  const { id, event, retry, data } = parts;
  let text = "";
  if (id !== undefined) text += `id: ${oneLine("id", id)}\n`;
  if (event !== undefined) text += `event: ${oneLine("event", event)}\n`;
  if (retry !== undefined) text += `retry: ${Math.max(0, Math.ceil(retry))}\n`;
  if (data !== undefined) text += `data: ${hasBreak(data) ? data.replaceAll(/\r\n|\r|\n/g, "\ndata: ") : data}\n`;
  return `${text}\n`;
}

function hasBreak(text: string): boolean {
  return text.includes("\n") || text.includes("\r");
}

function oneLine(field: string, text: string): string {
  // A reader ignores an id with NUL in it, and takes the rest after a line break for another field.
  if (hasBreak(text) || text.includes("\0")) throw new TypeError(`the ${field} of an event must be one line of text`);
  return text;
}
