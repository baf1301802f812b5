// Implements HttpRequest for node:http. This is the fast path: a body that arrives with its head needs no timer of its
// own and is not copied, and a response is one write. Also works behind a framework that has rewritten the path or read
// the body.

import { ServerResponse, type IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { ByteHolder } from "../../core/byte-budget.ts";
import { ChurningSet } from "../../core/collections.ts";
import {
  type BodyLimits,
  type BodyReceiver,
  type DisconnectListener,
  type HostInfo,
  type RequestHeaders,
  type StreamSink,
  type HttpRequest,
  type UnsentResponse,
  STREAM_HEADERS,
  type HttpError,
  bodyIncomplete,
  bodyCompressed,
  bodyNotUtf8,
  bodyConsumed,
  bodyGivenUp,
  bodyTooLong,
  bodyTooSlow,
} from "./http-request.ts";
import { isAscii, isUtf8 } from "node:buffer";
import { SharedTimer } from "./shared-timer.ts";

/** What a framework in front of us may have added. */
interface ParsedByFramework extends IncomingMessage {
  readonly originalUrl?: unknown;
  readonly body?: unknown;
}

/** If we respond before the body is complete, a body up to this length is drained to reuse the connection. */
const MAX_DRAINED_BYTES = 64 * 1024;

/** How long a client that is still sending its body has to read an early response. */
const LINGER_MS = 2_000;

export class NodeHttpRequest implements HttpRequest, CloseListener {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: RequestHeaders;
  readonly host: HostInfo | undefined;
  readonly #request: ParsedByFramework;
  readonly #response: ServerResponse;
  /** The host of an absolute request target. */
  readonly #target: string | undefined;
  #awaitsContinue: boolean;
  /** Whether the response head has been sent. */
  #hasStarted: boolean;
  #isComplete: boolean;
  #isBodyRequested: boolean;
  #disconnectListener: DisconnectListener | undefined;
  #listeners: ChurningSet<CloseListener> | undefined;

  /** `awaitsContinue`: the client sent `Expect: 100-continue` and has not been answered yet. */
  constructor(request: ParsedByFramework, response: ServerResponse, awaitsContinue = false, host?: HostInfo) {
    this.host = host;
    this.#request = request;
    this.#response = response;
    this.#awaitsContinue = awaitsContinue;
    this.#hasStarted = false;
    this.#isComplete = false;
    this.#isBodyRequested = false;
    this.method = request.method ?? "GET";
    // With default server options only Set-Cookie is an array, and requests do not have it.
    this.headers = request.headers as RequestHeaders;
    // A framework that strips the mount path keeps the full path in `originalUrl`.
    const original = request.originalUrl;
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

  get isAmbiguous(): boolean {
    // HTTP/0.9 has no headers. A proxy in front of us would read the rest of such a request differently than we do.
    if (this.#request.httpVersionMajor === 0) return true;
    if (this.#target !== undefined && this.#target.toLowerCase() !== this.headers["host"]?.toLowerCase()) return true;
    const raw = this.#request.rawHeaders;
    let seen = 0;
    for (let index = 0; index < raw.length; index += 2) {
      const bit = singleHeaderBit(raw[index] as string);
      if ((seen & bit) !== 0) return true;
      seen |= bit;
    }
    return false;
  }

  get isDisconnected(): boolean {
    return !this.#isComplete && (this.#response.destroyed || this.#request.socket.destroyed);
  }

  onDisconnect(listener: DisconnectListener): void {
    if (this.#isComplete) return;
    if (this.isDisconnected) return listener.disconnect();
    this.#disconnectListener = listener;
    this.#listeners ??= closeListeners(this.#request.socket);
    this.#listeners.add(this);
  }

  onSocketClose(): void {
    this.#disconnectListener?.disconnect();
  }

  readBody(limits: BodyLimits, receiver: BodyReceiver): void {
    this.#isBodyRequested = true;
    const request = this.#request;
    const { headers } = this;
    if (request.readableEnded) {
      const text = reparse(request.body, limits.messageBytes);
      return typeof text === "string" ? receiver.onBody(text) : receiver.onError(text);
    }
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") return receiver.onError(bodyCompressed());
    const length = headers["content-length"];
    const declared = length === undefined ? undefined : Number(length);
    if (declared === undefined && headers["transfer-encoding"] === undefined) return receiver.onBody("");
    if (declared !== undefined && declared > limits.messageBytes)
      return receiver.onError(bodyTooLong(limits.messageBytes));
    if (request.destroyed) return receiver.onError(bodyIncomplete());
    if (this.#awaitsContinue) this.#response.writeContinue();
    this.#awaitsContinue = false;
    // It reads by itself, and calls the receiver.
    void new RequestBodyReader(request, limits, declared, receiver);
  }

  respond(status: number, headers: Readonly<Record<string, string>>, body = ""): UnsentResponse | undefined {
    const response = this.#response;
    if (this.#hasStarted || this.isDisconnected || response.headersSent) return undefined;
    this.#hasStarted = true;
    this.#complete();
    const length = Buffer.byteLength(body);
    const isEmpty = status === 204 || status === 304;
    if (!this.#request.complete && this.#hasLongBody()) {
      this.#linger(status, headers, body);
      return undefined;
    }
    writeHead(response, status, headers, isEmpty ? undefined : length);
    // If there are as many bytes as characters, all of them are ASCII, and latin1 writes them without conversion.
    sendBody(response, body, length === body.length ? "latin1" : "utf8");
    return response.writableLength === 0 ? undefined : new NodeUnsentResponse(response, this.#request.socket);
  }

  stream(headers: Readonly<Record<string, string>>): StreamSink {
    const response = this.#response;
    if (this.#hasStarted || this.isDisconnected || response.headersSent) return CLOSED_SINK;
    this.#hasStarted = true;
    const { socket } = this.#request;
    socket.setNoDelay(true);
    // Send the head now, but in one packet with the first event if that is written in the same tick.
    socket.cork();
    writeHead(response, 200, { ...STREAM_HEADERS, ...headers });
    response.flushHeaders();
    process.nextTick(() => socket.uncork());
    return new NodeStreamSink(response, socket, () => this.#complete());
  }

  /** Called when the response is complete, after which a disconnect no longer matters. */
  #complete(): void {
    this.#isComplete = true;
    this.#listeners?.delete(this);
  }

  /** Whether the rest of the body, which is not complete, may be too long to drain. */
  #hasLongBody(): boolean {
    // A response before the requested body is complete means that the body was rejected.
    if (this.#isBodyRequested || this.headers["transfer-encoding"] !== undefined) return true;
    return Number(this.headers["content-length"] ?? 0) > MAX_DRAINED_BYTES;
  }

  /**
   * Responds to a client that is still sending its body. If the connection were closed at once, the arriving data would
   * reset it, and the client would never see the response. So the data is read and dropped for a while.
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
 * Ends the response with this body. `end(body)` would write the body and an empty string after it, in a slower call for
 * several chunks. Written first, while the socket is corked, the body is one chunk with the head.
 */
function sendBody(response: ServerResponse, body: string, encoding: "latin1" | "utf8"): void {
  const { socket } = response;
  // A framework may have replaced `write`. A pipelined response that waits behind another one has no socket.
  if (body === "" || socket === null || response.write !== ServerResponse.prototype.write) {
    response.end(body, encoding);
    return;
  }
  socket.cork();
  response.write(body, encoding);
  socket.uncork();
  response.end();
}

/**
 * The members of a connection that are called when it closes. One listener per connection is cheaper than one per
 * response, and a pipelined response that waits behind another one would emit no "close".
 */
function closeListeners(socket: Socket): ChurningSet<CloseListener> {
  let listeners = CLOSE_LISTENERS.get(socket);
  if (listeners === undefined) {
    const created = new ChurningSet<CloseListener>();
    listeners = created;
    CLOSE_LISTENERS.set(socket, created);
    socket.once("close", () => {
      for (const listener of created.values()) listener.onSocketClose();
    });
  }
  return listeners;
}

interface CloseListener {
  onSocketClose(): void;
}

const CLOSE_LISTENERS = new WeakMap<Socket, ChurningSet<CloseListener>>();

function writeHead(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  length?: number,
): void {
  // A framework may have replaced writeHead with one that only accepts an object.
  if (response.writeHead !== ServerResponse.prototype.writeHead) {
    response.writeHead(status, length === undefined ? { ...headers } : { ...headers, "content-length": length });
    return;
  }
  // A flat list of names and values is by far the fastest form for node:http.
  const list: string[] = [];
  for (const name in headers) list.push(name, headers[name] as string);
  if (length !== undefined) list.push("content-length", String(length));
  response.writeHead(status, list);
}

const SLASH = 47;
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** A bit for each header that may appear only once. Compares lengths first, since most names do not match. */
function singleHeaderBit(name: string): number {
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

class RequestBodyReader implements ByteHolder {
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #receiver: BodyReceiver;
  readonly #chunks: Buffer[];
  readonly #timer: SharedTimer<RequestBodyReader>;
  #length: number;
  #since: number | undefined;
  #isCounted: boolean;
  #isSettled: boolean;

  /** `declared` is the Content-Length. */
  constructor(request: IncomingMessage, limits: BodyLimits, declared: number | undefined, receiver: BodyReceiver) {
    this.#request = request;
    this.#limits = limits;
    this.#receiver = receiver;
    this.#chunks = [];
    this.#timer = bodyTimer(limits.bodyMs);
    this.#length = 0;
    this.#since = undefined;
    this.#isCounted = false;
    this.#isSettled = false;
    this.#timer.add(this);
    const onData = (data: Buffer | string): void => {
      if (this.#isSettled) return;
      // A framework may have called setEncoding.
      const chunk = typeof data === "string" ? Buffer.from(data) : data;
      this.#length += chunk.length;
      if (this.#length > limits.messageBytes) return this.#finish(bodyTooLong(limits.messageBytes));
      this.#chunks.push(chunk);
      // A body that comes whole is not worth counting.
      if (this.#length !== declared) this.#count();
    };
    const onEnd = (): void => {
      const chunks = this.#chunks;
      const [first] = chunks;
      const whole = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, this.#length);
      chunks.length = 0;
      this.#finish(utf8(whole, limits.messageBytes));
    };
    request.on("data", onData).on("end", onEnd);
  }

  get heldBytes(): number {
    return this.#length;
  }

  disconnect(): void {
    this.#finish(bodyGivenUp());
  }

  /** Called by the shared timer. Most bodies are complete before the first tick and need no "close" listener. */
  tick(now: number): void {
    if (this.#request.destroyed) this.#finish(bodyIncomplete());
    else if (this.#since === undefined) {
      this.#since = now;
      this.#request.once("close", () => this.#finish(bodyIncomplete()));
      this.#count();
    } else if (now - this.#since >= this.#limits.bodyMs) this.#finish(bodyTooSlow(this.#limits.bodyMs));
  }

  #count(): void {
    this.#isCounted = true;
    this.#limits.bodies?.update(this);
  }

  #finish(text: string | HttpError): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#timer.delete(this);
    if (this.#isCounted) this.#limits.bodies?.release(this);
    if (typeof text === "string") return this.#receiver.onBody(text);
    this.#chunks.length = 0;
    this.#request.pause();
    this.#receiver.onError(text);
  }
}

/** One timer for all bodies with the same time limit. */
function bodyTimer(maxMs: number): SharedTimer<RequestBodyReader> {
  let timer = BODY_TIMERS.get(maxMs);
  if (timer === undefined) {
    timer = new SharedTimer(Math.min(1_000, maxMs), (body, now) => body.tick(now));
    BODY_TIMERS.set(maxMs, timer);
  }
  return timer;
}

const BODY_TIMERS = new Map<number, SharedTimer<RequestBodyReader>>();

function utf8(bytes: Buffer | null, maxBytes: number): string | HttpError {
  if (bytes === null) return "";
  if (bytes.length > maxBytes) return bodyTooLong(maxBytes);
  if (isAscii(bytes)) return bytes.toString("latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : bodyNotUtf8();
}

/** The body as a string, after a framework has read and perhaps parsed it. */
function reparse(body: unknown, maxBytes: number): string | HttpError {
  if (body === undefined) return bodyConsumed();
  if (body instanceof Uint8Array) return utf8(Buffer.from(body.buffer, body.byteOffset, body.byteLength), maxBytes);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return Buffer.byteLength(text) > maxBytes ? bodyTooLong(maxBytes) : text;
}

/** How long a client may read nothing while part of its response is unsent. */
const STALL_TIMEOUT_MS = 30_000;

class NodeStreamSink implements StreamSink {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #onClose: () => void;
  #isEnded = false;

  constructor(response: ServerResponse, socket: Socket, onClose: () => void) {
    this.#response = response;
    this.#socket = socket;
    this.#onClose = onClose;
  }

  get bufferedBytes(): number {
    return this.#response.writableLength;
  }

  write(text: string): void {
    if (!this.#isClosed) this.#response.write(text);
  }

  end(): UnsentResponse | undefined {
    if (this.#isClosed) return undefined;
    this.#isEnded = true;
    this.#onClose();
    this.#response.end();
    return this.#response.writableLength === 0 ? undefined : new NodeUnsentResponse(this.#response, this.#socket);
  }

  destroy(): void {
    if (this.#isEnded && this.#response.writableFinished) return;
    this.#isEnded = true;
    this.#onClose();
    this.#socket.destroy();
  }

  get #isClosed(): boolean {
    // A write to a destroyed response emits an error event that nothing handles.
    return this.#isEnded || this.#response.destroyed || this.#socket.destroyed;
  }
}

/** A finished response that stays in our memory until the client reads it. */
class NodeUnsentResponse implements UnsentResponse, CloseListener {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  #act: (() => void) | undefined;

  constructor(response: ServerResponse, socket: Socket) {
    this.#response = response;
    this.#socket = socket;
    // The server may not be ours, so the old timeout is restored later.
    const before = socket.timeout ?? 0;
    this.limitStall(STALL_TIMEOUT_MS);
    const listeners = closeListeners(socket);
    listeners.add(this);
    response.once("close", () => {
      listeners.delete(this);
      socket.setTimeout(before);
      this.onSocketClose();
    });
  }

  get heldBytes(): number {
    return this.#socket.destroyed ? 0 : this.#response.writableLength;
  }

  disconnect(): void {
    this.#socket.destroy();
  }

  limitStall(ms: number): void {
    // node:http closes a connection that timed out. Node looks for progress only when the timeout elapses, and first
    // takes the part that the system buffered at once for progress. So the timeout elapses twice before it counts.
    this.#socket.setTimeout(ms / 2);
  }

  onClose(act: () => void): void {
    this.#act = act;
  }

  onSocketClose(): void {
    this.#act?.();
    this.#act = undefined;
  }
}

/** The sink of a client that has disconnected. */
const CLOSED_SINK: StreamSink = { bufferedBytes: 0, write() {}, end: () => undefined, destroy() {} };
