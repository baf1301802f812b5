// MCP over HTTP. Checks each request (Host and Origin, path, authentication) and routes it to the MCP endpoint, which
// serves all revisions, or to legacy HTTP+SSE. It uses only HttpRequest, so it works with any HTTP server.

import type { AuthError, Authenticator, Credentials, Identity } from "../../core/authentication.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { FairLimit } from "../../core/budgets.ts";
import type { Guard } from "./guard.ts";
import { HttpError, type HttpRequest } from "./http-request.ts";
import { selectRevisions, serveTransport, type ConnectionOptions } from "../../dialogue/connection.ts";
import {
  challengeHeaders,
  authenticate,
  BodyLimiter,
  sendError,
  safeReporter,
  type ErrorReporter,
  callerFrom,
  checkAccept,
  expectsResponse,
  POST_TYPES,
  readMessage,
  type ParsedBody,
  shuttingDown,
  RequestLimiter,
  type SharedLimits,
} from "./admission.ts";
import { StatelessEndpoint } from "./stateless.ts";
import { LegacySse } from "./legacy-sse.ts";
import { httpLimits, type Health, type HttpRouterOptions, type HttpLimits } from "./options.ts";
import { HttpSession, SessionTable } from "./session.ts";
import { SessionIds } from "./session-ids.ts";
import { ReplyTimers, Reply, type Denial } from "./reply.ts";
import { isRequest, type RequestMessage } from "../../jsonrpc/message.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { ReplayStore } from "./replay.ts";
import { withoutState } from "./without-state.ts";
import { ASSUMED } from "../../protocol/revisions/index.ts";
import { isStateless } from "../../dialogue/stateless/front.ts";
import { unsupportedRevision } from "../../dialogue/calls/errors.ts";
import { REVISION_HEADER, SESSION_HEADER } from "../headers.ts";

type Action = (reply: Reply, identity: Identity | undefined) => Promise<void> | void;
/** Actions by HTTP method. */
type Route = Readonly<Record<string, Action>>;

const HEALTH_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** How long in-flight requests may take to finish after `close`. */
const GRACE_MS = 1_000;

