// An HTTP request of ours and its answer, as the rest of the house sees them: whoever sends it (node:http by default,
// a `fetch` that the program brought) is behind this one function type. Types only. A request that fails rejects with
// a ConnectionError, whose `mayHaveRun` is false only where no byte of it can have been acted upon.

import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/text.ts";

export interface OutgoingRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request, and the reading of its answer. */
  readonly signal?: AbortSignal;
}

/** Its head is known, its body is still to be read: by one of the four ways, once. */
export interface HttpResponse {
  readonly status: number;
  /** By lower-case names; one that came several times is joined by commas. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The bytes as they come; rejects with a ConnectionError where the connection breaks before the end of the body. A chunk is
   * good until the next one is asked for: what shall stay must be copied.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /**
   * What `make` makes of all of it; rejects where it is longer than `limit` bytes. The bytes are good until `make`
   * returns, and it may write on them.
   */
  read<T>(limit: number, make: (bytes: Buffer) => T): Promise<T>;
  /** All of it, decoded; rejects where it is longer than `limit` bytes. */
  text(limit: number): Promise<string>;
  /** Nobody wants the rest: the connection is used again where that is cheap, and ended otherwise. */
  discard(): void;
}

export interface Requester {
  (request: OutgoingRequest): Promise<HttpResponse>;
  /** Lets go of connections that are kept open for the next request. */
  close(): void;
}

// What can go wrong with an HTTP request of ours, in words: who did not answer, what that means, what to do. Apart,
// because a request by node:http and one by a `fetch` fail in the same ways. An error names the end by its host alone:
// the rest of an address may hold what nobody else should read.


/** Host and port, as a person would look for them. */
export function hostOf(url: URL): string {
  return url.port === "" ? `${url.hostname}:${url.protocol === "https:" ? 443 : 80}` : url.host;
}

interface Failure {
  readonly code: string;
  readonly syscall?: unknown;
}

/** What Node says of a failure, by the error itself or by what stands behind it. */
function readFailure(error: unknown): Failure | undefined {
  for (let one = error, depth = 0; typeof one === "object" && one !== null && depth < 5; depth += 1) {
    const { code, cause, errors } = one as { code?: unknown; cause?: unknown; errors?: unknown };
    if (typeof code === "string") return one as Failure;
    one = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  }
  return undefined;
}

function codeOf(error: unknown): string | undefined {
  return readFailure(error)?.code;
}

/** Of connecting: the second is the one of Node's fetch. */
const TIMEOUT: ReadonlySet<string> = new Set(["ETIMEDOUT", "UND_ERR_CONNECT_TIMEOUT"]);
const NO_HOST: ReadonlySet<string> = new Set(["ENOTFOUND", "EAI_AGAIN", "EAI_NODATA", "EAI_NONAME", "EAI_FAIL"]);
const NO_WAY: ReadonlySet<string> = new Set(["ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN", "EADDRNOTAVAIL"]);
const NEVER_SENT: ReadonlySet<string> = new Set(["ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT"]);
const CERTIFICATE = /^(?:ERR_TLS_CERT_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|INVALID_CA|HOSTNAME_MISMATCH)/;
const TLS = /^(?:ERR_TLS_|ERR_SSL_|EPROTO)/;

/** Whether the error of a `fetch` says for certain that there was no connection, or none that it would use. */
export function neverSent(error: unknown): boolean {
  const failed = readFailure(error);
  const code = failed?.code ?? "";
  // A connection that was made can break in some of the same ways: then it was no call of `connect`.
  return NEVER_SENT.has(code) || NO_HOST.has(code) || CERTIFICATE.test(code) || failed?.syscall === "connect";
}

/** There was no connection, or no safe one: nothing of the request has gone out. */
export function unconnected(url: URL, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const host = hostOf(url);
  const code = codeOf(error) ?? "";
  if (TIMEOUT.has(code)) return new ConnectionError("timeout", noConnection(host), unsent(error));
  return new ConnectionError("refused", whyUnconnected(url, host, code, error), unsent(error));
}

function whyUnconnected(url: URL, host: string, code: string, error: unknown): string {
  if (code === "ECONNREFUSED") return `Nothing listens at ${host}; is the end running, and is the port right?`;
  if (NO_HOST.has(code)) return `The name ${url.hostname} was not found (${code}); check the address and the network`;
  if (NO_WAY.has(code)) return `There is no way to ${host} (${code}); check the address and the network`;
  if (TLS.test(code) || CERTIFICATE.test(code)) {
    const reason = code === "EPROTO" ? "it does not speak TLS as we do" : errorMessage(error);
    return `No safe connection to ${host}: ${reason} (${code}); check its certificate, and whether it is https at all`;
  }
  const reason = code === "" ? errorMessage(error) : code;
  return `No connection to ${host} could be made (${reason}); check the address and the network`;
}

export function connectTimeout(url: URL, ms: number): ConnectionError {
  return new ConnectionError("timeout", noConnection(hostOf(url), ` within ${ms} ms`), { mayHaveRun: false });
}

