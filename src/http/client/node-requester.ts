// Sends HTTP requests with node:http and node:https, and pools their connections. The global fetch is not used: it
// aborts a body that is silent for five minutes, and does not report whether a failed request may have reached the
// server, which decides whether it may be retried. The only timeout here is for connecting.

import {
  type ClientRequest,
  type IncomingMessage,
  Agent,
  request as plainRequest,
  type AgentOptions,
  type RequestOptions,
} from "node:http";
import type { Socket, LookupFunction } from "node:net";
import { onAbort } from "../../core/async.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { nodeHttpResponse } from "./node-response.ts";
import {
  cancelled,
  connectTimedOut,
  responseCompressed,
  unexpectedUpgrade,
  noResponse,
  connectFailed,
  notSendable,
  type HttpResponse,
  type ClientHttpRequest,
  type Requester,
} from "./requester.ts";

export interface NodeRequesterOptions extends PoolOptions {
  /** Timeout for connecting, including the TLS handshake. */
  readonly connectTimeoutMs?: number;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** The operating system probes a connection after this much silence. */
const KEEP_ALIVE_PROBE_MS = 30_000;
const MAX_HEADER_BYTES = 32 * 1024;

export function nodeRequester(options: NodeRequesterOptions = {}): Requester {
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const pool = new ConnectionPool(options);
  const requester = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    const { protocol } = request.url;
    if (protocol !== "http:" && protocol !== "https:")
      throw notSendable(request.url, `${protocol} is not http or https`);
    if (pool.schemeFor(protocol) === undefined) await pool.loadScheme(protocol);
    // A GET is safe to repeat, but a DPoP proof may be used only once.
    const mayRetry = request.method === "GET" && request.headers["dpop"] === undefined;
    return send(request, { pool, connectTimeoutMs, mayRetry });
  };
  requester.close = (): void => pool.close();
  return requester;
}

interface SendContext {
  readonly pool: ConnectionPool;
  readonly connectTimeoutMs: number;
  readonly mayRetry: boolean;
}

function send(request: ClientHttpRequest, options: SendContext): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    new PendingRequest(request, options, resolve, reject).begin();
  });
}

/** A request until the head of its response arrives. */
class PendingRequest {
  readonly #sent: ClientHttpRequest;
  readonly #options: SendContext;
  readonly #resolve: (response: HttpResponse | Promise<HttpResponse>) => void;
  readonly #reject: (error: ConnectionError) => void;
  #request: ClientRequest | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #removeAbortListener: () => void = () => undefined;
  /** The connection is established, so the request may have been sent. */
  #isConnected = false;
  #isSettled = false;

  constructor(
    sent: ClientHttpRequest,
    options: SendContext,
    resolve: (response: HttpResponse | Promise<HttpResponse>) => void,
    reject: (error: ConnectionError) => void,
  ) {
    this.#sent = sent;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(): void {
    const { url, signal, body } = this.#sent;
    if (signal?.aborted === true) {
      this.#reject(cancelled(url, signal, false));
      return;
    }
    this.#removeAbortListener = onAbort(signal, () => this.#fail(cancelled(url, signal, this.#isConnected)));
    try {
      this.#request = this.#open();
    } catch (error) {
      this.#fail(notSendable(url, error));
      return;
    }
    this.#request
      .once("socket", (socket) => this.#connect(socket))
      .once("response", (response) => this.#receive(response))
      // Without this listener Node would close the connection silently.
      .once("upgrade", () => this.#fail(unexpectedUpgrade(url)))
      .on("error", (error) => this.#retryOrFail(error))
      .end(body);
    // The signal may have been aborted while the request was opened.
    if (this.#isSettled) this.#request.destroy();
  }

  #open(): ClientRequest {
    const { method, url, headers, body } = this.#sent;
    const scheme = this.#options.pool.schemeFor(url.protocol);
    if (scheme === undefined) throw new TypeError(`${url.protocol} is not loaded`);
    this.#options.pool.dropStale(scheme.agent);
    return scheme.request({
      agent: scheme.agent,
      method,
      hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? undefined : Number(url.port),
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        // Without compression, limiting the received bytes is enough; there is no decompressed size to check.
        "accept-encoding": "identity",
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
      maxHeaderSize: MAX_HEADER_BYTES,
      joinDuplicateHeaders: true,
    });
  }

  #connect(socket: Socket): void {
    const { url } = this.#sent;
    if (this.#isSettled) return;
    if (this.#request?.reusedSocket === true) {
      this.#isConnected = true;
      return;
    }
    // A stream may be silent for hours. With keep-alive the operating system detects a server that has disappeared.
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    const { connectTimeoutMs } = this.#options;
    this.#timer = setTimeout(() => this.#fail(connectTimedOut(url, connectTimeoutMs)), connectTimeoutMs);
    socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => {
      this.#isConnected = true;
      clearTimeout(this.#timer);
    });
  }

  #receive(response: IncomingMessage): void {
    const { url, signal } = this.#sent;
    // Readers have listeners of their own. This one prevents an error without a reader from crashing the process.
    response.on("error", () => undefined);
    if (this.#isSettled) return;
    const encoding = response.headers["content-encoding"];
    if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity") {
      this.#fail(responseCompressed(url, encoding));
      return;
    }
    this.#settle();
    this.#options.pool.readKeepAlive(response);
    response.once(
      "close",
      onAbort(signal, () => response.destroy(cancelled(url, signal, true))),
    );
    this.#resolve(nodeHttpResponse(url, response));
  }

  #retryOrFail(error: Error): void {
    const { url } = this.#sent;
    if (this.#isSettled) return;
    if (!this.#options.mayRetry || this.#request?.reusedSocket !== true || isParseError(error)) {
      this.#fail(this.#isConnected ? noResponse(url, error) : connectFailed(url, error));
      return;
    }
    // The server closed an idle connection just as we reused it. It may have closed the other idle ones too.
    this.#settle();
    const scheme = this.#options.pool.schemeFor(url.protocol);
    if (scheme !== undefined) this.#options.pool.dropIdle(scheme.agent);
    this.#resolve(send(this.#sent, { ...this.#options, mayRetry: false }));
  }

  #fail(error: ConnectionError): void {
    this.#settle();
    this.#reject(error);
    this.#request?.destroy();
  }

  #settle(): void {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#removeAbortListener();
  }
}

/** The response is not valid HTTP. */
function isParseError(error: Error): boolean {
  return String((error as { code?: unknown }).code).startsWith("HPE_");
}

export interface PoolOptions {
  /** Resolves a host name, and may refuse it. Default: the resolver of the system. */
  readonly lookup?: LookupFunction;
  /** Trusted certificates in PEM format, instead of those built into Node. */
  readonly ca?: string | readonly string[];
}

/** Connections per host. More requests wait. */
const MAX_SOCKETS = 1_024;
/** Idle connections kept per host. */
const MAX_IDLE = 16;
/**
 * A server may close an idle connection at any time. A request written at that moment is lost, and a POST cannot be
 * retried because the server may have read it. So we close idle connections first: one second before the timeout in the
 * server's Keep-Alive header or, without one, before the shortest usual timeout of 5 s.
 */
const IDLE_MS = 4_000;
const MAX_IDLE_MS = 30_000;
const IDLE_MARGIN_MS = 1_000;

/** The agent and the request function for http: or https:. */
interface Scheme {
  readonly agent: Agent;
  readonly request: (options: RequestOptions) => ClientRequest;
}

/** The connections of one requester. Idle ones are kept briefly, and never keep the process alive. */
class ConnectionPool {
  readonly #options: AgentOptions;
  readonly #schemes = new Map<string, Scheme>();
  /** The time at which an idle connection expires. */
  readonly #expiry = new WeakMap<object, number>();
  /** How long a connection may be idle according to its server, less the margin. */
  readonly #announced = new WeakMap<object, number>();
  #isClosed = false;

