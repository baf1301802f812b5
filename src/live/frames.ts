// Frames between host and guest: the number of bytes in decimal digits, a newline, and so many bytes of UTF-8. A length
// before the text, because what an evaluation prints may hold any character. What a frame says is not known here.

/** A length that takes more digits is no length. */
const MOST_DIGITS = 12;
const NEWLINE = 10;
const ZERO = 48;

export function frame(text: string): string {
  return `${Buffer.byteLength(text)}\n${text}`;
}

export class FrameReader {
  readonly #take: (text: string) => void;
  readonly #most: () => number;
  /** What came of the frame that is not whole yet. */
  #chunks: Buffer[] = [];
  #held = 0;
  /** Bytes of the frame that is being read; undefined while its length is. */
  #wanted: number | undefined;

  /** Frames of more than `most` bytes, as it is then, are none. */
  constructor(take: (text: string) => void, most: () => number) {
    this.#take = take;
    this.#most = most;
  }

  /** Throws where what comes is no frame: the other side can be understood no more. */
  push(chunk: Buffer): void {
    let rest = chunk;
    for (;;) {
      this.#wanted ??= this.#length(rest);
      if (this.#wanted === undefined) return;
      if (this.#held > 0) {
        this.#keep(rest);
        if (this.#held < this.#wanted) return;
        rest = Buffer.concat(this.#chunks);
        this.#drop();
      } else if (rest.length < this.#wanted) {
        this.#keep(rest);
        return;
      }
      const text = rest.toString("utf8", this.#start, this.#wanted);
      rest = rest.subarray(this.#wanted);
      this.#wanted = undefined;
      this.#take(text);
      if (rest.length === 0) return;
    }
  }

  /** Where the text begins, behind its length. */
  #start = 0;

  /** Of the whole frame with its head; undefined where the head is not whole. */
  #length(bytes: Buffer): number | undefined {
    const head = this.#held === 0 ? bytes : Buffer.concat([...this.#chunks, bytes]);
    const end = head.indexOf(NEWLINE);
    if (end === -1 || end > MOST_DIGITS) {
      if (end > MOST_DIGITS || head.length > MOST_DIGITS) throw new Error("what came is no frame");
      this.#keep(bytes);
      return undefined;
    }
    let length = 0;
    for (let at = 0; at < end; at += 1) {
      const digit = (head[at] as number) - ZERO;
      if (digit < 0 || digit > 9) throw new Error("what came is no frame");
      length = length * 10 + digit;
    }
    if (end === 0 || length > this.#most()) throw new Error(`a frame of ${length} bytes is too long`);
    this.#start = end + 1;
    return end + 1 + length;
  }

  #keep(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#held += bytes.length;
  }

  #drop(): void {
    this.#chunks = [];
    this.#held = 0;
  }
}
