// A byte buffer for SSE events and response bodies, and its text. A long content grows in place: its memory is freed at
// once, without waiting for the garbage collector, and reserving the maximum size uses only address space.

import { Buffer, isAscii } from "node:buffer";

/** Missing in the type library for the oldest supported Node. */
interface Resizable extends ArrayBuffer {
  resize(length: number): void;
}
const ResizableBuffer = ArrayBuffer as unknown as new (length: number, options: { maxByteLength: number }) => Resizable;

/** Memory kept when the buffer is emptied. Smaller contents are in ordinary memory, which is allocated faster. */
const RETAINED_BYTES = 64 * 1024;
const FIRST_BYTES = 1024;
/** Just below the length of the longest string in V8. */
const MAX_STRING_BYTES = 2 ** 29 - 32;

export class GrowableBuffer {
  readonly #maxBytes: number;
  #memory: Resizable | undefined;
  #view = EMPTY;
  length = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = Math.min(maxBytes, MAX_STRING_BYTES);
  }

  /** Valid until the buffer changes. */
  get bytes(): Buffer {
    return this.#view.subarray(0, this.length);
  }

  /** Returns false, and appends nothing, if the maximum would be exceeded. */
  append(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    const length = this.length + end - start;
    if (length > this.#maxBytes) return false;
    if (length > this.#view.length) this.#grow(length);
    this.#view.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), this.length);
    this.length = length;
    return true;
  }

  /** Drops everything from `length` on. */
  truncate(length: number): void {
    this.length = Math.min(length, this.length);
    if (this.length <= RETAINED_BYTES && this.#view.length > RETAINED_BYTES) this.#resize(RETAINED_BYTES);
  }

  /** Frees all memory. */
  release(): void {
    this.length = 0;
    this.#memory?.resize(0);
    this.#view = EMPTY;
  }

  #grow(wantedBytes: number): void {
    const before = this.bytes;
    const isMoved = this.#memory === undefined;
    if (isMoved && wantedBytes <= RETAINED_BYTES)
      this.#view = Buffer.allocUnsafe(Math.min(Math.max(FIRST_BYTES, 2 * wantedBytes), RETAINED_BYTES));
    // Grows by an eighth instead of doubling. Spare pages take no memory until they are written, but a later shrink
    // writes zeros to them, so much spare space would then need memory.
    else this.#resize(Math.min(Math.max(RETAINED_BYTES, wantedBytes + Math.ceil(wantedBytes / 8)), this.#maxBytes));
    if (isMoved) this.#view.set(before);
  }

  #resize(length: number): void {
    this.#memory ??= new ResizableBuffer(0, { maxByteLength: this.#maxBytes });
    this.#memory.resize(length);
    this.#view = Buffer.from(this.#memory);
  }
}

export const EMPTY: Buffer = Buffer.alloc(0);

/** Invalid UTF-8 becomes U+FFFD. */
export function decodeUtf8(bytes: Buffer): string {
  // For short ASCII, latin1 is faster. A long latin1 string would be outside the heap, where V8 collects it late.
  return bytes.length <= RETAINED_BYTES && isAscii(bytes) ? bytes.toString("latin1") : bytes.toString("utf8");
}

/** Decodes a whole body and removes a byte order mark. */
export function decodeBody(bytes: Buffer): string {
  const text = decodeUtf8(bytes);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}
