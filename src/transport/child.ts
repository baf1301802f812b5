// The client half of stdio: a server that we start as a child process and speak to a line at a time. Noise
// on its stdout is counted and kept for whoever looks for a fault, never answered and never fatal. Its
// end is told once, after all that it said was read, with the reason. How it is ended is process/'s work.

import { ConnectionError } from "../core/errors.ts";
import { lastLines } from "../core/text.ts";
import { within } from "../core/async.ts";
import { decode, DEFAULT_LIMITS } from "../jsonrpc/codec.ts";
import type { Limits } from "../jsonrpc/codec.ts";
import { faultText } from "../jsonrpc/fault.ts";
import { LineReader } from "../jsonrpc/framing.ts";
import type { ErrorMessage, Message } from "../jsonrpc/message.ts";
import { startChild } from "../process/child.ts";
import type { Child, ChildOptions, Exit } from "../process/child.ts";
import { Outlet, refuse } from "./outlet.ts";
import type { Inbound, Transport } from "./transport.ts";

export interface ChildTransportOptions extends ChildOptions {
  readonly limits?: Partial<Limits>;
  /** Told of each line on its stdout that is no message. */
  onNoise?(line: string): void;
}

/** What came on the server's stdout and was no message. */
export interface Noise {
  readonly count: number;
  /** The last few lines, each cut to a length that can be shown. */
  readonly last: readonly string[];
}

export interface ChildTransport extends Transport {
  /** The process, once it has been started. */
  readonly child: Child | undefined;
  readonly noise: Noise;
  stderrTail(): string;
  /** Ends the process and its whole family, within the budget if there is one. */
  close(budgetMs?: number): Promise<void>;
}

const NOISE_LINES = 20;
const NOISE_LENGTH = 500;
/** Lines that are no messages, before any that is one: it is no server, or not in the mode of one. */
const NOISE_BEFORE_SPEECH = 10_000;
/** How much of stderr an error quotes. */
const LAST_WORDS_LENGTH = 1_000;
/** How long a server that has closed one of its pipes may take to end by itself. */
const CRIPPLED_MS = 1_000;
/** How long the rest of what it said is waited for once it has ended. */
const FAREWELL_MS = 500;

export function childTransport(options: ChildTransportOptions): ChildTransport {
  return new PipedChild(options);
}

class PipedChild implements ChildTransport {
  readonly noise: { count: number; last: string[] } = { count: 0, last: [] };
  child: Child | undefined;
  readonly #options: ChildTransportOptions;
  readonly #limits: Limits;
  readonly #gone = new AbortController();
  #outlet: Outlet | undefined;
  #reader: LineReader | undefined;
  #starting: Promise<Child> | undefined;
  #receive: ((inbound: Inbound) => void) | undefined;
  #closed = false;
  #crippled = "";
  /** Whether any message ever came. */
  #spoke = false;

