// One HTTP request and the way to answer it, whichever server it came by: node:http, or a web-standard `fetch`
// function. Whatever knows of MCP over HTTP is encodeResponse against this, so both are the same front. A visit carries
// bytes and reads none: what a path, a header or a body means is for others.


/** The headers of a request by their lower-case names; of one that came more than once, all values joined by ", ". */
export type RequestHeaders = Readonly<Record<string, string | undefined>>;

export interface HttpRequest {
  readonly method: string;
  /** As it came: not decoded, not normalized, without the query. */
  readonly path: string;
  /** Without its question mark; empty where there is none. */
  readonly query: string;
  readonly headers: RequestHeaders;
  /** `http://host:port` or `https://host:port`, as the caller names us; only worth something once Host was checked. */
  readonly origin: string;
  /**
   * Whether a header that must come once came more often (Host, Origin, Content-Type, Content-Length, Authorization,
   * Mcp-Session-Id), or the request line names another host than Host does.
   */
  readonly ambiguous: boolean;
  /** The way back is gone: the caller has hung up. */
  readonly isGone: boolean;
  /**
   * Called once when the caller hangs up before the answer is whole, at once where it already has. The last one set
   * counts. Not called after `answer` or the sink's `end`, nor for a `cut` of ours.
   */
  onGone(act: () => void): void;
  /**
   * The whole body as text; to be called once. Rejects with a HttpError: too long (413), too slow (408), not UTF-8 or
   * broken off (400), compressed (415), read by somebody before us who did not leave it (500).
   */
  body(maxBytes: number, maxMs: number): Promise<string>;
  /** The whole answer at once. Only the first one counts; to a caller that is gone it does nothing. */
  answer(status: number, headers: Readonly<Record<string, string>>, body?: string): void;
  /** Begins a 200 with `text/event-stream` whose bytes follow. Once, and never beside `answer`. */
  stream(headers: Readonly<Record<string, string>>): StreamSink;
}

/** Where the bytes of an event stream go. Writing to one that is gone does nothing. */
export interface StreamSink {
  write(text: string): void;
  /** After the last write; what was encodeResponse before still goes out. */
  end(): void;
  /** Hangs up at once: what has not gone out is lost. */
  cut(): void;
  /** Bytes that were encodeResponse and that the reader has not taken. */
  readonly waiting: number;
}

/** Why a visit ends before anybody looks at its message: a status, and a sentence that says what to do. */
export class HttpError extends Error {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What happened, where the status does not say it all. */
  readonly kind: "parse_error" | "shutting_down" | undefined;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}, kind?: HttpError["kind"]) {
    super(message);
    this.name = "HttpError";
    this.status = status;
    this.headers = headers;
    this.kind = kind;
  }
}

// Why a body cannot be read, in the same words for every kind of visit, and the head that every event stream has.
// Here, because node-visit.ts may import what only Node has, and web-visit.ts may not.


/** Names of headers are in lower case throughout, so that one encodeResponse over another replaces it. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  // A proxy that compresses or collects would hold events back.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export function tooLong(maxBytes: number): HttpError {
  return new HttpError(413, `The body is longer than ${maxBytes} bytes (limits.messageBytes).`);
}

export function tooSlow(maxMs: number): HttpError {
  return new HttpError(408, `The body did not arrive within ${maxMs} ms (limits.bodyMs).`);
}

export function notUtf8(): HttpError {
  return new HttpError(400, "The body is not UTF-8.", {}, "parse_error");
}

export function compressed(): HttpError {
  return new HttpError(415, "The body has a Content-Encoding. Send it without one.", { "accept-encoding": "identity" });
}

export function brokenOff(): HttpError {
  return new HttpError(400, "The connection ended in the middle of the body.");
}

export function takenBefore(): HttpError {
  const why = "The body was read by something before this handler, and not left in the request's `body`.";
  return new HttpError(500, `${why} Mount the handler before any body parser.`);
}
