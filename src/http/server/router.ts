// MCP over HTTP, whole: one endpoint for callers of every revision, and the transport of the first revision beside
// it. A visit is let in (Host and Origin, the path, who asks) and handed to whom it is for. Which server it came by
// is not known here, and what its message says is not either.

import type { AuthError, Authenticator, Credentials, Identity } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import type { Guard } from "./guard.ts";
import { HttpError, type HttpRequest } from "./http-request.ts";
import { spokenRevisions, serveTransport, type ConnectionOptions } from "../../dialogue/connection.ts";
import { challengeHeaders, authenticate, sendError, reporter, type ErrorReporter, callerFrom, checkAccept, readMessage, type ParsedBody, shuttingDown, RequestLimiter, type Release } from "./admission.ts";
import { StatelessEndpoint } from "./stateless.ts";
import { LegacySse } from "./legacy-sse.ts";
import { httpLimits, type SharedLimits, type HttpRouterOptions, type HttpLimits } from "./options.ts";
import { SessionLimiter, HttpSession } from "./session.ts";
import { ReplyTimers, Reply, type Denied } from "./reply.ts";
import { isRequest } from "../../jsonrpc/message.ts";
import type { Revision } from "../../protocol/revision.ts";
import { ReplayStore } from "./replay.ts";
import { isStateless } from "../../dialogue/stateless/front.ts";
import { unsupported } from "../../dialogue/calls/errors.ts";
import { REVISION_HEADER, SESSION_HEADER } from "../headers.ts";
import { SessionTable } from "./session.ts";

type Act = (way: Reply, identity: Identity | undefined) => Promise<void> | void;
type Route = Readonly<Record<string, Act>>;

/** RequestLimiter in flight when the front is closed. */
const GRACE_MS = 1_000;

