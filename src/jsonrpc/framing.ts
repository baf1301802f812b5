// Bytes <-> lines: one message a line, as on stdio. Each byte is searched once and copied at most twice
// (into a block while its line is incomplete, and out of it when the line is whole), whatever the size of
// the chunks; what is kept never exceeds the limit. What a line says is the codec's matter.

import { isUtf8 } from "node:buffer";
import { beginning } from "./codec.ts";
import { PARSE_ERROR, parseError, tooLong } from "./fault.ts";
import type { ErrorMessage } from "./message.ts";

export interface LineReaderOptions {
  /** Bytes of a line before its newline. */
  readonly maxBytes: number;
  onLine(text: string): void;
  /** With the id, where the beginning of the line shows one; not answerable where it is an answer itself. */
  onFault(fault: ErrorMessage, answerable: boolean): void;
}

const NEWLINE = 10;
const RETURN = 13;
const SMALLEST_BLOCK = 4 * 1024;
const LARGEST_BLOCK = 256 * 1024;
/** Of a line that cannot be read, so much is looked at for its id. */
const HEAD_BYTES = 4 * 1024;

export class LineReader {
  readonly #options: LineReaderOptions;
  // The unfinished line. Chunks are copied, because a list of one-byte chunks would take a hundred times
  // their bytes and a chunk belongs to whoever read it; blocks are never copied into larger ones.
  #blocks: Buffer[] = [];
  #room = 0;
  #buffered = 0;
  #skipping = false;
  #begun = false;

  constructor(options: LineReaderOptions) {
    this.#options = options;
  }

  /** Bytes kept of a line that has not ended yet. */
  get buffered(): number {
    return this.#buffered;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    let start = 0;
    while (start < bytes.length) {
      const newline = bytes.indexOf(NEWLINE, start);
      const end = newline === -1 ? bytes.length : newline;
      this.#take(bytes, start, end, newline !== -1);
      start = end + 1;
    }
  }

  /** The input is over. A last line without a newline is still a line. */
  end(): void {
    if (this.#buffered > 0) this.#deliver(this.#join());
    this.#skipping = false;
  }

  #take(bytes: Buffer, start: number, end: number, whole: boolean): void {
    if (this.#skipping) {
      this.#skipping = !whole;
      return;
    }
    if (this.#buffered + end - start > this.#options.maxBytes) {
      const head = this.#blocks[0]?.subarray(0, this.#buffered) ?? bytes.subarray(start, end);
      this.#forget();
      this.#begun = true;
      this.#skipping = !whole;
      this.#fault(tooLong(this.#options.maxBytes), head);
      return;
    }
    if (whole && this.#buffered === 0) {
      this.#deliver(bytes.subarray(start, end));
      return;
    }
    this.#keep(bytes, start, end);
    if (whole) this.#deliver(this.#join());
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    let from = start;
    while (from < end) {
      if (this.#room === 0) this.#grow(end - from);
      const block = this.#blocks.at(-1);
      if (block === undefined) return;
      const count = Math.min(this.#room, end - from);
      block.set(bytes.subarray(from, from + count), block.length - this.#room);
      this.#room -= count;
      this.#buffered += count;
      from += count;
    }
  }

  #grow(wanted: number): void {
    const usual = Math.min(Math.max(SMALLEST_BLOCK, this.#buffered), LARGEST_BLOCK);
    // The limit is the most that can still come, so no block reaches beyond it.
    const size = Math.min(Math.max(usual, wanted), this.#options.maxBytes - this.#buffered);
    this.#blocks.push(Buffer.allocUnsafeSlow(size));
    this.#room = size;
  }

  #join(): Buffer {
    const [first] = this.#blocks;
    const line =
      first !== undefined && this.#blocks.length === 1
        ? first.subarray(0, this.#buffered)
        : Buffer.concat(this.#blocks, this.#buffered);
    this.#forget();
    return line;
  }

  #forget(): void {
    this.#blocks = [];
    this.#room = 0;
    this.#buffered = 0;
  }

  #fault(fault: ErrorMessage, line: Buffer): void {
    const { id, answerable } = beginning(line.toString("utf8", 0, HEAD_BYTES));
    // JSON-RPC has null for what could not be read; only a broken answer must still find its question.
    const unread = answerable && fault.error.code === PARSE_ERROR;
    this.#options.onFault(unread ? fault : { ...fault, id }, answerable);
  }

  #deliver(line: Buffer): void {
    const first = !this.#begun;
    this.#begun = true;
    const bom = first && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0;
    const text = line.toString("utf8", bom, line[line.length - 1] === RETURN ? line.length - 1 : line.length);
    // What is no UTF-8 has become this character: only a text that has it needs a second look.
    if (text.includes("\ufffd") && !isUtf8(line)) this.#fault(parseError("Invalid UTF-8"), line);
    else if (text.trim() !== "") this.#options.onLine(text);
  }
}

/** A text without newlines, as `encode` gives it, as one line. */
export function frame(text: string): string {
  return `${text}\n`;
}
