// An HTTP request of ours and its answer, as the rest of the house sees them: whoever sends it (node:http by default,
// a `fetch` that the program brought) is behind this one function type. Types only. A request that fails rejects with
// a ConnectionError, whose `mayHaveRun` is false only where no byte of it can have been acted upon.

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Ends the request, and the reading of its answer. */
  readonly signal?: AbortSignal;
}

/** Its head is known, its body is still to be read: by one of the four ways, once. */
export interface HttpAnswer {
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
  (request: HttpRequest): Promise<HttpAnswer>;
  /** Lets go of connections that are kept open for the next request. */
  close(): void;
}
