// MCP over HTTP, whole: one endpoint for callers of every revision, and the transport of the first revision beside
// it. A visit is let in (Host and Origin, the path, who asks) and handed to whom it is for. Which server it came by
// is not known here, and what its message says is not either.

import type { AuthRefusal, Authenticator, Credentials, Identity } from "../../core/authenticator.ts";
import type { Handler } from "../../core/handler.ts";
import type { Guard } from "./guard.ts";
import { Refusal, type Visit } from "./visit.ts";
import { spokenRevisions } from "../../dialogue/connection.ts";
import { challengeHeaders, identify, refuse, reporter, type Report } from "./admission.ts";
import { Endpoint } from "./endpoint.ts";
import { Exchanges } from "./stateless.ts";
import { OldSse } from "./legacy-sse.ts";
import { httpLimits, type Common, type HttpFrontOptions, type HttpLimits } from "./options.ts";
import { Room } from "./sessions.ts";
import { Streams, WayBack, type Denied } from "./way-back.ts";
import { shuttingDown, Work } from "./work.ts";

type Act = (way: WayBack, identity: Identity | undefined) => Promise<void> | void;
type Route = Readonly<Record<string, Act>>;

/** Work in flight when the front is closed. */
const GRACE_MS = 1_000;

export class HttpFront {
  readonly path: string;
  readonly limits: HttpLimits;
  readonly graceMs: number;
  readonly #guard: Guard;
  readonly #auth: Authenticator | undefined;
  readonly #report: Report;
  readonly #work: Work;
  readonly #streams: Streams;
  readonly #endpoint: Endpoint;
  readonly #exchanges: Exchanges;
  readonly #old: OldSse | undefined;
  readonly #routes: ReadonlyMap<string, Route>;
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, guard: Guard, options: HttpFrontOptions = {}) {
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
    this.#work = new Work(limits.requests);
    const common: Common = { limits, work: this.#work, room: new Room(limits.sessions) };
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
    this.#streams = new Streams(limits);
    this.#exchanges = new Exchanges(
      handler,
      { revisions: exchanges, profile: options.profile ?? "mcp", origin: this },
      rounds,
      limits.listens,
    );
    const endpoint = new Endpoint(handler, this.#exchanges, spoken, perSession, common);
    this.#endpoint = endpoint;
    const routes = new Map<string, Route>();
    if (oldSse && sessions.length > 0) {
      const old = new OldSse(handler, perSession, common);
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
  take(visit: Visit): void {
    const cors = this.#guard.cors(visit);
    const way = new WayBack(visit, cors, this.#streams);
    const refusal = this.#guard.check(visit) ?? this.#misplaced(visit);
    const route = this.#routes.get(visit.path);
    if (refusal !== undefined) refuse(way, refusal, this.#report);
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
  #misplaced(visit: Visit): Refusal | undefined {
    const { path, method } = visit;
    const route = this.#routes.get(path);
    if (route !== undefined) {
      if (this.#closing !== undefined) return shuttingDown();
      if (method === "OPTIONS" || Object.hasOwn(route, method)) return undefined;
      return new Refusal(405, `${method} is not for ${path}`, { allow: allowed(route) });
    }
    if (this.#document(visit) === undefined) {
      return new Refusal(404, `There is nothing at ${path}; the endpoint is ${this.path}`);
    }
    if (method === "GET" || method === "OPTIONS") return undefined;
    return new Refusal(405, `${method} is not for ${path}`, { allow: allowed(undefined) });
  }

  async #admit(way: WayBack, auth: Authenticator, act: Act): Promise<void> {
    const { visit } = way;
    const credentials: Credentials = { headers: visit.headers, endpoint: `${visit.origin}${this.path}` };
    try {
      const identity = await identify(auth, credentials, this.#report);
      way.denial = ({ data }) => denied(data, auth, identity, credentials);
      this.#run(way, act, identity);
    } catch (error) {
      refuse(way, error, this.#report);
    }
  }

  #run(way: WayBack, act: Act, identity: Identity | undefined): void {
    try {
      const working = act(way, identity);
      if (working !== undefined) working.catch((error: unknown) => refuse(way, error, this.#report));
    } catch (error) {
      refuse(way, error, this.#report);
    }
  }

  /** What anybody may read here. An authenticator that fails at it has nothing to show. */
  #document({ path, origin }: Visit): string | undefined {
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
  let refusal: AuthRefusal | undefined;
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
