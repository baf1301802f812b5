// Writes messages to a pipe, one per line. All messages of one turn of the event loop go in one write, since system calls
// are the main cost of a pipe. Senders wait while the pipe is full, and get an error if it breaks.

import type { Writable } from "node:stream";
import { deferred, type Deferred, ignoreRejection, within } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { errorMessage } from "../core/values.ts";
import { encode } from "../jsonrpc/codec.ts";
import type { Message } from "../jsonrpc/message.ts";

/** If more than this is unread, progress and log messages are dropped and no more input is read. */
export const BACKLOG_BYTES: number = 8 * 1024 * 1024;

// Without `PURE`, bundles of servers over HTTP would contain it and the names of options below.
const READY: Promise<void> = /* @__PURE__ */ Promise.resolve();

export class LineWriter {
  readonly #output: Writable;
  readonly #maxBytes: number;
  readonly #onBroken: (error: ConnectionError) => void;
  #pending = "";
  #scheduled = false;
  #drain: Deferred<void> | undefined;
  /** Characters of the responses sent since the pipe was last empty. */
  #responses = 0;
  #onDrained: (() => void) | undefined;
  #failure: ConnectionError | undefined;

  /** `onBroken` is called once, when the pipe fails or is closed. */
  constructor(output: Writable, maxBytes: number, onBroken: (error: ConnectionError) => void) {
    this.#output = output;
    this.#maxBytes = maxBytes;
    this.#onBroken = onBroken;
    // This listener is never removed: an unhandled late EPIPE would end the process.
    output.on("error", (error) => this.fail(error));
    output.on("close", () => this.fail());
    output.on("drain", () => this.#onDrain());
  }

  /** Roughly how many bytes the other side has not read yet. */
  get backlog(): number {
    return this.#failure === undefined ? this.#pending.length + this.#output.writableLength : 0;
  }

  /** Roughly how many bytes of responses the other side has not read yet. */
  get unreadResponses(): number {
    return Math.min(this.#responses, this.backlog);
  }

  /** Calls `listener` once, when the pipe is empty or has failed. */
  onceDrained(listener: () => void): void {
    this.#onDrained = listener;
    LineWriter.#write(this);
    if (this.#failure !== undefined || !this.#output.writableNeedDrain) setImmediate(() => this.#notifyDrained());
  }

  /** Resolves when the pipe accepts more; rejects with a ConnectionError if the message cannot be sent. */
  send(message: Message | readonly Message[]): Promise<void> {
    if (this.#failure !== undefined) return refuse(this.#failure);
    const { backlog } = this;
    // Progress and logs are not buffered for a peer that does not read.
    if (backlog > BACKLOG_BYTES && isDroppable(message)) return READY;
    let text: string;
    try {
      text = encode(message, this.#maxBytes);
    } catch (cause) {
      return refuse(new ConnectionError("protocol", errorMessage(cause), { cause, mayHaveRun: false }));
    }
    if (backlog === 0) this.#responses = 0;
    if (!("method" in message)) this.#responses += text.length;
    this.#pending += `${text}\n`;
    if (!this.#scheduled) {
      this.#scheduled = true;
      // At the end of the turn, so that messages that come from several sockets in one turn share a write.
      setImmediate(LineWriter.#write, this);
    }
    if (this.#drain !== undefined) return this.#drain.promise;
    if (this.backlog < this.#output.writableHighWaterMark) return READY;
    LineWriter.#write(this);
    if (!this.#output.writableNeedDrain) return READY;
    return (this.#drain ??= deferred()).promise;
  }

  /** Writes pending messages and waits until the system has accepted all of them, at most `timeoutMs`. */
  async finish(timeoutMs: number): Promise<void> {
    LineWriter.#write(this);
    if (this.#failure !== undefined || this.#output.writableLength === 0) return;
    await within(timeoutMs, new Promise<void>((resolve) => this.#output.write("", () => resolve())));
  }

  /** Refuses further messages and rejects waiting senders. A later call with a ConnectionError replaces the reason. */
  fail(cause?: Error): void {
    const isFirst = this.#failure === undefined;
    if (cause instanceof ConnectionError) this.#failure = cause;
    const why = cause === undefined ? "" : `: ${cause.message}`;
    this.#failure ??= new ConnectionError("closed", `the pipe is closed${why}`, { cause });
    if (!isFirst) return;
    this.#pending = "";
    this.#drain?.reject(this.#failure);
    this.#drain = undefined;
    this.#onBroken(this.#failure);
    this.#notifyDrained();
  }

  /** Writes what is pending. One function for all writers, since one for each message would cost more. */
  static #write(this: void, writer: LineWriter): void {
    writer.#scheduled = false;
    if (writer.#pending === "" || writer.#failure !== undefined) return;
    const text = writer.#pending;
    const output = writer.#output;
    writer.#pending = "";
    if (output.destroyed || output.writableEnded) writer.fail(output.errored ?? undefined);
    else output.write(text);
  }

  #onDrain(): void {
    this.#drain?.resolve();
    this.#drain = undefined;
    this.#responses = 0;
    this.#notifyDrained();
  }

  #notifyDrained(): void {
    const listener = this.#onDrained;
    this.#onDrained = undefined;
    listener?.();
  }
}

function isDroppable(message: Message | readonly Message[]): boolean {
  if (!("method" in message)) return false;
  return message.method === "notifications/progress" || message.method === "notifications/message";
}

/** Senders of notifications do not await the promise, so its rejection must not end the process. */
export function refuse(error: ConnectionError): Promise<void> {
  return ignoreRejection(Promise.reject(error));
}
