// An HTTP client that sends any request, valid or not, and parses JSON and event streams. Each request has its own
// connection, so hanging up or not reading affects no other request. The clients of mcp-clients.ts build on it.

import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { connect as connectSocket, type Socket } from "node:net";

/** Parsed JSON without a type. */
export type Json = Record<string, ReturnType<typeof JSON.parse>>;

export interface StreamEvent {
  readonly id?: string;
  readonly event?: string;
  readonly retry?: string;
  readonly data?: string;
  /** The data, if it is JSON. */
  readonly message?: Json;
}

export type SentHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export interface SentRequest {
  readonly method?: string;
  /** With its query; by default the path of the peer's URL. */
  readonly path?: string;
  readonly headers?: SentHeaders;
  /** Strings and bytes are sent unchanged, other values as JSON. */
  readonly body?: unknown;
  /** Does not read the body until `resume`. */
  readonly paused?: boolean;
}

/** A response: the head at once, the body while it arrives. */
export class Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly isStream: boolean;
  /** The events of an event stream, in order. */
  readonly events: StreamEvent[] = [];
  /** The comments of an event stream. */
  readonly comments: string[] = [];
  /** "complete": the server ended the body. "cut": the connection broke before. */
  readonly ended: Promise<"complete" | "cut">;
  text = "";
  isEnded = false;
  readonly #socket: Socket;
  readonly #response: IncomingMessage;
  #rest = "";
  #waiting: (() => void)[] = [];

  constructor(response: IncomingMessage, paused: boolean) {
    this.status = response.statusCode ?? 0;
    this.headers = response.headers as Record<string, string>;
    this.isStream = (this.headers["content-type"] ?? "").startsWith("text/event-stream");
    this.#response = response;
    this.#socket = response.socket;
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => this.#take(chunk));
    if (paused) response.pause();
    this.ended = new Promise((resolve) => {
      response.once("close", () => {
        this.isEnded = true;
        resolve(response.complete ? "complete" : "cut");
        this.#wake();
      });
    });
    response.on("error", () => undefined);
  }

  /** The messages of the event stream so far. */
  get messages(): Json[] {
    return this.events.flatMap(({ message }) => (message === undefined ? [] : [message]));
  }

  get json(): Json {
    return JSON.parse(this.text) as Json;
  }

  /** The id of the last event that had one, to resume from. */
  get lastEventId(): string | undefined {
    return this.events.findLast(({ id }) => id !== undefined)?.id;
  }

  /** The first event that matches, received or still to come. Rejects if the stream ends without it. */
  async until(matches: (event: StreamEvent) => boolean): Promise<StreamEvent> {
    for (;;) {
      const found = this.events.find(matches);
      if (found !== undefined) return found;
      if (this.isEnded) throw new Error(`The stream ended without the event: ${this.status} ${this.text}`);
      await this.#more();
    }
  }

  async untilMessage(matches: (message: Json) => boolean): Promise<Json> {
    return (await this.until(({ message }) => message !== undefined && matches(message))).message as Json;
  }

  /** The answer to a request, from JSON or from an event stream. */
  async answerTo(id: unknown): Promise<Json> {
    if (this.isStream) return this.untilMessage((message) => message["id"] === id && !("method" in message));
    await this.ended;
    return this.json;
  }

  /** Resolves after this many comments. */
  async untilComments(count: number): Promise<void> {
    while (this.comments.length < count && !this.isEnded) await this.#more();
  }

  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  hangUp(): void {
    this.#socket.destroy();
  }

  async #more(): Promise<void> {
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #take(chunk: string): void {
    this.text += chunk;
    if (this.isStream) {
      const blocks = (this.#rest + chunk).split(/\r\n\r\n|\n\n|\r\r/);
      this.#rest = blocks.pop() ?? "";
      for (const block of blocks) this.#takeBlock(block);
    }
    this.#wake();
  }

  #takeBlock(block: string): void {
    const fields: { -readonly [Name in keyof StreamEvent]: StreamEvent[Name] } = {};
    for (const line of block.split(/\r\n|\n|\r/)) {
      const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (line.startsWith(":")) this.comments.push(line);
      else if (name === "data") fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
      else if (name === "id" || name === "event" || name === "retry") fields[name] = value;
    }
    if (fields.data?.startsWith("{") || fields.data?.startsWith("[")) fields.message = JSON.parse(fields.data) as Json;
    if (Object.keys(fields).length > 0) this.events.push(fields);
  }
}

export class HttpPeer {
  readonly url: URL;
  readonly #open = new Set<ClientRequest>();

  constructor(url: string) {
    this.url = new URL(url);
  }

  /** Resolves with the head of an event stream, and with the whole of any other response. */
  async send({ method = "POST", path, headers = {}, body, paused = false }: SentRequest = {}): Promise<Reply> {
    const payload =
      body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const sent = request({
      host: this.url.hostname,
      port: this.url.port,
      method,
      path: path ?? this.url.pathname,
      headers: {
        accept: "application/json, text/event-stream",
        ...(payload !== undefined && { "content-type": "application/json" }),
        ...headers,
      },
      agent: false,
    });
    this.#open.add(sent);
    sent.once("close", () => this.#open.delete(sent));
    const reply = await new Promise<Reply>((resolve, reject) => {
      sent.once("response", (response) => resolve(new Reply(response, paused)));
      sent.on("error", reject);
      sent.end(payload);
    });
    if (!reply.isStream && !paused) await reply.ended;
    return reply;
  }

  post(body: unknown, headers: SentHeaders = {}, path?: string): Promise<Reply> {
    return this.send({ body, headers, ...(path !== undefined && { path }) });
  }

  get(headers: SentHeaders = {}, path?: string): Promise<Reply> {
    return this.send({
      method: "GET",
      headers: { accept: "text/event-stream", ...headers },
      ...(path !== undefined && { path }),
    });
  }

  /** Starts a request that can be aborted before its response. */
  begin(body: unknown, headers: SentHeaders = {}): { hangUp(): void; readonly reply: Promise<Reply> } {
    const reply = this.post(body, headers);
    reply.catch(() => undefined);
    const [last] = [...this.#open].slice(-1);
    return { reply, hangUp: () => last?.destroy() };
  }

  /** Sends bytes on a new connection; resolves with all bytes received when the server closes it. */
  raw(...chunks: readonly string[]): Promise<string> {
    return this.#bytes(chunks, false);
  }

  /** Like `raw`, and closes the sending side afterwards. */
  rawThenEnd(...chunks: readonly string[]): Promise<string> {
    return this.#bytes(chunks, true);
  }

  async #bytes(chunks: readonly string[], ends: boolean): Promise<string> {
    const socket = connectSocket(Number(this.url.port), this.url.hostname);
    socket.setEncoding("latin1");
    let text = "";
    socket.on("data", (chunk: string) => (text += chunk));
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => undefined);
    for (const chunk of chunks) socket.write(chunk, "latin1");
    if (ends) socket.end();
    await closed;
    return text;
  }

  /** Aborts all open requests. */
  close(): void {
    for (const sent of this.#open) sent.destroy();
  }
}
