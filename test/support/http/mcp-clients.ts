// Three minimal MCP clients over HTTP: with a session, stateless, and with legacy HTTP+SSE. Tests can override each
// header, to send requests that are wrong in one detail.

import { NEWEST, revisionNamed } from "../../../src/protocol/revisions/index.ts";
import type { HttpPeer, Json, Reply, SentHeaders } from "./http-peer.ts";
import { statelessMeta } from "../dialogue/raw-peer.ts";

export interface ClientOptions {
  readonly capabilities?: Json;
  /** Sent with every request. */
  readonly headers?: SentHeaders;
}

const INFO = { name: "raw", version: "1" };

export function initialize(revision: string, capabilities: Json = {}, id: unknown = "init"): Json {
  const params = { protocolVersion: revision, capabilities, clientInfo: INFO };
  return { jsonrpc: "2.0", id, method: "initialize", params };
}

export class SessionClient {
  readonly peer: HttpPeer;
  readonly revision: string;
  /** The id of the session. */
  readonly session: string;
  readonly initializeResponse: Json;
  readonly #headers: SentHeaders;
  #last = 0;

  private constructor(peer: HttpPeer, session: string, initializeResponse: Json, headers: SentHeaders) {
    this.peer = peer;
    this.session = session;
    this.initializeResponse = initializeResponse;
    this.revision = String(initializeResponse["result"].protocolVersion);
    // Revisions with batches are older than the header.
    const named = (revisionNamed(this.revision)?.batches ?? false) ? {} : { "mcp-protocol-version": this.revision };
    this.#headers = { ...named, ...headers, "mcp-session-id": session };
  }

  static async open(peer: HttpPeer, revision: string, options: ClientOptions = {}): Promise<SessionClient> {
    const reply = await peer.post(initialize(revision, options.capabilities), options.headers);
    const response = await reply.answerTo("init");
    const session = reply.headers["mcp-session-id"];
    if (session === undefined) throw new Error(`No session: ${reply.status} ${reply.text}`);
    const client = new SessionClient(peer, session, response, options.headers ?? {});
    await client.post({ method: "notifications/initialized" });
    return client;
  }

  post(message: Json | readonly Json[], headers: SentHeaders = {}): Promise<Reply> {
    const complete = (one: Json): Json => ({ jsonrpc: "2.0", ...one });
    const body = Array.isArray(message) ? message.map(complete) : complete(message);
    return this.peer.post(body, { ...this.#headers, ...headers });
  }

  async request(method: string, params?: Json): Promise<Json> {
    const id = (this.#last += 1);
    return (await this.post({ id, method, ...(params && { params }) })).answerTo(id);
  }

  /** Calls a tool, with a progress token made from the id. */
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

export class StatelessClient {
  readonly peer: HttpPeer;
  readonly #capabilities: Json;
  readonly #headers: SentHeaders;

  constructor(peer: HttpPeer, { capabilities = {}, headers = {} }: ClientOptions = {}) {
    this.peer = peer;
    this.#capabilities = capabilities;
    this.#headers = headers;
  }

  /** A request and the headers that repeat its fields. */
  build(id: unknown, method: string, params: Json = {}): { body: Json; headers: SentHeaders } {
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
    const { body, headers } = this.build(id, method, params);
    return this.peer.post(body, { ...headers, ...more });
  }

  async request(id: unknown, method: string, params: Json = {}): Promise<Json> {
    return (await this.post(id, method, params)).answerTo(id);
  }

  /** Starts a request that can be aborted before its response. */
  begin(id: unknown, method: string, params: Json = {}): ReturnType<HttpPeer["begin"]> {
    const { body, headers } = this.build(id, method, params);
    return this.peer.begin(body, headers);
  }
}

/** Sends by POST and receives everything on one stream. */
export class LegacySseClient {
  readonly peer: HttpPeer;
  readonly stream: Reply;
  /** The path for POST, with the query. */
  readonly endpoint: string;
  readonly #headers: SentHeaders;
  #last = 0;

  private constructor(peer: HttpPeer, stream: Reply, endpoint: string, headers: SentHeaders) {
    this.peer = peer;
    this.stream = stream;
    this.endpoint = endpoint;
    this.#headers = headers;
  }

  static async open(peer: HttpPeer, path = "/sse", headers: SentHeaders = {}): Promise<LegacySseClient> {
    const stream = await peer.get(headers, path);
    const { data = "" } = await stream.until(({ event }) => event === "endpoint");
    const { pathname, search } = new URL(data, new URL(path, peer.url));
    return new LegacySseClient(peer, stream, pathname + search, headers);
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
    const response = await this.stream.answerTo("init");
    await this.post({ method: "notifications/initialized" });
    return response;
  }
}
