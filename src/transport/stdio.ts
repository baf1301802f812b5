// The server side of stdio: one message per line on two streams, by default the process's own. Invalid input is
// received as a fault with its error response, and the connection continues. The client side is in child-process.ts.

import type { Readable, Writable } from "node:stream";
import { ConnectionError } from "../core/errors.ts";
import { checkOptions, type OptionNames, optionNames } from "../core/options.ts";
import { defined, type Optional } from "../core/values.ts";
import { DEFAULT_LIMITS, type Limits } from "../jsonrpc/codec.ts";
import type { Message } from "../jsonrpc/message.ts";
import { decodeInbound } from "./decode-inbound.ts";
import { LineInput } from "./line-input.ts";
import { BACKLOG_BYTES, LineWriter } from "./line-writer.ts";
import type { Receive, Transport } from "./transport.ts";

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
  readonly #protect: boolean;
  #broken: ConnectionError | undefined;
  #receive: Receive | undefined;
  #restoreConsole: (() => void) | undefined;
  #ended = false;
  #closing: Promise<void> | undefined;

  constructor(options: StdioOptions) {
    this.#input = options.input ?? process.stdin;
    this.#output = options.output ?? process.stdout;
    this.#limits = { ...DEFAULT_LIMITS, ...defined(options.limits ?? {}) };
    this.#protect = options.protectStdout ?? true;
    this.#writer = new LineWriter(this.#output, this.#limits.messageBytes, (error) => {
      this.#broken = error;
      // If responses cannot be delivered, requests need not be read.
      this.#end(error);
    });
    this.#lines = new LineInput(this.#input, this.#writer, {
      // Requests are not read from a client that does not read its responses.
      isBehind: () => this.#writer.backlog > BACKLOG_BYTES,
      maxBytes: this.#limits.messageBytes,
      onLine: this.#onLine,
      onFault: (fault, answerable) => {
        if (!this.#ended) this.#receive?.({ kind: "fault", fault, answerable });
      },
    });
  }

  async start(receive: Receive): Promise<void> {
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
    const broken = this.#broken;
    if (broken !== undefined) process.nextTick(() => this.#end(broken));
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

  readonly #onLine = (text: string): void => {
    if (this.#ended) return;
    const inbound = decodeInbound(text, this.#limits);
    if (inbound !== undefined) this.#receive?.(inbound);
  };

  #end(error?: Error): void {
    if (this.#ended || this.#receive === undefined) return;
    this.#ended = true;
    this.#receive({ kind: "end", ...(error && { error }) });
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
