// How the client sends HTTP requests: one function type, implemented with node:http (node-requester.ts) and with a `fetch`
// from the options (fetch-requester.ts).

import type { Buffer } from "node:buffer";
import type { Cancellation } from "../../core/cancel.ts";
import { decodeBody, GrowableBuffer } from "./growable-buffer.ts";
import { responseTooLong } from "./requester-errors.ts";

export interface ClientHttpRequest {
  readonly method: "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborts the request and the reading of its response. */
  readonly signal?: Cancellation;
}

/** A response whose body has not been read yet. Use exactly one of `body`, `read`, `text` and `discard`. */
export interface HttpResponse {
  readonly status: number;
  /** By lower-case name; repeated headers are joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The chunks as they arrive. Rejects with a ConnectionError if the connection breaks before the end. A chunk is only
   * valid until the next one is requested.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /**
   * Passes the whole body to `parse`; rejects if it is longer than `limit` bytes. The bytes are only valid until
   * `parse` returns. `parse` may overwrite them.
   */
  read<T>(limit: number, parse: (bytes: Buffer) => T): Promise<T>;
  /** The whole body as a string; rejects if it is longer than `limit` bytes. */
  text(limit: number): Promise<string>;
  /** Ignores the rest of the body. The connection is reused if the rest is short, and closed otherwise. */
  discard(): void;
}

/** Reads a whole body from its chunks. */
export abstract class ReadableResponse implements HttpResponse {
  readonly url: URL;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  abstract readonly body: AsyncIterable<Uint8Array>;

  constructor(url: URL, status: number, headers: Readonly<Record<string, string>>) {
    this.url = url;
    this.status = status;
    this.headers = headers;
  }

  abstract discard(): void;

  async read<T>(limit: number, parse: (bytes: Buffer) => T): Promise<T> {
    if (Number(this.headers["content-length"] ?? 0) > limit) {
      this.discard();
      throw responseTooLong(this.url, limit);
    }
    const buffer = new GrowableBuffer(limit);
    try {
      for await (const chunk of this.body) if (!buffer.append(chunk)) throw responseTooLong(this.url, limit);
      return parse(buffer.bytes);
    } finally {
      buffer.release();
    }
  }

  text(limit: number): Promise<string> {
    return this.read(limit, decodeBody);
  }
}

export interface Requester {
  /** Rejects with a ConnectionError; its `mayHaveRun` is false only if the server cannot have acted on the request. */
  (request: ClientHttpRequest): Promise<HttpResponse>;
  close(): void;
}
