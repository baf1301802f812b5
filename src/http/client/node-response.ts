// The body of a response of node:http: read as a whole or in chunks, or discarded so that its connection can be reused.

import type { Buffer } from "node:buffer";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { unref } from "../../core/async.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { EMPTY, GrowableBuffer } from "./growable-buffer.ts";
import { ReadableResponse } from "./requester.ts";
import { bodyBroken, responseTooLong } from "./requester-errors.ts";

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

export class NodeHttpResponse extends ReadableResponse {
  readonly #response: IncomingMessage;

  constructor(url: URL, response: IncomingMessage) {
    super(
      url,
      response.statusCode ?? 0,
      response.headers["set-cookie"] === undefined
        ? (response.headers as Record<string, string>)
        : joinHeaders(response.headers),
    );
    this.#response = response;
  }

  /** As in the base class, but without an iterator, and without a copy of a body that comes in one chunk. */
  override read<T>(limit: number, parse: (bytes: Buffer) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const response = this.#response;
      const { url } = this;
      let first: Buffer | undefined;
      let buffer: GrowableBuffer | undefined;
      let reclaimer: ChunkReclaimer | undefined;
      const onData = (chunk: Buffer): void => {
        if (first === undefined && chunk.length <= limit) {
          first = chunk;
          return;
        }
        if (buffer === undefined) {
          buffer = new GrowableBuffer(limit);
          reclaimer = new ChunkReclaimer(response);
          if (first !== undefined) {
            buffer.append(first);
            reclaimer.add(first);
          }
        }
        if (buffer.append(chunk)) {
          reclaimer?.add(chunk);
          return;
        }
        reject(responseTooLong(url, limit));
        response.destroy();
      };
      const onEnd = (): void => {
        let value: T;
        try {
          value = parse(buffer?.bytes ?? first ?? EMPTY);
        } catch (error) {
          reject(error);
          return;
        }
        resolve(value);
      };
      const onClose = (): void => {
        buffer?.release();
        // Does nothing if the end came first.
        if (!response.readableEnded) reject(bodyBroken(url, response.errored));
      };
      if (Number(this.headers["content-length"] ?? 0) > limit) {
        this.discard();
        reject(responseTooLong(url, limit));
      } else if (response.readableEnded) onEnd();
      else if (response.destroyed) onClose();
      else response.on("data", onData).on("end", onEnd).on("close", onClose);
    });
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#readChunks();
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

  /** Pauses the response while too many bytes are unread. */
  async *#readChunks(): AsyncGenerator<Uint8Array, void> {
    const response = this.#response;
    const reclaimer = new ChunkReclaimer(response);
    const chunks: Buffer[] = [];
    let unread = 0;
    let isEnded = response.readableEnded;
    let failure: ConnectionError | undefined;
    let wake = (): void => undefined;
    const fail = (error?: unknown): void => {
      if (!isEnded) failure ??= bodyBroken(this.url, error);
      wake();
    };
    if (response.destroyed) fail(response.errored);
    response
      .on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        unread += chunk.length;
        if (unread > MAX_UNREAD_BYTES) response.pause();
        wake();
      })
      .once("end", () => {
        isEnded = true;
        wake();
      })
      .once("error", fail)
      .once("close", fail);
    try {
      for (;;) {
        const chunk = chunks.shift();
        // Chunks received before an error are delivered before the error.
        if (chunk !== undefined) {
          unread -= chunk.length;
          if (unread === 0 && response.isPaused()) response.resume();
          yield chunk;
          reclaimer.add(chunk);
        } else if (isEnded) return;
        else if (failure !== undefined) throw failure;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      // If the reader stops early, the connection cannot be reused.
      if (!response.readableEnded) response.destroy();
    }
  }
}

/** Node joins all headers but this one, if it is asked to. */
function joinHeaders(headers: IncomingHttpHeaders): Readonly<Record<string, string>> {
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
  if (byteLength < MIN_CHUNK_BYTES || byteLength !== buffer.byteLength || !(buffer instanceof ArrayBuffer)) return;
  if (closedPort === undefined) {
    closedPort = new MessageChannel().port1;
    closedPort.close();
  }
  closedPort.postMessage(undefined, [buffer]);
}
