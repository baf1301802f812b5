// Both directions of a pipe that carries one message per line. The writer sends all messages of one tick in one write,
// since system calls are the main cost of a pipe. Senders wait while the pipe is full, and get an error if it breaks.

import type { Readable, Writable } from "node:stream";
import { deferred, ignoreRejection, within, type Deferred } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { errorMessage } from "../core/values.ts";
import { encode } from "../jsonrpc/codec.ts";
import { frame, LineReader, type LineReaderOptions } from "../jsonrpc/lines.ts";
import type { Message } from "../jsonrpc/message.ts";

/** If more than this is unread, progress and log messages are dropped and no more input is read. */
export const BACKLOG_BYTES: number = 8 * 1024 * 1024;

const READY: Promise<void> = Promise.resolve();

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
    this.#flush();
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
      text = encode(message);
    } catch (cause) {
      return refuse(new ConnectionError("protocol", errorMessage(cause), { cause }));
    }
    // A UTF-16 code unit takes at most three bytes, so most messages need no counting.
    if (text.length * 3 > this.#maxBytes && Buffer.byteLength(text) > this.#maxBytes) {
      const why = `the message is longer than ${this.#maxBytes} bytes (limits.messageBytes)`;
      return refuse(new ConnectionError("protocol", why));
    }
    if (backlog === 0) this.#responses = 0;
    if (!("method" in message)) this.#responses += text.length;
    this.#pending += frame(text);
    if (!this.#scheduled) {
      this.#scheduled = true;
      // A tick scheduled in a microtask runs after all other microtasks, which may send more messages.
      process.nextTick(() => this.#flush());
    }
    if (this.#drain !== undefined) return this.#drain.promise;
    if (this.backlog < this.#output.writableHighWaterMark) return READY;
    this.#flush();
    if (!this.#output.writableNeedDrain) return READY;
    return (this.#drain ??= deferred()).promise;
  }

  /** Writes pending messages and waits until the system has accepted all of them, at most `timeoutMs`. */
  async finish(timeoutMs: number): Promise<void> {
    this.#flush();
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

  #flush(): void {
    this.#scheduled = false;
    if (this.#pending === "" || this.#failure !== undefined) return;
    const text = this.#pending;
    this.#pending = "";
    if (this.#output.destroyed || this.#output.writableEnded) this.fail(this.#output.errored ?? undefined);
    else this.#output.write(text);
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

// Reads lines from a pipe within a budget: after a few milliseconds of work in one turn of the event loop, the input
// pauses until the next turn, so that a peer that writes without end does not delay others. It also pauses while the
// peer does not read what we wrote.

/** How long the lines of one peer may be handled in one turn. */
const TURN_MS = 5;
/** The clock is read after this many lines. Most chunks have fewer. */
const LINES_PER_CHECK = 64;
/** The system reads more of a pipe in the same turn only if it has filled a whole buffer. */
const FULL_CHUNK_BYTES = 64 * 1024;

interface LineInputOptions extends LineReaderOptions {
  /** Whether the peer leaves too much unread, so that its input waits until `writer` has drained. */
  isBehind(): boolean;
}

export class LineInput {
  readonly #input: Readable;
  readonly #writer: LineWriter;
  readonly #reader: LineReader;
  readonly #isBehind: () => boolean;
  #chunk: Buffer | undefined;
  #at = 0;
  #turnStart = 0;
  #wasFull = false;
  #isPaused = false;
  #isStopped = false;

  constructor(input: Readable, writer: LineWriter, options: LineInputOptions) {
    this.#input = input;
    this.#writer = writer;
    this.#reader = new LineReader(options);
    this.#isBehind = () => options.isBehind();
  }

  start(): void {
    this.#input.on("data", this.#onData);
    // A question at the terminal leaves stdin paused, and a paused stream does not start by itself.
    this.#input.resume();
  }

  /** Delivers the rest of what was read, and a last line without a newline. */
  end(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    if (this.#chunk !== undefined) this.#reader.push(this.#chunk, this.#at);
    this.#chunk = undefined;
    this.#reader.end();
  }

  /** Stops reading and drops the rest. Reading stdin would keep the process alive. */
  stop(): void {
    this.#isStopped = true;
    this.#chunk = undefined;
    this.#input.off("data", this.#onData);
    this.#input.pause();
  }

  readonly #onData = (chunk: Buffer | string): void => {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    if (this.#isPaused) {
      // Node resumes the output of a child that has exited.
      this.#chunk = this.#chunk === undefined ? bytes : Buffer.concat([this.#chunk.subarray(this.#at), bytes]);
      this.#at = 0;
      this.#input.pause();
      return;
    }
    if (!this.#wasFull) this.#turnStart = performance.now();
    this.#wasFull = bytes.length >= FULL_CHUNK_BYTES;
    this.#chunk = bytes;
    this.#at = 0;
    this.#read();
  };

  #read(): void {
    while (this.#chunk !== undefined) {
      const { length } = this.#chunk;
      this.#at = this.#reader.push(this.#chunk, this.#at, LINES_PER_CHECK);
      // A line may have closed the transport.
      if (this.#isStopped) return;
      const isRead = this.#at >= length;
      if (isRead) this.#chunk = undefined;
      if (this.#isBehind()) {
        this.#pause();
        this.#writer.onceDrained(this.#onNextTurn);
        return;
      }
      if ((!isRead || this.#wasFull) && performance.now() - this.#turnStart > TURN_MS) {
        this.#pause();
        setImmediate(this.#onNextTurn);
        return;
      }
    }
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#input.resume();
  }

  #pause(): void {
    this.#isPaused = true;
    this.#input.pause();
  }

  readonly #onNextTurn = (): void => {
    if (this.#isStopped) return;
    this.#turnStart = performance.now();
    this.#wasFull = false;
    this.#read();
  };
}
