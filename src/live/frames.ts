// Frames between host and guest: the number of bytes in decimal digits, a newline, and that many bytes of UTF-8. The
// length comes first because the payload may contain any character.

/** A length with more digits is not valid. */
const MAX_DIGITS = 12;

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
      const payload = rest.subarray(0, MAX_DIGITS + 1).indexOf("\n") + 1;
      this.#needed = payload === 0 ? 0 : payload + this.#parseLength(rest.toString("latin1", 0, payload - 1));
      if (payload === 0 && rest.length > MAX_DIGITS) throw new Error("invalid frame");
      if (payload === 0 || rest.length < this.#needed) break;
      const text = rest.toString("utf8", payload, this.#needed);
      rest = rest.subarray(this.#needed);
      this.#onFrame(text);
    }
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#size = rest.length;
  }

  #parseLength(digits: string): number {
    if (!/^\d+$/.test(digits)) throw new Error("invalid frame");
    const length = Number(digits);
    if (length > this.#maxBytes()) throw new Error(`a frame of ${length} bytes is too long`);
    return length;
  }
}
