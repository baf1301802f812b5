// The server half of stdio: a message a line, in on one stream and out on another, by default the process's
// own. A text that is no message comes with the answer that it gets, and the connection lives on. Starting a server and
// speaking to it is the other half, in child.ts. What the messages say is not read.

import type { Readable, Writable } from "node:stream";
import { ConnectionError } from "../core/errors.ts";
import { decode, DEFAULT_LIMITS } from "../jsonrpc/codec.ts";
import type { Limits } from "../jsonrpc/codec.ts";
import { LineReader } from "../jsonrpc/framing.ts";
import type { ErrorMessage, Message } from "../jsonrpc/message.ts";
import { divertConsole } from "./console-guard.ts";
import { BACKLOG_BYTES, Outlet } from "./outlet.ts";
import type { Inbound, Transport } from "./transport.ts";

export interface StdioOptions {
  /** The process's stdin. */
  readonly input?: Readable;
  /** The process's stdout. */
  readonly output?: Writable;
  readonly limits?: Partial<Limits>;
  /** console.log and its like print on stderr while we serve; true, where the output is the process's stdout. */
  readonly protectStdout?: boolean;
}

/** How long a close waits for a reader who does not read. */
const FINISH_MS = 1_000;

export function stdioTransport(options: StdioOptions = {}): Transport {
  return new StdioTransport(options);
}

class StdioTransport implements Transport {
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #limits: Limits;
  readonly #outlet: Outlet;
  readonly #reader: LineReader;
  readonly #gone = new AbortController();
  readonly #protect: boolean;
  #receive: ((inbound: Inbound) => void) | undefined;
  #restoreConsole: (() => void) | undefined;
  #ended = false;
  #waiting = false;
  #closing: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    this.#input = options.input ?? process.stdin;
    this.#output = options.output ?? process.stdout;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#protect = options.protectStdout ?? true;
    this.#outlet = new Outlet(this.#output, this.#limits.messageBytes, (error) => {
      this.#gone.abort(error);
      // Whom no answer can reach need not be read either.
      this.#end(error);
    });
    this.#reader = new LineReader({
      maxBytes: this.#limits.messageBytes,
      onLine: (text) => this.#line(text),
      onFault: (fault, answerable) => {
        if (answerable) this.#fault(fault);
      },
    });
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    if (this.#receive !== undefined) throw new ConnectionError("protocol", "this transport has been started before");
    if (this.#closing !== undefined) throw new ConnectionError("closed", "this transport is closed");
    this.#receive = receive;
    if (this.#protect && this.#output === process.stdout) this.#restoreConsole = divertConsole();
    const input = this.#input;
    input.on("error", this.#onError);
    input.on("end", this.#onEnd);
    input.on("close", this.#onEnd);
    input.on("data", this.#onData);
    // A stream that was over before we came would never say so again.
    if (input.destroyed || input.readableEnded) process.nextTick(this.#onEnd);
    if (this.#gone.signal.aborted) process.nextTick(() => this.#end(this.#gone.signal.reason as ConnectionError));
  }

  readonly send = (message: Message | readonly Message[]): Promise<void> => this.#outlet.send(message);

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ended = true;
    this.#input.off("data", this.#onData);
    this.#input.off("end", this.#onEnd);
    this.#input.off("close", this.#onEnd);
    // A stdin that is still read would keep the process from ending by itself.
    if (this.#receive !== undefined) this.#input.pause();
    await this.#outlet.finish(FINISH_MS);
    this.#outlet.fail(new ConnectionError("closed", "this transport is closed"));
    // Ending the process's own stdout is left to the end of the process.
    if (this.#output !== process.stdout) this.#output.end();
    this.#restoreConsole?.();
  }

  readonly #onData = (chunk: Buffer | string): void => {
    this.#reader.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
    if (this.#outlet.backlog > BACKLOG_BYTES) this.#wait();
  };

  /** Who does not read our answers is not asked for more requests. */
  #wait(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    this.#input.pause();
    this.#output.once("drain", () => {
      this.#waiting = false;
      if (!this.#ended) this.#input.resume();
    });
  }

  readonly #onEnd = (): void => {
    this.#reader.end();
    this.#end();
  };

  readonly #onError = (cause: Error): void => {
    this.#end(new ConnectionError("closed", `the input broke: ${cause.message}`, { cause }));
  };

  #line(text: string): void {
    if (this.#ended) return;
    const decoded = decode(text, this.#limits);
    const { signal: gone } = this.#gone;
    if (decoded.kind === "message") {
      this.#receive?.({ kind: "message", message: decoded.message, gone, reply: this.send });
    } else if (decoded.kind === "batch") {
      const batch = decoded.items.filter((item) => !("fault" in item) || item.answerable);
      if (batch.length > 0) this.#receive?.({ kind: "batch", batch, gone, reply: this.send });
    } else if (decoded.answerable) {
      this.#fault(decoded.fault);
    }
  }

  #fault(fault: ErrorMessage): void {
    if (!this.#ended) this.#receive?.({ kind: "fault", fault, gone: this.#gone.signal, reply: this.send });
  }

  #end(error?: Error): void {
    if (this.#ended || this.#receive === undefined) return;
    this.#ended = true;
    const cause = error === undefined ? {} : { error };
    this.#receive({ kind: "end", gone: this.#gone.signal, reply: this.send, ...cause });
  }
}
