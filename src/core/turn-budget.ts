// The bytes of one peer are handled for a few milliseconds in one turn of the event loop. Then its input waits until the
// next turn, so that a peer that writes without end does not delay others. PacedReader does this for a stream of Node,
// TurnBudget for a loop that awaits chunks.

import type { Readable } from "node:stream";
import { afterEvents } from "./async.ts";

/** How long the bytes of one peer may be handled in one turn. */
const TURN_MS = 5;
/** The system reads more of a pipe in the same turn only if it has filled a whole buffer. */
const FULL_CHUNK_BYTES = 64 * 1024;
/** The bytes between two looks at the clock, where items are not counted. */
export const PIECE_BYTES: number = 8 * 1024;

export interface PacedReaderOptions {
  /**
   * Handles a few items of the chunk, from `from` on, or buffers an incomplete one. Returns where it stopped: the length
   * of the chunk if it has taken all of it. The clock is read after each call.
   */
  take(chunk: Buffer, from: number): number;
  /** Whether the input must wait for something else. If so, `onceReady` calls its argument later, once. */
  mustWait?(): boolean;
  onceReady?(act: () => void): void;
}

export class PacedReader {
  readonly #input: Readable;
  readonly #options: PacedReaderOptions;
  #chunk: Buffer | undefined;
  #at = 0;
  #turnStart = 0;
  #wasFull = false;
  /** Whether this turn began with the rest of an earlier one. What is read then is part of it. */
  #isContinued = false;
  #isPaused = false;
  #isStopped = false;

  constructor(input: Readable, options: PacedReaderOptions) {
    this.#input = input;
    this.#options = options;
  }

  start(): void {
    this.#input.on("data", this.#onData);
    // A question at the terminal leaves stdin paused, and a paused stream does not start by itself.
    this.#input.resume();
  }

  /** Whether part of the input waits for another turn. */
  get isBehind(): boolean {
    return this.#isPaused && !this.#isStopped;
  }

  /** Resolves when all of the input that has ended is handled, a turn at a time. */
  async finish(): Promise<void> {
    while (this.isBehind) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Handles the rest of what was read, at once. Returns false if reading was already over. */
  end(): boolean {
    if (this.#isStopped) return false;
    this.#isStopped = true;
    const chunk = this.#chunk;
    this.#chunk = undefined;
    if (chunk !== undefined) while (this.#at < chunk.length) this.#at = this.#options.take(chunk, this.#at);
    return true;
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
    if (!this.#wasFull && !this.#isContinued) this.#turnStart = performance.now();
    this.#wasFull = bytes.length >= FULL_CHUNK_BYTES;
    this.#chunk = bytes;
    this.#at = 0;
    this.#read();
  };

  #read(): void {
    while (this.#chunk !== undefined) {
      const { length } = this.#chunk;
      this.#at = this.#options.take(this.#chunk, this.#at);
      // An item may have closed the connection.
      if (this.#isStopped) return;
      const isRead = this.#at >= length;
      if (isRead) this.#chunk = undefined;
      if (this.#options.mustWait?.() === true) {
        this.#pause();
        this.#options.onceReady?.(this.#onNextTurn);
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
    // A chunk that the stream has buffered comes in this turn too, and so may one that is read then.
    this.#wasFull = true;
    this.#isContinued = true;
    setImmediate(() => (this.#isContinued = false));
    this.#read();
  };
}

/** Reads output that has no items, or whose items others find, in small pieces. `onPiece` must not keep them. */
export function readPieces(input: Readable, onPiece: (bytes: Buffer) => void): PacedReader {
  const take = (chunk: Buffer, from: number): number => {
    const end = Math.min(chunk.length, from + PIECE_BYTES);
    onPiece(from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end));
    return end;
  };
  const reader = new PacedReader(input, { take });
  reader.start();
  return reader;
}

export class TurnBudget {
  #since = 0;
  #spentMs = 0;

  /** Call this when there is work again, such as a chunk. Time spent waiting does not count. */
  begin(): void {
    this.#since = performance.now();
  }

  /** Call this after some work. Returns a promise to wait for before more of it, if the time is used up. */
  pause(): Promise<void> | undefined {
    const now = performance.now();
    this.#spentMs += now - this.#since;
    this.#since = now;
    if (this.#spentMs <= TURN_MS) return undefined;
    this.#spentMs = 0;
    return new Promise((resolve) => {
      afterEvents(() => {
        this.begin();
        resolve();
      });
    });
  }
}
