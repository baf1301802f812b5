// Splits bytes into lines, one message each, as on stdio. Each byte is searched once, whatever the size of the chunks. A
// line that is complete in its chunk is not copied. The buffered bytes never exceed the limit; of a longer line, only
// the id is kept.

import { Buffer, isUtf8 } from "node:buffer";
import { NEWLINE, RETURN } from "./characters.ts";
import { readHead, parseError, tooLong } from "./codec.ts";
import type { ErrorMessage } from "./message.ts";
import { SkippedMessage } from "./skipped-message.ts";

export interface LineReaderOptions {
  /** The longest line, without its newline. */
  readonly maxBytes: number;
  onLine(text: string): void;
  /**
   * Called for an unreadable line. The fault has the id of the message, except in a parse error that is answered: as soon
   * as the id is known for a line that is too long, and for other lines if it is near the start. `answerable` is false
   * for a response.
   */
  onFault(fault: ErrorMessage, answerable: boolean): void;
}

const MIN_BUFFER_BYTES = 4 * 1024;
/** A line that is longer may turn out to be too long. */
const LONG_BYTES = 1024 * 1024;
/** How much of a line that is not UTF-8 is searched for its id. */
const HEAD_BYTES = 4 * 1024;

export class LineReader {
  readonly #options: LineReaderOptions;
  // The incomplete line. Chunks are copied, since a stream may reuse them. The buffer doubles when it is full.
  #buffer: Buffer = Buffer.alloc(0);
  /** How many bytes of it there are. */
  buffered = 0;
  /** Reads the id of a long line as its bytes come, so that it is known when the line turns out to be too long. */
  #head: SkippedMessage | undefined;
  /** The rest of a line that is too long. */
  #skipped: SkippedMessage | undefined;
  #isReported = false;
  #hasBegun = false;

  constructor(options: LineReaderOptions) {
    this.#options = options;
  }

  /** Reads the chunk from `from` on, at most `maxLines` lines. Returns where it stopped. */
  push(chunk: Uint8Array, from: number = 0, maxLines: number = Infinity): number {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = from;
    for (let lines = 0; start < bytes.length && lines < maxLines; lines += 1) {
      const newline = bytes.indexOf(NEWLINE, start);
      const end = newline === -1 ? bytes.length : newline;
      this.#add(bytes, start, end, newline !== -1);
      start = end + 1;
    }
    return start;
  }

  /** Call at the end of input. A last line without a newline is still a line. */
  end(): void {
    if (this.#skipped !== undefined) this.#skip(this.#skipped, this.#buffer, 0, 0, true);
    else if (this.buffered > 0) this.#deliverBuffered();
  }

  #add(bytes: Buffer, start: number, end: number, isLineEnd: boolean): void {
    if (this.#skipped === undefined && this.buffered + end - start > this.#options.maxBytes) {
      this.#skipped = this.#head ?? new SkippedMessage();
      if (this.#head === undefined) this.#skipped.push(this.#buffer, 0, this.buffered);
      this.#reset();
      this.#hasBegun = true;
    }
    if (this.#skipped !== undefined) {
      this.#skip(this.#skipped, bytes, start, end, isLineEnd);
      return;
    }
    if (isLineEnd && this.buffered === 0) {
      this.#deliver(bytes, start, end);
      return;
    }
    this.#keep(bytes, start, end);
    if (isLineEnd) this.#deliverBuffered();
  }

  #skip(skipped: SkippedMessage, bytes: Buffer, start: number, end: number, isLineEnd: boolean): void {
    const wasReported = this.#isReported;
    if (!wasReported) skipped.push(bytes, start, end);
    this.#isReported = !isLineEnd && (wasReported || skipped.isKnown);
    if (isLineEnd) this.#skipped = undefined;
    if (wasReported || !(isLineEnd || skipped.isKnown)) return;
    this.#options.onFault(tooLong(this.#options.maxBytes, skipped.id), skipped.isAnswerable);
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    const length = this.buffered + end - start;
    if (length > this.#buffer.length) {
      const wantedBytes = Math.max(MIN_BUFFER_BYTES, length, 2 * this.#buffer.length);
      const larger = Buffer.allocUnsafeSlow(Math.min(wantedBytes, this.#options.maxBytes));
      this.#buffer.copy(larger, 0, 0, this.buffered);
      this.#buffer = larger;
    }
    bytes.copy(this.#buffer, this.buffered, start, end);
    const isNew = this.#head === undefined;
    if (length > LONG_BYTES)
      (this.#head ??= new SkippedMessage()).push(this.#buffer, isNew ? 0 : this.buffered, length);
    this.buffered = length;
  }

  #reset(): void {
    this.#buffer = Buffer.alloc(0);
    this.buffered = 0;
    this.#head = undefined;
  }

  #notUtf8(line: Buffer): void {
    const { id, answerable } = readHead(line.toString("utf8", 0, HEAD_BYTES));
    const fault = parseError("Invalid UTF-8");
    // JSON-RPC requires the id null after a parse error. But the id of a broken response is needed to fail its request.
    this.#options.onFault(answerable ? fault : { ...fault, id }, answerable);
  }

  #deliverBuffered(): void {
    const line = this.#buffer.subarray(0, this.buffered);
    this.#reset();
    this.#deliver(line, 0, line.length);
  }

  #deliver(bytes: Buffer, start: number, end: number): void {
    const isFirst = !this.#hasBegun;
    this.#hasBegun = true;
    const hasBom = isFirst && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf;
    const last = end > start && bytes[end - 1] === RETURN ? end - 1 : end;
    const text = bytes.toString("utf8", hasBom ? start + 3 : start, last);
    // Decoding replaces invalid UTF-8 by this character, so only a line that contains it needs the check.
    const isInvalid = text.includes("\ufffd") && !isUtf8(bytes.subarray(start, end));
    if (isInvalid) this.#notUtf8(bytes.subarray(start, end));
    else if (text.trim() !== "") this.#options.onLine(text);
  }
}
