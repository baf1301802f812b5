// Requests of ours by a `fetch` that the program brings: for runtimes that have nothing else, for proxies, for tests.
// What a fetch tells of a failure is less than what node:http does, so more requests count as perhaps begun; and what
// it brings of its own (time limits, decompression, its pool) stays as it is. A signal is obeyed even where it is not.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { GrowableBuffer, textOf } from "./growable-buffer.ts";
import { brokenBody, cancelled, hostOf, longBody, neverSent, unanswered, unconnected, type HttpResponse, type OutgoingRequest, type Requester } from "./requester.ts";

export type Fetch = typeof globalThis.fetch;

export function fetchRequester(fetch: Fetch): Requester {
  const requester = async (request: OutgoingRequest): Promise<HttpResponse> => {
    const { method, url, headers, body, signal } = request;
    if (signal?.aborted === true) throw cancelled(url, signal, false);
    const init: RequestInit = { method, headers: { ...headers }, redirect: "manual" };
    if (body !== undefined) init.body = body;
    if (signal !== undefined) init.signal = signal;
    const response = await untilAborted(url, signal, send(fetch, url, init), (late) => void late.body?.cancel());
    if (response.type === "opaqueredirect" || response.status === 0) {
      const what = `The end at ${hostOf(url)} redirects, and this runtime's fetch does not tell where`;
      throw new ConnectionError("http", `${what}; connect to that address itself`, { mayHaveRun: false });
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
    throw neverSent(error) ? unconnected(url, error) : unanswered(url, error);
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

  async read<T>(limit: number, make: (bytes: Buffer) => T): Promise<T> {
    const kept = new GrowableBuffer(limit);
    try {
      for await (const chunk of this.body) if (!kept.append(chunk)) throw longBody(this.#url, limit);
      return make(kept.bytes);
    } finally {
      kept.release();
    }
  }

  text(limit: number): Promise<string> {
    return this.read(limit, textOf);
  }

  discard(): void {
    // Who reads just now comes to an end thereby.
    (this.#reader ?? this.#response.body)?.cancel().catch(() => undefined);
  }

  async *#read(): AsyncGenerator<Uint8Array, void> {
    if (this.#response.body === null) return;
    const reader = this.#response.body.getReader();
    this.#reader = reader;
    let isOver = false;
    try {
      for (;;) {
        const chunk = await untilAborted(this.#url, this.#signal, this.#next(reader));
        isOver = chunk === undefined;
        if (chunk === undefined) return;
        yield chunk;
      }
    } finally {
      if (!isOver) reader.cancel().catch(() => undefined);
    }
  }

  async #next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<Uint8Array | undefined> {
    try {
      return (await reader.read()).value;
    } catch (error) {
      throw this.#signal?.aborted === true ? cancelled(this.#url, this.#signal, true) : brokenBody(this.#url, error);
    }
  }
}

/** What comes after the signal is `wasted`. */
async function untilAborted<T>(
  url: URL,
  signal: AbortSignal | undefined,
  work: Promise<T>,
  waste?: (late: T) => void,
): Promise<T> {
  if (signal === undefined) return work;
  let free: (() => void) | undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    const stop = (): void => {
      reject(cancelled(url, signal, true));
      work.then(waste, () => undefined);
    };
    if (signal.aborted) stop();
    else free = onAbort(signal, stop);
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    free?.();
  }
}
