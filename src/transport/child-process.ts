// The client side of stdio: starts a server as a child process and exchanges one message per line. Other output on its
// stdout ("noise") is counted and kept for diagnosis. The end of the connection is reported once, with the reason,
// after the output has been read. Starting and ending the process is in process/.

import { callListener } from "../core/listeners.ts";
import { within } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import { checkOptions, optionNames, type OptionNames } from "../core/options.ts";
import { defined, errorMessage, lastLines, type Optional } from "../core/values.ts";
import { decode, DEFAULT_LIMITS, faultText, type Limits } from "../jsonrpc/codec.ts";
import type { ErrorMessage, Message } from "../jsonrpc/message.ts";
import { startChild, type Child, type ChildOptions, type Exit } from "../process/child.ts";
import { withoutNpm } from "../process/npx.ts";
import { LineInput } from "./line-input.ts";
import { BACKLOG_BYTES, LineWriter, refuse } from "./line-writer.ts";
import { startFailure } from "./start-failure.ts";
import type { Receive, Transport } from "./transport.ts";

/** Options of `childTransport()`. */
export interface ChildTransportOptions extends ChildOptions {
  /** Limits of each message from the server. */
  readonly limits?: Optional<Limits> | undefined;
  /** Called with each line on the server's stdout that is not a message. */
  readonly onNoise?: ((line: string) => void) | undefined;
}

/** Lines on the server's stdout that are not messages. */
export interface Noise {
  /** How many there were. */
  readonly count: number;
  /** The last lines, each shortened. */
  readonly last: readonly string[];
}

/** The connection to a server in a child process. */
export interface ChildTransport extends Transport {
  /** The process, once it has been started. */
  readonly child: Child | undefined;
  /** What the server wrote to stdout besides messages. */
  readonly noise: Noise;
  /** The last 8 KiB of its stderr. */
  stderrTail(): string;
  /** Ends the process and its descendants. `budgetMs` limits how long that may take. */
  close(budgetMs?: number): Promise<void>;
}

const MAX_NOISE_LINES = 20;
const MAX_NOISE_LENGTH = 500;
/**
 * A program that writes this many lines before its first message is not an MCP server, or was started in another mode.
 * One that later writes as many within NOISE_WINDOW_MS, with no message among them, is broken.
 */
const MAX_NOISE_IN_A_ROW = 10_000;
const NOISE_WINDOW_MS = 10_000;
const MAX_STDERR_LENGTH = 1_000;
/** How long a server that has closed one of its pipes may take to exit by itself. */
const EXIT_TIMEOUT_MS = 1_000;
/** How long to wait for the rest of a server's output after it has exited. */
const OUTPUT_TIMEOUT_MS = 2_000;

const OPTIONS: OptionNames<ChildTransportOptions> = optionNames(
  "command args env inheritEnv inheritsNothing cwd channel input stdinGraceMs termGraceMs onStderr limits onNoise",
);

/** Starts a server as a child process, and exchanges messages over its stdin and stdout. */
export function childTransport(options: ChildTransportOptions): ChildTransport {
  checkOptions("childTransport()", options, OPTIONS);
  return new PipedChildProcess(options);
}

class PipedChildProcess implements ChildTransport {
  readonly noise: { count: number; last: string[] } = { count: 0, last: [] };
  child: Child | undefined;
  readonly #options: ChildTransportOptions;
  readonly #limits: Limits;
  #writer: LineWriter | undefined;
  #lines: LineInput | undefined;
  #starting: Promise<Child> | undefined;
  #receive: Receive | undefined;
  #closed = false;
  #closeReason = "";
  /** Whether the server has ever sent a message. */
  #hasSentMessage = false;
  /** Lines of noise since the last message, and when the first of them came. */
  #noiseInARow = 0;
  #noiseSince = 0;
  #isNoisy = false;

