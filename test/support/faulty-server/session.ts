// The session style of a faulty server, over Streamable HTTP and over legacy HTTP+SSE: sessions with their subscriptions,
// and streams whose events can be replayed. This part is correct; faults are injected by the server.

import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import type { Backend } from "./backend.ts";
import type { ResponseHeaders, Json, RawRequest } from "../http/raw-server.ts";

export interface SessionOptions {
  /** Whether `initialize` returns a session id; default true. */
  readonly sessionIds?: boolean;
  /** Whether events have ids and can be replayed; default true. */
  readonly eventIds?: boolean;
  /** The `retry` field at the beginning of each stream. */
  readonly retryMs?: number;
  /** The format of answers; default "sse". */
  readonly answers?: "sse" | "json";
  /** The answer to a GET without Last-Event-ID; default "stream". */
  readonly get?: "stream" | "refused" | "bad request";
  /** The status for notifications and responses; default 202. */
  readonly accepted?: 200 | 202 | 204;
  /** Whether each response has a new session id. */
  readonly changesIds?: boolean;
  /** A suffix for the ids of events; default "". */
  readonly idSuffix?: string;
  /** Whether a resumed stream starts again from its beginning. */
  readonly replaysAll?: boolean;
}

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
};

export class SessionStyle {
  readonly sessions = new Map<string, Session>();
  /** The number of sessions opened so far. */
  opened = 0;
  readonly #desk: Backend;
  readonly #options: SessionOptions;
  #events = 0;

  constructor(backend: Backend, options: SessionOptions) {
    this.#desk = backend;
    this.#options = options;
  }

  forget(): void {
    this.sessions.clear();
  }

  /** Sends a change to each subscribed session, on its GET stream. */
  change(notification: Json, uri?: string): void {
    for (const session of this.sessions.values()) {
      if (uri !== undefined && !session.subscriptions.has(uri)) continue;
      this.#send(session, "get", { jsonrpc: "2.0", ...notification });
    }
  }

  /** Whether each session has an open GET stream. */
  get hasSubscriber(): boolean {
    const open = [...this.sessions.values()].map((session) => session.streams.get("get")?.request);
    return (
      open.length > 0 &&
      open.every((request) => request !== undefined && !request.closed.aborted && !request.isFinished)
    );
  }

  async post(request: RawRequest): Promise<void> {
    const message = request.json ?? {};
    const { sessionIds = true, answers = "sse", accepted = 202, changesIds = false } = this.#options;
    const isFirst = message["method"] === "initialize";
    const session = isFirst ? this.#open() : this.#find(sessionIds ? request.headers["mcp-session-id"] : "only");
    if (session === undefined) {
      const id = request.headers["mcp-session-id"];
      const message = id === undefined ? "Bad Request: Server not initialized" : "Session not found";
      request.answer(id === undefined ? 400 : 404, {
        jsonrpc: "2.0",
        id: null,
        error: { code: id === undefined ? -32000 : -32001, message },
      });
      return;
    }
    const headers = sessionIds && (isFirst || changesIds) ? { "mcp-session-id": this.#idFor(session, isFirst) } : {};
    if (message["method"] === undefined || message["id"] === undefined) {
      this.#desk.receive(message);
      request.answer(accepted, accepted === 200 ? {} : "", headers);
      return;
    }
    this.#record(session, message);
    if (isFirst) request.answer(200, this.#initializeResponse(message), headers);
    else if (answers === "json")
      request.answer(200, await this.#desk.answer(message, { newestFormat: false, send: () => undefined }), headers);
    else await this.#stream(request, session, message, headers);
  }

  /** A GET opens a new stream, or resumes one. */
  get(request: RawRequest): void {
    const { sessionIds = true, eventIds = true, get = "stream" } = this.#options;
    const session = this.#find(sessionIds ? request.headers["mcp-session-id"] : "only");
    const last = request.headers["last-event-id"];
    if (session === undefined)
      request.answer(404, { jsonrpc: "2.0", id: null, error: { code: -32001, message: "Gone" } });
    else if (last !== undefined && eventIds) this.#resume(request, session, last);
    else if (get === "refused") request.answer(405, "", { allow: "POST" });
    else if (get === "bad request")
      request.answer(400, { jsonrpc: "2.0", id: null, error: { code: -32000, message: "Bad Request" } });
    else {
      this.#begin(request);
      session.stream("get").attach(request);
      this.#prime(session, "get");
    }
  }

  delete(request: RawRequest): void {
    const known = this.sessions.delete(request.headers["mcp-session-id"] ?? "only");
    request.answer(known ? 200 : 404);
  }

  /** Opens the stream of a new session; its first event is the address for messages. */
  legacyGet(request: RawRequest): void {
    const session = this.#open();
    this.#begin(request);
    session.stream("get").attach(request);
    request.chunk(`event: endpoint\ndata: /messages?session=${session.id}\n\n`);
    request.closed.addEventListener("abort", () => this.sessions.delete(session.id), { once: true });
  }

  async legacyPost(request: RawRequest): Promise<void> {
    const session = this.#find(new URL(request.path, "http://server").searchParams.get("session") ?? undefined);
    const message = request.json ?? {};
    if (session === undefined) return request.answer(404, "Session not found");
    request.answer(202, "Accepted");
    if (message["method"] === undefined || message["id"] === undefined) return this.#desk.receive(message);
    this.#record(session, message);
    const send = (message: Json): void => this.#send(session, "get", message);
    if (message["method"] === "initialize") send(this.#initializeResponse(message));
    else send(await this.#desk.answer(message, { newestFormat: false, send }));
    return undefined;
  }

  #open(): Session {
    this.opened += 1;
    const session = new Session(this.#options.sessionIds === false ? "only" : `session-${this.opened}-of-this-server`);
    this.sessions.set(session.id, session);
    return session;
  }

  #find(id: string | undefined): Session | undefined {
    // Without session ids, one session serves every client.
    if (id === "only" && !this.sessions.has(id)) this.sessions.set(id, new Session(id));
    return id === undefined ? undefined : this.sessions.get(id);
  }

  /** With `changesIds`, all ids of a session stay valid. */
  #idFor(session: Session, isFirst: boolean): string {
    if (isFirst) return session.id;
    this.#events += 1;
    const id = `${session.id}-${this.#events}`;
    this.sessions.set(id, session);
    return id;
  }

  #record(session: Session, { method, params }: Json): void {
    if (method === "logging/setLevel") session.logLevel = params.level;
    if (method === "resources/subscribe") session.subscriptions.add(params.uri);
    if (method === "resources/unsubscribe") session.subscriptions.delete(params.uri);
  }

  #initializeResponse({ id, params }: Json): Json {
    const protocolVersion = String(params?.protocolVersion ?? NEWEST_SESSION.name);
    const serverInfo = { name: "faulty", version: "1" };
    return { jsonrpc: "2.0", id, result: { protocolVersion, capabilities: CAPABILITIES, serverInfo } };
  }

  #begin(request: RawRequest, headers: ResponseHeaders = {}): void {
    request.begin(200, { "content-type": "text/event-stream", "cache-control": "no-cache", ...headers });
  }

