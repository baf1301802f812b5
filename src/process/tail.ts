// The last bytes of a stream, in a buffer of fixed size: what a child said on stderr before it died.

export class Tail {
  readonly #bytes: Buffer;
  #next = 0;
  #full = false;

  constructor(size: number) {
    this.#bytes = Buffer.alloc(size);
  }

  push(chunk: Buffer): void {
    const size = this.#bytes.length;
    const last = chunk.length > size ? chunk.subarray(chunk.length - size) : chunk;
    const first = last.copy(this.#bytes, this.#next);
    last.copy(this.#bytes, 0, first);
    this.#full ||= this.#next + last.length >= size;
    this.#next = (this.#next + last.length) % size;
  }

  text(): string {
    if (!this.#full) return this.#bytes.toString("utf8", 0, this.#next);
    const bytes = Buffer.concat([this.#bytes.subarray(this.#next), this.#bytes.subarray(0, this.#next)]);
    // The cut may have left the rest of a character at the front.
    let start = 0;
    while (start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
    return bytes.toString("utf8", start);
  }
}
