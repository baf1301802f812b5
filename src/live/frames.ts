// Frames between host and guest: the number of bytes in decimal digits, a newline, and that many bytes of UTF-8. The
// length comes first because the payload may contain any character.

/** A length with more digits is not valid. */
const MAX_DIGITS = 12;
const NEWLINE = 10;
const ZERO = 48;

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
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#size < this.#needed) return;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    for (;;) {
      const payload = this.#readLength(rest);
      if (payload === 0 || rest.length < this.#needed) break;
      const text = rest.toString("utf8", payload, this.#needed);
      rest = rest.subarray(this.#needed);
      this.#onFrame(text);
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
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
