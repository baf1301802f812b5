// The writing side of a pipe. All that is written in one tick goes out in one write, since a system call a
// message is the main cost of a pipe; whoever writes learns when the pipe can take more; and a pipe that
// breaks settles all who wait for it, whether or not it ever drains. What is written is not looked at.

import type { Writable } from "node:stream";
import { ConnectionError } from "../core/errors.ts";
import { errorMessage } from "../core/text.ts";
import { within } from "../core/async.ts";
import { encode } from "../jsonrpc/codec.ts";
import { frame } from "../jsonrpc/framing.ts";
import type { Message } from "../jsonrpc/message.ts";

/** More than this unread, and notifications are dropped and the input waits. */
export const BACKLOG_BYTES: number = 8 * 1024 * 1024;

const READY: Promise<void> = Promise.resolve();

interface Waiting {
  readonly promise: Promise<void>;
  resolve(): void;
  reject(error: Error): void;
}

export class Outlet {
  readonly #output: Writable;
  readonly #maxBytes: number;
  readonly #broken: (error: ConnectionError) => void;
  #pending = "";
  #scheduled = false;
  #drain: Waiting | undefined;
  #failure: ConnectionError | undefined;

  /** `broken` is called once, when the pipe can carry no more and nobody asked it to end. */
  constructor(output: Writable, maxBytes: number, broken: (error: ConnectionError) => void) {
    this.#output = output;
    this.#maxBytes = maxBytes;
    this.#broken = broken;
    // This listener stays for good: a late EPIPE that nobody hears would end the process.
    output.on("error", (error) => this.fail(error));
    output.on("close", () => this.fail());
    output.on("drain", () => this.#drained());
  }

  /** What is written and not yet taken by the other side, roughly in bytes. */
  get backlog(): number {
    return this.#pending.length + this.#output.writableLength;
  }

  /** Resolves when the pipe can take more; rejects with a ConnectionError when the message cannot be carried. */
  send(message: Message | readonly Message[]): Promise<void> {
    if (this.#failure !== undefined) return refuse(this.#failure);
    // Progress and logs are for somebody who listens: for one who does not read they are not kept.
    if (this.backlog > BACKLOG_BYTES && isPassing(message)) return READY;
    let text: string;
    try {
      text = encode(message);
    } catch (cause) {
      return refuse(new ConnectionError("protocol", errorMessage(cause), { cause }));
    }
    // One character is at most three bytes, so most messages need no counting.
    if (text.length * 3 > this.#maxBytes && Buffer.byteLength(text) > this.#maxBytes) {
      const why = `it is longer than ${this.#maxBytes} bytes (limits.messageBytes)`;
      return refuse(new ConnectionError("protocol", why));
    }
    this.#pending += frame(text);
    if (!this.#scheduled) {
      this.#scheduled = true;
      // Not a microtask: those that the same input has set going may have more to write.
      process.nextTick(() => this.#flush());
    }
    if (this.#drain !== undefined) return this.#drain.promise;
    if (this.backlog < this.#output.writableHighWaterMark) return READY;
    this.#flush();
    return this.#output.writableNeedDrain ? this.#untilDrained() : READY;
  }

  /** Writes what is pending and waits, at most so long, until the system has taken all of it. */
  async finish(patienceMs: number): Promise<void> {
    this.#flush();
    if (this.#failure !== undefined || this.#output.writableLength === 0) return;
    await within(patienceMs, new Promise<void>((resolve) => this.#output.write("", () => resolve())));
  }

  /** Nothing more is carried; those who wait are told so. A better reason may follow later. */
  fail(cause?: Error): void {
    const first = this.#failure === undefined;
    if (cause instanceof ConnectionError) this.#failure = cause;
    const why = cause === undefined ? "" : `: ${cause.message}`;
    this.#failure ??= new ConnectionError("closed", `the pipe is closed${why}`, { cause });
    if (!first) return;
    this.#pending = "";
    this.#drain?.reject(this.#failure);
    this.#drain = undefined;
    this.#broken(this.#failure);
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#pending === "" || this.#failure !== undefined) return;
    const text = this.#pending;
    this.#pending = "";
    if (this.#output.destroyed || this.#output.writableEnded) this.fail(this.#output.errored ?? undefined);
    else this.#output.write(text);
  }

  #untilDrained(): Promise<void> {
    if (this.#drain === undefined) {
      let resolve!: () => void;
      let reject!: (error: Error) => void;
      const promise = new Promise<void>((yes, no) => {
        resolve = yes;
        reject = no;
      });
      this.#drain = { promise: quiet(promise), resolve, reject };
    }
    return this.#drain.promise;
  }

  #drained(): void {
    this.#drain?.resolve();
    this.#drain = undefined;
  }
}

/** Worth hearing only when it is said. */
function isPassing(message: Message | readonly Message[]): boolean {
  if (!("method" in message)) return false;
  return message.method === "notifications/progress" || message.method === "notifications/message";
}

export function refuse(error: ConnectionError): Promise<void> {
  return quiet(Promise.reject(error));
}

/** A notification's sender waits for nothing: a rejection that nobody looks at must not end the process. */
function quiet(promise: Promise<void>): Promise<void> {
  promise.catch(() => {});
  return promise;
}
