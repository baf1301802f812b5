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
  /** The part of a frame that has arrived so far. */
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  /** The size of the current frame with its header in bytes; undefined until it is known. */
  #frameBytes: number | undefined;
  /** Where the payload begins, after the length and the newline. */
  #payloadStart = 0;

  /** `maxBytes` is called for each frame, since the limit can change. */
  constructor(onFrame: (text: string) => void, maxBytes: () => number) {
    this.#onFrame = onFrame;
    this.#maxBytes = maxBytes;
  }

  /** Throws if the bytes are not a valid frame. The rest of the stream is then unreadable. */
  push(chunk: Buffer): void {
    let rest = chunk;
    for (;;) {
      this.#frameBytes ??= this.#readLength(rest);
      if (this.#frameBytes === undefined) return;
      if (this.#bufferedBytes > 0) {
        this.#buffer(rest);
        if (this.#bufferedBytes < this.#frameBytes) return;
        rest = Buffer.concat(this.#chunks);
        this.#clear();
      } else if (rest.length < this.#frameBytes) {
        this.#buffer(rest);
        return;
      }
      const text = rest.toString("utf8", this.#payloadStart, this.#frameBytes);
      rest = rest.subarray(this.#frameBytes);
      this.#frameBytes = undefined;
      this.#onFrame(text);
      if (rest.length === 0) return;
    }
  }

  /** Returns the size of the whole frame with its header in bytes, or undefined if the header is not complete. */
  #readLength(bytes: Buffer): number | undefined {
    const head = this.#bufferedBytes === 0 ? bytes : Buffer.concat([...this.#chunks, bytes]);
    const end = head.indexOf(NEWLINE);
    if (end === -1 || end > MAX_DIGITS) {
      if (end > MAX_DIGITS || head.length > MAX_DIGITS) throw new Error("invalid frame");
      this.#buffer(bytes);
      return undefined;
    }
    let length = 0;
    for (let at = 0; at < end; at += 1) {
      const digit = (head[at] as number) - ZERO;
      if (digit < 0 || digit > 9) throw new Error("invalid frame");
      length = length * 10 + digit;
    }
    if (end === 0 || length > this.#maxBytes()) throw new Error(`a frame of ${length} bytes is too long`);
    this.#payloadStart = end + 1;
    return end + 1 + length;
  }

  #buffer(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#bufferedBytes += bytes.length;
  }

  #clear(): void {
    this.#chunks = [];
    this.#bufferedBytes = 0;
  }
}
