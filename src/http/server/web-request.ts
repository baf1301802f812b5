// An HttpRequest over a web-standard `Request`, for Bun, Deno, Workers and other `fetch` servers. Uses only APIs that
// all of them have, and imports no Node module. The runtime owns the connection, so disconnects and slow readers are
// noticed only if the runtime reports them.

import type { BodyLimiter, ByteHolder } from "../../core/byte-budget.ts";
import {
  type BodyLimits,
  type BodyReceiver,
  type DisconnectListener,
  type HostInfo,
  type RequestHeaders,
  type StreamSink,
  type HttpRequest,
  bodyIncomplete,
  bodyCompressed,
  bodyNotUtf8,
  STREAM_HEADERS,
  bodyConsumed,
  bodyGivenUp,
  bodyTooLong,
  bodyTooSlow,
} from "./http-request.ts";

export class WebHttpRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: RequestHeaders;
  readonly origin: string;
  readonly host: HostInfo | undefined;
  /** What the fetch function returns. */
  readonly response: Promise<Response>;
  readonly #request: Request;
  #respond!: (response: Response) => void;
  #hasStarted = false;
  #isComplete = false;
  #isDisconnected = false;
  #disconnectListener: DisconnectListener | undefined;

  constructor(request: Request, host?: HostInfo) {
    this.#request = request;
    this.host = host;
    this.method = request.method;
    const url = new URL(request.url);
    this.path = url.pathname;
    this.query = url.search.slice(1);
    const headers: Record<string, string> = Object.fromEntries(request.headers);
    // HTTP/2 has no Host header. The runtime has built the URL from :authority.
    headers["host"] ??= url.host;
    this.headers = headers;
    this.origin = `${url.protocol}//${headers["host"]}`;
    this.response = new Promise((resolve) => {
      this.#respond = resolve;
    });
    // Listens always, because a disconnect settles the response even if no callback is set.
    if (request.signal.aborted) queueMicrotask(() => this.#disconnect());
    else request.signal.addEventListener("abort", () => this.#disconnect(), { once: true });
  }

  get isAmbiguous(): boolean {
    // `Headers` joins repeated values with a comma, which these headers do not contain in MCP requests.
    return SINGLE_HEADERS.some((name) => this.headers[name]?.includes(","));
  }

  get isDisconnected(): boolean {
    return !this.#isComplete && (this.#isDisconnected || this.#request.signal.aborted);
  }

  onDisconnect(listener: DisconnectListener): void {
    if (this.#isComplete) return;
    if (this.isDisconnected) return listener.disconnect();
    this.#disconnectListener = listener;
  }

  readBody(limits: BodyLimits, receiver: BodyReceiver): void {
    this.#readBody(limits).then(
      (text) => receiver.onBody(text),
      (error: unknown) => receiver.onError(error),
    );
  }

  async #readBody({ messageBytes: maxBytes, bodyMs: maxMs, bodies: counter }: BodyLimits): Promise<string> {
    const { body, bodyUsed } = this.#request;
    if (bodyUsed) throw bodyConsumed();
    const encoding = this.headers["content-encoding"];
    if (encoding !== undefined && encoding.toLowerCase() !== "identity") throw bodyCompressed();
    if (Number(this.headers["content-length"]) > maxBytes) throw bodyTooLong(maxBytes);
    if (body === null) return "";
    const reader = body.getReader();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const arriving = new ArrivingBody(counter);
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(bodyTooSlow(maxMs)), maxMs);
      arriving.disconnect = () => reject(bodyGivenUp());
    });
    try {
      return await Promise.race([collect(reader, maxBytes, arriving), late]);
    } catch (error) {
      // Stop reading. It does not matter if cancelling fails.
      reader.cancel().catch(() => {});
      throw error;
    } finally {
      clearTimeout(timer);
      counter?.release(arriving);
    }
  }

  respond(status: number, headers: Readonly<Record<string, string>>, body = ""): undefined {
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#isComplete = true;
    this.#respond(new Response(body === "" ? null : body, { status, headers }));
  }

  stream(headers: Readonly<Record<string, string>>): StreamSink {
    const sink = new WebStreamSink(
      () => this.isDisconnected,
      () => this.#disconnect(),
      () => {
        this.#isComplete = true;
      },
    );
    if (this.#hasStarted) return sink;
    this.#hasStarted = true;
    this.#respond(new Response(sink.readable, { headers: { ...STREAM_HEADERS, ...headers } }));
    return sink;
  }

  #disconnect(): void {
    if (this.#isComplete || this.#isDisconnected) return;
    this.#isDisconnected = true;
    this.#disconnectListener?.disconnect();
    this.#disconnectListener = undefined;
    // No client will see this response, but without one the runtime may keep the request in memory.
    if (this.#hasStarted) return;
    this.#hasStarted = true;
    this.#respond(new Response(null, { status: 499 }));
  }
}

class WebStreamSink implements StreamSink {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #isDisconnected: () => boolean;
  readonly #onClose: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;

  /** `onCancel` is called when the runtime stops reading, `onClose` when we end or destroy the stream. */
  constructor(isDisconnected: () => boolean, onCancel: () => void, onClose: () => void) {
    this.#isDisconnected = isDisconnected;
    this.#onClose = onClose;
    this.readable = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => {
          this.#controller = undefined;
          onCancel();
        },
      },
      // Without read-ahead, the negated `desiredSize` is exactly the number of buffered bytes.
      { highWaterMark: 0, size: (chunk) => chunk.byteLength },
    );
  }

  get bufferedBytes(): number {
    return Math.max(0, -(this.#controller?.desiredSize ?? 0));
  }

  write(text: string): void {
    this.#controller?.enqueue(ENCODER.encode(text));
  }

  end(): undefined {
    this.#finish((controller) => controller.close());
  }

  destroy(): void {
    const isDisconnected = this.#isDisconnected();
    this.#finish((controller) => {
      // The error shows the client that the stream is truncated. Without a client, the runtime would only log it.
      if (isDisconnected) controller.close();
      else controller.error(new Error("the stream was destroyed"));
    });
  }

  #finish(act: (controller: ReadableStreamDefaultController<Uint8Array>) => void): void {
    const controller = this.#controller;
    if (controller === undefined) return;
    this.#controller = undefined;
    this.#onClose();
    act(controller);
  }
}

const SINGLE_HEADERS = ["host", "origin", "content-type", "content-length", "authorization", "mcp-session-id"];

const ENCODER = new TextEncoder();

class ArrivingBody implements ByteHolder {
  heldBytes = 0;
  disconnect: () => void = () => undefined;
  readonly #counter: BodyLimiter | undefined;

  constructor(counter: BodyLimiter | undefined) {
    this.#counter = counter;
    counter?.update(this);
  }

  add(bytes: number): void {
    this.heldBytes += bytes;
    this.#counter?.update(this);
  }
}

async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  maxBytes: number,
  arriving: ArrivingBody,
): Promise<string> {
  // Keep a byte order mark: the message codec handles it, for all transports in the same way.
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let text = "";
  for (;;) {
    const { done, value } = await next(reader);
    if (done) return text + decode(() => decoder.decode());
    arriving.add(value.byteLength);
    if (arriving.heldBytes > maxBytes) throw bodyTooLong(maxBytes);
    text += decode(() => decoder.decode(value, { stream: true }));
  }
}

async function next(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<ReadResult> {
  try {
    return await reader.read();
  } catch {
    throw bodyIncomplete();
  }
}

type ReadResult = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

function decode(step: () => string): string {
  try {
    return step();
  } catch {
    throw bodyNotUtf8();
  }
}
