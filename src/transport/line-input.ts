// Reads lines from a pipe within the budget of a turn. The input also pauses while the peer does not read what we wrote.

import type { Readable } from "node:stream";
import { PacedReader } from "../core/turn-budget.ts";
import { LineReader, type LineReaderOptions } from "../jsonrpc/lines.ts";
import type { LineWriter } from "./line-writer.ts";

/** The clock is read after this many lines. Most chunks have fewer. */
const LINES_PER_CHECK = 64;

interface LineInputOptions extends LineReaderOptions {
  /** Whether the peer leaves too much unread, so that its input waits until `writer` has drained. */
  readonly isBehind: () => boolean;
}

export class LineInput {
  readonly #input: PacedReader;
  readonly #lines: LineReader;

  constructor(input: Readable, writer: LineWriter, options: LineInputOptions) {
    const lines = new LineReader(options);
    this.#lines = lines;
    this.#input = new PacedReader(input, {
      take: (chunk, from) => lines.push(chunk, from, LINES_PER_CHECK),
      mustWait: options.isBehind,
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
