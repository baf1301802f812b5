// Frames between host and guest: the number of bytes in decimal digits, a newline, and that many bytes of JSON. With the
// length first, a guest knows how much to read before it parses.

/** A length with more digits is not valid. */
const MAX_DIGITS = 12;
const NEWLINE = 10;
const ZERO = 48;

/** `text` must not contain newlines. */
export function frame(text: string): string {
  return `${Buffer.byteLength(text)}\n${text}`;
}

export class FrameReader {
  readonly #onFrame: (text: string) => void;
  readonly #maxBytes: () => number;
  /** What has arrived since the last whole frame. */
  #chunks: Buffer[] = [];
  #size = 0;
  /** The size of the current frame with its header in bytes; 0 until it is known. */
  #needed = 0;

  /** `maxBytes` is called for each frame, since the limit can change. */
  constructor(onFrame: (text: string) => void, maxBytes: () => number) {
    this.#onFrame = onFrame;
    this.#maxBytes = maxBytes;
  }

  /** Throws if the bytes are not a valid frame. The rest of the stream is then unreadable. */
  push(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) at = this.take(chunk, at);
  }

  /** Reads one frame of the chunk, from `from` on, or keeps the beginning of one. Returns where it stopped. Throws as `push`. */
  take(chunk: Buffer, from: number): number {
    const kept = this.#size;
    const isShort = kept + chunk.length - from < this.#needed;
    const end = isShort || this.#needed === 0 ? chunk.length : from + this.#needed - kept;
    const part = chunk.subarray(from, end);
    this.#chunks.push(part);
    this.#size += part.length;
    if (isShort) return chunk.length;
    const bytes = this.#chunks.length === 1 ? part : Buffer.concat(this.#chunks);
    const payload = this.#readLength(bytes);
    if (payload === 0 || bytes.length < this.#needed) {
      this.#chunks = [bytes];
      return chunk.length;
    }
    const text = bytes.toString("utf8", payload, this.#needed);
    const read = from + this.#needed - kept;
    this.#chunks = [];
    this.#size = 0;
    this.#needed = 0;
    this.#onFrame(text);
    return read;
  }

  /** Returns where the payload begins; 0 if that has not arrived. */
  #readLength(bytes: Buffer): number {
    this.#needed = 0;
    let length = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte === NEWLINE && at > 0) {
        if (length > this.#maxBytes()) throw new Error(`a frame of ${length} bytes is too long`);
        this.#needed = at + 1 + length;
        return at + 1;
      }
      const digit = byte - ZERO;
      if (digit < 0 || digit > 9 || at === MAX_DIGITS) throw new Error("invalid frame");
      length = length * 10 + digit;
    }
    return 0;
  }
}
