// Reads lines from a pipe within a budget: after a few milliseconds of work in one turn of the event loop, the input
// pauses until the next turn, so that a peer that writes without end does not delay others. It also pauses while the
// peer does not read what we wrote.

import type { Readable } from "node:stream";
import { LineReader, type LineReaderOptions } from "../jsonrpc/lines.ts";
import type { LineWriter } from "./line-writer.ts";

/** How long the lines of one peer may be handled in one turn. */
const TURN_MS = 5;
/** The clock is read after this many lines. Most chunks have fewer. */
const LINES_PER_CHECK = 64;
/** The system reads more of a pipe in the same turn only if it has filled a whole buffer. */
const FULL_CHUNK_BYTES = 64 * 1024;

export interface LineInputOptions extends LineReaderOptions {
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
