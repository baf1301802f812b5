// Sends HTTP requests with a `fetch`: for other runtimes, proxies and tests.

import { abortable, attempt } from "../../core/async.ts";
import { signalOf } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import { redirectError } from "./redirects.ts";
import { type ClientHttpRequest, type HttpResponse, ReadableResponse, type Requester } from "./requester.ts";
import { bodyBroken, cancelled, connectFailed, hostOf, noResponse, wasNeverSent } from "./requester-errors.ts";

export type Fetch = typeof globalThis.fetch;

/**
 * `fetch` reports less about failures than node:http, so more failed requests
 * count as possibly run. Its timeouts, decompression and connection pool apply unchanged. An aborted signal ends a
 * request even if the `fetch` ignores it.
 */
export function fetchRequester(fetch: Fetch): Requester {
  const requester = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    const { method, url, headers, body } = request;
    const signal = request.signal && signalOf(request.signal);
    if (signal?.aborted === true) throw cancelled(url, signal, false);
    const sent = attempt(() =>
      fetch(url.href, defined({ method, headers: { ...headers }, redirect: "manual", body, signal })),
    );
    const failed = (error: unknown): ConnectionError =>
      wasNeverSent(error) ? connectFailed(url, error) : noResponse(url, error);
    const response = await unlessCancelled(request, sent, failed, (late) => void late.body?.cancel());
    if (response.type === "opaqueredirect" || response.status === 0) {
      const problem = `The server at ${hostOf(url)} redirects, and this runtime's fetch does not report the target`;
      throw redirectError(`${problem}; connect to the target directly`);
    }
    return new FetchHttpResponse(request, response);
  };
  requester.close = (): void => undefined;
  return requester;
}

class FetchHttpResponse extends ReadableResponse {
  readonly #request: ClientHttpRequest;
  readonly #response: Response;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;

  constructor(request: ClientHttpRequest, response: Response) {
    super(request.url, response.status, Object.fromEntries(response.headers));
    this.#request = request;
    this.#response = response;
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#readChunks();
  }

  discard(): void {
    // Also ends a read in progress.
    (this.#reader ?? this.#response.body)?.cancel().catch(() => undefined);
  }

  async *#readChunks(): AsyncGenerator<Uint8Array, void> {
    const reader: ReadableStreamDefaultReader<Uint8Array> | undefined = this.#response.body?.getReader();
    this.#reader = reader;
    const broken = (error: unknown): ConnectionError => bodyBroken(this.url, error);
    try {
      for (;;) {
        const chunk: Uint8Array | undefined =
          reader && (await unlessCancelled(this.#request, reader.read(), broken)).value;
        if (chunk === undefined) return;
        yield chunk;
      }
    } finally {
      reader?.cancel().catch(() => undefined);
    }
  }
}

/** Rejects as soon as the signal is aborted. A later result is passed to `discard`. */
async function unlessCancelled<T>(
  request: ClientHttpRequest,
  work: Promise<T>,
  failed: (error: unknown) => ConnectionError,
  discard?: (late: T) => void,
): Promise<T> {
  const { url } = request;
  const signal = request.signal && signalOf(request.signal);
  try {
    return await (signal === undefined ? work : abortable(signal, work));
  } catch (error) {
    if (signal?.aborted !== true) throw error instanceof ConnectionError ? error : failed(error);
    work.then(discard, () => undefined);
    throw cancelled(url, signal, true);
  }
}
