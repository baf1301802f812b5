// How the client sends HTTP requests: one function type, implemented with node:http (node-requester.ts) and with a
// `fetch` from the options. Also the errors that both implementations use, and the handling of redirects. These errors
// name a server by host and port, and a redirect target by origin at most, since the rest of a URL may contain secrets.

import { abortable, attempt } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defined, errorMessage } from "../../core/values.ts";
import { decodeBody, GrowableBuffer } from "./sse-reader.ts";

export interface ClientHttpRequest {
  readonly method: "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Aborts the request and the reading of its response. */
  readonly signal?: AbortSignal;
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
  /** Closes idle connections. */
  close(): void;
}

/** Host and port of a URL. */
export function hostOf(url: URL): string {
  return url.port === "" ? `${url.hostname}:${url.protocol === "https:" ? 443 : 80}` : url.host;
}

interface SystemError {
  readonly code: string;
  readonly syscall?: unknown;
}

/** Finds the first error with a code among the given one and its causes. The code is empty if there is none. */
function systemErrorIn(error: unknown): SystemError {
  for (let one = error, depth = 0; typeof one === "object" && one !== null && depth < 5; depth += 1) {
    const { code, cause, errors } = one as { code?: unknown; cause?: unknown; errors?: unknown };
    if (typeof code === "string") return one as SystemError;
    one = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return { code: "" };
}

/** The second code comes from Node's fetch. */
const CONNECT_TIMEOUT = /^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/;
const NO_HOST = /^(?:ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME|EAI_FAIL)$/;
const NO_ROUTE = /^(?:ENETUNREACH|EHOSTUNREACH|ENETDOWN|EHOSTDOWN|EADDRNOTAVAIL)$/;
const NEVER_SENT = /^(?:ECONNREFUSED|UND_ERR_CONNECT_TIMEOUT)$/;
const CERTIFICATE = /^(?:ERR_TLS_CERT_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH)/;
const TLS = /^(?:ERR_TLS_|ERR_SSL_|EPROTO)/;

/** Whether an error of `fetch` proves that the request was not sent, since there was no usable connection. */
function wasNeverSent(error: unknown): boolean {
  const { code, syscall } = systemErrorIn(error);
  // An established connection can break with some of the same codes, but not in the system call `connect`.
  return NEVER_SENT.test(code) || NO_HOST.test(code) || CERTIFICATE.test(code) || syscall === "connect";
}

/** The error if no connection, or no secure one, could be opened. Nothing was sent. */
export function connectFailed(url: URL, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const host = hostOf(url);
  const { code } = systemErrorIn(error);
  if (CONNECT_TIMEOUT.test(code)) return new ConnectionError("timeout", noConnection(host), unsent(error));
  return new ConnectionError("refused", connectProblem(url, host, code, error), unsent(error));
}

function connectProblem(url: URL, host: string, code: string, error: unknown): string {
  if (code === "ECONNREFUSED") return `Nothing listens at ${host}; is the server running, and is the port right?`;
  if (NO_HOST.test(code)) return `The host ${url.hostname} was not found (${code}); check the address and the network`;
  if (NO_ROUTE.test(code)) return `There is no route to ${host} (${code}); check the address and the network`;
  if (TLS.test(code) || CERTIFICATE.test(code)) {
    const reason = code === "EPROTO" ? "the TLS handshake failed" : errorMessage(error);
    const problem = `No secure connection to ${host}: ${reason} (${code})`;
    return `${problem}; check its certificate, and whether it uses https at all`;
  }
  const reason = code === "" ? errorMessage(error) : code;
  return `Could not connect to ${host} (${reason}); check the address and the network`;
}

export function connectTimedOut(url: URL, ms: number): ConnectionError {
  return new ConnectionError("timeout", noConnection(hostOf(url), ` within ${ms} ms`), { mayHaveRun: false });
}

function noConnection(host: string, when = ""): string {
  return `The server at ${host} did not accept a connection${when}; check the address, firewalls and proxies`;
}

/** `mayHaveRun` is false if the request is known not to have been sent. */
export function cancelled(url: URL, signal: AbortSignal | undefined, mayHaveRun: boolean): ConnectionError {
  const cause: unknown = signal?.reason;
  if (cause instanceof ConnectionError) return cause;
  return new ConnectionError("cancelled", `The request to ${hostOf(url)} was cancelled`, { cause, mayHaveRun });
}

/** The error if the connection broke after the request was sent, or may have been sent. */
export function noResponse(url: URL, error: unknown): ConnectionError {
  const host = hostOf(url);
  const { code } = systemErrorIn(error);
  if (code === "HPE_HEADER_OVERFLOW") {
    return new ConnectionError("http", `The response headers of ${host} are too long`, { cause: error });
  }
  if (code.startsWith("HPE_")) {
    const problem = `The response of ${host} is not valid HTTP (${code})`;
    const advice = "is it another service, or does it expect https?";
    return new ConnectionError("http", `${problem}; ${advice}`, { cause: error });
  }
  return closed(`The server at ${host} closed the connection before it responded; the request may have run`, error);
}

function closed(message: string, cause: unknown): ConnectionError {
  const { code } = systemErrorIn(cause);
  return new ConnectionError("closed", code === "" ? message : `${message} (${code})`, { cause });
}

/** The error if the connection broke in the middle of the response body. */
export function bodyBroken(url: URL, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  return closed(`The connection to ${hostOf(url)} broke before the end of the response`, error);
}

function responseTooLong(url: URL, limit: number): ConnectionError {
  return new ConnectionError("http", `The response of ${hostOf(url)} is longer than the limit of ${limit} bytes`);
}

export function unexpectedUpgrade(url: URL): ConnectionError {
  const message = `The server at ${hostOf(url)} switches to another protocol (HTTP 101), which was not requested`;
  return new ConnectionError("http", message, { status: 101 });
}

export function responseCompressed(url: URL, encoding: string): ConnectionError {
  const name = encoding.slice(0, 40);
  const problem = `The response of ${hostOf(url)} is compressed (${name}), although we asked for no compression`;
  return new ConnectionError("http", `${problem}; check its proxy`);
}

/** Quotes Node's message, which names an invalid header but never its value. */
export function notSendable(url: URL, error: unknown): ConnectionError {
  const message = `The request to ${hostOf(url)} cannot be sent: ${errorMessage(error)}`;
  return new ConnectionError("http", message, unsent(error));
}

function unsent(cause: unknown): { cause: unknown; mayHaveRun: false } {
  return { cause, mayHaveRun: false };
}

/** How many redirects are followed per request. */
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** These keep the method; the others turn a POST into a GET. */
const METHOD_PRESERVING: ReadonlySet<number> = new Set([307, 308]);

/**
 * Follows a redirect only within one origin, so that neither the request nor its credentials reach another server, and
 * only if the method stays the same. Any other redirect is an error that names the target.
 */
export function followSameOrigin(requester: Requester): Requester {
  const follow = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    let { url } = request;
    for (let count = 0; ; count += 1) {
      const response = await requester(url === request.url ? request : { ...request, url });
      const { location } = response.headers;
      if (location === undefined || !REDIRECTS.has(response.status)) return response;
      response.discard();
      url = redirectTarget(request, url, response.status, location);
      const problem = `The server at ${hostOf(url)} redirects more than ${MAX_REDIRECTS} times`;
      if (count >= MAX_REDIRECTS) throw redirectError(`${problem}; check its address`);
    }
  };
  follow.close = (): void => requester.close();
  return follow;
}

