// The MCP endpoint at one path. Serves both styles and decides for each message: one whose body or header declares a
// stateless revision is handled on its own. All others belong to a session, which begins with `initialize` and is
// identified by a header afterwards. The router has checked the caller before.

import type { Identity } from "../../core/authentication.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { serveTransport, type ConnectionOptions } from "../../dialogue/connection.ts";
import { unsupportedRevision } from "../../dialogue/calls/errors.ts";
import { isStateless } from "../../dialogue/stateless/front.ts";
import { isRequest, type RequestMessage } from "../../jsonrpc/message.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { ASSUMED } from "../../protocol/revisions/index.ts";
import { REVISION_HEADER, SESSION_HEADER } from "../headers.ts";
import {
  callerFrom,
  checkAccept,
  expectsResponse,
  POST_TYPES,
  readMessage,
  type ParsedBody,
  type SharedLimits,
} from "./admission.ts";
import { HttpError, type HttpRequest } from "./http-request.ts";
import type { ReplayStore } from "./replay.ts";
import type { Reply } from "./reply.ts";
import { HttpSession, SessionTable } from "./session.ts";
import type { SessionIds } from "./session.ts";
import type { StatelessEndpoint } from "./stateless.ts";

export class McpEndpoint {
  readonly #handler: Handler;
  readonly #stateless: StatelessEndpoint;
  readonly #shared: SharedLimits;
  readonly #connection: ConnectionOptions;
  readonly #store: ReplayStore;
  /** Undefined if nothing is kept between requests. */
  readonly #ids: SessionIds | undefined;
  readonly #sessions: SessionTable<HttpSession>;
  readonly #revisions: readonly Revision[];
  readonly #sessionNames: ReadonlySet<string>;
  readonly #statelessNames: ReadonlySet<string>;

  constructor(
    handler: Handler,
    stateless: StatelessEndpoint,
    revisions: readonly Revision[],
    connection: ConnectionOptions,
    shared: SharedLimits,
    ids: SessionIds | undefined,
    store: ReplayStore,
  ) {
    this.#ids = ids;
    const names = (style: Revision["style"]): Set<string> =>
      new Set(revisions.filter((revision) => revision.style === style).map(({ name }) => name));
    this.#handler = handler;
    this.#stateless = stateless;
    this.#revisions = revisions;
    this.#sessionNames = names("session");
    this.#statelessNames = names("stateless");
    this.#connection = connection;
    this.#shared = shared;
    this.#store = store;
    this.#sessions = new SessionTable(shared);
  }

