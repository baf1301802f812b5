// Texts by number in a budget of bytes, written into large buffers: what is kept are bytes and no objects, which the
// garbage collector would copy. The oldest buffer is dropped as a whole, and used again.

import { Buffer } from "node:buffer";

interface Chunk {
  /** Undefined once it was dropped. */
  buffer: Buffer | undefined;
  used: number;
  /** Values too large for a text, by the offset of the text that they belong to, and about how many bytes they take. */
  large: Map<number, readonly unknown[]> | undefined;
  largeBytes: number;
}

export interface KeptText {
  readonly text: string;
  readonly large: readonly unknown[];
}

const CHUNKS = 64;
/** The length of a text, and how it is encoded. */
const HEADER_BYTES = 4;
const MAX_LENGTH = 2 ** 31 - 1;
/** Of texts with one byte for each character, this is found without reading them. */
const WIDE = /[\u0100-\uffff]/;
const NO_VALUES: readonly unknown[] = [];

export class ChunkedLog {
  readonly #limit: number;
  readonly #chunkBytes: number;
  /** Oldest first. */
  readonly #chunks: Chunk[] = [];
  readonly #chunkOf: (Chunk | undefined)[] = [];
  readonly #offsetOf: number[] = [];
  #spare: Buffer | undefined;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#chunkBytes = Math.max(1, Math.floor(limit / CHUNKS));
  }

  /** How many bytes are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `large` are values that are kept as references with the text, and count for so many bytes. */
  write(slot: number, text: string, large: readonly unknown[] = NO_VALUES, largeBytes = 0): void {
    const isWide = WIDE.test(text);
    const length = isWide ? Buffer.byteLength(text) : text.length;
    const size = HEADER_BYTES + length;
    this.#chunkOf[slot] = undefined;
    if (size + largeBytes > this.#limit || size > MAX_LENGTH) return;
    const chunk = this.#chunkFor(size, largeBytes);
    const { buffer, used } = chunk;
    if (buffer === undefined) return;
    buffer.writeInt32LE(isWide ? -length : length, used);
    buffer.write(text, used + HEADER_BYTES, length, isWide ? "utf8" : "latin1");
    chunk.used += size;
    this.#chunkOf[slot] = chunk;
    this.#offsetOf[slot] = used;
    if (large.length > 0) {
      (chunk.large ??= new Map()).set(used, large);
      chunk.largeBytes += largeBytes;
      this.#bytes += largeBytes;
    }
    if (this.#bytes > this.#limit) this.#trim();
  }

  /** Undefined if it was dropped. */
  read(slot: number): KeptText | undefined {
    const chunk = this.#chunkOf[slot];
    const buffer = chunk?.buffer;
    if (chunk === undefined || buffer === undefined) return undefined;
    const offset = this.#offsetOf[slot] ?? 0;
    const length = buffer.readInt32LE(offset);
    const start = offset + HEADER_BYTES;
    const text = buffer.toString(length < 0 ? "utf8" : "latin1", start, start + Math.abs(length));
    return { text, large: chunk.large?.get(offset) ?? NO_VALUES };
  }

  forget(slot: number): void {
    this.#chunkOf[slot] = undefined;
  }

  #chunkFor(size: number, largeBytes: number): Chunk {
    const last = this.#chunks.at(-1);
    const hasRoom = last?.buffer !== undefined && last.used + size <= last.buffer.length;
    if (hasRoom && last.largeBytes + largeBytes <= this.#chunkBytes) return last;
    const isUsual = size <= this.#chunkBytes && largeBytes <= this.#chunkBytes;
    let buffer = isUsual ? this.#spare : undefined;
    if (isUsual) this.#spare = undefined;
    buffer ??= Buffer.allocUnsafeSlow(isUsual ? this.#chunkBytes : size);
    const chunk: Chunk = { buffer, used: 0, large: undefined, largeBytes: 0 };
    this.#chunks.push(chunk);
    this.#bytes += buffer.length;
    return chunk;
  }

  #trim(): void {
    while (this.#bytes > this.#limit) {
      const oldest = this.#chunks.shift();
      if (oldest?.buffer === undefined) return;
      this.#bytes -= oldest.buffer.length + oldest.largeBytes;
      if (oldest.buffer.length === this.#chunkBytes) this.#spare = oldest.buffer;
      oldest.buffer = undefined;
      oldest.large = undefined;
    }
  }
}
