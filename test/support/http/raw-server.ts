// The answering side of HTTP by hand: requests are read just far enough to be whole, and answers are bytes that a test
// may cut off after any of them, let out one at a time, or never send. It knows nothing of MCP but that bodies are
// JSON. Everything is on the loopback address; a server that was stopped comes back on the same port.

import { createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Parsed JSON, looked into without a type for it. */
export type Json = Record<string, ReturnType<typeof JSON.parse>>;

export type AnswerHeaders = Readonly<Record<string, string | number | undefined>>;

/** One request, and the way to answer it, well or badly. */
export class Visit {
  readonly method: string;
  readonly path: string;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** How many requests came by the same connection before. */
  readonly before: number;
  /** Aborted when the connection is over. */
  readonly gone: AbortSignal;
  /** Lets the bytes out one at a time. */
  drips = false;
  /** Whether the answer is over, by its end or by a cut. */
  isOver = false;
  /** How many bytes of the answer were let out. */
  sent = 0;
  readonly #socket: Socket;
  #most = Number.POSITIVE_INFINITY;
  #dripping: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, gone: AbortSignal, head: string, body: Buffer, before: number) {
    const [first = "", ...lines] = head.split("\r\n");
    const [method = "", path = ""] = first.split(" ");
    this.method = method;
    this.path = path;
    this.headers = headersIn(lines);
    this.text = body.toString();
    this.before = before;
    this.gone = gone;
    this.#socket = socket;
  }

  get json(): Json | undefined {
    return this.text.startsWith("{") ? (JSON.parse(this.text) as Json) : undefined;
  }

  /** What is asked: the method of the message, or that of HTTP where there is no message with one. */
  get what(): string {
    return String(this.json?.["method"] ?? (this.method === "POST" ? "response" : this.method));
  }

  /** Hangs up as soon as so many bytes of the answer, its head included, are out. */
  cutAfter(bytes: number): void {
    this.#most = bytes;
  }

  /** A whole answer; an object is sent as its JSON. */
  answer(status: number, body: string | object = "", headers: AnswerHeaders = {}): void {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const type = typeof body === "string" ? undefined : { "content-type": "application/json" };
    this.write(headOf(status, { ...type, "content-length": Buffer.byteLength(text), ...headers }) + text);
    this.isOver = true;
  }

  /** The head of an answer whose body comes in chunks. */
  begin(status: number, headers: AnswerHeaders = {}): void {
    this.write(headOf(status, { "transfer-encoding": "chunked", ...headers }));
  }

  chunk(text: string): void {
    if (text !== "") this.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  }

  end(): void {
    this.write("0\r\n\r\n");
    this.isOver = true;
  }

  /** Bytes as they are. */
  write(text: string): void {
    if (this.isOver || this.gone.aborted) return;
    const bytes = Buffer.from(text).subarray(0, this.#most - this.sent);
    this.sent += bytes.length;
    if (this.drips) this.#drip(bytes);
    else this.#socket.write(bytes);
    if (this.sent >= this.#most) this.hangUp();
  }

  /** Ends the connection after what was written. */
  hangUp(): void {
    this.isOver = true;
    this.#socket.destroySoon();
  }

  /** Ends the connection by a reset. */
  reset(): void {
    this.isOver = true;
    this.#socket.resetAndDestroy();
  }

  #drip(bytes: Buffer): void {
    const isIdle = this.#dripping.length === 0;
    this.#dripping = Buffer.concat([this.#dripping, bytes]);
    if (isIdle) this.#fall();
  }

  #fall(): void {
    if (this.#dripping.length === 0 || this.gone.aborted) return;
    this.#socket.write(this.#dripping.subarray(0, 1));
    this.#dripping = this.#dripping.subarray(1);
    setImmediate(() => this.#fall());
  }
}

export class RawServer {
  /** What hears of every request; it may answer whenever it likes. */
  onVisit: (visit: Visit) => void = (visit) => visit.answer(404);
  /** Called when the first bytes of a request come by a connection that has served one; true ends the connection. */
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

  /** How many connections are open. */
  get connections(): number {
    return this.#sockets.size;
  }

  async start(): Promise<void> {
    const server = createServer({ noDelay: true }, (socket) => this.#take(socket));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Connections are ended, and new ones are refused. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    await this.hangUp();
    await closed;
  }

  /** Ends every connection that is open; resolves when the other side, in this process too, has seen it. */
  async hangUp(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Waits until it holds; looked at again whenever something happens here. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #take(socket: Socket): void {
    const over = new AbortController();
    let bytes = Buffer.alloc(0);
    let served = 0;
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#sockets.delete(socket);
      over.abort();
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
        const visit = new Visit(socket, over.signal, head, body, served);
        served += 1;
        this.onVisit(visit);
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

function headOf(status: number, headers: AnswerHeaders): string {
  const lines = Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [`${name}: ${value}`]));
  return [`HTTP/1.1 ${status} ${status < 400 ? "Fine" : "Wrong"}`, ...lines, "", ""].join("\r\n");
}
