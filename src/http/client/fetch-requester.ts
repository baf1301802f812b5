// Sends HTTP requests with a `fetch` from the options, for other runtimes, proxies and tests. `fetch` reports less
// about failures than node:http, so more failed requests count as possibly run. Its timeouts, decompression and
// connection pool apply unchanged. An aborted signal ends a request even if the `fetch` ignores it.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { GrowableBuffer, decodeBody } from "./growable-buffer.ts";
import {
  bodyBroken,
  cancelled,
  hostOf,
  responseTooLong,
  wasNeverSent,
  noResponse,
  connectFailed,
  type HttpResponse,
  type ClientHttpRequest,
  type Requester,
} from "./requester.ts";

export type Fetch = typeof globalThis.fetch;

export function fetchRequester(fetch: Fetch): Requester {
  const requester = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    const { method, url, headers, body, signal } = request;
    if (signal?.aborted === true) throw cancelled(url, signal, false);
    const init: RequestInit = { method, headers: { ...headers }, redirect: "manual" };
    if (body !== undefined) init.body = body;
    if (signal !== undefined) init.signal = signal;
    const response = await unlessCancelled(url, signal, send(fetch, url, init), (late) => void late.body?.cancel());
    if (response.type === "opaqueredirect" || response.status === 0) {
      const problem = `The server at ${hostOf(url)} redirects, and this runtime's fetch does not report the target`;
      throw new ConnectionError("http", `${problem}; connect to the target directly`, { mayHaveRun: false });
    }
    return new FetchHttpResponse(url, response, signal);
  };
  requester.close = (): void => undefined;
  return requester;
}

async function send(fetch: Fetch, url: URL, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url.href, init);
  } catch (error) {
    if (error instanceof ConnectionError) throw error;
    if (init.signal?.aborted === true) throw cancelled(url, init.signal, true);
    throw wasNeverSent(error) ? connectFailed(url, error) : noResponse(url, error);
  }
}

class FetchHttpResponse implements HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly #url: URL;
  readonly #response: Response;
  readonly #signal: AbortSignal | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(url: URL, response: Response, signal: AbortSignal | undefined) {
    this.status = response.status;
    this.headers = Object.fromEntries(response.headers);
    this.#url = url;
    this.#response = response;
    this.#signal = signal;
  }

  get body(): AsyncIterable<Uint8Array> {
    return { [Symbol.asyncIterator]: () => this.#read() };
  }

  async read<T>(limit: number, parse: (bytes: Buffer) => T): Promise<T> {
    const buffer = new GrowableBuffer(limit);
    try {
      for await (const chunk of this.body) if (!buffer.append(chunk)) throw responseTooLong(this.#url, limit);
      return parse(buffer.bytes);
    } finally {
      buffer.release();
    }
  }

  text(limit: number): Promise<string> {
    return this.read(limit, decodeBody);
  }

  discard(): void {
    // Also ends a read in progress.
    (this.#reader ?? this.#response.body)?.cancel().catch(() => undefined);
  }

  async *#read(): AsyncGenerator<Uint8Array, void> {
    if (this.#response.body === null) return;
    const reader = this.#response.body.getReader();
    this.#reader = reader;
    let isEnded = false;
    try {
      for (;;) {
        const chunk = await unlessCancelled(this.#url, this.#signal, this.#next(reader));
        isEnded = chunk === undefined;
        if (chunk === undefined) return;
        yield chunk;
      }
    } finally {
      if (!isEnded) reader.cancel().catch(() => undefined);
    }
  }

  async #next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    try {
      return (await reader.read()).value;
    } catch (error) {
      throw this.#signal?.aborted === true ? cancelled(this.#url, this.#signal, true) : bodyBroken(this.#url, error);
    }
  }
}

/** Rejects as soon as the signal is aborted. A later result is passed to `discard`. */
async function unlessCancelled<T>(
  url: URL,
  signal: AbortSignal | undefined,
  work: Promise<T>,
  discard?: (late: T) => void,
): Promise<T> {
  if (signal === undefined) return work;
  let removeListener: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    const cancel = (): void => {
      reject(cancelled(url, signal, true));
      work.then(discard, () => undefined);
    };
    if (signal.aborted) cancel();
    else removeListener = onAbort(signal, cancel);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    removeListener?.();
  }
}
