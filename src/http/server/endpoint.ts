// The MCP endpoint at one path. Serves both styles: a stateless message is a call of its own, all others belong to a
// session, which begins with `initialize` and is identified by a header afterwards. The router has checked the caller
// before. Of stateless calls, only parked ones are kept between requests: their handlers wait until the client retries
// the request with the input that it was asked for.

import type { CallerIdentity, Handler } from "../../core/handler.ts";
import { CallTable, SHUT_DOWN } from "../../dialogue/calls/call-table.ts";
import { unsupportedRevision } from "../../dialogue/calls/errors.ts";
import { type ConnectionOptions, type ServedConnection, serveConnection } from "../../dialogue/connection.ts";
import { StatelessFront } from "../../dialogue/stateless/front.ts";
import { ParkedCalls, type ParkedCallsOptions } from "../../dialogue/stateless/parked-calls.ts";
import { styleOf, type Styles, stylesOf } from "../../dialogue/style.ts";
import { isRequest, isResponse, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import { type Envelope, readEnvelope } from "../../protocol/params.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { ASSUMED, isVendorMethod } from "../../protocol/revisions/index.ts";
import { NO_CARRIER } from "../../transport/carrier.ts";
import { tapCarrier } from "../../transport/tap.ts";
import { checkHeaders, REVISION_HEADER, SESSION_HEADER } from "../headers.ts";
import { callerFrom, checkAccept, expectsResponse, POST_TYPES, type SharedLimits } from "./admission.ts";
import { HttpError } from "./http-request.ts";
import type { ReplayStore } from "./replay-stream.ts";
import type { HttpReply, MessageReceiver, ParsedBody } from "./reply.ts";
import { HttpSession, SESSION_CLOSED } from "./session.ts";
import type { SessionIds } from "./session-ids.ts";
import { SessionTable } from "./session-table.ts";
import { errorResponse } from "./statuses.ts";

export class McpEndpoint implements MessageReceiver {
  readonly #handler: Handler;
  readonly #calls: CallTable;
  readonly #parkedCalls: ParkedCalls;
  readonly #front: StatelessFront;
  readonly #shared: SharedLimits;
  readonly #connection: ConnectionOptions;
  readonly #store: ReplayStore;
  /** Undefined if nothing is kept between requests. */
  readonly #ids: SessionIds | undefined;
  readonly #sessions: SessionTable<HttpSession>;
  readonly #revisions: readonly Revision[];
  readonly #styles: Styles;
  readonly #sessionNames: ReadonlySet<string>;
  readonly #statelessNames: ReadonlySet<string>;

  constructor(
    handler: Handler,
    revisions: readonly Revision[],
    connection: ConnectionOptions,
    parkedCalls: ParkedCallsOptions | undefined,
    shared: SharedLimits,
    ids: SessionIds | undefined,
    store: ReplayStore,
  ) {
    const ofStyle = (style: Revision["style"]): Revision[] => revisions.filter((revision) => revision.style === style);
    this.#handler = handler;
    this.#revisions = revisions;
    this.#styles = stylesOf(revisions);
    this.#sessionNames = new Set(ofStyle("session").map(({ name }) => name));
    this.#statelessNames = new Set(ofStyle("stateless").map(({ name }) => name));
    this.#connection = { ...connection, revisions: [...this.#sessionNames], graceMs: 0 };
    this.#shared = shared;
    this.#ids = ids;
    this.#store = store;
    this.#sessions = new SessionTable(shared);
    const { places } = shared;
    this.#calls = new CallTable({ places, unanswered: SHUT_DOWN });
    this.#parkedCalls = new ParkedCalls(parkedCalls);
    this.#front = new StatelessFront(handler, this.#parkedCalls, { revisions: ofStyle("stateless") });
  }

  readonly post = (reply: HttpReply): void => {
    checkAccept(reply.request, POST_TYPES);
    reply.readMessage(this);
  };

  take(body: ParsedBody, reply: HttpReply): void {
    const { headers } = reply.request;
    const message = body.kind === "message" ? body.message : undefined;
    const isDeclared = this.#statelessNames.has(headers[REVISION_HEADER] ?? "");
    const style = styleOf(message, this.#styles, headers[SESSION_HEADER] !== undefined, isDeclared);
    // The shutdown may have begun while the body was read.
    this.#shared.places.check();
    const caller = callerFrom(reply, this.#connection.env);
    if (style === "session") this.#postToSession(body, reply, caller);
    else if (message === undefined) {
      throw new HttpError(400, "This revision has no batches: send one message at a time");
    } else this.#answer(message, reply, caller);
  }

  /** Answers a stateless message: a call of its own, which ends when its client disconnects. */
  #answer(message: Message, reply: HttpReply, caller: CallerIdentity): void {
    if (isResponse(message)) {
      const problem = "Responses cannot be posted in this revision: send inputResponses in a retry of the request";
      return reply.sendJson(errorResponse(400, problem), 400);
    }
    const { tap } = this.#connection;
    if (!isRequest(message)) {
      // A vendor's notification has no stream, so nothing can be sent back.
      const carrier = tap === undefined ? NO_CARRIER : tapCarrier(NO_CARRIER, tap, message);
      if (isVendorMethod(message.method)) this.#calls.open(message, carrier, caller, this.#front);
      return reply.sendEmpty(202);
    }
    const tapped = tap && tapCarrier(reply, tap, message);
    let envelope: Envelope;
    try {
      envelope = readEnvelope(message.params ?? {});
      checkHeaders(message, envelope.name, reply.request.headers);
    } catch (error) {
      const response = { jsonrpc: "2.0", id: message.id, error: this.#front.errorBody(error, message) } as const;
      tapped?.pass(response);
      return reply.sendJson(response, 400);
    }
    reply.carry();
    this.#calls.open(message, tapped ?? reply, caller, this.#front, envelope);
  }

  /** Opens a stream for messages outside any request, or resumes a broken stream. */
  readonly get = async (reply: HttpReply): Promise<void> => {
    const session = await this.#findSession(reply, callerFrom(reply, this.#connection.env));
    checkAccept(reply.request, ["text/event-stream"]);
    session.get(reply, reply.request.headers["last-event-id"]);
  };

  readonly delete = async (reply: HttpReply): Promise<void> => {
    const session = await this.#findSession(reply, callerFrom(reply, this.#connection.env));
    this.#ids?.end(session.id);
    await this.#sessions.end(session);
    reply.sendEmpty(204);
  };

  /** Whether no session is open and no request runs. */
  get isIdle(): boolean {
    return this.#sessions.isEmpty && this.#calls.isEmpty && this.#parkedCalls.isEmpty;
  }

  async close(graceMs: number): Promise<void> {
    const closing = this.#calls.close(graceMs, new Error("The connection is closed"));
    await Promise.all([closing.then(() => this.#parkedCalls.close()), this.#sessions.close(graceMs)]);
  }

  #postToSession(body: ParsedBody, reply: HttpReply, caller: CallerIdentity): void {
    const handshake = body.kind === "message" && isRequest(body.message) ? body.message : undefined;
    const isHandshake = handshake?.method === "initialize";
    if (this.#sessionNames.size === 0 && isHandshake) {
      const error = unsupportedRevision(handshake.params?.["protocolVersion"], this.#revisions).toBody();
      return reply.sendJson({ jsonrpc: "2.0", id: handshake.id, error }, 400);
    }
    if (this.#ids === undefined) {
      void this.#answerAlone(body, isHandshake, reply, caller).catch((error) => reply.onError(error));
      return;
    }
    if (isHandshake && reply.request.headers[SESSION_HEADER] === undefined) {
      return this.#handshake(handshake, this.#ids, reply, caller);
    }
    const session = this.#findSession(reply, caller);
    if (session instanceof HttpSession) return session.post(body, reply, caller);
    session.then((reopened) => reopened.post(body, reply, caller)).catch((error: unknown) => reply.onError(error));
  }

  /** Answers a message in a session of its own, which ends with the reply. */
  async #answerAlone(body: ParsedBody, isHandshake: boolean, reply: HttpReply, caller: CallerIdentity): Promise<void> {
    const session = new HttpSession("", caller.principal, this.#store, false, reply.limits.messageBytes);
    const served = await this.#serve(session);
    // A vendor's notification is answered before it has run.
    const end = (): void => void served.close(expectsResponse(body) ? 0 : this.#shared.limits.bodyMs);
    try {
      if (!isHandshake) await this.#repeatHandshake(session, reply, caller);
      session.onAnswered = end;
      session.post(body, reply, caller);
      if (!expectsResponse(body)) end();
    } catch (error) {
      end();
      throw error;
    }
  }

  #serve(session: HttpSession): Promise<ServedConnection> {
    const options = { ...this.#connection, places: this.#shared.places, unanswered: SESSION_CLOSED };
    return serveConnection(this.#handler, session, options);
  }

  async #repeatHandshake(session: HttpSession, reply: HttpReply, caller: CallerIdentity): Promise<void> {
    const named = reply.request.headers[REVISION_HEADER];
    this.#checkRevision(named);
    const clientInfo = { name: "unknown", version: "0" };
    const assumed = this.#sessionNames.has(ASSUMED.name) ? ASSUMED.name : [...this.#sessionNames].at(-1);
    const protocolVersion = named ?? assumed;
    if (await session.reopen({ protocolVersion, capabilities: {}, clientInfo }, caller)) return;
    throw new HttpError(500, "The server could not be started for this request");
  }

  #handshake(message: RequestMessage, ids: SessionIds, reply: HttpReply, caller: CallerIdentity): void {
    const { protocolVersion, capabilities, clientInfo } = message.params ?? {};
    const isKnown = typeof protocolVersion === "string" && this.#sessionNames.has(protocolVersion);
    const revision = isKnown ? protocolVersion : [...this.#sessionNames].at(-1);
    const id = ids.create({ protocolVersion: revision, capabilities, clientInfo }, caller.principal);
    const session = this.#addSession(id, caller.principal, false);
    const endIfFailed = (): void => {
      session.onAnswered = undefined;
      if (session.revision === undefined) void this.#sessions.end(session);
    };
    session.onAnswered = endIfFailed;
    session.post({ kind: "message", message }, reply, caller);
  }

  #addSession(id: string, principal: string | undefined, isReopened: boolean): HttpSession {
    const { messageBytes } = this.#shared.limits;
    return this.#sessions.add(new HttpSession(id, principal, this.#store, isReopened, messageBytes), (session) =>
      this.#serve(session),
    );
  }

  /** Opens a session again that has ended without its client, such as by a restart. */
  async #reopenSession(id: string, handshake: Json, caller: CallerIdentity): Promise<HttpSession> {
    this.#shared.places.check();
    const session = this.#addSession(id, caller.principal, true);
    if (await session.reopen(handshake, caller)) return session;
    void this.#sessions.end(session);
    throw unknownSession();
  }

  /** Throws or rejects with an HttpError if this caller has no such session. */
  #findSession(reply: HttpReply, caller: CallerIdentity): HttpSession | Promise<HttpSession> {
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
    const session = this.#sessions.find(id, caller.principal);
    const handshake = session === undefined ? this.#ids.open(id, caller.principal) : undefined;
    if (session === undefined && handshake === undefined) throw unknownSession();
    this.#checkRevision(revision);
    if (session === undefined) return this.#reopenSession(id, handshake ?? {}, caller);
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