  /** Sends the response for its own errors, so that no promise is needed for them. */
  post(reply: Reply, identity: Identity | undefined): void {
    checkAccept(reply.request, POST_TYPES);
    const take = (body: ParsedBody): void => this.#take(body, reply, identity);
    readMessage(reply, this.#shared, take);
  }

  #take(body: ParsedBody, reply: Reply, identity: Identity | undefined): void {
    const { request } = reply;
    if (!this.#isStateless(body, request)) this.#postToSession(body, reply, identity);
    else if (body.kind === "batch") {
      throw new HttpError(400, "This revision has no batches: send one message at a time");
    } else if (this.#isUnsupportedHandshake(body, request)) {
      const { id = null, params } = body.message as { id?: null; params?: { protocolVersion?: unknown } };
      const error = unsupportedRevision(params?.protocolVersion, this.#revisions).toBody();
      reply.sendJson({ jsonrpc: "2.0", id, error }, 400);
    } else {
      const release = this.#shared.requests.begin(body, identity?.principal);
      try {
        this.#stateless.post(body.message, reply, callerFrom(request, identity, this.#connection.env), release);
      } catch (error) {
        release();
        throw error;
      }
    }
  }

  /** Opens a stream for messages outside any request, or resumes a broken stream. */
  async get(reply: Reply, identity: Identity | undefined): Promise<void> {
    const session = await this.#findSession(reply, identity);
    checkAccept(reply.request, ["text/event-stream"]);
    session.get(reply, reply.request.headers["last-event-id"]);
  }

  async delete(reply: Reply, identity: Identity | undefined): Promise<void> {
    const session = await this.#findSession(reply, identity);
    this.#ids?.end(session.id);
    await this.#sessions.end(session);
    reply.sendEmpty(204);
  }

  /** Whether no session is open and no request runs. */
  get isIdle(): boolean {
    return this.#sessions.isEmpty && this.#stateless.isIdle;
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([this.#stateless.close(graceMs), this.#sessions.close(graceMs)]);
  }

  #isStateless(body: ParsedBody, { headers }: HttpRequest): boolean {
    if (this.#statelessNames.size === 0) return false;
    if (this.#sessionNames.size === 0 || this.#statelessNames.has(headers[REVISION_HEADER] ?? "")) return true;
    if (body.kind === "batch" || !("method" in body.message)) return false;
    const { message } = body;
    return isStateless(message) && (message.params?.["_meta"] !== undefined || headers[SESSION_HEADER] === undefined);
  }

  /** Whether the message is a handshake although no session-style revision is served. */
  #isUnsupportedHandshake(body: ParsedBody & { kind: "message" }, { headers }: HttpRequest): boolean {
    if (this.#sessionNames.size > 0 || this.#statelessNames.has(headers[REVISION_HEADER] ?? "")) return false;
    return isRequest(body.message) && body.message.method === "initialize" && !isStateless(body.message);
  }

  #postToSession(body: ParsedBody, reply: Reply, identity: Identity | undefined): void {
    if (this.#ids === undefined) {
      void this.#answerAlone(body, reply, identity).catch((error: unknown) => this.#shared.fail(reply, error));
      return;
    }
    if (reply.request.headers[SESSION_HEADER] === undefined && body.kind === "message") {
      const { message } = body;
      if (isRequest(message) && message.method === "initialize") return this.#handshake(message, reply, identity);
    }
    const found = this.#findSession(reply, identity);
    if (found instanceof HttpSession) return this.#deliver(found, body, reply, identity);
    found
      .then((session) => this.#deliver(session, body, reply, identity))
      .catch((error: unknown) => this.#shared.fail(reply, error));
  }

  /** Answers a message in a session of its own, which ends with the reply. */
  async #answerAlone(body: ParsedBody, reply: Reply, identity: Identity | undefined): Promise<void> {
    const caller = callerFrom(reply.request, identity, this.#connection.env);
    const release = this.#shared.requests.begin(body, identity?.principal);
    const session = new HttpSession("", identity?.principal, this.#store, false, reply.limits.messageBytes);
    const served = await serveTransport(this.#handler, session, this.#connection);
    let hasEnded = false;
    const end = (): void => {
      if (hasEnded) return;
      hasEnded = true;
      release();
      // A vendor's notification is answered before it has run.
      void served.close(expectsResponse(body) ? 0 : this.#shared.limits.bodyMs);
    };
    try {
      const isHandshake = body.kind === "message" && "method" in body.message && body.message.method === "initialize";
      if (!isHandshake) await this.#repeatHandshake(session, reply, caller);
      // No stream can be resumed, so a client that has disconnected gets no answer.
      reply.request.onDisconnect(end);
      this.#checkBatch(session, body);
      session.post(body, reply, caller, end);
    } catch (error) {
      end();
      throw error;
    }
  }

  async #repeatHandshake(session: HttpSession, reply: Reply, caller: Partial<Caller>): Promise<void> {
    const named = reply.request.headers[REVISION_HEADER];
    this.#checkRevision(named);
    const clientInfo = { name: "unknown", version: "0" };
    const assumed = this.#sessionNames.has(ASSUMED.name) ? ASSUMED.name : [...this.#sessionNames].at(-1);
    const protocolVersion = named ?? assumed;
    if (await session.reopen({ protocolVersion, capabilities: {}, clientInfo }, caller)) return;
    throw new HttpError(500, "The server could not be started for this request");
  }

  #deliver(session: HttpSession, body: ParsedBody, reply: Reply, identity: Identity | undefined): void {
    this.#checkBatch(session, body);
    const release = this.#shared.requests.begin(body, identity?.principal);
    try {
      session.post(body, reply, callerFrom(reply.request, identity, this.#connection.env), release);
    } catch (error) {
      release();
      throw error;
    }
  }

  #checkBatch({ revision }: HttpSession, body: ParsedBody): void {
    if (body.kind !== "batch" || revision?.batches === true) return;
    const name = revision?.name ?? "of this session";
    throw new HttpError(400, `Revision ${name} has no batches: send one message at a time`);
  }

  #handshake(message: RequestMessage, reply: Reply, identity: Identity | undefined): void {
    const body = { kind: "message", message } as const;
    const release = this.#shared.requests.begin(body, identity?.principal);
    let session: HttpSession | undefined;
    const onDone = (): void => {
      release();
      // Remove the session of a failed handshake.
      if (session !== undefined && session.revision === undefined) void this.#sessions.end(session);
    };
    try {
      session = this.#startSession(message, identity);
      session.post(body, reply, callerFrom(reply.request, identity, this.#connection.env), onDone);
    } catch (error) {
      onDone();
      throw error;
    }
  }

  #startSession({ params = {} }: RequestMessage, identity: Identity | undefined): HttpSession {
    const { protocolVersion, capabilities, clientInfo } = params;
    const revision = this.#sessionNames.has(protocolVersion as string)
      ? protocolVersion
      : [...this.#sessionNames].at(-1);
    const id = (this.#ids as SessionIds).create(
      { protocolVersion: revision, capabilities, clientInfo },
      identity?.principal,
    );
    return this.#addSession(id, identity?.principal, false);
  }

  #addSession(id: string, principal: string | undefined, isReopened: boolean): HttpSession {
    const { messageBytes } = this.#shared.limits;
    return this.#sessions.add(new HttpSession(id, principal, this.#store, isReopened, messageBytes), (session) =>
      serveTransport(this.#handler, session, this.#connection),
    );
  }

  /** Opens a session again that has ended without its client, such as by a restart. */
  async #reopenSession(
    id: string,
    handshake: Json,
    reply: Reply,
    identity: Identity | undefined,
  ): Promise<HttpSession> {
    this.#shared.requests.check();
    const session = this.#addSession(id, identity?.principal, true);
    if (await session.reopen(handshake, callerFrom(reply.request, identity, this.#connection.env))) return session;
    void this.#sessions.end(session);
    throw unknownSession();
  }

  /** Throws or rejects with an HttpError if this caller has no such session. */
  #findSession(reply: Reply, identity: Identity | undefined): HttpSession | Promise<HttpSession> {
    const { headers, method } = reply.request;
    const revision = headers[REVISION_HEADER];
    if (method !== "POST" && (this.#sessionNames.size === 0 || this.#statelessNames.has(revision ?? ""))) {
      throw new HttpError(405, `This revision has no ${method}: every request is a POST`, { allow: "POST, OPTIONS" });
    }
    if (this.#ids === undefined) {
      const why = "This server is stateless: it has no sessions, and sends nothing outside of a request";
      throw new HttpError(405, why, { allow: "POST, OPTIONS" });
    }
    const id = headers[SESSION_HEADER];
    if (id === undefined) {
      throw new HttpError(400, "The header Mcp-Session-Id is missing; start a session with initialize");
    }
    const session = this.#sessions.find(id, identity?.principal);
    const handshake = session === undefined ? this.#ids.open(id, identity?.principal) : undefined;
    if (session === undefined && handshake === undefined) throw unknownSession();
    this.#checkRevision(revision);
    if (session === undefined) return this.#reopenSession(id, handshake ?? {}, reply, identity);
    if (session.reopening === undefined) return session;
    return session.reopening.then((isOpen) => {
      if (!isOpen) throw unknownSession();
      return session;
    });
  }

  #checkRevision(revision: string | undefined): void {
    if (revision === undefined || this.#sessionNames.has(revision)) return;
    const names = [...this.#sessionNames].join(", ");
    throw new HttpError(400, `Unsupported MCP-Protocol-Version ${JSON.stringify(revision)}; supported: ${names}`);
  }
}

function unknownSession(): HttpError {
  return new HttpError(404, "There is no such session; start a new one with initialize");
}
