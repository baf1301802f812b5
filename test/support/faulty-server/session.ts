// The session style of a faulty end, new and old: sessions and their subscriptions, the streams of each with the events
// that can be asked for again, and the two pairs of doors (one address for all, or GET for the stream and another
// address for the messages). Everything here is as the specification wants it; what goes wrong is done from outside.

import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import type { Backend } from "./backend.ts";
import type { ResponseHeaders, Json, RawRequest } from "../http/raw-server.ts";

export interface SessionOptions {
  /** Whether `initialize` gives out an id; true. */
  readonly sessionIds?: boolean;
  /** Whether events have ids and can be had again; true. */
  readonly eventIds?: boolean;
  /** Milliseconds after which a caller shall come back; said at the beginning of each stream. */
  readonly retryMs?: number;
  /** How a call is answered; as a stream. */
  readonly answers?: "sse" | "json";
  /** What a GET without an id gets; a stream. */
  readonly get?: "stream" | "refused" | "bad request";
  /** What a message that wants no answer gets; 202. */
  readonly accepted?: 200 | 202 | 204;
  /** Whether the id of the session is another one after each answer. */
  readonly changesIds?: boolean;
  /** What the ids of events end with; nothing. */
  readonly idSuffix?: string;
  /** Whether a stream that is taken up brings everything again, from its beginning. */
  readonly replaysAll?: boolean;
}

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
};

export class SessionStyle {
  readonly sessions = new Map<string, Session>();
  /** How many sessions there were. */
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

  /** Tells the sessions of a change, each by the stream that it has for that. */
  change(notification: Json, uri?: string): void {
    for (const session of this.sessions.values()) {
      if (uri !== undefined && !session.subscriptions.has(uri)) continue;
      this.#say(session, "get", { jsonrpc: "2.0", ...notification });
    }
  }

  /** A stream for messages that belong to no call is open, in each session that there is. */
  get hasSubscriber(): boolean {
    const open = [...this.sessions.values()].map((session) => session.streams.get("get")?.request);
    return open.length > 0 && open.every((request) => request !== undefined && !request.closed.aborted && !request.isFinished);
  }

  async post(request: RawRequest): Promise<void> {
    const message = request.json ?? {};
    const { sessionIds = true, answers = "sse", accepted = 202, changesIds = false } = this.#options;
    const isFirst = message["method"] === "initialize";
    const session = isFirst ? this.#open() : this.#named(sessionIds ? request.headers["mcp-session-id"] : "only");
    if (session === undefined) {
      const id = request.headers["mcp-session-id"];
      const words = id === undefined ? "Bad Request: Server not initialized" : "Session not found";
      request.answer(id === undefined ? 400 : 404, {
        jsonrpc: "2.0",
        id: null,
        error: { code: id === undefined ? -32000 : -32001, message: words },
      });
      return;
    }
    const headers = sessionIds && (isFirst || changesIds) ? { "mcp-session-id": this.#idFor(session, isFirst) } : {};
    if (message["method"] === undefined || message["id"] === undefined) {
      this.#desk.receive(message);
      request.answer(accepted, accepted === 200 ? {} : "", headers);
      return;
    }
    this.#note(session, message);
    if (isFirst) request.answer(200, this.#welcome(message), headers);
    else if (answers === "json")
      request.answer(200, await this.#desk.answer(message, { newestFormat: false, send: () => undefined }), headers);
    else await this.#stream(request, session, message, headers);
  }

  /** A GET: a new stream, or what was missed of an old one. */
  get(request: RawRequest): void {
    const { sessionIds = true, eventIds = true, get = "stream" } = this.#options;
    const session = this.#named(sessionIds ? request.headers["mcp-session-id"] : "only");
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

  /** The old way in: the stream of a new session, which begins with the address for its messages. */
  legacyGet(request: RawRequest): void {
    const session = this.#open();
    this.#begin(request);
    session.stream("get").attach(request);
    request.chunk(`event: endpoint\ndata: /messages?session=${session.id}\n\n`);
    request.closed.addEventListener("abort", () => this.sessions.delete(session.id), { once: true });
  }

  async legacyPost(request: RawRequest): Promise<void> {
    const session = this.#named(new URL(request.path, "http://end").searchParams.get("session") ?? undefined);
    const message = request.json ?? {};
    if (session === undefined) return request.answer(404, "No such session");
    request.answer(202, "Accepted");
    if (message["method"] === undefined || message["id"] === undefined) return this.#desk.receive(message);
    this.#note(session, message);
    const say = (said: Json): void => this.#say(session, "get", said);
    if (message["method"] === "initialize") say(this.#welcome(message));
    else say(await this.#desk.answer(message, { newestFormat: false, send: say }));
    return undefined;
  }

  #open(): Session {
    this.opened += 1;
    const session = new Session(this.#options.sessionIds === false ? "only" : `session-${this.opened}-of-this-end`);
    this.sessions.set(session.id, session);
    return session;
  }

  #named(id: string | undefined): Session | undefined {
    // An end without ids has no handshake to miss: it serves whoever comes.
    if (id === "only" && !this.sessions.has(id)) this.sessions.set(id, new Session(id));
    return id === undefined ? undefined : this.sessions.get(id);
  }

  /** An end that thinks better of its ids with each answer takes all that it gave. */
  #idFor(session: Session, isFirst: boolean): string {
    if (isFirst) return session.id;
    this.#events += 1;
    const id = `${session.id}-${this.#events}`;
    this.sessions.set(id, session);
    return id;
  }

  #note(session: Session, { method, params }: Json): void {
    if (method === "logging/setLevel") session.logLevel = params.level;
    if (method === "resources/subscribe") session.subscriptions.add(params.uri);
    if (method === "resources/unsubscribe") session.subscriptions.delete(params.uri);
  }

  #welcome({ id, params }: Json): Json {
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
    const say = (said: Json): void => this.#say(session, name, said);
    say(await this.#desk.answer(message, { newestFormat: false, send: say }));
    session.stream(name).finish();
  }

  #resume(request: RawRequest, session: Session, last: string): void {
    // What is not ASCII comes as the bytes of UTF-8.
    const wanted = Buffer.from(last, "latin1").toString();
    const [name = ""] = wanted.split("/");
    const stream = session.stream(name);
    const found = stream.events.findIndex(({ id }) => id === wanted);
    if (found < 0) return request.answer(400, "No such event");
    this.#begin(request);
    stream.attach(request, this.#options.replaysAll === true ? 0 : found + 1);
  }

  /** The first event of a stream: it says nothing but where the stream can be taken up, and when. */
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

  #say(session: Session, name: string, message: Json): void {
    const stream = session.stream(name);
    const id = this.#idIn(stream, name);
    const named = this.#options.eventIds === false ? "" : `id: ${id}\n`;
    stream.write(`event: message\n${named}data: ${JSON.stringify(message)}\n\n`, id);
  }
}

// What a faulty end keeps of a session: what it was told, and its streams with the events that can be asked for again,
// which stay when the connection that carried them is gone.


/** Events under one name: they stay when the connection that carries them is gone. */
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
  /** The level of logs that it was told. */
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
