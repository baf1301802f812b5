// Three callers over HTTP, each in its style and each as plain as can be: one with a session, one whose requests
// stand by themselves, and one on the old pair of paths. What they send can be overruled in every header, because
// tests want to be wrong in one thing at a time.

import { NEWEST, revisionNamed } from "../../../src/protocol/revisions/index.ts";
import type { HttpPeer, Json, Reply, SentHeaders } from "./http-peer.ts";
import { statelessMeta } from "../dialogue/raw-peer.ts";

export interface CallerOptions {
  readonly capabilities?: Json;
  /** With every request: who asks, for instance. */
  readonly headers?: SentHeaders;
}

const INFO = { name: "raw", version: "1" };

export function initialize(revision: string, capabilities: Json = {}, id: unknown = "init"): Json {
  const params = { protocolVersion: revision, capabilities, clientInfo: INFO };
  return { jsonrpc: "2.0", id, method: "initialize", params };
}

export class SessionCaller {
  readonly peer: HttpPeer;
  readonly revision: string;
  /** The session's id, as the server gave it. */
  readonly session: string;
  /** The answer to `initialize`. */
  readonly welcome: Json;
  readonly #headers: SentHeaders;
  #last = 0;

  private constructor(peer: HttpPeer, session: string, welcome: Json, headers: SentHeaders) {
    this.peer = peer;
    this.session = session;
    this.welcome = welcome;
    this.revision = String(welcome["result"].protocolVersion);
    // The header came with the third revision.
    const named = (revisionNamed(this.revision)?.batches ?? false) ? {} : { "mcp-protocol-version": this.revision };
    this.#headers = { ...named, ...headers, "mcp-session-id": session };
  }

  static async open(peer: HttpPeer, revision: string, options: CallerOptions = {}): Promise<SessionCaller> {
    const reply = await peer.post(initialize(revision, options.capabilities), options.headers);
    const welcome = await reply.answerTo("init");
    const session = reply.headers["mcp-session-id"];
    if (session === undefined) throw new Error(`No session: ${reply.status} ${reply.text}`);
    const caller = new SessionCaller(peer, session, welcome, options.headers ?? {});
    await caller.post({ method: "notifications/initialized" });
    return caller;
  }

  post(message: Json | readonly Json[], headers: SentHeaders = {}): Promise<Reply> {
    const whole = (one: Json): Json => ({ jsonrpc: "2.0", ...one });
    const body = Array.isArray(message) ? message.map(whole) : whole(message);
    return this.peer.post(body, { ...this.#headers, ...headers });
  }

  async request(method: string, params?: Json): Promise<Json> {
    const id = (this.#last += 1);
    return (await this.post({ id, method, ...(params && { params }) })).answerTo(id);
  }

  /** The reply to a call of a tool, which has a progress token of the same name as its id. */
  call(id: unknown, name: string, args: Json = {}): Promise<Reply> {
    return this.post(toolCall(id, name, args));
  }

  listen(headers: SentHeaders = {}): Promise<Reply> {
    return this.peer.get({ ...this.#headers, ...headers });
  }

  resume(lastEventId: string | undefined): Promise<Reply> {
    return this.listen({ "last-event-id": lastEventId ?? "" });
  }

  end(): Promise<Reply> {
    return this.peer.send({ method: "DELETE", headers: this.#headers });
  }
}

export function toolCall(id: unknown, name: string, args: Json = {}): Json {
  return { id, method: "tools/call", params: { name, arguments: args, _meta: { progressToken: `t-${String(id)}` } } };
}

export class StatelessCaller {
  readonly peer: HttpPeer;
  readonly #capabilities: Json;
  readonly #headers: SentHeaders;

  constructor(peer: HttpPeer, { capabilities = {}, headers = {} }: CallerOptions = {}) {
    this.peer = peer;
    this.#capabilities = capabilities;
    this.#headers = headers;
  }

  /** A whole request and the headers that mirror it. */
  made(id: unknown, method: string, params: Json = {}): { body: Json; headers: SentHeaders } {
    const { _meta, ...rest } = params;
    const body = {
      jsonrpc: "2.0",
      id,
      method,
      params: { ...rest, _meta: { ...statelessMeta(NEWEST.name, this.#capabilities), ..._meta } },
    };
    const name: unknown = rest["name"] ?? rest["uri"] ?? rest["taskId"];
    const headers = {
      "mcp-protocol-version": NEWEST.name,
      "mcp-method": method,
      ...(typeof name === "string" && { "mcp-name": name }),
      ...this.#headers,
    };
    return { body, headers };
  }

  post(id: unknown, method: string, params: Json = {}, more: SentHeaders = {}): Promise<Reply> {
    const { body, headers } = this.made(id, method, params);
    return this.peer.post(body, { ...headers, ...more });
  }

  async request(id: unknown, method: string, params: Json = {}): Promise<Json> {
    return (await this.post(id, method, params)).answerTo(id);
  }

  /** A call that is under way, and the way to hang up on it. */
  begin(id: unknown, method: string, params: Json = {}): ReturnType<HttpPeer["begin"]> {
    const { body, headers } = this.made(id, method, params);
    return this.peer.begin(body, headers);
  }
}

/** Speaks by POST and hears everything on the one stream that it opened. */
export class OldCaller {
  readonly peer: HttpPeer;
  readonly stream: Reply;
  /** Where it posts to, with the query. */
  readonly endpoint: string;
  readonly #headers: SentHeaders;
  #last = 0;

  private constructor(peer: HttpPeer, stream: Reply, endpoint: string, headers: SentHeaders) {
    this.peer = peer;
    this.stream = stream;
    this.endpoint = endpoint;
    this.#headers = headers;
  }

  static async open(peer: HttpPeer, path = "/sse", headers: SentHeaders = {}): Promise<OldCaller> {
    const stream = await peer.get(headers, path);
    const { data = "" } = await stream.until(({ event }) => event === "endpoint");
    const { pathname, search } = new URL(data, new URL(path, peer.url));
    return new OldCaller(peer, stream, pathname + search, headers);
  }

  post(message: Json, headers: SentHeaders = {}): Promise<Reply> {
    const body = { jsonrpc: "2.0", ...message };
    return this.peer.post(body, { ...this.#headers, ...headers }, this.endpoint);
  }

  async request(method: string, params?: Json): Promise<Json> {
    const id = (this.#last += 1);
    await this.post({ id, method, ...(params && { params }) });
    return this.stream.answerTo(id);
  }

  async handshake(revision: string, capabilities: Json = {}): Promise<Json> {
    await this.post(initialize(revision, capabilities));
    const welcome = await this.stream.answerTo("init");
    await this.post({ method: "notifications/initialized" });
    return welcome;
  }
}