  constructor(options: PoolOptions) {
    const { lookup, ca } = options;
    this.#options = {
      keepAlive: true,
      maxSockets: MAX_SOCKETS,
      maxFreeSockets: MAX_IDLE,
      ...(lookup === undefined ? {} : { lookup }),
      ...(ca === undefined ? {} : { ca: typeof ca === "string" ? ca : [...ca] }),
    };
  }

  /** Undefined until `loadScheme`. */
  schemeFor(protocol: string): Scheme | undefined {
    return this.#schemes.get(protocol);
  }

  /** Loads node:https only when it is needed. */
  async loadScheme(protocol: string): Promise<Scheme> {
    const https = protocol === "https:" ? await import("node:https") : undefined;
    const known = this.#schemes.get(protocol);
    if (known !== undefined) return known;
    const agent = this.#limitIdleTime(new (https?.Agent ?? Agent)(this.#options));
    const scheme = { agent, request: https?.request ?? plainRequest };
    this.#schemes.set(protocol, scheme);
    return scheme;
  }

  /** Records how long the server keeps the connection when it is idle. */
  readKeepAlive(response: IncomingMessage): void {
    const seconds = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(String(response.headers["keep-alive"] ?? ""))?.[1];
    if (seconds !== undefined) this.#announced.set(response.socket, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
  }

  /** Closes expired connections before a request can use one, since timers may be late. */
  dropStale(agent: Agent): void {
    const now = performance.now();
    this.#drop(agent, (socket) => (this.#expiry.get(socket) ?? 0) <= now);
  }

  dropIdle(agent: Agent): void {
    this.#drop(agent, () => true);
  }

  close(): void {
    this.#isClosed = true;
    for (const { agent } of this.#schemes.values()) this.dropIdle(agent);
  }

  #drop(agent: Agent, shouldDrop: (socket: Socket) => boolean): void {
    for (const name in agent.freeSockets) {
      for (const socket of [...(agent.freeSockets[name] ?? [])]) if (shouldDrop(socket)) socket.destroy();
    }
  }

  /** Overrides two methods of the agent, which Node's documentation allows. */
  #limitIdleTime(agent: Agent): Agent {
    const reuse = agent.reuseSocket.bind(agent);
    agent.keepSocketAlive = (duplex): boolean => {
      const socket = duplex as Socket;
      const ms = Math.min(this.#announced.get(socket) ?? IDLE_MS, MAX_IDLE_MS);
      if (this.#isClosed || ms <= 0) return false;
      this.#expiry.set(socket, performance.now() + ms);
      socket.unref();
      // The agent destroys an idle connection on timeout.
      socket.setTimeout(ms);
      return true;
    };
    agent.reuseSocket = (duplex, request): void => {
      (duplex as Socket).setTimeout(0);
      reuse(duplex, request);
    };
    return agent;
  }
}
