// An HTTP server on bare sockets. The test controls the bytes of each response: it can cut them off anywhere, send them
// one at a time, or never send them. A server that is stopped and started again keeps its port.

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";

/** Parsed JSON without a type. */
export type Json = Record<string, ReturnType<typeof JSON.parse>>;

export type ResponseHeaders = Readonly<Record<string, string | number | undefined>>;

/** One request, with methods to answer it correctly or not. */
export class RawRequest {
  readonly method: string;
  readonly path: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** Aborted when the connection is closed. */
  readonly closed: AbortSignal;
  /** Whether the response is sent one byte at a time. */
  drips = false;
  /** Whether the response has ended or was cut off. */
  isFinished = false;
  /** The number of bytes sent. */
  sent = 0;
  readonly #socket: Socket;
  #maxBytes = Number.POSITIVE_INFINITY;
  #unsent: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, closed: AbortSignal, head: string, body: Buffer) {
    const [first = "", ...lines] = head.split("\r\n");
    const [method = "", path = ""] = first.split(" ");
    this.method = method;
    this.path = path;
    this.headers = headersIn(lines);
    this.text = body.toString();
    this.closed = closed;
    this.#socket = socket;
  }

  get json(): Json | undefined {
    return this.text.startsWith("{") ? (JSON.parse(this.text) as Json) : undefined;
  }

  /** The method of the message; without a message the HTTP method; "response" for a posted response. */
  get operation(): string {
    return String(this.json?.["method"] ?? (this.method === "POST" ? "response" : this.method));
  }

  /** Closes the connection after this many bytes of the response, head included. */
  cutAfter(bytes: number): void {
    this.#maxBytes = bytes;
  }

  /** A complete response; an object is sent as JSON. */
  answer(status: number, body: string | object = "", headers: ResponseHeaders = {}): void {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const type = typeof body === "string" ? undefined : { "content-type": "application/json" };
    this.write(headOf(status, { ...type, "content-length": Buffer.byteLength(text), ...headers }) + text);
    this.isFinished = true;
  }

  /** The head of a response with a chunked body. */
  begin(status: number, headers: ResponseHeaders = {}): void {
    this.write(headOf(status, { "transfer-encoding": "chunked", ...headers }));
  }

  chunk(text: string): void {
    if (text !== "") this.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  }

  end(): void {
    this.write("0\r\n\r\n");
    this.isFinished = true;
  }

  /** Sends bytes unchanged. */
  write(text: string): void {
    if (this.isFinished || this.closed.aborted) return;
    const bytes = Buffer.from(text).subarray(0, this.#maxBytes - this.sent);
    this.sent += bytes.length;
    if (this.drips) this.#drip(bytes);
    else this.#socket.write(bytes);
    if (this.sent >= this.#maxBytes) this.hangUp();
  }

  /** Closes the connection after the bytes that were written. */
  hangUp(): void {
    this.isFinished = true;
    this.#socket.destroySoon();
  }

  /** Resets the connection. */
  reset(): void {
    this.isFinished = true;
    this.#socket.resetAndDestroy();
  }

  #drip(bytes: Buffer): void {
    const isIdle = this.#unsent.length === 0;
    this.#unsent = Buffer.concat([this.#unsent, bytes]);
    if (isIdle) this.#sendNextByte();
  }

  #sendNextByte(): void {
    if (this.#unsent.length === 0 || this.closed.aborted) return;
    this.#socket.write(this.#unsent.subarray(0, 1));
    this.#unsent = this.#unsent.subarray(1);
    setImmediate(() => this.#sendNextByte());
  }
}

/**
 * A free port that no other process gets while its server is stopped. It is below the ports from which systems choose
 * for clients and for servers that ask for any port.
 */
export async function lastingPort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    const server = createServer();
    const isFree = await listen(server, port).then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
}

export class RawServer {
  /** Called with each request. */
  onRequest: (request: RawRequest) => void = (request) => request.answer(404);
  /** Called when a connection is used for another request; true resets the connection. */
  onReuse: () => boolean = () => false;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #waiting: (() => void)[] = [];

  static async open(): Promise<RawServer> {
    const server = new RawServer();
    await server.start();
    return server;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.#sockets.size;
  }

  async start(): Promise<void> {
    this.#port ||= await lastingPort();
    const server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    await listen(server, this.#port);
    this.#server = server;
  }

  /** Closes all connections and refuses new ones. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    await this.hangUp();
    await closed;
  }

  /** Closes all connections; resolves when a client in this process has noticed. */
  async hangUp(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Waits until the condition holds; it is checked again after each event. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #accept(socket: Socket): void {
    const closed = new AbortController();
    let bytes = Buffer.alloc(0);
    let served = 0;
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      closed.abort();
      this.wake();
    });
    socket.on("data", (chunk) => {
      if (bytes.length === 0 && served > 0 && this.onReuse()) {
        socket.resetAndDestroy();
        return;
      }
      bytes = Buffer.concat([bytes, chunk]);
      for (;;) {
        const end = bytes.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = bytes.subarray(0, end).toString("latin1");
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        if (bytes.length < end + 4 + length) return;
        const body = bytes.subarray(end + 4, end + 4 + length);
        bytes = bytes.subarray(end + 4 + length);
        const request = new RawRequest(socket, closed.signal, head, body);
        served += 1;
        this.onRequest(request);
        this.wake();
      }
    });
  }
}

function headersIn(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}

function headOf(status: number, headers: ResponseHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  return [`HTTP/1.1 ${status} ${status < 400 ? "OK" : "Error"}`, ...lines, "", ""].join("\r\n");
}
