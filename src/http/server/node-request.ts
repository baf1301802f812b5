// A visit by way of node:http. This is the fast path: a request whose body came with its head costs no timer, no
// listener and no copy, and its answer is one write. Works as well behind a framework that was there first (a path
// that was cut, a body that was read). What a server does around its requests stands in listener.ts.

import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { type RequestHeaders, type StreamSink, type HttpRequest, STREAM_HEADERS, type HttpError, brokenOff, compressed, notUtf8, takenBefore, tooLong, tooSlow } from "./http-request.ts";
import { isAscii, isUtf8 } from "node:buffer";
import { SharedTimer } from "./shared-timer.ts";

/** A body of at most this length is let in after an early answer, so that the connection can be used again. */
const SMALL_BODY_BYTES = 64 * 1024;

/** How long a caller that is still sending has to read the answer that says why it should stop. */
const LINGER_MS = 2_000;

export class NodeHttpRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: RequestHeaders;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** The host of an absolute request target. */
  readonly #target: string | undefined;
  #awaitsContinue: boolean;
  #begun = false;
  #isWhole = false;
  #wantsBody = false;
  #isWatched = false;

  /** `awaitsContinue`: the caller asked whether it may send its body, and nobody has told it yet. */
  constructor(request: IncomingMessage, response: ServerResponse, awaitsContinue = false) {
    this.#request = request;
    this.#response = response;
    this.#awaitsContinue = awaitsContinue;
    this.method = request.method ?? "GET";
    // With a server's default options only Set-Cookie could be more than a text, and no request has it.
    this.headers = request.headers as RequestHeaders;
    // A framework that cuts the path where a handler is mounted keeps the whole one beside it.
    const original = (request as { originalUrl?: unknown }).originalUrl;
    let target = typeof original === "string" ? original : (request.url ?? "/");
    if (target.charCodeAt(0) !== SLASH) {
      const absolute = ABSOLUTE.exec(target);
      if (absolute !== null) {
        this.#target = absolute[1] ?? "";
        const rest = absolute[2] ?? "";
        target = rest.charCodeAt(0) === SLASH ? rest : `/${rest}`;
      }
    }
    const mark = target.indexOf("?");
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? "" : target.slice(mark + 1);
  }

  get origin(): string {
    const scheme = "encrypted" in this.#request.socket ? "https" : "http";
    return `${scheme}://${this.headers["host"] ?? ""}`;
  }

  get ambiguous(): boolean {
    // A first line without a version: whoever stood between has read the rest in another way, or not at all.
    if (this.#request.httpVersionMajor === 0) return true;
    if (this.#target !== undefined && this.#target.toLowerCase() !== this.headers["host"]?.toLowerCase()) return true;
    const raw = this.#request.rawHeaders;
    let seen = 0;
    for (let index = 0; index < raw.length; index += 2) {
      const bit = singleBit(raw[index] as string);
      if ((seen & bit) !== 0) return true;
      seen |= bit;
    }
    return false;
  }

  get isGone(): boolean {
    return !this.#isWhole && (this.#response.destroyed || this.#request.socket.destroyed);
  }

  onGone(act: () => void): void {
    if (this.#isWhole) return;
    if (this.isGone) return act();
    this.#isWatched = true;
    goneActs(this.#request.socket).set(this, act);
  }

  body(maxBytes: number, maxMs: number): Promise<string> {
    this.#wantsBody = true;
    const proceed = this.#awaitsContinue ? () => this.#response.writeContinue() : undefined;
    this.#awaitsContinue = false;
    return readBody(this.#request, maxBytes, maxMs, proceed);
  }

  answer(status: number, headers: Readonly<Record<string, string>>, body = ""): void {
    const response = this.#response;
    if (this.#begun || this.isGone || response.headersSent) return;
    this.#begun = true;
    this.#conclude();
    const length = Buffer.byteLength(body);
    const isEmpty = status === 204 || status === 304;
    if (this.#leavesBody()) return this.#linger(status, headers, body);
    writeHead(response, status, headers, isEmpty ? undefined : length);
    // As many bytes as characters means that all are ASCII, which needs no conversion.
    response.end(body, length === body.length ? "latin1" : "utf8");
    expectTaken(response, this.#request.socket);
  }

  stream(headers: Readonly<Record<string, string>>): StreamSink {
    const response = this.#response;
    if (this.#begun || this.isGone || response.headersSent) return NOWHERE;
    this.#begun = true;
    const { socket } = this.#request;
    socket.setNoDelay(true);
    // The head goes out by itself, but together with the first event where there is one already.
    socket.cork();
    writeHead(response, 200, { ...STREAM_HEADERS, ...headers });
    response.flushHeaders();
    process.nextTick(() => socket.uncork());
    return new NodeStreamSink(response, socket, () => this.#conclude());
  }

  /** From now on it does not matter whether the caller is there. */
  #conclude(): void {
    this.#isWhole = true;
    if (this.#isWatched) goneActs(this.#request.socket).delete(this);
  }

  /** Whether more of the body may come than we want to wait for. */
  #leavesBody(): boolean {
    if (this.#request.complete) return false;
    // Whoever answers before the body is there, though it was asked for, has refused it.
    if (this.#wantsBody || this.headers["transfer-encoding"] !== undefined) return true;
    return Number(this.headers["content-length"] ?? 0) > SMALL_BODY_BYTES;
  }

  /**
   * Answers a caller that is still sending. A connection closed at once would be reset by what still comes, and the
   * caller would never see the answer; so what comes is thrown away, for a while.
   */
  #linger(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    const request = this.#request;
    const response = this.#response;
    writeHead(response, status, { ...headers, connection: "close" }, Buffer.byteLength(body));
    if (body === "") response.flushHeaders();
    else response.write(body);
    const done = (): void => {
      clearTimeout(timer);
      if (!response.destroyed) response.end();
    };
    const timer = setTimeout(done, LINGER_MS);
    request.once("close", done);
    request.resume();
  }
}

/**
 * What is to be done when a connection ends, by visit. One listener for each connection is cheaper than one for each
 * request, and a request that waits behind another's answer would not hear of the end by its own response.
 */
function goneActs(socket: Socket): Map<NodeHttpRequest, () => void> {
  let acts = GONE_ACTS.get(socket);
  if (acts === undefined) {
    const created = new Map<NodeHttpRequest, () => void>();
    acts = created;
    GONE_ACTS.set(socket, created);
    socket.once("close", () => {
      for (const act of created.values()) act();
    });
  }
  return acts;
}

const GONE_ACTS = new WeakMap<Socket, Map<NodeHttpRequest, () => void>>();

function writeHead(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  length?: number,
): void {
  // What a framework has put in its place may know no other form than this.
  if (response.writeHead !== ServerResponse.prototype.writeHead) {
    response.writeHead(status, length === undefined ? { ...headers } : { ...headers, "content-length": length });
    return;
  }
  // Names and values in turn are what node:http writes fastest, by a good deal.
  const list: string[] = [];
  for (const name in headers) list.push(name, headers[name] as string);
  if (length !== undefined) list.push("content-length", String(length));
  response.writeHead(status, list);
}

const SLASH = 47;
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** A bit for each header that must come at most once, by length first: most names are none of them. */
function singleBit(name: string): number {
  switch (name.length) {
    case 4:
      return name.toLowerCase() === "host" ? 1 : 0;
    case 6:
      return name.toLowerCase() === "origin" ? 2 : 0;
    case 12:
      return name.toLowerCase() === "content-type" ? 4 : 0;
    case 13:
      return name.toLowerCase() === "authorization" ? 8 : 0;
    case 14: {
      const lower = name.toLowerCase();
      return lower === "content-length" ? 16 : lower === "mcp-session-id" ? 32 : 0;
    }
    default:
      return 0;
  }
}

// The body of a node:http request as text. Most bodies come with their heads, so there is one timer for all of them
// and none for each, and no copy of what came in one piece. Whatever is wrong with a body is a refusal; what becomes
// of the rest of one that was refused is for the visit.


/** `proceed` is called where the body is wanted: its sender may be waiting for a word. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  maxMs: number,
  proceed?: () => void,
): Promise<string> {
  const { headers } = request;
  if (request.readableEnded) return settled(parsedBefore((request as { body?: unknown }).body, maxBytes));
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") return Promise.reject(compressed());
  const length = headers["content-length"];
  const declared = length === undefined ? undefined : Number(length);
  if (declared === undefined && headers["transfer-encoding"] === undefined) return Promise.resolve("");
  if (declared !== undefined && declared > maxBytes) return Promise.reject(tooLong(maxBytes));
  if (request.destroyed) return Promise.reject(brokenOff());
  proceed?.();
  return new Promise((resolve, reject) => {
    new BodyReader(request, maxBytes, maxMs, resolve, reject).begin();
  });
}

/** A body on its way. */
class BodyReader {
  readonly #request: IncomingMessage;
  readonly #maxBytes: number;
  readonly #maxMs: number;
  readonly #resolve: (text: string) => void;
  readonly #reject: (refusal: HttpError) => void;
  readonly #chunks: Buffer[] = [];
  readonly #watch: SharedTimer<BodyReader>;
  #length = 0;
  #since: number | undefined;
  #isOver = false;

  constructor(
    request: IncomingMessage,
    maxBytes: number,
    maxMs: number,
    resolve: (text: string) => void,
    reject: (refusal: HttpError) => void,
  ) {
    this.#request = request;
    this.#maxBytes = maxBytes;
    this.#maxMs = maxMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#watch = watchFor(maxMs);
  }

  begin(): void {
    this.#watch.add(this);
    // Somebody before us may have asked for text.
    const bytes = (chunk: Buffer | string): Buffer => (typeof chunk === "string" ? Buffer.from(chunk) : chunk);
    this.#request.on("data", (chunk: Buffer | string) => this.#take(bytes(chunk))).on("end", () => this.#end());
  }

  /** Most bodies are whole long before this is called for the first time. */
  tick(now: number): void {
    if (this.#request.destroyed) this.#finish(brokenOff());
    else if (this.#since === undefined) {
      this.#since = now;
      this.#request.once("close", () => this.#finish(brokenOff()));
    } else if (now - this.#since >= this.#maxMs) this.#finish(tooSlow(this.#maxMs));
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#length += chunk.length;
    if (this.#length > this.#maxBytes) this.#finish(tooLong(this.#maxBytes));
    else this.#chunks.push(chunk);
  }

  #end(): void {
    const chunks = this.#chunks;
    const whole = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, this.#length);
    this.#finish(utf8(whole, this.#maxBytes));
  }

  #finish(text: string | HttpError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch.delete(this);
    if (typeof text === "string") return this.#resolve(text);
    this.#chunks.length = 0;
    this.#request.pause();
    this.#reject(text);
  }
}

/** One timer for all bodies with the same patience. */
function watchFor(maxMs: number): SharedTimer<BodyReader> {
  let watch = WATCHES.get(maxMs);
  if (watch === undefined) {
    watch = new SharedTimer(Math.min(1_000, maxMs), (reading, now) => reading.tick(now));
    WATCHES.set(maxMs, watch);
  }
  return watch;
}

const WATCHES = new Map<number, SharedTimer<BodyReader>>();

function utf8(bytes: Buffer | null, maxBytes: number): string | HttpError {
  if (bytes === null) return "";
  if (bytes.length > maxBytes) return tooLong(maxBytes);
  if (isAscii(bytes)) return bytes.toString("latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : notUtf8();
}

/** What a framework that has read the stream has left of it. */
function parsedBefore(body: unknown, maxBytes: number): string | HttpError {
  if (body === undefined) return takenBefore();
  if (body instanceof Uint8Array) return utf8(Buffer.from(body.buffer, body.byteOffset, body.byteLength), maxBytes);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return Buffer.byteLength(text) > maxBytes ? tooLong(maxBytes) : text;
}

function settled(text: string | HttpError): Promise<string> {
  return typeof text === "string" ? Promise.resolve(text) : Promise.reject(text);
}

// The bytes of an event stream on a node:http response, and the patience with a caller that does not take what it was
// sent. What goes over a stream, and when a slow reader is cut off, is for event-stream.ts.


/** How long a caller may take no byte of an answer that waits for it. */
const STALLED_MS = 30_000;

export class NodeStreamSink implements StreamSink {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #over: () => void;
  #isOver = false;

  constructor(response: ServerResponse, socket: Socket, over: () => void) {
    this.#response = response;
    this.#socket = socket;
    this.#over = over;
  }

  get waiting(): number {
    return this.#response.writableLength;
  }

  write(text: string): void {
    if (!this.#isClosed()) this.#response.write(text);
  }

  end(): void {
    if (this.#isClosed()) return;
    this.#isOver = true;
    this.#over();
    this.#response.end();
    expectTaken(this.#response, this.#socket);
  }

  cut(): void {
    if (this.#isOver && this.#response.writableFinished) return;
    this.#isOver = true;
    this.#over();
    this.#socket.destroy();
  }

  #isClosed(): boolean {
    // A write to a destroyed response would be an error that nobody hears.
    return this.#isOver || this.#response.destroyed || this.#socket.destroyed;
  }
}

/** An answer that the system did not take at once is in our memory: it shall not stay there for good. */
export function expectTaken(response: ServerResponse, socket: Socket): void {
  if (response.writableLength === 0) return;
  // The server ends a connection whose time is up. Where the server is somebody else's, so is the time before and after.
  const before = socket.timeout ?? 0;
  socket.setTimeout(STALLED_MS);
  response.once("close", () => socket.setTimeout(before));
}

/** Where a stream goes that nobody can read any more. */
export const NOWHERE: StreamSink = { waiting: 0, write() {}, end() {}, cut() {} };
