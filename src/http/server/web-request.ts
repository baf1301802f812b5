// A visit by way of a web-standard request, for Bun, Deno, Workers, and whatever speaks `fetch`. It uses the names
// that all of those have and imports nothing that only one has. The runtime owns the connection: what it does not
// tell us here (a reader that it buffers for, a caller that is gone) we do not know.

import { type RequestHeaders, type StreamSink, type HttpRequest, brokenOff, compressed, notUtf8, STREAM_HEADERS, takenBefore, tooLong, tooSlow } from "./http-request.ts";

export class WebHttpRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: RequestHeaders;
  readonly origin: string;
  /** What the fetch function returns. */
  readonly response: Promise<Response>;
  readonly #request: Request;
  #respond!: (response: Response) => void;
  #begun = false;
  #isWhole = false;
  #isGone = false;
  #gone: (() => void) | undefined;

  constructor(request: Request) {
    this.#request = request;
    this.method = request.method;
    const url = new URL(request.url);
    this.path = url.pathname;
    this.query = url.search.slice(1);
    const headers: Record<string, string | undefined> = Object.fromEntries(request.headers);
    // Release HTTP/2 there is no such header: the runtime has made the URL of what came in its place.
    headers["host"] ??= url.host;
    this.headers = headers;
    this.origin = `${url.protocol}//${headers["host"]}`;
    this.response = new Promise((resolve) => {
      this.#respond = resolve;
    });
    // Whoever waits for the response is told even where nobody here asks whether the caller is still there.
    if (request.signal.aborted) queueMicrotask(() => this.#leave());
    else request.signal.addEventListener("abort", () => this.#leave(), { once: true });
  }

  get ambiguous(): boolean {
    // Of a header that came twice, `Headers` shows both values with a comma between, which none of these can have.
    return SINGLE.some((name) => this.headers[name]?.includes(","));
  }

  get isGone(): boolean {
    return !this.#isWhole && (this.#isGone || this.#request.signal.aborted);
  }

  onGone(act: () => void): void {
    if (this.#isWhole) return;
    if (this.isGone) return act();
    this.#gone = act;
  }

  async body(maxBytes: number, maxMs: number): Promise<string> {
    const { body, bodyUsed } = this.#request;
    if (bodyUsed) throw takenBefore();
    const encoding = this.headers["content-encoding"];
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") throw compressed();
    if (Number(this.headers["content-length"]) > maxBytes) throw tooLong(maxBytes);
    if (body === null) return "";
    const reader = body.getReader();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(tooSlow(maxMs)), maxMs);
    });
    try {
      return await Promise.race([collect(reader, maxBytes), late]);
    } catch (refusal) {
      // Nobody reads the rest; whether that can be told to the sender does not matter.
      reader.cancel().catch(() => {});
      throw refusal;
    } finally {
      clearTimeout(timer);
    }
  }

  answer(status: number, headers: Readonly<Record<string, string>>, body = ""): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#isWhole = true;
    this.#respond(new Response(body === "" ? null : body, { status, headers }));
  }

  stream(headers: Readonly<Record<string, string>>): StreamSink {
    const sink = new WebStreamSink(
      () => this.isGone,
      () => this.#leave(),
      () => {
        this.#isWhole = true;
      },
    );
    if (this.#begun) return sink;
    this.#begun = true;
    this.#respond(new Response(sink.readable, { headers: { ...STREAM_HEADERS, ...headers } }));
    return sink;
  }

  #leave(): void {
    if (this.#isWhole || this.#isGone) return;
    this.#isGone = true;
    this.#gone?.();
    this.#gone = undefined;
    // Nobody will see it, but the runtime may hold on to all of this until there is one.
    if (this.#begun) return;
    this.#begun = true;
    this.#respond(new Response(null, { status: 499 }));
  }
}

class WebStreamSink implements StreamSink {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #hasLeft: () => boolean;
  readonly #over: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  /** `hasLeft`: is the caller gone? `left`: the reader wants no more. `over`: there is no more. */
  constructor(hasLeft: () => boolean, left: () => void, over: () => void) {
    this.#hasLeft = hasLeft;
    this.#over = over;
    this.readable = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => {
          this.#controller = undefined;
          left();
        },
      },
      // Nothing is fetched ahead, so that what is missing to this mark is just what waits.
      { highWaterMark: 0, size: (chunk) => chunk.byteLength },
    );
  }

  get waiting(): number {
    return Math.max(0, -(this.#controller?.desiredSize ?? 0));
  }

  write(text: string): void {
    this.#controller?.enqueue(ENCODER.encode(text));
  }

  end(): void {
    this.#finish((controller) => controller.close());
  }

  cut(): void {
    const hasLeft = this.#hasLeft();
    this.#finish((controller) => {
      // Nobody is there to see that something is missing, and a runtime would report an error.
      if (hasLeft) controller.close();
      else controller.error(new Error("the stream was cut"));
    });
  }

  #finish(act: (controller: ReadableStreamDefaultController<Uint8Array>) => void): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    this.#controller = undefined;
    this.#over();
    act(controller);
  }
}

const SINGLE = ["host", "origin", "content-type", "content-length", "authorization", "mcp-session-id"];

const ENCODER = new TextEncoder();

async function collect(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): Promise<string> {
  // Whether a mark at the beginning counts is for those who read the text, on every wire alike.
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  let length = 0;
  for (;;) {
    const { done, value } = await next(reader);
    if (done) return text + decode(() => decoder.decode());
    length += value.byteLength;
    if (length > maxBytes) throw tooLong(maxBytes);
    text += decode(() => decoder.decode(value, { stream: true }));
  }
}

async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadResult> {
  try {
    return await reader.read();
  } catch {
    throw brokenOff();
  }
}

type ReadResult = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

function decode(step: () => string): string {
  try {
    return step();
  } catch {
    throw notUtf8();
  }
}
