// MCP over HTTP. Checks each request (Host and Origin, path, authentication) and routes it to the MCP endpoint, which
// serves all revisions, or to legacy HTTP+SSE. It uses only HttpRequest, so it works with any HTTP server.

import type { AuthError, Authenticator, Credentials, Identity } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import { FairLimit } from "../../core/fair-limit.ts";
import { fieldsOf, isStrings } from "../../core/values.ts";
import { CallPlaces, shuttingDown } from "../../dialogue/calls/call-places.ts";
import { LISTEN_DEFAULTS } from "./defaults.ts";
import type { Guard } from "./guard.ts";
import { type HostInfo, HttpError, type HttpRequest } from "./http-request.ts";
import { checkConnection, selectRevisions } from "../../dialogue/connection.ts";
import { challengeHeaders, sendError, safeReporter, type ErrorReporter, type SharedLimits } from "./admission.ts";
import { McpEndpoint } from "./endpoint.ts";
import type { LegacySse } from "./legacy-sse.ts";
import { httpLimits, type FixedLimits, type HttpRouterOptions, type LimitValues } from "./options.ts";
import { SessionIds } from "./session-ids.ts";
import { ReplyTimers, HttpReply, type Denial } from "./reply.ts";
import { loadCompat } from "../../protocol/compat.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import type { Revision } from "../../protocol/revision.ts";
import { REVISION_HEADER } from "../headers.ts";
import { ReplayStore } from "./replay-stream.ts";

type Action = (reply: HttpReply) => Promise<void> | void;
type Route = Readonly<Record<string, Action>>;

const METRICS_PATH = "/metrics";
const HEALTH_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** How long in-flight requests may take to finish after `close`. */
const GRACE_MS = 1_000;

