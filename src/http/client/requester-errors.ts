// The errors of HTTP requests that fail, the same for node:http and for a `fetch`. They name a server by host and port,
// since the rest of a URL may contain secrets.

import type { Cancellation } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import { errorMessage, isObject } from "../../core/values.ts";

export function hostOf(url: URL): string {
  return url.port === "" ? `${url.hostname}:${url.protocol === "https:" ? 443 : 80}` : url.host;
}

interface SystemError {
  readonly code: string;
  readonly syscall?: unknown;
}

/** Finds the first error with a code among the given one and its causes. The code is empty if there is none. */
function systemErrorIn(error: unknown): SystemError {
  for (let inner = error, depth = 0; isObject(inner) && depth < 5; depth += 1) {
    const { code, syscall, cause, errors } = inner;
    if (typeof code === "string") return { code, syscall };
    inner = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
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
export function wasNeverSent(error: unknown): boolean {
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
export function cancelled(url: URL, signal: Cancellation | undefined, mayHaveRun: boolean): ConnectionError {
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

export function responseTooLong(url: URL, limit: number): ConnectionError {
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