export class HttpRouter {
  readonly path: string;
  readonly limits: HttpLimits;
  readonly graceMs: number;
  readonly #guard: Guard;
  readonly #auth: Authenticator | undefined;
  readonly #report: ErrorReporter;
  readonly #requests: RequestLimiter;
  readonly #timers: ReplyTimers;
  /** Creates an endpoint for the requests of one path. `path` is undefined for the main endpoint. */
  readonly #open: (path: string | undefined) => Route;
  readonly #paths: HttpRouterOptions["paths"];
  /** The endpoints besides the main one, once they are used. */
  readonly #others = new Map<string, Route>();
  /** What is closed with the router. */
  readonly #parts: { close(graceMs: number): Promise<void> }[] = [];
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #health: HttpRouterOptions["health"];
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, guard: Guard, options: HttpRouterOptions = {}) {
    const {
      path = "/mcp",
      stateless = false,
      legacySse = !stateless,
      auth,
      parkedCalls,
      sealKey = parkedCalls?.sealKey,
      graceMs = GRACE_MS,
      limits: _limits,
      health,
      onError,
      paths,
      ...connection
    } = options;
    // JavaScript code may pass a wrong value, which must not leave the server unprotected.
    if (auth !== undefined && typeof (auth as Partial<Authenticator> | null)?.authenticate !== "function") {
      throw new TypeError("auth must be an authenticator, for example bearer({ ... }) from catenary/server");
    }
    if (stateless && legacySse) {
      throw new TypeError("legacySse needs sessions: leave it out, or leave out `stateless`");
    }
    if (!path.startsWith("/")) throw new TypeError(`path must begin with a slash; got ${path}`);
    const limits = httpLimits(options.limits);
    // Without authentication, all callers are one principal.
    const limit = (max: number): FairLimit => new FairLimit(max, auth === undefined ? max : undefined);
    this.#requests = new RequestLimiter(() => limit(limits.requests));
    this.#timers = new ReplyTimers(limits);
    const shared: SharedLimits = {
      limits: { ...limits, bodies: new BodyLimiter(limits.requests, this.#timers.budget) },
      requests: this.#requests,
      sessions: limit(limits.sessions),
      fail: (reply, error) => sendError(reply, error, this.#report),
    };
    const revisions = selectRevisions(options.revisions);
    const sessionRevisions = revisions.filter(({ style }) => style === "session");
    const statelessRevisions = revisions.filter(({ style }) => style === "stateless");
    const perSession = { ...connection, revisions: sessionRevisions.map(({ name }) => name), graceMs: 0 };
    this.#guard = guard;
    this.#auth = auth;
    this.#health = health;
    this.#report = safeReporter(onError);
    this.path = path;
    this.graceMs = graceMs;
    this.limits = limits;
    this.#paths = paths;
    const ids = stateless ? undefined : new SessionIds(sealKey);
    const listens = limit(limits.listens);
    const store = new ReplayStore(limits.replayBytes, limits.replayEvents);
    this.#open = (at) => {
      const own = at === undefined ? handler : withEndpoint(handler, at);
      const served = stateless ? withoutState(own) : own;
      const front = { revisions: statelessRevisions, profile: options.profile ?? ("mcp" as const) };
      const alone = new StatelessEndpoint(served, front, parkedCalls, listens, shared);
      const endpoint = new McpEndpoint(served, alone, revisions, perSession, shared, ids, store);
      this.#parts.push(alone, endpoint);
      return {
        POST: (reply, identity) => endpoint.post(reply, identity),
        GET: (reply, identity) => endpoint.get(reply, identity),
        DELETE: (reply, identity) => endpoint.delete(reply, identity),
      };
    };
    const routes = new Map<string, Route>();
    if (legacySse && sessionRevisions.length > 0) {
      const legacy = new LegacySse(handler, perSession, shared);
      this.#parts.push(legacy);
      // Also below the endpoint's path, for proxies that forward only that path.
      for (const base of ["", path.replace(/\/$/, "")]) {
        routes.set(`${base}/sse`, { GET: (reply, identity) => legacy.open(reply, identity, `${base}/messages`) });
        routes.set(`${base}/messages`, { POST: (reply, identity) => legacy.post(reply, identity) });
      }
    }
    const route = this.#open(undefined);
    // With or without a slash at the end: proxies and people add and remove it.
    for (const spelling of [path.replace(/(?<=.)\/$/, ""), path.replace(/\/?$/, "/")]) routes.set(spelling, route);
    this.#routes = routes;
  }

  /** Bytes held for clients: unread output, and bodies that are still arriving. */
  get heldBytes(): number {
    return this.#timers.budget.bytes;
  }

  /** Answers the request. Never throws. */
  handle(request: HttpRequest): void {
    const cors = this.#guard.cors(request);
    const reply = new Reply(request, cors, this.#timers);
    const known = this.#routes.get(request.path);
    const refusal = this.#guard.check(request);
    if (this.#health !== undefined && known === undefined && HEALTH_PATHS.has(request.path) && refusal === undefined) {
      void this.#answerHealth(request, cors, this.#health);
      return;
    }
    const route = known ?? this.#otherRoute(request);
    const error = refusal ?? this.#routingError(request, route);
    if (error !== undefined) sendError(reply, error, this.#report);
    else if (request.method === "OPTIONS") request.respond(204, { allow: allowedMethods(route), ...cors });
    else if (route === undefined) {
      request.respond(200, { "content-type": "application/json", ...cors }, this.#document(request));
    } else {
      const action = route[request.method] as Action;
      if (request.host?.principal !== undefined) this.#runAs(reply, action, request.host as Identity);
      else if (this.#auth === undefined) this.#run(reply, action, undefined);
      else void this.#authenticate(reply, this.#auth, action);
    }
  }

  /** Whether the process answers, and whether it serves requests. Only a caller that may call gets details. */
  async #answerHealth(
    request: HttpRequest,
    cors: Readonly<Record<string, string>>,
    health: () => Health,
  ): Promise<void> {
    const answer = (status: number, body: object): void => {
      const headers = { "content-type": "application/json", "cache-control": "no-store", ...cors };
      request.respond(status, headers, JSON.stringify(body));
    };
    if (request.method !== "GET" && request.method !== "HEAD") {
      request.respond(405, { allow: "GET, HEAD", ...cors });
    } else if (request.path === "/healthz") answer(200, { status: "ok" });
    else if (this.#closing !== undefined) answer(503, { status: "shutting down" });
    else {
      const { isReady, details } = health();
      const mayKnow = await this.#mayCall(request);
      answer(isReady ? 200 : 503, { status: isReady ? "ready" : "not ready", ...(mayKnow && details) });
    }
  }

  async #mayCall({ headers, origin }: HttpRequest): Promise<boolean> {
    if (this.#auth === undefined) return true;
    if (headers["authorization"] === undefined) return false;
    const identified = this.#auth.authenticate({ headers, endpoint: `${origin}${this.path}` });
    return identified.then(
      () => true,
      () => false,
    );
  }

  /** Ends subscriptions at once; other requests may finish within `graceMs`. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#requests.close();
    await Promise.all(this.#parts.map((part) => part.close(this.graceMs)));
    this.#timers.close();
  }

  #routingError(request: HttpRequest, route: Route | undefined): HttpError | undefined {
    const { path, method } = request;
    if (route !== undefined) {
      if (this.#closing !== undefined) return shuttingDown();
      if (method === "OPTIONS" || Object.hasOwn(route, method)) return undefined;
      return methodNotAllowed(method, path, route);
    }
    if (this.#document(request) === undefined) {
      return this.#nothingAt(path);
    }
    return method === "GET" || method === "OPTIONS" ? undefined : methodNotAllowed(method, path, undefined);
  }

  /**
   * The route of a path besides the main one. Whether there is anything at the path may depend on the caller, so that is
   * decided after authentication; who is not authenticated learns nothing about paths.
   */
  #otherRoute(request: HttpRequest): Route | undefined {
    const paths = this.#paths;
    if (paths === undefined || this.#document(request) !== undefined) return undefined;
    const path = request.path.replace(/(?<=.)\/$/, "");
    const isOpen = this.#auth === undefined && request.host?.principal === undefined;
    if (isOpen && !paths(path, undefined)) return undefined;
    const run =
      (method: string): Action =>
      (reply, identity) => {
        if (!paths(path, identity?.principal)) throw this.#nothingAt(request.path);
        const route = this.#others.get(path) ?? this.#open(path);
        this.#others.set(path, route);
        return (route[method] as Action)(reply, identity);
      };
    return { POST: run("POST"), GET: run("GET"), DELETE: run("DELETE") };
  }

  #nothingAt(path: string): HttpError {
    return new HttpError(404, `There is nothing at ${path}; the endpoint is ${this.path}`);
  }

  async #authenticate(reply: Reply, auth: Authenticator, action: Action): Promise<void> {
    const { request } = reply;
    const credentials: Credentials = { headers: request.headers, endpoint: `${request.origin}${this.path}` };
    try {
      this.#runAs(reply, action, await authenticate(auth, credentials, this.#report));
    } catch (error) {
      sendError(reply, error, this.#report);
    }
  }

  #runAs(reply: Reply, action: Action, identity: Identity): void {
    const { request } = reply;
    reply.denialFor = ({ data }) => {
      const credentials: Credentials = { headers: request.headers, endpoint: `${request.origin}${this.path}` };
      return scopeDenial(data, this.#auth, identity, credentials);
    };
    this.#run(reply, action, identity);
  }

  #run(reply: Reply, action: Action, identity: Identity | undefined): void {
    try {
      const running = action(reply, identity);
      if (running !== undefined) running.catch((error: unknown) => sendError(reply, error, this.#report));
    } catch (error) {
      sendError(reply, error, this.#report);
    }
  }

  /** The authenticator's public JSON document at this path, if there is one. */
  #document({ path, origin }: HttpRequest): string | undefined {
    try {
      return JSON.stringify(this.#auth?.document?.(path, `${origin}${this.path}`));
    } catch (error) {
      this.#report(error, `the document at ${path} could not be created`);
      return undefined;
    }
  }
}

/** Tells the handler at which path the requests arrived. */
function withEndpoint(handler: Handler, endpoint: string): Handler {
  return (request, context) => handler(request, { ...context, caller: { ...context.caller, endpoint } });
}

/** The 403 response for a caller that lacks scopes; undefined for any other error. */
function scopeDenial(
  data: unknown,
  auth: Authenticator | undefined,
  identity: Identity,
  credentials: Credentials,
): Denial | undefined {
  const scopes = (data as { requiredScopes?: unknown } | null | undefined)?.requiredScopes;
  if (!Array.isArray(scopes)) return undefined;
  let error: AuthError | undefined;
  try {
    error = auth?.insufficientScope?.(scopes as readonly string[], identity, credentials);
  } catch {
    // The caller is denied either way.
  }
  const { challenge = 'Bearer error="insufficient_scope"' } = error ?? {};
  return { status: 403, headers: challengeHeaders(challenge) };
}

function methodNotAllowed(method: string, path: string, route: Route | undefined): HttpError {
  return new HttpError(405, `${method} is not allowed at ${path}`, { allow: allowedMethods(route) });
}

function allowedMethods(route: Route | undefined): string {
  return [...(route === undefined ? ["GET"] : Object.keys(route)), "OPTIONS"].join(", ");
}

/**
 * The MCP endpoint. Serves both styles and decides for each message: one whose body or header declares a stateless
 * revision is handled on its own. All others belong to a session, which begins with `initialize` and is identified by
 * a header afterwards.
 */
class McpEndpoint {
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
        this.#stateless.post(body.message, reply, callerFrom(request, identity), release);
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

  close(graceMs: number): Promise<void> {
    return this.#sessions.close(graceMs);
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
    const caller = callerFrom(reply.request, identity);
    const release = this.#shared.requests.begin(body, identity?.principal);
    const session = new HttpSession("", identity?.principal, this.#store, false);
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
      session.post(body, reply, callerFrom(reply.request, identity), release);
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
      session.post(body, reply, callerFrom(reply.request, identity), onDone);
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
    return this.#sessions.add(new HttpSession(id, principal, this.#store, isReopened), (session) =>
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
    if (await session.reopen(handshake, callerFrom(reply.request, identity))) return session;
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
