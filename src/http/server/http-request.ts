// The interface of one HTTP request and its response, implemented for node:http and for web-standard `fetch`. The rest
// of the server uses only this interface. It does not interpret paths, headers or bodies.

import type { Identity } from "../../core/authentication.ts";
import type { BodyLimiter, ByteHolder } from "../../core/byte-budget.ts";
import { tooLongText } from "../../jsonrpc/codec.ts";

/** Request headers by lower-case name; the values of a repeated header are joined by ", ". */
export type RequestHeaders = Readonly<Record<string, string>>;

export interface HttpRequest {
  readonly method: string;
  /** As received: not decoded, not normalized, without the query. */
  readonly path: string;
  /** Without the question mark; empty if there is no query. */
  readonly query: string;
  readonly headers: RequestHeaders;
  /** What the framework that received the request knows about it. */
  readonly host?: HostInfo | undefined;
  /** `http://host:port` or `https://host:port` as the client sees us. Do not use it before Host has been checked. */
  readonly origin: string;
  /**
   * Whether a header that may appear only once is repeated (Host, Origin, Content-Type, Content-Length, Authorization,
   * Mcp-Session-Id), or the request line names another host than the Host header.
   */
  readonly isAmbiguous: boolean;
  /** Whether the client has disconnected before the response was complete. */
  readonly isDisconnected: boolean;
  /**
   * Calls the listener once if the client disconnects before the response is complete, or at once if it already has. A
   * new one replaces the previous one. It is not called after `respond`, or after `end` or `destroy` of the sink.
   */
  onDisconnect(listener: DisconnectListener): void;
  /**
   * Reads the whole body as a string; may be called once. Fails if it is too long (413), too slow (408), not UTF-8 or
   * incomplete (400), compressed (415), already consumed by a framework (500), or given up by the counter (503).
   * Calls one of the receiver's two functions, which must not throw.
   */
  readBody(limits: BodyLimits, receiver: BodyReceiver): void;
  /**
   * Sends a complete response. Only the first one counts; does nothing if the client has disconnected. Returns the
   * response if part of it is known to be unsent.
   */
  respond(status: number, headers: Readonly<Record<string, string>>, body?: string): UnsentResponse | undefined;
  /** Starts a 200 `text/event-stream` response. At most once, and not together with `respond`. */
  stream(headers: Readonly<Record<string, string>>): StreamSink;
}

/** An object and not a function, since a function for each request costs more. */
export interface DisconnectListener {
  disconnect(): void;
}

export interface BodyReceiver {
  onBody(text: string): void;
  onError(error: unknown): void;
}

/** What the framework around a mounted handler knows about a request. */
export interface HostInfo<Env = unknown> extends Partial<Omit<Identity, "principal">> {
  /**
   * Who the caller is, as the framework has proved. Replaces `auth` for this request. If it is undefined, the request is
   * authenticated by `auth`; without `auth`, the caller is anonymous.
   */
  readonly principal?: string | undefined;
  /** What handlers get as `context.env`, such as the `env` of a Worker. Replaces the option `env` for this request. */
  readonly env?: Env | undefined;
}

export interface BodyLimits {
  readonly messageBytes: number;
  readonly bodyMs: number;
  /** Counts the body while it arrives. */
  readonly bodies?: BodyLimiter | undefined;
}

/** A complete response that the client has not read yet. */
export interface UnsentResponse extends ByteHolder {
  /** Disconnects a client that reads nothing for this long; at the earliest after half of it. */
  limitStall(ms: number): void;
  /** Calls `act` once, when the response has been sent or the client has disconnected. */
  onClose(act: () => void): void;
}

/** The body of a streamed response. Writing to a closed one does nothing. */
export interface StreamSink {
  write(text: string): void;
  /** Ends the response after everything written so far. Returns the response if part of it is known to be unsent. */
  end(): UnsentResponse | undefined;
  /** Disconnects at once; unsent data is lost. */
  destroy(): void;
  /** Bytes written that have not been sent to the client yet. */
  readonly bufferedBytes: number;
}

/** Rejects a request before its message is handled, with a status and a message for the client. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The kind of error, if the status does not imply it. */
  readonly kind: "parse_error" | "shutting_down" | undefined;

  constructor(
    status: number,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    kind?: HttpError["kind"],
  ) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.headers = headers;
    this.kind = kind;
  }
}

/** Header names are lower case everywhere, so that a later value replaces an earlier one. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  // A proxy that compresses or buffers would delay events.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export function bodyTooLong(maxBytes: number): HttpError {
  return new HttpError(413, tooLongText(maxBytes));
}

export function bodyTooSlow(maxMs: number): HttpError {
  return new HttpError(408, `The body did not arrive within ${maxMs} ms (limits.bodyMs).`);
}

export function bodyGivenUp(): HttpError {
  return new HttpError(503, "Too many or too long bodies are arriving; try again soon", { "retry-after": "1" });
}

export function bodyNotUtf8(): HttpError {
  return new HttpError(400, "The body is not valid UTF-8.", {}, "parse_error");
}

export function bodyCompressed(): HttpError {
  return new HttpError(415, "The body has a Content-Encoding. Send it without one.", { "accept-encoding": "identity" });
}

export function bodyIncomplete(): HttpError {
  return new HttpError(400, "The connection closed in the middle of the body.");
}

export function bodyConsumed(): HttpError {
  const why = "The body was consumed before this handler, and is not in `request.body`.";
  return new HttpError(500, `${why} Mount the handler before any body parser.`);
}
