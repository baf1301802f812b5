// Reads one direction of an HTTP/1 connection from the bytes as they pass: heads, and the JSON-RPC messages in bodies
// and events. It is lenient, for a recording: what it cannot read, it leaves out.

export interface HttpSink {
  /** The first line and the headers, as they are on the wire. */
  head(lines: readonly string[]): void;
  /** A whole body that is not an event stream. */
  body(text: string): void;
  /** One event of a stream, with all its fields. */
  event(text: string): void;
  /** The method of the request that the next response answers. */
  answered(): string | undefined;
}

type Length = number | "chunked" | "until the end";

/** Bodies, events and lines that are longer are left out. */
export const MAX_BODY: number = 4 * 2 ** 20;

const LINE_END = Buffer.from("\r\n");
const HEAD_END = Buffer.from("\r\n\r\n");
const HAS_NO_BODY = /^HTTP\/1\.\d (?:1\d\d|204|304)/;

export class HttpReader {
  readonly #sink: HttpSink;
  #unread: Buffer = Buffer.alloc(0);
  /** What is left of the body that is being read; undefined between messages. */
  #left: Length | undefined;
  #chunkLeft = 0;
  #isStream = false;
  #body: Buffer[] = [];
  #bodySize = 0;
  #isBroken = false;

  constructor(sink: HttpSink) {
    this.#sink = sink;
  }

  write(bytes: Buffer): void {
    if (this.#isBroken) return;
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    while (this.#step());
  }

  end(): void {
    if (this.#left === "until the end") this.#finish();
  }

  /** Whether something was read, so that there may be more. */
  #step(): boolean {
    if (this.#unread.length === 0 || this.#isBroken) return false;
    if (this.#left === undefined) return this.#readHead();
    if (this.#left === "chunked") return this.#readChunk();
    if (this.#left === "until the end") {
      this.#add(this.#take(this.#unread.length));
      return false;
    }
    const piece = this.#take(Math.min(this.#left, this.#unread.length));
    this.#left -= piece.length;
    this.#add(piece);
    if (this.#left === 0) this.#finish();
    return true;
  }

  #readHead(): boolean {
    while (this.#unread.subarray(0, LINE_END.length).equals(LINE_END)) this.#take(LINE_END.length);
    const end = this.#unread.indexOf(HEAD_END);
    if (end < 0) return false;
    const lines = this.#take(end).toString("latin1").split("\r\n");
    this.#take(HEAD_END.length);
    const [first = ""] = lines;
    if (!/^\S+ \S+ HTTP\/1\.\d$|^HTTP\/1\.\d /.test(first)) {
      this.#isBroken = true;
      return false;
    }
    this.#sink.head(lines);
    this.#isStream = header(lines, "content-type")?.startsWith("text/event-stream") === true;
    this.#left = this.#lengthOf(first, lines);
    if (this.#left === 0) this.#finish();
    return true;
  }

  #lengthOf(first: string, lines: readonly string[]): Length {
    const isResponse = first.startsWith("HTTP/");
    const isInterim = /^HTTP\/1\.\d 1/.test(first);
    const method = isResponse && !isInterim ? this.#sink.answered() : undefined;
    if (method === "HEAD" || HAS_NO_BODY.test(first)) return 0;
    if (header(lines, "transfer-encoding") !== undefined) return "chunked";
    const length = header(lines, "content-length");
    if (length !== undefined) return Math.max(0, Number(length) || 0);
    return isResponse ? "until the end" : 0;
  }

  #readChunk(): boolean {
    if (this.#chunkLeft === 0) {
      const end = this.#unread.indexOf(LINE_END);
      if (end < 0) return false;
      const size = Number.parseInt(this.#take(end).toString("latin1"), 16);
      this.#take(LINE_END.length);
      if (Number.isNaN(size) || size < 0) this.#isBroken = true;
      // Nobody here sends trailers. The empty line after the last chunk is skipped before the next head.
      else if (size === 0) this.#finish();
      else this.#chunkLeft = size + LINE_END.length;
      return true;
    }
    const piece = this.#take(Math.min(this.#chunkLeft, this.#unread.length));
    const ofBody = Math.max(0, Math.min(piece.length, this.#chunkLeft - LINE_END.length));
    this.#chunkLeft -= piece.length;
    this.#add(piece.subarray(0, ofBody));
    return true;
  }

  #take(count: number): Buffer {
    const taken = this.#unread.subarray(0, count);
    this.#unread = this.#unread.subarray(count);
    return taken;
  }

  #add(piece: Buffer): void {
    // The bytes may be in a buffer that Node uses again.
    this.#bodySize += piece.length;
    if (this.#bodySize > MAX_BODY) this.#body = [];
    else this.#body.push(Buffer.from(piece));
    if (!this.#isStream || this.#body.length === 0) return;
    const bytes = Buffer.concat(this.#body);
    const end = Math.max(bytes.lastIndexOf("\n\n"), bytes.lastIndexOf("\r\n\r\n"));
    if (end < 0) return;
    for (const event of bytes.toString("utf8", 0, end).split(/\r?\n\r?\n/)) this.#sink.event(event);
    this.#body = [bytes.subarray(end)];
    this.#bodySize = bytes.length - end;
  }

  #finish(): void {
    if (this.#body.length > 0 && !this.#isStream) this.#sink.body(Buffer.concat(this.#body).toString());
    this.#body = [];
    this.#bodySize = 0;
    this.#left = undefined;
  }
}

function header(lines: readonly string[], name: string): string | undefined {
  const line = lines.slice(1).find((text) => text.toLowerCase().startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim();
}
