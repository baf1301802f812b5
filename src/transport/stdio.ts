// Messages as lines of streams, for both sides of stdio, and the transport of the server side. The client side is in
// child-process.ts.

import type { Readable, Writable } from "node:stream";
import { deferred, type Deferred, ignoreRejection, within } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { checkOptions, type OptionNames, optionNames } from "../core/options.ts";
import { PacedReader } from "../core/turn-budget.ts";
import { defined, errorMessage, type Optional } from "../core/values.ts";
import { DEFAULT_LIMITS, encode, type Limits } from "../jsonrpc/codec.ts";
import { frame, LineReader, type LineReaderOptions } from "../jsonrpc/lines.ts";
import type { ErrorMessage, Message } from "../jsonrpc/message.ts";
import { decodeInbound } from "./decode-inbound.ts";
import type { Inbound, Transport } from "./transport.ts";

// Both directions of a pipe that carries one message per line. The writer sends all messages of one tick in one write,
// since system calls are the main cost of a pipe. Senders wait while the pipe is full, and get an error if it breaks.

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
      text = encode(message, this.#maxBytes);
    } catch (cause) {
      return refuse(new ConnectionError("protocol", errorMessage(cause), { cause, mayHaveRun: false }));
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

// Reads lines from a pipe within the budget of a turn. The input also pauses while the peer does not read what we wrote.

/** The clock is read after this many lines. Most chunks have fewer. */
const LINES_PER_CHECK = 64;

interface LineInputOptions extends LineReaderOptions {
  /** Whether the peer leaves too much unread, so that its input waits until `writer` has drained. */
  isBehind(): boolean;
}

export class LineInput {
  readonly #input: PacedReader;
  readonly #lines: LineReader;

  constructor(input: Readable, writer: LineWriter, options: LineInputOptions) {
    const lines = new LineReader(options);
    this.#lines = lines;
    this.#input = new PacedReader(input, {
      take: (chunk, from) => lines.push(chunk, from, LINES_PER_CHECK),
      mustWait: () => options.isBehind(),
      onceReady: (act) => writer.onceDrained(act),
    });
  }

  start(): void {
    this.#input.start();
  }

  /** Delivers the rest of what was read, and a last line without a newline. */
  end(): void {
    if (this.#input.end()) this.#lines.end();
  }

  /** Stops reading and drops the rest. */
  stop(): void {
    this.#input.stop();
  }
}

// The server side of stdio: one message per line on two streams, by default the process's own. Invalid input is
// received as a fault with its error response, and the connection continues.

/** Options of `stdioTransport()`. */
export interface StdioOptions {
  /** Default: the process's stdin. */
  readonly input?: Readable | undefined;
  /** Default: the process's stdout. */
  readonly output?: Writable | undefined;
  /** Limits of each message. */
  readonly limits?: Optional<Limits> | undefined;
  /** Redirects console.log and similar to stderr while serving on the process's stdout. Default: true. */
  readonly protectStdout?: boolean | undefined;
}

/** How long `close` waits for a client that does not read. */
const FINISH_TIMEOUT_MS = 1_000;

const OPTIONS: OptionNames<StdioOptions> = /* @__PURE__ */ optionNames("input output limits protectStdout");

/** A transport over the stdin and stdout of this process, or over other streams. */
export function stdioTransport(options: StdioOptions = {}): Transport {
  checkOptions("stdioTransport()", options, OPTIONS);
  return new StdioTransport(options);
}

