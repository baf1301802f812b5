// Writes server-sent events, and disconnects clients that read too slowly, so that unread data cannot fill the memory.
// It has no timer, so `tick` must be called about once a second.

import { ByteBudget, type ByteHolder } from "../../core/byte-budget.ts";
import type { StreamSink, UnsentResponse } from "./http-request.ts";
import type { FixedLimits, LimitValues } from "./options.ts";

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

/** Every client skips it. */
const COMMENT = ":\n\n";

export class SseWriter implements ByteHolder {
  readonly #sink: StreamSink;
  readonly #limits: StreamLimits;
  readonly #budget: ByteBudget;
  readonly #onClose: (unsent?: UnsentResponse) => void;
  isClosed = false;
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
    onClose: (unsent?: UnsentResponse) => void = () => {},
    budget: ByteBudget = new ByteBudget({ peerBytes: limits.unreadBytes, totalBytes: Infinity }),
  ) {
    this.#sink = sink;
    this.#limits = limits;
    this.#onClose = onClose;
    this.#budget = budget;
  }

  get heldBytes(): number {
    return this.#sink.bufferedBytes;
  }

  /** Sends one or more events made by `formatEvent`. */
  send(text: string): void {
    if (this.isClosed) return;
    if (!this.#budget.admits(this)) return this.destroy();
    this.#hasWritten = true;
    this.#sink.write(text);
    if (this.#sink.bufferedBytes > 0) this.#budget.update(this);
  }

  /** `now` must be monotonic. */
  tick(now: number): void {
    if (this.isClosed) return;
    if (this.#sink.bufferedBytes <= this.#limits.lingeringBytes) this.#lingersSince = undefined;
    else if (this.#lingersSince === undefined) this.#lingersSince = now;
    else if (now - this.#lingersSince >= this.#limits.lingeringMs) return this.destroy();
    if (this.#hasWritten) {
      this.#hasWritten = false;
      this.#silentSince = now;
    } else if (now - this.#silentSince >= this.#limits.keepAliveMs) {
      this.send(COMMENT);
    }
  }

  /** Ends the stream once everything sent so far is written. */
  end(): void {
    if (!this.#close()) return;
    this.#onClose(this.#sink.end());
  }

  /** Disconnects at once; unsent data is lost. */
  destroy(): void {
    if (!this.#close()) return;
    this.#sink.destroy();
    this.#onClose();
  }

  disconnect(): void {
    this.destroy();
  }

  #close(): boolean {
    if (this.isClosed) return false;
    this.isClosed = true;
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