function redirectTarget(request: ClientHttpRequest, from: URL, status: number, location: string): URL {
  const server = `The server at ${hostOf(from)}`;
  if (!URL.canParse(location, from.href)) {
    throw redirectError(`${server} redirects to an invalid address; check its address`);
  }
  const to = new URL(location, from);
  if (to.origin !== from.origin || to.origin === "null") {
    const origin = to.origin === "null" ? `${to.protocol} (which is not http)` : to.origin;
    throw redirectError(`${server} redirects to ${origin}; connect to that address if you trust it`);
  }
  if (request.method !== "GET" && request.method !== "HEAD" && !METHOD_PRESERVING.has(status)) {
    const problem = `${server} redirects a ${request.method} with ${status}, which would turn it into a GET`;
    throw redirectError(`${problem}; connect to the address that it redirects to`);
  }
  to.username = "";
  to.password = "";
  return to;
}

/** A server that redirects has not run the request. */
function redirectError(message: string): ConnectionError {
  return new ConnectionError("http", message, { mayHaveRun: false });
}

export type Fetch = typeof globalThis.fetch;

/**
 * For other runtimes, proxies and tests. `fetch` reports less about failures than node:http, so more failed requests
 * count as possibly run. Its timeouts, decompression and connection pool apply unchanged. An aborted signal ends a
 * request even if the `fetch` ignores it.
 */
export function fetchRequester(fetch: Fetch): Requester {
  const requester = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    const { method, url, headers, body, signal } = request;
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
  { url, signal }: ClientHttpRequest,
  work: Promise<T>,
  failed: (error: unknown) => ConnectionError,
  discard?: (late: T) => void,
): Promise<T> {
  try {
    return await (signal === undefined ? work : abortable(signal, work));
  } catch (error) {
    if (signal?.aborted !== true) throw error instanceof ConnectionError ? error : failed(error);
    work.then(discard, () => undefined);
    throw cancelled(url, signal, true);
  }
}