export class HttpRouter {
  readonly path: string;
  readonly limits: LimitValues;
  readonly graceMs: number;
  readonly #guard: Guard;
  readonly #auth: Authenticator | undefined;
  readonly #report: ErrorReporter;
  /** A promise until the rules are loaded. */
  #compat: CompatRules | Promise<CompatRules> | undefined;
  readonly #statelessNames: ReadonlySet<string>;
  readonly #places: CallPlaces;
  readonly #timers: ReplyTimers;
  /** Creates an endpoint for the requests of one path. `path` is undefined for the main endpoint. */
  readonly #open: (path: string | undefined) => McpEndpoint;
  readonly #paths: HttpRouterOptions["paths"];
  /** The endpoints besides the main one, once they are used. */
  readonly #others = new Map<string, OtherEndpoint>();
  /** What is closed with the router, besides these. */
  readonly #parts: { close(graceMs: number): Promise<void> }[] = [];
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #health: HttpRouterOptions["health"];
  readonly #metrics: HttpRouterOptions["metrics"];
  readonly #pages: HttpRouterOptions["pages"];
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, guard: Guard, options: HttpRouterOptions = {}, fixed?: Partial<FixedLimits>) {
    const {
      path = LISTEN_DEFAULTS.path,
      stateless = false,
      legacySse = !stateless,
      auth,
      parkedCalls,
      sealKey = parkedCalls?.sealKey,
      graceMs = GRACE_MS,
      limits: _limits,
      health,
      metrics,
      onError,
      paths,
      pages,
      ...connection
    } = options;
    checkConnection(connection);
    // JavaScript code may pass a wrong value, which must not leave the server unprotected.
    if (auth !== undefined && typeof fieldsOf(auth)["authenticate"] !== "function") {
      throw new TypeError("auth must be an authenticator, for example bearer({ ... }) from catenary/server");
    }
    if (stateless && legacySse) {
      throw new TypeError("legacySse needs sessions: leave it out, or leave out `stateless`");
    }
    if (!path.startsWith("/")) throw new TypeError(`path must begin with a slash; got ${path}`);
    const limits = httpLimits(options.limits, fixed);
    // Without authentication, all callers are one principal.
    this.#places = new CallPlaces(limits, auth !== undefined);
    this.#timers = new ReplyTimers(limits, (reply, error) => this.#fail(reply, error));
    const shared: SharedLimits = {
      limits,
      places: this.#places,
      sessions: new FairLimit(limits.sessions, auth === undefined ? limits.sessions : undefined),
    };
    const revisions = selectRevisions(options.revisions);
    const names = (style: Revision["style"]): string[] =>
      revisions.filter((revision) => revision.style === style).map(({ name }) => name);
    this.#guard = guard;
    this.#auth = auth;
    this.#health = health;
    this.#metrics = metrics;
    this.#pages = pages;
    this.#report = safeReporter(onError);
    this.#compat = loadCompat(options.compat);
    if (this.#compat instanceof Promise) void this.#compat.then((rules) => (this.#compat = rules));
    this.#statelessNames = new Set(names("stateless"));
    this.path = path;
    this.graceMs = graceMs;
    this.limits = limits;
    this.#paths = paths;
    const ids = stateless ? undefined : new SessionIds(sealKey);
    const store = new ReplayStore(limits.replayBytes, limits.replayEvents);
    this.#open = (at) => {
      const withPath = at === undefined ? handler : withEndpoint(handler, at);
      const served = stateless ? withoutState(withPath) : withPath;
      return new McpEndpoint(served, revisions, connection, parkedCalls, shared, ids, store);
    };
    const routes = new Map<string, Route>();
    const sessionNames = names("session");
    if (legacySse && sessionNames.length > 0) {
      let legacy: LegacySse | Promise<LegacySse> | undefined;
      const load = async (): Promise<LegacySse> => {
        const { LegacySse } = await import("./legacy-sse.ts");
        this.#parts.push(
          (legacy = new LegacySse(handler, { ...connection, revisions: sessionNames, graceMs: 0 }, shared)),
        );
        return legacy;
      };
      const withLegacy = (run: (loaded: LegacySse) => void): Promise<void> | void => {
        legacy ??= load();
        return legacy instanceof Promise ? legacy.then(run) : run(legacy);
      };
      // Also below the endpoint's path, for proxies that forward only that path.
      for (const base of ["", path.replace(/\/$/, "")]) {
        routes.set(`${base}/sse`, {
          GET: (reply) => withLegacy((loaded) => loaded.open(reply, `${base}/messages`)),
        });
        routes.set(`${base}/messages`, {
          POST: (reply) => withLegacy((loaded) => loaded.post(reply)),
        });
      }
    }
    const main = this.#open(undefined);
    this.#parts.push(main);
    const route: Route = { POST: main.post, GET: main.get, DELETE: main.delete };
    // With or without a slash at the end: proxies and people add and remove it.
    for (const spelling of [path.replace(/(?<=.)\/$/, ""), path.replace(/\/?$/, "/")]) routes.set(spelling, route);
    this.#routes = routes;
  }

  /** Bytes held for clients: unread output, and bodies that are still arriving. */
  get heldBytes(): number {
    return this.#timers.budget.bytes;
  }

  /** The paths besides the main one that have an endpoint now. */
  get openPaths(): readonly string[] {
    return [...this.#others.keys()];
  }

  /** Answers the request. Never throws. */
  readonly handle = (request: HttpRequest): void => {
    const cors = this.#guard.cors(request);
    const reply = new HttpReply(request, cors, this.#timers);
    const known = this.#routes.get(request.path);
    const refusal = this.#guard.check(request);
    if (this.#health !== undefined && known === undefined && HEALTH_PATHS.has(request.path) && refusal === undefined) {
      const health = this.#health;
      // Loaded on first use, since only gateways have it.
      void import("./health.ts").then(({ answerHealth }) =>
        answerHealth(request, cors, health, this.#auth, this.path, this.#closing !== undefined),
      );
      return;
    }
    if (this.#pages !== undefined && known === undefined && refusal === undefined && this.#pages(request)) return;
    const route = known ?? this.#otherRoute(request);
    const error = refusal ?? this.#routingError(request, route);
    // A route without an action for the method is an error, so what is left without one is a document.
    const action = route?.[request.method];
    if (error !== undefined) this.#fail(reply, error);
    else if (request.method === "OPTIONS") request.respond(204, { allow: allowedMethods(route), ...cors });
    else if (action === undefined) {
      request.respond(200, { "content-type": "application/json", ...cors }, this.#document(request));
    } else if (isIdentified(request.host)) this.#runAs(reply, action, request.host);
    else if (this.#auth === undefined) this.#run(reply, action);
    else void this.#authenticate(reply, this.#auth, action);
  };

  /** Ends subscriptions at once; other requests may finish within `graceMs`. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#places.close();
    const others = [...this.#others.values()].map(({ endpoint }) => endpoint);
    await Promise.all([...this.#parts, ...others].map((part) => part.close(this.graceMs)));
    this.#timers.close();
  }

  #routingError(request: HttpRequest, route: Route | undefined): Error | undefined {
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
    if (request.path === METRICS_PATH && this.#metrics !== undefined) return this.#metricsRoute(this.#metrics);
    const paths = this.#paths;
    if (paths === undefined || this.#document(request) !== undefined) return undefined;
    const path = canonicalPath(request.path.replace(/(?<=.)\/$/, ""));
    const isOpen = this.#auth === undefined && request.host?.principal === undefined;
    if (isOpen && (path === undefined || !paths(path, undefined))) return undefined;
    const endpointFor = ({ identity }: HttpReply): McpEndpoint => {
      if (path === undefined || !paths(path, identity?.principal)) throw this.#nothingAt(request.path);
      return this.#endpointAt(path);
    };
    return {
      POST: (reply) => endpointFor(reply).post(reply),
      GET: (reply) => endpointFor(reply).get(reply),
      DELETE: (reply) => endpointFor(reply).delete(reply),
    };
  }

  #metricsRoute(metrics: NonNullable<HttpRouterOptions["metrics"]>): Route {
    const get: Action = ({ request, identity }) => {
      const text = metrics(identity?.principal);
      if (text === undefined) throw this.#nothingAt(METRICS_PATH);
      const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8", "cache-control": "no-store" };
      request.respond(200, headers, text);
    };
    return { GET: get };
  }

  /** Opens the endpoint if necessary. Those that hold nothing are dropped then: there may be nothing at their path now. */
  #endpointAt(path: string): McpEndpoint {
    const now = performance.now();
    let open = this.#others.get(path);
    if (open === undefined) {
      for (const [other, { endpoint, usedAt }] of this.#others) {
        // The body of a request may still be on its way.
        if (endpoint.isIdle && now - usedAt > 2 * this.limits.bodyMs) this.#others.delete(other);
      }
      open = { endpoint: this.#open(path), usedAt: now };
      this.#others.set(path, open);
    }
    open.usedAt = now;
    return open.endpoint;
  }

  #nothingAt(path: string): HttpError {
    return new HttpError(404, `There is nothing at ${path}; the endpoint is ${this.path}`);
  }

  async #authenticate(reply: HttpReply, auth: Authenticator, action: Action): Promise<void> {
    const { request } = reply;
    const credentials: Credentials = { headers: request.headers, endpoint: `${request.origin}${this.path}` };
    try {
      const { authenticate } = await import("./authenticate.ts");
      this.#runAs(reply, action, await authenticate(auth, credentials, this.#report));
    } catch (error) {
      this.#fail(reply, error);
    }
  }

  #runAs(reply: HttpReply, action: Action, identity: Identity): void {
    const { request } = reply;
    reply.identity = identity;
    reply.denialFor = ({ data }) => {
      const credentials: Credentials = { headers: request.headers, endpoint: `${request.origin}${this.path}` };
      return scopeDenial(data, this.#auth, identity, credentials);
    };
    this.#run(reply, action);
  }

  #run(reply: HttpReply, action: Action): void {
    // A session must take its first message at once.
    if (this.#compat instanceof Promise) {
      void this.#compat.then(() => this.#run(reply, action));
      return;
    }
    try {
      const running = action(reply);
      if (running !== undefined) running.catch((error: unknown) => this.#fail(reply, error));
    } catch (error) {
      this.#fail(reply, error);
    }
  }

  /** Sends the response for an error that ended a request. Only session-style callers get that of another document. */
  #fail(reply: HttpReply, error: unknown): void {
    const isStateless = this.#statelessNames.has(reply.request.headers[REVISION_HEADER] ?? "");
    if (isStateless) sendError(reply, error, this.#report);
    else if (this.#compat instanceof Promise) void this.#compat.then(() => this.#fail(reply, error));
    else sendError(reply, error, this.#report, this.#compat);
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

interface OtherEndpoint {
  readonly endpoint: McpEndpoint;
  usedAt: number;
}

/** The same for all spellings of a path, such as /a%62c for /abc. Undefined for one that cannot be decoded. */
function canonicalPath(path: string): string | undefined {
  try {
    const segments = path.split("/").map((segment) => encodeURI(decodeURIComponent(segment)));
    return segments.map((segment) => segment.replaceAll(/[/?#]/g, encodeURIComponent)).join("/");
  } catch {
    return undefined;
  }
}

/** Tells the handler at which path the requests arrived. */
function withEndpoint(handler: Handler, endpoint: string): Handler {
  return (request, context) => handler(request, { ...context, caller: { ...context.caller, endpoint } });
}

/** The handler of a server that keeps nothing between requests. Only such servers load what that takes. */
function withoutState(handler: Handler): Handler {
  let wrapped: Handler | undefined;
  const load = async (): Promise<Handler> => {
    const { withoutState: wrap } = await import("./without-state.ts");
    return (wrapped ??= wrap(handler));
  };
  return (request, context) =>
    wrapped === undefined ? load().then((loaded) => loaded(request, context)) : wrapped(request, context);
}

/** Whether the framework has proved who the caller is. */
function isIdentified(host: HostInfo | undefined): host is HostInfo & Identity {
  return host?.principal !== undefined;
}

/** The 403 response for a caller that lacks scopes; undefined for any other error, and if an upstream needs them. */
function scopeDenial(
  data: unknown,
  auth: Authenticator | undefined,
  identity: Identity,
  credentials: Credentials,
): Denial | undefined {
  const { requiredScopes: scopes, upstreamName } = fieldsOf(data);
  if (!isStrings(scopes) || upstreamName !== undefined) return undefined;
  let error: AuthError | undefined;
  try {
    error = auth?.insufficientScope?.(scopes, identity, credentials);
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