  constructor(options: ChildTransportOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    if (this.#starting !== undefined) throw new ConnectionError("protocol", "this transport has been started before");
    if (this.#closed) throw new ConnectionError("closed", "this transport is closed");
    this.#receive = receive;
    this.#starting = startChild(this.#options);
    let child: Child;
    try {
      child = await this.#starting;
    } catch (cause) {
      throw new ConnectionError("spawn", cause instanceof Error ? cause.message : String(cause), { cause });
    }
    this.child = child;
    this.#read(child);
    this.#outlet = new Outlet(
      child.stdin,
      this.#limits.messageBytes,
      () => void this.#cripple(child, "closed its stdin"),
    );
    void this.#awaitEnd(child);
    if (this.#closed) throw new ConnectionError("closed", "this transport was closed while it started");
  }

  readonly send = (message: Message | readonly Message[]): Promise<void> =>
    this.#outlet?.send(message) ?? refuse(new ConnectionError("closed", "this transport is not started"));

  stderrTail(): string {
    return this.child?.stderrTail() ?? "";
  }

  async close(budgetMs?: number): Promise<void> {
    this.#closed = true;
    // A start that failed has told its caller so.
    const child = await this.#starting?.catch(() => undefined);
    await child?.close(budgetMs);
  }

  #read(child: Child): void {
    const reader = new LineReader({
      maxBytes: this.#limits.messageBytes,
      onLine: (text) => this.#line(text),
      onFault: (fault, answerable) => {
        if (!answerable) this.#breakCall(fault);
        this.#hearNoise(`(${faultText(fault)})`);
      },
    });
    child.stdout.on("data", (chunk: Buffer) => reader.push(chunk));
    child.stdout.on("end", () => void this.#cripple(child, "closed its stdout"));
    this.#reader = reader;
  }

  #line(text: string): void {
    // Cheaply told from a message: a program that floods its stdout must not take our time as well.
    if (!/^\s*[[{\ufeff]/.test(text)) {
      this.#hearNoise(text);
      return;
    }
    const decoded = decode(text, this.#limits);
    const back = { gone: this.#gone.signal, reply: this.send };
    if (decoded.kind !== "fault") this.#spoke = true;
    if (decoded.kind === "message") {
      this.#receive?.({ kind: "message", message: decoded.message, ...back });
    } else if (decoded.kind === "batch") {
      const batch = decoded.items.filter((item) => "message" in item);
      for (const item of decoded.items) {
        if (!("fault" in item)) continue;
        if (!item.answerable) this.#breakCall(item.fault);
        this.#hearNoise(text);
      }
      if (batch.length > 0) this.#receive?.({ kind: "batch", batch, ...back });
    } else {
      // A log line in JSON is no answer, whatever its fields are called.
      if (!decoded.answerable && text.includes('"jsonrpc"')) this.#breakCall(decoded.fault);
      this.#hearNoise(text);
    }
  }

  /** A broken answer still says whose it is. */
  #breakCall(fault: ErrorMessage): void {
    this.#receive?.({ kind: "fault", fault, gone: this.#gone.signal, reply: this.send });
  }

  #hearNoise(text: string): void {
    const { noise } = this;
    noise.count += 1;
    noise.last.push(text.slice(0, NOISE_LENGTH));
    if (noise.last.length > NOISE_LINES) noise.last.shift();
    this.#options.onNoise?.(text);
    if (!this.#spoke && noise.count === NOISE_BEFORE_SPEECH) this.#silence();
  }

  /** It only makes noise: nothing more is read of it, and it is ended at once. */
  #silence(): void {
    this.#crippled = `wrote ${NOISE_BEFORE_SPEECH} lines to its stdout and no message among them, the last: ${this.noise.last.at(-1) ?? ""}`;
    this.child?.stdout.destroy();
    this.child?.close(0).catch(() => {});
  }

  /** With one pipe closed it serves nobody; normally its end is near, else it is brought about. */
  async #cripple(child: Child, how: string): Promise<void> {
    let exited = false;
    await within(
      CRIPPLED_MS,
      child.exited.then(() => {
        exited = true;
      }),
    );
    if (exited || this.#closed) return;
    this.#crippled ||= how;
    // Whom SIGKILL does not end is no more than we can say: the end is still told, by `finished`.
    await child.close().catch(() => {});
  }

  async #awaitEnd(child: Child): Promise<void> {
    const exit = await child.exited;
    // Others of its family may outlive it for seconds; whoever waits for an answer must not wait for their end.
    await within(FAREWELL_MS, child.finished);
    // Here and not at the stream's own end, which never comes when a runaway holds the pipe open.
    this.#reader?.end();
    const noisy = !this.#spoke && this.noise.count >= NOISE_BEFORE_SPEECH;
    const evidence = lastWords(child.stderrTail());
    const error = new ConnectionError(noisy ? "protocol" : "closed", this.#farewell(exit), { evidence });
    this.#outlet?.fail(error);
    this.#gone.abort(error);
    const cause = this.#closed ? {} : { error };
    this.#receive?.({ kind: "end", gone: this.#gone.signal, reply: this.send, ...cause });
  }

  #farewell({ code, signal }: Exit): string {
    // The arguments are not named: they may hold secrets.
    const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    const why = this.#crippled === "" ? "" : ` after it ${this.#crippled}`;
    return `${this.#options.command} ${how}${why}`;
  }
}

function lastWords(stderr: string): string {
  const words = lastLines(stderr, LAST_WORDS_LENGTH);
  return words === "" ? "; it wrote nothing on stderr" : `; the end of its stderr:\n${words}`;
}
