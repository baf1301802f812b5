// The connections of a requester of node:http, and the way to each server: directly, or through a proxy.

import {
  Agent,
  type AgentOptions,
  type ClientRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request as plainRequest,
  type RequestOptions,
} from "node:http";
import type { AgentOptions as HttpsAgentOptions } from "node:https";
import type { Socket } from "node:net";
import type { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import { notSendable } from "./requester-errors.ts";

/** Connections per host. More requests wait. */
const MAX_SOCKETS = 1_024;
const MAX_IDLE = 16;
/**
 * A server may close an idle connection at any time. A request written at that moment is lost, and a POST cannot be
 * retried because the server may have read it. So we close idle connections first: one second before the timeout in the
 * server's Keep-Alive header or, without one, before the shortest usual timeout of 5 s.
 */
const IDLE_MS = 4_000;
const MAX_IDLE_MS = 30_000;
const IDLE_MARGIN_MS = 1_000;

export interface Route {
  readonly agent: Agent;
  readonly request: (options: RequestOptions) => ClientRequest;
  /** Whether the first connection is one with TLS. */
  readonly isSecure: boolean;
  /** Changes the options so that the request is sent to a proxy. */
  viaProxy?(options: RequestOptions, url: URL): RequestOptions;
  /** The error for a response that is the proxy's own. */
  refusal?(status: number): ConnectionError | undefined;
  /** The error if there is no connection, which names the proxy. */
  proxyFailed?(error: Error): ConnectionError;
}

const PROXY_VARIABLES = ["https_proxy", "http_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
/** Only the newest are kept. */
const MAX_ADDRESSES = 100;

/** Where the requests to one URL go. */
export interface Address {
  readonly route: Route;
  readonly hostname: string;
  readonly port: number | undefined;
  readonly path: string;
  readonly host: string;
}

type PoolOptions = Pick<HttpsAgentOptions, "lookup" | "ca">;

/** The connections of one requester. Idle ones are kept briefly, and never keep the process alive. */
export class ConnectionPool {
  readonly addresses = new Map<string, Address>();
  readonly #options: AgentOptions;
  readonly #connectTimeoutMs: number;
  readonly #agents = new Map<string, Agent>();
  /** The time at which an idle connection expires. */
  readonly #expiry = new WeakMap<object, number>();
  /** How long a connection may be idle according to its server, less the margin. */
  readonly #announced = new WeakMap<object, number>();
  #nextExpiry = Infinity;
  #isClosed = false;

  constructor({ lookup, ca }: PoolOptions, connectTimeoutMs: number) {
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#options = { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_IDLE, ...defined({ lookup, ca }) };
  }

  /** Rejects with a ConnectionError if nothing can be sent to this URL. */
  async findAddress(url: URL): Promise<Address> {
    const { protocol, port, href } = url;
    if (protocol !== "http:" && protocol !== "https:") throw notSendable(url, `${protocol} is not http or https`);
    const mayUseProxy = PROXY_VARIABLES.some((name) => (process.env[name] ?? "") !== "");
    const route = (mayUseProxy ? await this.#proxyRoute(url) : undefined) ?? (await this.#directRoute(protocol));
    const address: Address = {
      route,
      hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: port === "" ? undefined : Number(port),
      path: `${url.pathname}${url.search}`,
      host: url.host,
    };
    if (this.addresses.size >= MAX_ADDRESSES) this.addresses.clear();
    this.addresses.set(href, address);
    return address;
  }

  /** Loads node:https only when it is needed. */
  async #directRoute(protocol: string): Promise<Route> {
    const https = protocol === "https:" ? await import("node:https") : undefined;
    const agent = this.#agent(protocol, () => new (https?.Agent ?? Agent)(this.#options));
    return { agent, request: https?.request ?? plainRequest, isSecure: https !== undefined };
  }

  /**
   * An https server is reached through a tunnel. A request to an http server is sent to the proxy, with the whole URL in
   * its first line. The proxy resolves the name of the server; our `lookup` is asked whether it refuses the name.
   */
  async #proxyRoute(url: URL): Promise<Route | undefined> {
    const { checkName, proxyAddress, proxyFailed, proxyFor, proxyHeaders, refusedByProxy, tunnelAgent } =
      await import("./proxy.ts");
    const proxy = proxyFor(url);
    if (proxy === undefined) return undefined;
    const https = await import("node:https");
    const { lookup, ...options } = this.#options;
    if (lookup !== undefined) await checkName(url.hostname, lookup);
    const key = `${url.protocol} ${proxy.url.href}`;
    if (url.protocol === "https:") {
      const agent = this.#agent(key, () => tunnelAgent(options, proxy, this.#connectTimeoutMs));
      return { agent, request: https.request, isSecure: true };
    }
    const isSecure = proxy.url.protocol === "https:";
    return {
      agent: this.#agent(key, () => new (isSecure ? https.Agent : Agent)(options)),
      request: isSecure ? https.request : plainRequest,
      isSecure,
      viaProxy: (options, { host, href }) => ({
        ...options,
        ...proxyAddress(proxy),
        path: href,
        headers: { ...(options.headers as OutgoingHttpHeaders), ...proxyHeaders(proxy), host },
      }),
      refusal: (status) => (status === 407 ? refusedByProxy(proxy, url.host, status) : undefined),
      proxyFailed: (error) => proxyFailed(proxy, error),
    };
  }

  #agent(key: string, create: () => Agent): Agent {
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const agent = this.#limitIdleTime(create());
    this.#agents.set(key, agent);
    return agent;
  }

  /** Records how long the server keeps the connection when it is idle. */
  readKeepAlive(response: IncomingMessage): void {
    const header = response.headers["keep-alive"];
    const seconds = header === undefined ? undefined : /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(String(header))?.[1];
    if (seconds !== undefined) this.#announced.set(response.socket, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
  }

  /** Closes the connections that have been idle for too long. A timer does that too, but may be late. */
  dropExpired(): void {
    const now = performance.now();
    if (now < this.#nextExpiry) return;
    this.#nextExpiry = Infinity;
    for (const agent of this.#agents.values()) this.drop(agent, now);
  }

  /** Closes the idle connections that have expired at this time, by default all. */
  drop(agent: Agent, time: number = Infinity): void {
    for (const name in agent.freeSockets) {
      for (const socket of [...(agent.freeSockets[name] ?? [])]) {
        const expiry = this.#expiry.get(socket) ?? 0;
        if (expiry <= time) socket.destroy();
        else this.#nextExpiry = Math.min(this.#nextExpiry, expiry);
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const agent of this.#agents.values()) this.drop(agent);
  }

  /** Overrides two methods of the agent, which Node's documentation allows. */
  #limitIdleTime(agent: Agent): Agent {
    const reuse = agent.reuseSocket.bind(agent);
    agent.keepSocketAlive = (socket: Socket): boolean => {
      const ms = Math.min(this.#announced.get(socket) ?? IDLE_MS, MAX_IDLE_MS);
      if (this.#isClosed || ms <= 0) return false;
      const expiry = performance.now() + ms;
      this.#expiry.set(socket, expiry);
      this.#nextExpiry = Math.min(this.#nextExpiry, expiry);
      socket.unref();
      // The agent destroys an idle connection on timeout.
      socket.setTimeout(ms);
      return true;
    };
    agent.reuseSocket = (socket: Socket, request): void => {
      socket.setTimeout(0);
      reuse(socket, request);
    };
    return agent;
  }
}
