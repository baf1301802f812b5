// The response to a request sent with node:http. The body is read no faster than it is consumed. This is separate from
// node-requester.ts, because errors are different here: the server has certainly received the request.

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { unref } from "../../core/async.ts";
import { GrowableBuffer, decodeBody } from "./growable-buffer.ts";
import { bodyBroken, responseTooLong, type HttpResponse } from "./requester.ts";

/**
 * A discarded body is read up to this size and for this time, so that its connection can be reused. If the body is
 * longer or takes longer, the connection is closed.
 */
const MAX_DISCARD_BYTES = 64 * 1024;
const MAX_DISCARD_MS = 1_000;
/** The time for an SSE stream is shorter, since a stream ends right after its last event or not at all. */
const MAX_DISCARD_STREAM_MS = 100;
/** Buffered bytes above which the response is paused. */
const MAX_UNREAD_BYTES = 64 * 1024;

export function nodeHttpResponse(url: URL, response: IncomingMessage): HttpResponse {
  return new NodeHttpResponse(url, response);
}

class NodeHttpResponse implements HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #url: URL;
  readonly #response: IncomingMessage;

  constructor(url: URL, response: IncomingMessage) {
    this.status = response.statusCode ?? 0;
    this.headers = joinHeaders(response.headers);
    this.#url = url;
    this.#response = response;
  }

  get body(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => new ResponseBodyIterator(this.#url, this.#response) };
  }

  text(limit: number): Promise<string> {
    return this.read(limit, decodeBody);
  }

  read<T>(limit: number, parse: (bytes: Buffer) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const response = this.#response;
      // Most bodies arrive in one chunk and need no buffer.
      let first: Buffer | undefined;
      let rest: GrowableBuffer | undefined;
      let reclaimer: ChunkReclaimer | undefined;
      let isSettled = false;
      const finish = (error?: Error): void => {
        isSettled = true;
        response.removeListener("data", take);
        try {
          if (error === undefined) resolve(parse(rest?.bytes ?? first ?? Buffer.alloc(0)));
          else reject(error);
        } catch (parseError) {
          reject(parseError);
        } finally {
          rest?.release();
        }
      };
      const fail = (error?: unknown): void => {
        if (!isSettled) finish(bodyBroken(this.#url, error));
      };
      const tooLong = (): void => {
        finish(responseTooLong(this.#url, limit));
        response.destroy();
      };
      const take = (chunk: Buffer): void => {
        if (first === undefined) {
          first = chunk;
          if (chunk.length > limit) tooLong();
          return;
        }
        if (rest === undefined) {
          rest = new GrowableBuffer(limit);
          rest.append(first);
        }
        if (!rest.append(chunk)) tooLong();
        else (reclaimer ??= new ChunkReclaimer(response)).add(chunk);
      };
      if (Number(this.headers["content-length"] ?? 0) > limit) tooLong();
      else if (response.destroyed) fail(response.errored);
      else
        response
          .on("data", take)
          .once("end", () => finish())
          .once("error", fail)
          .once("close", fail);
    });
  }

  discard(): void {
    const response = this.#response;
    if (response.destroyed || response.complete) {
      response.resume();
      return;
    }
    const length = Number(this.headers["content-length"] ?? 0);
    const isStream = /^text\/event-stream\b/i.test(this.headers["content-type"] ?? "");
    if (length > MAX_DISCARD_BYTES) {
      response.destroy();
      return;
    }
    let count = 0;
    const timer = unref(setTimeout(() => response.destroy(), isStream ? MAX_DISCARD_STREAM_MS : MAX_DISCARD_MS));
    // An endless body must not keep the process alive; the next request on this connection refs it again.
    response.socket.unref();
    response
      .once("close", () => clearTimeout(timer))
      .on("data", (chunk: Buffer) => {
        count += chunk.length;
        if (count > MAX_DISCARD_BYTES) response.destroy();
      });
  }
}

/** Iterates over the chunks of a body. Pauses the response while too many bytes are unread. */
class ResponseBodyIterator implements AsyncIterator<Uint8Array> {
  readonly #response: IncomingMessage;
  readonly #chunks: Buffer[] = [];
  readonly #reclaimer: ChunkReclaimer;
  #bytes = 0;
  /** The chunk handed out last; the caller is done with it when it asks for the next one. */
  #current: Buffer | undefined;
  #waiting: { resolve(result: IteratorResult<Uint8Array>): void; reject(error: unknown): void } | undefined;
  #error: unknown;
  #isEnded: boolean;

  constructor(url: URL, response: IncomingMessage) {
    this.#response = response;
    this.#reclaimer = new ChunkReclaimer(response);
    this.#isEnded = response.readableEnded;
    const fail = (error?: unknown): void => {
      if (!this.#isEnded) this.#error ??= bodyBroken(url, error);
      this.#settle();
    };
    if (response.destroyed) fail(response.errored);
    response
      .on("data", (chunk: Buffer) => this.#take(chunk))
      .once("end", () => {
        this.#isEnded = true;
        this.#settle();
      })
      .once("error", fail)
      .once("close", fail);
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#current !== undefined) this.#reclaimer.add(this.#current);
    this.#current = undefined;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#settle();
    });
  }

  /** The caller stops reading, so the connection cannot be reused. */
  return(): Promise<IteratorResult<Uint8Array>> {
    this.#chunks.length = 0;
    this.#isEnded = true;
    if (!this.#response.readableEnded) this.#response.destroy();
    return Promise.resolve({ done: true, value: undefined });
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#settle();
    if (this.#bytes > MAX_UNREAD_BYTES) this.#response.pause();
  }

  /** Chunks received before an error are delivered before the error. */
  #settle(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const value = this.#chunks.shift();
    if (value !== undefined) {
      this.#current = value;
      this.#bytes -= value.length;
      if (this.#bytes === 0 && this.#response.isPaused()) this.#response.resume();
      waiting.resolve({ done: false, value });
    } else if (this.#isEnded) {
      waiting.resolve({ done: true, value: undefined });
    } else if (this.#error !== undefined) {
      waiting.reject(this.#error);
    } else {
      return;
    }
    this.#waiting = undefined;
  }
}

function joinHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) all[name] = typeof value === "string" ? value : value.join(", ");
  }
  return all;
}

/** Smaller bodies and chunks are left to the garbage collector, since freeing a chunk costs some microseconds. */
const MIN_BODY_BYTES = 256 * 1024;
const MIN_CHUNK_BYTES = 4 * 1024;

/**
 * Frees the memory of a long body's chunks as soon as they are read. Node's parser copies each body chunk from a buffer
 * of the socket. Both become garbage at once, but V8 collects them late: reading 10 MB left 20 MB of garbage.
 */
export class ChunkReclaimer {
  readonly #response: IncomingMessage;
  #bytes = 0;

  constructor(response: IncomingMessage) {
    this.#response = response;
  }

  /** Accepts a chunk of the body that will not be read again. */
  add(chunk: Uint8Array): void {
    if (this.#bytes >= MIN_BODY_BYTES) {
      free(chunk);
      return;
    }
    this.#bytes += chunk.length;
    if (this.#bytes >= MIN_BODY_BYTES) this.#watchSocket();
  }

  #watchSocket(): void {
    const response = this.#response;
    const { socket } = response;
    // After the end of the body, the chunks of the socket belong to other requests.
    if (response.readableEnded || response.destroyed) return;
    // An agent may give us an object that is not Node's own socket. Its byte count is too low, and it may reuse buffers.
    if (socket.bytesRead < this.#bytes) return;
    let newest: ArrayBufferLike | undefined;
    const noteNewest = ({ buffer }: Uint8Array): void => {
      newest = buffer;
    };
    // Node's parser runs before this listener and has copied the body. Should a later Node not copy it, the memory
    // would belong to the newest chunk or to a buffered one, and neither is freed here.
    const reclaim = (chunk: Uint8Array): void => {
      if (response.readableLength === 0 && chunk.buffer !== newest) free(chunk);
    };
    const stop = (): void => void socket.removeListener("data", reclaim);
    socket.on("data", reclaim);
    // Stops before another request gets the socket, since the parser of that request would run after this listener.
    response.on("data", noteNewest).once("end", stop).once("close", stop);
  }
}

let closedPort: InstanceType<typeof MessagePort> | undefined;

/** Frees a buffer by transferring it: that detaches the buffer, and a closed port drops what it is sent. */
function free({ buffer, byteLength }: Uint8Array): void {
  // A chunk that shares its buffer with others must not be detached.
  if (byteLength < MIN_CHUNK_BYTES || byteLength !== buffer.byteLength) return;
  if (closedPort === undefined) {
    closedPort = new MessageChannel().port1;
    closedPort.close();
  }
  closedPort.postMessage(undefined, [buffer as ArrayBuffer]);
}
