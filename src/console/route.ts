// What a route of the console's API is. The same routes answer over HTTP, for the pages, and on the control socket, for
// commands. A route knows nothing of either: it gets a request without headers, and returns a document or a stream.

/** A request to a route. */
export interface ApiRequest {
  /** The parts of the path that the route names, such as `id` of `calls/:id`. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** Of a POST: an object. Of a GET: empty. */
  readonly body: Readonly<Record<string, unknown>>;
  /** Aborted when the page or the command has left. */
  readonly signal: AbortSignal;
}

/** What a route streams: server-sent events. */
export interface EventSink {
  /** Sends an event. The data is sent as one line of JSON. Does nothing when the other side has left. */
  send(event: string, data: unknown): void;
  /** Sends an event whose data is JSON already, for what goes to many pages. */
  sendJson(event: string, json: string): void;
  end(): void;
  /** What was sent and not read yet. */
  readonly bufferedBytes: number;
}

/** An answer that is a stream of events. `open` is called once; the stream ends when the signal of the request aborts. */
export class EventStream {
  readonly open: (sink: EventSink) => void;

  constructor(open: (sink: EventSink) => void) {
    this.open = open;
  }
}

/** One request that the console answers. GET reads, and POST acts. */
export interface Route {
  readonly method: "GET" | "POST";
  /** Relative to the API, such as `calls/:id`. */
  readonly path: string;
  /** What it does, for docs/reference/console-api.md. */
  readonly about: string;
  /** Returns the document of the answer, or an EventStream. Throws an ApiError. */
  readonly run: (request: ApiRequest) => unknown;
}

/** The request is refused: what is wrong, and what to do. */
export class ApiError extends Error {
  readonly status: number;
  readonly hint: string | undefined;

  constructor(status: 400 | 403 | 404 | 409 | 413 | 503, message: string, hint?: string) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.hint = hint;
  }
}
