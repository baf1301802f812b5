// MCP over HTTP, whole: one endpoint for callers of every revision, and the transport of the first revision beside
// it. A visit is let in (Host and Origin, the path, who asks) and handed to whom it is for. Which server it came by
// is not known here, and what its message says is not either.

import type { Authenticator, Credentials, Identity } from "../../core/authenticator.ts";
import type { Handler } from "../../core/handler.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import type { Guard } from "../../transport/http/guard.ts";
import { Refusal, type Visit } from "../../transport/http/visit.ts";
import { spokenRevisions } from "../serve.ts";
import { identify, refuse } from "./admission.ts";
import { Endpoint } from "./endpoint.ts";
import { Exchanges } from "./exchange.ts";
import { OldSse } from "./old-sse.ts";
import { HTTP_LIMITS, type Common, type HttpFrontOptions } from "./options.ts";
import { Streams, WayBack, type Denial } from "./way-back.ts";
import { Work } from "./work.ts";

type Act = (way: WayBack, identity: Identity | undefined) => Promise<void> | void;
type Route = Readonly<Record<string, Act>>;

/** Work in flight when the front is closed. */
const GRACE_MS = 1_000;

export class HttpFront {
  readonly #guard: Guard;
  readonly #auth: Authenticator | undefined;
  readonly #path: string;
  readonly #streams: Streams;
  readonly #endpoint: Endpoint;
  readonly #exchanges: Exchanges;
  readonly #old: OldSse | undefined;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #graceMs: number;
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, guard: Guard, options: HttpFrontOptions = {}) {
    const { path = "/mcp", oldSse = true, auth, messageLimits, limits, rounds, graceMs, ...connection } = options;
    if (!path.startsWith("/")) throw new TypeError(`The path of an endpoint begins with a slash; got ${path}`);
    const bounds = { ...HTTP_LIMITS, ...limits };
    const common: Common = {
      limits: bounds,
      messageLimits: { ...DEFAULT_LIMITS, ...messageLimits },
      work: new Work(bounds.requests),
    };
    const spoken = spokenRevisions(options.revisions);
    const sessions = spoken.filter(({ style }) => style === "session");
    const perSession = { ...connection, revisions: sessions.map(({ name }) => name), graceMs: 0 };
    const exchanges = spoken.filter(({ style }) => style === "exchange");
    this.#guard = guard;
    this.#auth = auth;
    this.#path = path;
    this.#graceMs = graceMs ?? GRACE_MS;
    this.#streams = new Streams(common.limits);
    this.#exchanges = new Exchanges(
      handler,
      { revisions: exchanges, profile: options.profile ?? "mcp", origin: this },
      rounds,
      common.limits.listens,
    );
    const endpoint = new Endpoint(handler, this.#exchanges, spoken, perSession, common);
    this.#endpoint = endpoint;
    const routes = new Map<string, Route>();
    if (oldSse && sessions.length > 0) {
      const old = new OldSse(handler, perSession, common);
      this.#old = old;
      const open: Route = { GET: (way, identity) => old.open(way, identity, "/messages") };
      routes.set("/sse", open).set(`${path.replace(/\/$/, "")}/sse`, open);
      routes.set("/messages", { POST: (way, identity) => old.post(way, identity) });
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
    const refusal = this.#guard.check(visit) ?? this.#misplaced(visit);
    if (refusal !== undefined) {
      refuse(new WayBack(visit, cors, this.#streams), refusal);
      return;
    }
    const route = this.#routes.get(visit.path);
    if (visit.method === "OPTIONS") visit.answer(204, { allow: allowed(route), ...cors });
    else if (route === undefined) {
      const document = this.#auth?.document(visit.path, this.#address(visit));
      visit.answer(200, { "content-type": "application/json", ...cors }, JSON.stringify(document));
    } else if (this.#auth === undefined) run(new WayBack(visit, cors, this.#streams), route[visit.method] as Act);
    else void this.#admit(visit, cors, this.#auth, route[visit.method] as Act);
  }

  /** Listens end at once, work in flight may go on for the grace. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    const parts = [this.#exchanges, this.#endpoint, this.#old];
    await Promise.all(parts.map((part) => part?.close(this.#graceMs)));
    this.#streams.close();
  }

  /** Why there is nothing for this visit here. */
  #misplaced({ path, method, origin }: Visit): Refusal | undefined {
    const route = this.#routes.get(path);
    if (route !== undefined) {
      if (this.#closing !== undefined) return new Refusal(503, "The server is shutting down", { "retry-after": "5" });
      if (method === "OPTIONS" || Object.hasOwn(route, method)) return undefined;
      return new Refusal(405, `${method} is not for ${path}`, { allow: allowed(route) });
    }
    if (this.#auth?.document(path, `${origin}${this.#path}`) === undefined) {
      return new Refusal(404, `There is nothing at ${path}; the endpoint is ${this.#path}`);
    }
    if (method === "GET" || method === "OPTIONS") return undefined;
    return new Refusal(405, `${method} is not for ${path}`, { allow: allowed(undefined) });
  }

  async #admit(visit: Visit, cors: Readonly<Record<string, string>>, auth: Authenticator, act: Act): Promise<void> {
    const credentials: Credentials = { headers: visit.headers, endpoint: this.#address(visit) };
    try {
      const identity = await identify(auth, credentials);
      const denial: Denial = ({ data }) => {
        const scopes = (data as { requiredScopes?: unknown } | null | undefined)?.requiredScopes;
        if (!Array.isArray(scopes)) return undefined;
        const { status, challenge } = auth.lacking(scopes as readonly string[], identity, credentials);
        return { status, headers: { "www-authenticate": challenge } };
      };
      run(new WayBack(visit, cors, this.#streams, denial), (way) => act(way, identity));
    } catch (error) {
      refuse(new WayBack(visit, cors, this.#streams), error);
    }
  }

  #address(visit: Visit): string {
    return `${visit.origin}${this.#path}`;
  }
}

function run(way: WayBack, act: Act): void {
  try {
    const working = act(way, undefined);
    if (working !== undefined) working.catch((error: unknown) => refuse(way, error));
  } catch (error) {
    refuse(way, error);
  }
}

function allowed(route: Route | undefined): string {
  return [...(route === undefined ? ["GET"] : Object.keys(route)), "OPTIONS"].join(", ");
}