export class HttpRouter {
  readonly path: string;
  readonly limits: HttpLimits;
  readonly graceMs: number;
  readonly #guard: Guard;
  readonly #auth: Authenticator | undefined;
  readonly #report: ErrorReporter;
  readonly #work: RequestLimiter;
  readonly #streams: ReplyTimers;
  readonly #endpoint: McpEndpoint;
  readonly #exchanges: StatelessEndpoint;
  readonly #old: LegacySse | undefined;
  readonly #routes: ReadonlyMap<string, Route>;
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, guard: Guard, options: HttpRouterOptions = {}) {
    const {
      path = "/mcp",
      oldSse = true,
      auth,
      rounds,
      graceMs = GRACE_MS,
      limits: _limits,
      onError,
      ...connection
    } = options;
    // Programs without types may give anything, and a guard that guards nothing must not pass for one.
    if (auth !== undefined && typeof (auth as Partial<Authenticator> | null)?.authenticate !== "function") {
      throw new TypeError("auth must be an authenticator, such as bearer({ ... }) of catenary/server gives");
    }
    if (!path.startsWith("/")) throw new TypeError(`The path of an endpoint begins with a slash; got ${path}`);
    const limits = httpLimits(options.limits);
    this.#work = new RequestLimiter(limits.requests);
    const common: SharedLimits = { limits, work: this.#work, room: new SessionLimiter(limits.sessions) };
    const spoken = spokenRevisions(options.revisions);
    const sessions = spoken.filter(({ style }) => style === "session");
    const perSession = { ...connection, revisions: sessions.map(({ name }) => name), graceMs: 0 };
    const exchanges = spoken.filter(({ style }) => style === "stateless");
    this.#guard = guard;
    this.#auth = auth;
    this.#report = reporter(onError);
    this.path = path;
    this.graceMs = graceMs;
    this.limits = limits;
    this.#streams = new ReplyTimers(limits);
    this.#exchanges = new StatelessEndpoint(
      handler,
      { revisions: exchanges, profile: options.profile ?? "mcp", origin: this },
      rounds,
      limits.listens,
    );
    const endpoint = new McpEndpoint(handler, this.#exchanges, spoken, perSession, common);
    this.#endpoint = endpoint;
    const routes = new Map<string, Route>();
    if (oldSse && sessions.length > 0) {
      const old = new LegacySse(handler, perSession, common);
      this.#old = old;
      // At the root, and beside the endpoint, for whom only what is below the endpoint's path is let through.
      for (const at of ["", path.replace(/\/$/, "")]) {
        routes.set(`${at}/sse`, { GET: (way, identity) => old.open(way, identity, `${at}/messages`) });
        routes.set(`${at}/messages`, { POST: (way, identity) => old.post(way, identity) });
      }
    }
    this.#routes = routes.set(path, {
      POST: (way, identity) => endpoint.post(way, identity),
      GET: (way, identity) => endpoint.get(way, identity),
      DELETE: (way, identity) => endpoint.delete(way, identity),
    });
  }

  /** Answers the visit, whatever it is. */
  take(visit: HttpRequest): void {
    const cors = this.#guard.cors(visit);
    const way = new Reply(visit, cors, this.#streams);
    const refusal = this.#guard.check(visit) ?? this.#misplaced(visit);
    const route = this.#routes.get(visit.path);
    if (refusal !== undefined) sendError(way, refusal, this.#report);
    else if (visit.method === "OPTIONS") visit.answer(204, { allow: allowed(route), ...cors });
    else if (route === undefined) {
      visit.answer(200, { "content-type": "application/json", ...cors }, this.#document(visit));
    } else {
      const act = route[visit.method] as Act;
      if (this.#auth === undefined) this.#run(way, act, undefined);
      else void this.#admit(way, this.#auth, act);
    }
  }

  /** Listens end at once, work in flight may go on for the grace. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#work.close();
    const parts = [this.#exchanges, this.#endpoint, ...(this.#old === undefined ? [] : [this.#old])];
    await Promise.all(parts.map((part) => part.close(this.graceMs)));
    this.#streams.close();
  }

  /** Why there is nothing for this visit here. */
  #misplaced(visit: HttpRequest): HttpError | undefined {
    const { path, method } = visit;
    const route = this.#routes.get(path);
    if (route !== undefined) {
      if (this.#closing !== undefined) return shuttingDown();
      if (method === "OPTIONS" || Object.hasOwn(route, method)) return undefined;
      return new HttpError(405, `${method} is not for ${path}`, { allow: allowed(route) });
    }
    if (this.#document(visit) === undefined) {
      return new HttpError(404, `There is nothing at ${path}; the endpoint is ${this.path}`);
    }
    if (method === "GET" || method === "OPTIONS") return undefined;
    return new HttpError(405, `${method} is not for ${path}`, { allow: allowed(undefined) });
  }

  async #admit(way: Reply, auth: Authenticator, act: Act): Promise<void> {
    const { visit } = way;
    const credentials: Credentials = { headers: visit.headers, endpoint: `${visit.origin}${this.path}` };
    try {
      const identity = await authenticate(auth, credentials, this.#report);
      way.denial = ({ data }) => denied(data, auth, identity, credentials);
      this.#run(way, act, identity);
    } catch (error) {
      sendError(way, error, this.#report);
    }
  }

  #run(way: Reply, act: Act, identity: Identity | undefined): void {
    try {
      const working = act(way, identity);
      if (working !== undefined) working.catch((error: unknown) => sendError(way, error, this.#report));
    } catch (error) {
      sendError(way, error, this.#report);
    }
  }

  /** What anybody may read here. An authenticator that fails at it has nothing to show. */
  #document({ path, origin }: HttpRequest): string | undefined {
    try {
      return JSON.stringify(this.#auth?.document?.(path, `${origin}${this.path}`));
    } catch (error) {
      this.#report(error, `what stands at ${path} cannot be shown`);
      return undefined;
    }
  }
}

/** The challenge for a caller that lacks scopes. */
function denied(data: unknown, auth: Authenticator, identity: Identity, credentials: Credentials): Denied | undefined {
  const scopes = (data as { requiredScopes?: unknown } | null | undefined)?.requiredScopes;
  if (!Array.isArray(scopes)) return undefined;
  let refusal: AuthError | undefined;
  try {
    refusal = auth.lacking?.(scopes as readonly string[], identity, credentials);
  } catch {
    // It is denied all the same.
  }
  const { challenge = 'Bearer error="insufficient_scope"' } = refusal ?? {};
  return { status: 403, headers: challengeHeaders(challenge) };
}

function allowed(route: Route | undefined): string {
  return [...(route === undefined ? ["GET"] : Object.keys(route)), "OPTIONS"].join(", ");
}

// The one endpoint: callers of both styles at once, told apart by each message itself. One that says it stands by
// itself, in its body or in its header, is an exchange; everything else belongs to a session, which begins with
// `initialize` and is named by a header from then on.


export class McpEndpoint {
  readonly #handler: Handler;
  readonly #exchanges: StatelessEndpoint;
  readonly #common: SharedLimits;
  readonly #connection: ConnectionOptions;
  readonly #store: ReplayStore;
  readonly #sessions: SessionTable<HttpSession>;
  readonly #spoken: readonly Revision[];
  readonly #sessionNames: ReadonlySet<string>;
  readonly #statelessNames: ReadonlySet<string>;

  constructor(
    handler: Handler,
    exchanges: StatelessEndpoint,
    spoken: readonly Revision[],
    connection: ConnectionOptions,
    common: SharedLimits,
  ) {
    const { limits } = common;
    const names = (style: Revision["style"]): Set<string> =>
      new Set(spoken.filter((revision) => revision.style === style).map(({ name }) => name));
    this.#handler = handler;
    this.#exchanges = exchanges;
    this.#spoken = spoken;
    this.#sessionNames = names("session");
    this.#statelessNames = names("stateless");
    this.#connection = connection;
    this.#common = common;
    this.#store = new ReplayStore(limits.replayBytes, limits.replayEvents);
    this.#sessions = new SessionTable(common.room, limits.sessionIdleMs);
  }

  async post(way: Reply, identity: Identity | undefined): Promise<void> {
    const { visit } = way;
    checkAccept(visit, "application/json", "text/event-stream");
    const taken = await readMessage(way, this.#common.limits);
    if (taken === undefined) return;
    if (!this.#isStateless(taken, visit)) await this.#postToSession(taken, way, identity);
    else if (taken.kind === "batch") {
      throw new HttpError(400, "This revision has no batches: send one message at a time");
    } else if (this.#isForeign(taken, visit)) {
      const { id = null, params } = taken.message as { id?: null; params?: { protocolVersion?: unknown } };
      const error = unsupported(params?.protocolVersion, this.#spoken).toBody();
      way.whole({ jsonrpc: "2.0", id, error }, 400);
    } else {
      const over = this.#common.work.begin(taken);
      try {
        await this.#exchanges.take(taken.message, way, callerFrom(visit, identity), over);
      } finally {
        over();
      }
    }
  }

  /** A stream for what comes unasked, or the rest of one that broke. */
  get(way: Reply, identity: Identity | undefined): void {
    const session = this.#find(way, identity);
    checkAccept(way.visit, "text/event-stream");
    session.get(way, way.visit.headers["last-event-id"]);
  }

  async delete(way: Reply, identity: Identity | undefined): Promise<void> {
    await this.#sessions.end(this.#find(way, identity));
    way.empty(204);
  }

  close(graceMs: number): Promise<void> {
    return this.#sessions.close(graceMs);
  }

  /** A request that stands by itself, or one of a session. */
  #isStateless(taken: ParsedBody, { headers }: HttpRequest): boolean {
    if (this.#statelessNames.size === 0) return false;
    if (this.#sessionNames.size === 0 || this.#statelessNames.has(headers[REVISION_HEADER] ?? "")) return true;
    if (taken.kind === "batch" || !("method" in taken.message)) return false;
    const { message } = taken;
    return isStateless(message) && (message.params?.["_meta"] !== undefined || headers[SESSION_HEADER] === undefined);
  }

  /** A handshake where no sessions are spoken. */
  #isForeign(taken: ParsedBody & { kind: "message" }, { headers }: HttpRequest): boolean {
    if (this.#sessionNames.size > 0 || this.#statelessNames.has(headers[REVISION_HEADER] ?? "")) return false;
    return isRequest(taken.message) && taken.message.method === "initialize" && !isStateless(taken.message);
  }

  async #postToSession(taken: ParsedBody, way: Reply, identity: Identity | undefined): Promise<void> {
    const begins = taken.kind === "message" && isRequest(taken.message) && taken.message.method === "initialize";
    const known = way.visit.headers[SESSION_HEADER] !== undefined || !begins;
    const session = known ? this.#find(way, identity) : this.#begin(identity);
    if (taken.kind === "batch" && session.revision?.batches !== true) {
      const name = session.revision?.name ?? "of this session";
      throw new HttpError(400, `Revision ${name} has no batches: send one message at a time`);
    }
    let over: Release | undefined;
    try {
      over = this.#common.work.begin(taken);
      await session.post(taken, way, callerFrom(way.visit, identity));
    } finally {
      over?.();
      // A handshake that failed leaves no session behind.
      if (!known && session.revision === undefined) void this.#sessions.end(session);
    }
  }

  #begin(identity: Identity | undefined): HttpSession {
    return this.#sessions.add(
      (id) => new HttpSession(id, identity?.principal, this.#store),
      (session) => serveTransport(this.#handler, session, this.#connection),
    );
  }

  /** Throws a HttpError where there is no such session for this caller. */
  #find(way: Reply, identity: Identity | undefined): HttpSession {
    const { headers, method } = way.visit;
    const revision = headers[REVISION_HEADER];
    if (method !== "POST" && (this.#sessionNames.size === 0 || this.#statelessNames.has(revision ?? ""))) {
      throw new HttpError(405, `This revision has no ${method}: every request is a POST`, { allow: "POST, OPTIONS" });
    }
    const id = headers[SESSION_HEADER];
    if (id === undefined)
      throw new HttpError(400, "The header Mcp-Session-Id is missing; a session begins with initialize");
    const session = this.#sessions.find(id, identity?.principal);
    if (session === undefined) throw new HttpError(404, "There is no such session; begin a new one with initialize");
    if (revision !== undefined && !this.#sessionNames.has(revision)) {
      const names = [...this.#sessionNames].join(", ");
      throw new HttpError(400, `Unsupported MCP-Protocol-Version ${JSON.stringify(revision)}; supported: ${names}`);
    }
    return session;
  }
}
