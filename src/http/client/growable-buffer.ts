// Bytes that are gathered until there are enough to be a text: of an event, of a whole body. They stand in one piece
// that grows in place and is given back the moment it is not wanted any more, without waiting for the collector, so
// a text of n bytes takes n for its bytes and once its own length, and nothing is copied twice. How many may be
// gathered is said at the start: so much address space is reserved, and only what is written takes memory.

import { isAscii } from "node:buffer";

/** The language has had it for longer than the compiler's library for our oldest Node. */
interface Resizable extends ArrayBuffer {
  resize(length: number): void;
}
const ResizableBuffer = ArrayBuffer as unknown as new (length: number, options: { maxByteLength: number }) => Resizable;

/** Kept between two texts, so that small ones do not ask the system for memory each time. */
const KEPT_BYTES = 64 * 1024;
/** The longest text that there can be in V8; more bytes would only be gathered to fail. */
const MOST_BYTES = 2 ** 29 - 32;

export class GrowableBuffer {
  readonly #most: number;
  #memory: Resizable | undefined;
  #view: Buffer = Buffer.alloc(0);
  #length = 0;

  constructor(mostBytes: number) {
    this.#most = Math.min(mostBytes, MOST_BYTES);
  }

  get length(): number {
    return this.#length;
  }

  /** Good until the next change. */
  get bytes(): Buffer {
    return this.#view.subarray(0, this.#length);
  }

  /** False, and nothing is taken, where it would be more than may be gathered. */
  append(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    const length = this.#length + end - start;
    if (length > this.#most) return false;
    if (length > this.#view.length) this.#grow(length);
    this.#view.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), this.#length);
    this.#length = length;
    return true;
  }

  /** Forgets what stands from there on. */
  truncate(length: number): void {
    this.#length = Math.min(length, this.#length);
    if (this.#length === 0 && this.#view.length > KEPT_BYTES) this.#resize(KEPT_BYTES);
  }

  /** Gives all of the memory back. */
  release(): void {
    this.#length = 0;
    if (this.#memory !== undefined) this.#resize(0);
  }

  #grow(wanted: number): void {
    this.#memory ??= new ResizableBuffer(0, { maxByteLength: this.#most });
    // Not by doubling: what shrinks is cleared first, and that would take the memory of what was never written.
    this.#resize(Math.min(Math.max(KEPT_BYTES, wanted + Math.ceil(wanted / 8)), this.#most));
  }

  #resize(length: number): void {
    if (this.#memory === undefined) return;
    const size = Math.min(length, this.#most);
    this.#memory.resize(size);
    this.#view = Buffer.from(this.#memory, 0, size);
  }
}

/** Bytes that are no UTF-8 become the character for that, as everywhere on the web. */
export function decodeUtf8(bytes: Buffer): string {
  // The shorter way would keep a long text outside of the heap, where V8 is in no hurry to collect it.
  return bytes.length <= KEPT_BYTES && isAscii(bytes) ? bytes.toString("latin1") : bytes.toString("utf8");
}

/** The same bytes, with the methods of a buffer. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Of a whole body: without the byte order mark that may stand before it. */
export function textOf(bytes: Buffer): string {
  const text = decodeUtf8(bytes);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