  constructor(options: ChildTransportOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_LIMITS, ...defined(options.limits ?? {}) };
  }

  async start(receive: Receive): Promise<void> {
    if (this.#starting !== undefined) throw new ConnectionError("protocol", "this transport was already started");
    if (this.#closed) throw new ConnectionError("closed", "this transport is closed");
    this.#receive = receive;
    this.#starting = this.#startChild();
    let child: Child;
    try {
      child = await this.#starting;
    } catch (cause) {
      throw cause instanceof ConnectionError ? cause : new ConnectionError("spawn", errorMessage(cause), { cause });
    }
    this.child = child;
    this.#connect(child);
    void this.#awaitExit(child);
    if (this.#closed) throw new ConnectionError("closed", "this transport was closed while it started");
  }

  async #startChild(): Promise<Child> {
    return startChild({ ...this.#options, ...(await withoutNpm(this.#options)) });
  }

  readonly send = (message: Message | readonly Message[]): Promise<void> =>
    this.#writer?.send(message) ?? refuse(new ConnectionError("closed", "this transport is not started"));

  stderrTail(): string {
    return this.child?.stderrTail() ?? "";
  }

  async close(budgetMs?: number): Promise<void> {
    this.#closed = true;
    // A failed start was already reported by `start`.
    const child = await this.#starting?.catch(() => undefined);
    await child?.close(budgetMs);
  }

  #connect(child: Child): void {
    const writer = new LineWriter(
      child.stdin,
      this.#limits.messageBytes,
      () => void this.#onPipeClosed(child, "closed its stdin"),
    );
    const lines = new LineInput(child.stdout, writer, {
      // Unread requests do not count: a server may have to write before it reads the rest of a long request. If its
      // output were paused then, both sides would wait forever.
      isBehind: () => writer.unreadResponses > BACKLOG_BYTES,
      maxBytes: this.#limits.messageBytes,
      onLine: this.#line,
      onFault: (fault, answerable) => {
        if (!answerable) this.#failCall(fault);
        // A request of the server that is too long to read.
        else if (fault.id !== null) void this.send(fault);
        this.#onNoise(`(${faultText(fault)})`);
      },
    });
    lines.start();
    child.stdout.on("end", () => void this.#onPipeClosed(child, "closed its stdout"));
    this.#writer = writer;
    this.#lines = lines;
  }

  readonly #line = (text: string): void => {
    // A cheap test first, since a program may flood its stdout.
    if (!/^\s*[[{\ufeff]/.test(text)) {
      this.#onNoise(text);
      return;
    }
    const decoded = decode(text, this.#limits);
    if (decoded.kind !== "fault") {
      this.#hasSentMessage = true;
      this.#noiseInARow = 0;
    }
    if (decoded.kind === "message") {
      this.#receive?.(decoded);
    } else if (decoded.kind === "batch") {
      const items = decoded.items.filter((item) => "message" in item);
      for (const item of decoded.items) {
        if (!("fault" in item)) continue;
        if (!item.answerable) this.#failCall(item.fault);
        this.#onNoise(text);
      }
      if (items.length > 0) this.#receive?.({ kind: "batch", items });
    } else {
      // Without `jsonrpc`, this is a log line in JSON and not a response, even if it has fields such as `id`.
      // With neither a result nor an error, and nothing of a request, it is an empty response.
      const isEmpty = decoded.fault.id !== null && !/"(?:method|params)"/.test(text);
      if ((!decoded.answerable || isEmpty) && text.includes('"jsonrpc"')) this.#failCall(decoded.fault);
      this.#onNoise(text);
    }
  };

  /** Fails the pending call to which an invalid response belongs, so that it does not wait until its timeout. */
  #failCall(fault: ErrorMessage): void {
    this.#receive?.({ kind: "fault", fault });
  }

  #onNoise(text: string): void {
    const { noise } = this;
    noise.count += 1;
    noise.last.push(text.slice(0, MAX_NOISE_LENGTH));
    if (noise.last.length > MAX_NOISE_LINES) noise.last.shift();
    callListener("onNoise", this.#options.onNoise, [text]);
    if (this.#noiseInARow === 0) this.#noiseSince = performance.now();
    this.#noiseInARow += 1;
    if (this.#noiseInARow < MAX_NOISE_IN_A_ROW) return;
    this.#noiseInARow = 0;
    if (!this.#hasSentMessage || performance.now() - this.#noiseSince < NOISE_WINDOW_MS) this.#killNoisy();
  }

  /** Stops reading a program that only makes noise, and kills it at once. */
  #killNoisy(): void {
    this.#isNoisy = true;
    this.#lines?.stop();
    const [count, last] = [MAX_NOISE_IN_A_ROW, this.noise.last.at(-1) ?? ""];
    this.#closeReason = `wrote ${count} lines to its stdout, none of them a message; the last: ${last}`;
    this.child?.stdout.destroy();
    this.child?.close(0).catch(() => {});
  }

  /** A server that closed a pipe cannot be used any more. Gives it some time to exit by itself, then ends it. */
  async #onPipeClosed(child: Child, how: string): Promise<void> {
    let exited = false;
    await within(
      EXIT_TIMEOUT_MS,
      child.exited.then(() => {
        exited = true;
      }),
    );
    if (exited || this.#closed) return;
    this.#closeReason ||= how;
    // If even SIGKILL fails, the end is reported when the process exits.
    await child.close().catch(() => {});
  }

  async #awaitExit(child: Child): Promise<void> {
    const exit = await child.exited;
    // Descendants may live seconds longer; pending calls must not wait for them.
    await within(OUTPUT_TIMEOUT_MS, child.finished);
    // The reader is ended here and not when stdout ends, because stdout never ends while a descendant that survived the
    // server holds the pipe open.
    this.#lines?.end();
    const stderr = child.stderrTail();
    // A program that never spoke could not start. Its callers are told why, since they may be its operator.
    const reason = this.#hasSentMessage || this.#isNoisy ? "" : startFailure(stderr, this.#options.env);
    const message = `${this.#describeExit(exit)}${reason === "" ? "" : `: ${reason}`}`;
    const diagnostics = reason !== "" && stderr.trim() === reason ? "" : describeStderr(stderr);
    const error = new ConnectionError(this.#isNoisy ? "protocol" : "closed", message, { diagnostics });
    this.#writer?.fail(error);
    this.#receive?.({ kind: "end", ...(!this.#closed && { error }) });
  }

  #describeExit({ code, signal }: Exit): string {
    // The text does not include the command's arguments, which may contain secrets.
    const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`;
    const why = this.#closeReason === "" ? "" : ` after it ${this.#closeReason}`;
    return `${this.#options.command} ${how}${why}`;
  }
}

function describeStderr(stderr: string): string {
  const lines = lastLines(stderr, MAX_STDERR_LENGTH);
  return lines === "" ? "; it wrote nothing on stderr" : `; the end of its stderr:\n${lines}`;
}