function noConnection(host: string, when = ""): string {
  return `The end at ${host} took no connection${when}; check the address, and what may stand before it (a firewall, a proxy)`;
}

/** `mayHaveRun` is false where it is known that the request did not go out. */
export function cancelled(url: URL, signal: AbortSignal | undefined, mayHaveRun: boolean): ConnectionError {
  const cause: unknown = signal?.reason;
  if (cause instanceof ConnectionError) return cause;
  return new ConnectionError("cancelled", `The request to ${hostOf(url)} was cancelled`, { cause, mayHaveRun });
}

/** The connection broke after the request had gone out, or may have. */
export function unanswered(url: URL, error: unknown): ConnectionError {
  const host = hostOf(url);
  const code = codeOf(error) ?? "";
  if (code === "HPE_HEADER_OVERFLOW") {
    return new ConnectionError("http", `The head of the answer of ${host} is too long`, { cause: error });
  }
  if (code.startsWith("HPE_")) {
    const message = `What ${host} answered is no HTTP (${code}); is it another service, or https where http was asked?`;
    return new ConnectionError("http", message, { cause: error });
  }
  const message = `The end at ${host} closed the connection before it answered; the request may have run`;
  return new ConnectionError("closed", code === "" ? message : `${message} (${code})`, { cause: error });
}

/** The head was there, the body did not come to its end. */
export function brokenBody(url: URL, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const code = codeOf(error);
  const message = `The connection to ${hostOf(url)} broke before the end of the answer`;
  return new ConnectionError("closed", code === undefined ? message : `${message} (${code})`, { cause: error });
}

export function longBody(url: URL, limit: number): ConnectionError {
  return new ConnectionError("http", `The answer of ${hostOf(url)} is longer than the limit of ${limit} bytes`);
}

export function otherProtocol(url: URL): ConnectionError {
  const message = `The end at ${hostOf(url)} wants to go on in another protocol (HTTP 101), which was not asked for`;
  return new ConnectionError("http", message, { status: 101 });
}

export function encodedBody(url: URL, encoding: string): ConnectionError {
  const named = encoding.slice(0, 40);
  const message = `The answer of ${hostOf(url)} is compressed (${named}), though identity was asked for; check its proxy`;
  return new ConnectionError("http", message);
}

/** Node says which header it is, and never what stands in it. */
export function unsendable(url: URL, error: unknown): ConnectionError {
  return new ConnectionError(
    "http",
    `The request to ${hostOf(url)} cannot be written: ${errorMessage(error)}`,
    unsent(error),
  );
}

function unsent(cause: unknown): { cause: unknown; mayHaveRun: false } {
  return { cause, mayHaveRun: false };
}

// Redirects, followed where that gives nothing away: within one origin, so that neither what the request says nor who
// we are is shown to another end, and never in a way that would make another request of it. Everything else is an
// error that names where the end wanted us to go, and leaves it to a person to go there.


export interface RedirectOptions {
  /** Redirects of one request. */
  readonly most?: number;
}

const MOST_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** The others turn what is not a GET into one. */
const AS_IT_IS: ReadonlySet<number> = new Set([307, 308]);

/** The same requester, but an answer that it gives is no redirect that could be followed. */
export function sameOrigin(requester: Requester, options: RedirectOptions = {}): Requester {
  const { most = MOST_REDIRECTS } = options;
  const following = async (request: OutgoingRequest): Promise<HttpResponse> => {
    let { url } = request;
    for (let count = 0; ; count += 1) {
      const answer = await requester(url === request.url ? request : { ...request, url });
      const { location } = answer.headers;
      if (location === undefined || !REDIRECTS.has(answer.status)) return answer;
      answer.discard();
      url = target(request, url, answer.status, location);
      if (count >= most)
        throw refusal(`The end at ${hostOf(url)} redirects more than ${most} times; check its address`);
    }
  };
  following.close = (): void => requester.close();
  return following;
}

function target(request: OutgoingRequest, from: URL, status: number, location: string): URL {
  const end = `The end at ${hostOf(from)}`;
  if (!URL.canParse(location, from.href))
    throw refusal(`${end} redirects to something that is no address; check its address`);
  const to = new URL(location, from);
  if (to.origin !== from.origin || to.origin === "null") {
    const origin = to.origin === "null" ? `${to.protocol} (which is not http)` : to.origin;
    throw refusal(`${end} redirects to ${origin}; connect to that address if you trust it`);
  }
  if (request.method !== "GET" && !AS_IT_IS.has(status)) {
    const what = `${end} redirects a ${request.method} with ${status}, which would make a GET of it`;
    throw refusal(`${what}; connect to ${to.origin}${to.pathname} itself`);
  }
  to.username = "";
  to.password = "";
  return to;
}

/** An end that sends us elsewhere has not done what it was asked for. */
function refusal(message: string): ConnectionError {
  return new ConnectionError("http", message, { mayHaveRun: false });
}