  async #stream(request: RawRequest, session: Session, message: Json, headers: ResponseHeaders): Promise<void> {
    const name = `post${(this.#events += 1)}`;
    this.#begin(request, headers);
    session.stream(name).attach(request);
    this.#prime(session, name);
    const send = (message: Json): void => this.#send(session, name, message);
    send(await this.#desk.answer(message, { newestFormat: false, send }));
    session.stream(name).finish();
  }

  #resume(request: RawRequest, session: Session, last: string): void {
    // Non-ASCII ids arrive as the bytes of UTF-8.
    const wanted = Buffer.from(last, "latin1").toString();
    const [name = ""] = wanted.split("/");
    const stream = session.stream(name);
    const found = stream.events.findIndex(({ id }) => id === wanted);
    if (found < 0) return request.answer(400, "Unknown event");
    this.#begin(request);
    stream.attach(request, this.#options.replaysAll === true ? 0 : found + 1);
  }

  /** The first event of a stream has no data, only an id and the retry delay. */
  #prime(session: Session, name: string): void {
    const { eventIds = true, retryMs } = this.#options;
    const retry = retryMs === undefined ? "" : `retry: ${retryMs}\n`;
    const stream = session.stream(name);
    const id = this.#idIn(stream, name);
    if (eventIds) stream.write(`id: ${id}\n${retry}data: \n\n`, id);
    else if (retry !== "") stream.request?.chunk(`${retry}\n`);
  }

  #idIn(stream: Stream, name: string): string {
    return `${name}/${stream.events.length}${this.#options.idSuffix ?? ""}`;
  }

  #send(session: Session, name: string, message: Json): void {
    const stream = session.stream(name);
    const id = this.#idIn(stream, name);
    const named = this.#options.eventIds === false ? "" : `id: ${id}\n`;
    stream.write(`event: message\n${named}data: ${JSON.stringify(message)}\n\n`, id);
  }
}

/** The events of one stream; they outlive the connection that carries them. */
export class Stream {
  readonly events: { readonly id: string; readonly text: string }[] = [];
  request: RawRequest | undefined;
  isDone = false;

  write(text: string, id: string): void {
    this.events.push({ id, text });
    this.request?.chunk(text);
  }

  finish(): void {
    this.isDone = true;
    this.request?.end();
  }

  attach(request: RawRequest, after = this.events.length): void {
    this.request = request;
    for (const { text } of this.events.slice(after)) request.chunk(text);
    if (this.isDone) request.end();
  }
}

export class Session {
  readonly id: string;
  readonly subscriptions = new Set<string>();
  readonly streams = new Map<string, Stream>();
  logLevel: string | undefined;

  constructor(id: string) {
    this.id = id;
  }

  stream(name: string): Stream {
    const found = this.streams.get(name) ?? new Stream();
    this.streams.set(name, found);
    return found;
  }
}