class StdioTransport implements Transport {
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #limits: Limits;
  readonly #writer: LineWriter;
  readonly #lines: LineInput;
  readonly #gone = new AbortController();
  readonly #protect: boolean;
  #receive: ((inbound: Inbound) => void) | undefined;
  #restoreConsole: (() => void) | undefined;
  #ended = false;
  #closing: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    this.#input = options.input ?? process.stdin;
    this.#output = options.output ?? process.stdout;
    this.#limits = { ...DEFAULT_LIMITS, ...defined(options.limits ?? {}) };
    this.#protect = options.protectStdout ?? true;
    this.#writer = new LineWriter(this.#output, this.#limits.messageBytes, (error) => {
      this.#gone.abort(error);
      // If responses cannot be delivered, requests need not be read.
      this.#end(error);
    });
    this.#lines = new LineInput(this.#input, this.#writer, {
      // Requests are not read from a client that does not read its responses.
      isBehind: () => this.#writer.backlog > BACKLOG_BYTES,
      maxBytes: this.#limits.messageBytes,
      onLine: (text) => this.#line(text),
      onFault: (fault, answerable) => this.#fault(fault, answerable),
    });
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    if (this.#receive !== undefined) throw new ConnectionError("protocol", "this transport was already started");
    if (this.#closing !== undefined) throw new ConnectionError("closed", "this transport is closed");
    this.#receive = receive;
    if (this.#protect && this.#output === process.stdout) this.#restoreConsole = redirectConsole();
    const input = this.#input;
    input.on("error", this.#onError);
    input.on("end", this.#onEnd);
    input.on("close", this.#onEnd);
    this.#lines.start();
    // A stream that has already ended emits no further event.
    if (input.destroyed || input.readableEnded) process.nextTick(this.#onEnd);
    if (this.#gone.signal.aborted) process.nextTick(() => this.#end(this.#gone.signal.reason as ConnectionError));
  }

  readonly send = (message: Message | readonly Message[]): Promise<void> => this.#writer.send(message);

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ended = true;
    this.#input.off("end", this.#onEnd);
    this.#input.off("close", this.#onEnd);
    if (this.#receive !== undefined) this.#lines.stop();
    await this.#writer.finish(FINISH_TIMEOUT_MS);
    this.#writer.fail(new ConnectionError("closed", "this transport is closed"));
    // The process's own stdout stays open until it exits.
    if (this.#output !== process.stdout) this.#output.end();
    this.#restoreConsole?.();
  }

  readonly #onEnd = (): void => {
    this.#lines.end();
    this.#end();
  };

  readonly #onError = (cause: Error): void => {
    this.#end(new ConnectionError("closed", `reading the input failed: ${cause.message}`, { cause }));
  };

  #line(text: string): void {
    if (this.#ended) return;
    const inbound = decodeInbound(text, this.#gone.signal, this.send, this.#limits);
    if (inbound !== undefined) this.#receive?.(inbound);
  }

  #fault(fault: ErrorMessage, answerable: boolean): void {
    if (!this.#ended) this.#receive?.({ kind: "fault", fault, answerable, gone: this.#gone.signal, reply: this.send });
  }

  #end(error?: Error): void {
    if (this.#ended || this.#receive === undefined) return;
    this.#ended = true;
    const cause = error === undefined ? {} : { error };
    this.#receive({ kind: "end", gone: this.#gone.signal, reply: this.send, ...cause });
  }
}

/** All console methods that print to stdout go through one of these. */
const CONSOLE_METHODS = ["log", "info", "debug", "dir", "dirxml"] as const;

/**
 * Redirects console output from stdout to stderr, since it would corrupt the messages; returns a function that undoes
 * it, except for methods that were replaced meanwhile. process.stdout.write stays as it is.
 */
export function redirectConsole(): () => void {
  const originals = CONSOLE_METHODS.map((name) => [name, console[name]] as const);
  const { error } = console;
  // `dir` takes options after its value; the others format their arguments like `error`.
  const redirected = (...values: unknown[]): void => error.apply(console, values);
  const redirectedDir = (value: unknown): void => error.call(console, "%O", value);
  for (const name of CONSOLE_METHODS) console[name] = name === "dir" ? redirectedDir : redirected;
  return () => {
    for (const [name, original] of originals) {
      if (console[name] === redirected || console[name] === redirectedDir) console[name] = original as () => void;
    }
  };
}
