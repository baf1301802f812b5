// The answer to a request that went out by node:http: its head, and four ways to its body. The bytes are read no
// faster than somebody takes them. Apart from the sending, because from here on nothing is in doubt any more: the
// end has answered, and only the rest of what it says may be missing.

import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { unref } from "../../core/async.ts";
import { GrowableBuffer, textOf } from "./growable-buffer.ts";
import { brokenBody, longBody, type HttpResponse } from "./requester.ts";

/** So much of a body that nobody wants is read, for so long, to have its connection again; else it is ended. */
const DISCARD_BYTES = 64 * 1024;
const DISCARD_MS = 1_000;
/** The same for a stream of events: one that has said all that it had to say ends at once, or stays open for ever. */
const DISCARD_STREAM_MS = 100;
/** So much may wait for a reader that does not come. */
const UNREAD_BYTES = 64 * 1024;

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
    this.headers = joined(response.headers);
    this.#url = url;
    this.#response = response;
  }

  get body(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => new BodyReader(this.#url, this.#response) };
  }

  text(limit: number): Promise<string> {
    return this.read(limit, textOf);
  }

  read<T>(limit: number, make: (bytes: Buffer) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const response = this.#response;
      // A body that came in one piece, as most do, is not gathered.
      let first: Buffer | undefined;
      let rest: GrowableBuffer | undefined;
      let spent: SpentChunks | undefined;
      let isOver = false;
      const finish = (error?: Error): void => {
        isOver = true;
        response.removeListener("data", take);
        try {
          if (error === undefined) resolve(make(rest?.bytes ?? first ?? Buffer.alloc(0)));
          else reject(error);
        } catch (unmade) {
          reject(unmade);
        } finally {
          rest?.release();
        }
      };
      const fail = (error?: unknown): void => {
        if (!isOver) finish(brokenBody(this.#url, error));
      };
      const refuse = (): void => {
        finish(longBody(this.#url, limit));
        response.destroy();
      };
      const take = (chunk: Buffer): void => {
        if (first === undefined) {
          first = chunk;
          if (chunk.length > limit) refuse();
          return;
        }
        if (rest === undefined) {
          rest = new GrowableBuffer(limit);
          rest.append(first);
        }
        if (!rest.append(chunk)) refuse();
        else (spent ??= new SpentChunks(response)).add(chunk);
      };
      if (Number(this.headers["content-length"] ?? 0) > limit) refuse();
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
    if (length > DISCARD_BYTES) {
      response.destroy();
      return;
    }
    let count = 0;
    const timer = unref(setTimeout(() => response.destroy(), isStream ? DISCARD_STREAM_MS : DISCARD_MS));
    // One that never comes to its end must not keep the process alive; who uses the connection next takes it up again.
    response.socket.unref();
    response
      .once("close", () => clearTimeout(timer))
      .on("data", (chunk: Buffer) => {
        count += chunk.length;
        if (count > DISCARD_BYTES) response.destroy();
      });
  }
}

/** What came waits to be taken, and what is asked for waits to come; the end is held up where too much waits. */
class BodyReader implements AsyncIterator<Uint8Array> {
  readonly #response: IncomingMessage;
  readonly #chunks: Buffer[] = [];
  readonly #spent: SpentChunks;
  #bytes = 0;
  /** Whoever asks for the next has done with this one. */
  #given: Buffer | undefined;
  #waiting: { resolve(result: IteratorResult<Uint8Array>): void; reject(error: unknown): void } | undefined;
  #error: unknown;
  #isOver: boolean;

  constructor(url: URL, response: IncomingMessage) {
    this.#response = response;
    this.#spent = new SpentChunks(response);
    this.#isOver = response.readableEnded;
    const fail = (error?: unknown): void => {
      if (!this.#isOver) this.#error ??= brokenBody(url, error);
      this.#settle();
    };
    if (response.destroyed) fail(response.errored);
    response
      .on("data", (chunk: Buffer) => this.#take(chunk))
      .once("end", () => {
        this.#isOver = true;
        this.#settle();
      })
      .once("error", fail)
      .once("close", fail);
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#given !== undefined) this.#spent.add(this.#given);
    this.#given = undefined;
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#settle();
    });
  }

  /** Nobody wants more of it: then the connection is of no use either. */
  return(): Promise<IteratorResult<Uint8Array>> {
    this.#chunks.length = 0;
    this.#isOver = true;
    if (!this.#response.readableEnded) this.#response.destroy();
    return Promise.resolve({ done: true, value: undefined });
  }

  #take(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#settle();
    if (this.#bytes > UNREAD_BYTES) this.#response.pause();
  }

  /** What came before a break is given out before the break is told. */
  #settle(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    const value = this.#chunks.shift();
    if (value !== undefined) {
      this.#given = value;
      this.#bytes -= value.length;
      if (this.#bytes === 0 && this.#response.isPaused()) this.#response.resume();
      waiting.resolve({ done: false, value });
    } else if (this.#isOver) {
      waiting.resolve({ done: true, value: undefined });
    } else if (this.#error !== undefined) {
      waiting.reject(this.#error);
    } else {
      return;
    }
    this.#waiting = undefined;
  }
}

function joined(headers: IncomingHttpHeaders): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) all[name] = typeof value === "string" ? value : value.join(", ");
  }
  return all;
}

// The memory of a long body's chunks, given back as soon as they were read. What Node reads from a socket is garbage
// once its parser has copied the body out of it, and the copy is garbage once we have gathered it; V8 counts neither
// before it has other reasons to collect, so 10 MB that were read left 20 MB behind. Short bodies are not touched.


/** What comes before is left to the collector, and so are small chunks: to give them back costs some microseconds. */
const LONG_BODY = 256 * 1024;
const LONG_CHUNK = 4 * 1024;

export class SpentChunks {
  readonly #response: IncomingMessage;
  #bytes = 0;

  constructor(response: IncomingMessage) {
    this.#response = response;
  }

  /** A chunk of the body that nobody will look at again. */
  add(chunk: Uint8Array): void {
    if (this.#bytes >= LONG_BODY) {
      giveBack(chunk);
      return;
    }
    this.#bytes += chunk.length;
    if (this.#bytes >= LONG_BODY) this.#watchSocket();
  }

  #watchSocket(): void {
    const response = this.#response;
    const { socket } = response;
    // The last chunks are spent when the socket has gone on to others.
    if (response.readableEnded || response.destroyed) return;
    // What the system did not read came from somebody who stands in for a socket, and may be his to keep.
    if (socket.bytesRead < this.#bytes) return;
    let newest: ArrayBufferLike | undefined;
    const hear = ({ buffer }: Uint8Array): void => {
      newest = buffer;
    };
    // Node's parser heard the socket before us, and has taken the body out. Should it ever do so without a copy, then
    // the memory is that of the newest chunk, or of one that waits.
    const take = (chunk: Uint8Array): void => {
      if (response.readableLength === 0 && chunk.buffer !== newest) giveBack(chunk);
    };
    const stop = (): void => void socket.removeListener("data", take);
    socket.on("data", take);
    // Ended before another request has the socket, whose parser would hear it after us.
    response.on("data", hear).once("end", stop).once("close", stop);
  }
}

let nowhere: InstanceType<typeof MessagePort> | undefined;

/** What is sent to a port is not ours any more, and a closed one keeps nothing. */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  // Memory that is shared with other chunks is not this one's to give.
  if (byteLength < LONG_CHUNK || byteLength !== buffer.byteLength) return;
  if (nowhere === undefined) {
    nowhere = new MessageChannel().port1;
    nowhere.close();
  }
  nowhere.postMessage(undefined, [buffer as ArrayBuffer]);
}
