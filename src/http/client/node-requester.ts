// Sends HTTP requests with node:http and node:https, and pools their connections. The global fetch is not used: it
// aborts a body that is silent for five minutes, and does not report whether a failed request may have reached the
// server, which decides whether it may be retried. The only timeout here is for connecting. Proxies of the environment
// are used (proxy.ts).

import {
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  Agent,
  request as plainRequest,
  type AgentOptions,
  type OutgoingHttpHeaders,
  type RequestOptions,
} from "node:http";
import type { Socket, LookupFunction } from "node:net";
import { onAbort, unref } from "../../core/async.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { withoutBrackets } from "../../core/hosts.ts";
import { defined } from "../../core/values.ts";
import {
  bodyBroken,
  cancelled,
  connectTimedOut,
  ReadableResponse,
  responseCompressed,
  unexpectedUpgrade,
  noResponse,
  connectFailed,
  notSendable,
  type HttpResponse,
  type ClientHttpRequest,
  type Requester,
} from "./requester.ts";

export interface NodeRequesterOptions {
  /** Timeout for connecting, including the TLS handshake. */
  readonly connectTimeoutMs?: number;
  /** Resolves a host name, and may refuse it. Default: the resolver of the system. */
  readonly lookup?: LookupFunction;
  /** Trusted certificates in PEM format, instead of those built into Node. */
  readonly ca?: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** The operating system probes a connection after this much silence. */
const KEEP_ALIVE_PROBE_MS = 30_000;
const MAX_HEADER_BYTES = 32 * 1024;

export function nodeRequester({
  connectTimeoutMs = CONNECT_TIMEOUT_MS,
  ...options
}: NodeRequesterOptions = {}): Requester {
  const pool = new ConnectionPool(options, connectTimeoutMs);
  const requester = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    const route = pool.routes.get(request.url.origin) ?? (await pool.findRoute(request.url));
    // A GET is safe to repeat, but a DPoP proof may be used only once.
    const mayRetry = request.method === "GET" && request.headers["dpop"] === undefined;
    return send(request, { pool, route, connectTimeoutMs, mayRetry });
  };
  requester.close = (): void => pool.close();
  return requester;
}

interface SendContext {
  readonly pool: ConnectionPool;
  readonly route: Route;
  readonly connectTimeoutMs: number;
  readonly mayRetry: boolean;
}

/** Resolves when the head of the response arrives. */
function send(sent: ClientHttpRequest, context: SendContext): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const { url, signal, body } = sent;
    const { pool, route, connectTimeoutMs } = context;
    let request: ClientRequest | undefined;
    let timer: NodeJS.Timeout | undefined;
    /** The connection is established, so the request may have been sent. */
    let isConnected = false;
    let isSettled = false;
    const settle = (): void => {
      isSettled = true;
      clearTimeout(timer);
      removeAbortListener();
    };
    const fail = (error: ConnectionError): void => {
      settle();
      reject(error);
      request?.destroy();
    };
    const removeAbortListener = onAbort(signal, () => fail(cancelled(url, signal, isConnected)));

    const onSocket = (socket: Socket): void => {
      if (isSettled) return;
      if (request?.reusedSocket === true) {
        isConnected = true;
        return;
      }
      // A stream may be silent for hours. With keep-alive the operating system detects a server that has disappeared.
      socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
      timer = setTimeout(() => fail(connectTimedOut(url, connectTimeoutMs)), connectTimeoutMs);
      socket.once(route.isSecure ? "secureConnect" : "connect", () => {
        isConnected = true;
        clearTimeout(timer);
      });
    };
    const onResponse = (response: IncomingMessage): void => {
      // Readers have listeners of their own. This one prevents an error without a reader from crashing the process.
      response.on("error", () => undefined);
      if (isSettled) return;
      const refusal = route.refusal?.(response.statusCode ?? 0);
      if (refusal !== undefined) {
        fail(refusal);
        return;
      }
      const encoding = response.headers["content-encoding"];
      if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity") {
        fail(responseCompressed(url, encoding));
        return;
      }
      settle();
      pool.readKeepAlive(response);
      const forget = onAbort(signal, () => response.destroy(cancelled(url, signal, true)));
      response.once("close", forget);
      resolve(new NodeHttpResponse(url, response));
    };
    const onError = (error: Error): void => {
      if (isSettled) return;
      // An error of the parser has a code that begins so: the response is not valid HTTP.
      const isInvalid = String((error as { code?: unknown }).code).startsWith("HPE_");
      if (!context.mayRetry || request?.reusedSocket !== true || isInvalid) {
        fail(isConnected ? noResponse(url, error) : (route.proxyFailed?.(error) ?? connectFailed(url, error)));
        return;
      }
      // The server closed an idle connection just as we reused it. It may have closed the other idle ones too.
      settle();
      pool.drop(route.agent);
      resolve(send(sent, { ...context, mayRetry: false }));
    };

    if (signal?.aborted === true) {
      fail(cancelled(url, signal, false));
      return;
    }
    try {
      // Expired connections are closed before the request can use one, since timers may be late.
      pool.drop(route.agent, performance.now());
      const options = requestOptions(sent, route.agent);
      request = route.request(route.viaProxy === undefined ? options : route.viaProxy(options, sent));
    } catch (error) {
      fail(notSendable(url, error));
      return;
    }
    request
      .once("socket", onSocket)
      .once("response", onResponse)
      // Without this listener Node would close the connection silently.
      .once("upgrade", () => fail(unexpectedUpgrade(url)))
      .on("error", onError)
      .end(body);
    // The signal may have been aborted while the request was opened.
    if (isSettled) request.destroy();
  });
}

function requestOptions({ method, url, headers, body }: ClientHttpRequest, agent: Agent): RequestOptions {
  return {
    agent,
    method,
    hostname: withoutBrackets(url.hostname),
    port: url.port === "" ? undefined : Number(url.port),
    path: `${url.pathname}${url.search}`,
    headers: {
      ...headers,
      // Without compression, limiting the received bytes is enough; there is no decompressed size to check.
      "accept-encoding": "identity",
      ...(body === undefined ? undefined : { "content-length": Buffer.byteLength(body) }),
    },
    maxHeaderSize: MAX_HEADER_BYTES,
    joinDuplicateHeaders: true,
  };
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

/** How the requests to one origin are sent. */
interface Route {
  readonly agent: Agent;
  readonly request: (options: RequestOptions) => ClientRequest;
  /** Whether the first connection is one with TLS. */
  readonly isSecure: boolean;
  /** Changes the options so that the request is sent to a proxy. */
  viaProxy?(options: RequestOptions, request: ClientHttpRequest): RequestOptions;
  /** The error for a response that is the proxy's own. */
  refusal?(status: number): ConnectionError | undefined;
  /** The error if there is no connection, which names the proxy. */
  proxyFailed?(error: Error): ConnectionError;
}

const PROXY_VARIABLES = ["https_proxy", "http_proxy", "all_proxy"].flatMap((name) => [name, name.toUpperCase()]);
/** Only the routes of the newest origins are kept. */
const MAX_ROUTES = 100;

/** The connections of one requester. Idle ones are kept briefly, and never keep the process alive. */
class ConnectionPool {
  /** By origin. */
  readonly routes = new Map<string, Route>();
  readonly #options: AgentOptions;
  readonly #connectTimeoutMs: number;
  /** By scheme, and by proxy. */
  readonly #agents = new Map<string, Agent>();
  /** The time at which an idle connection expires. */
  readonly #expiry = new WeakMap<object, number>();
  /** How long a connection may be idle according to its server, less the margin. */
  readonly #announced = new WeakMap<object, number>();
  #isClosed = false;

  constructor({ lookup, ca }: NodeRequesterOptions, connectTimeoutMs: number) {
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#options = { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_IDLE, ...defined({ lookup, ca }) };
  }

  /** Rejects with a ConnectionError if nothing can be sent to this URL. */
  async findRoute(url: URL): Promise<Route> {
    const { protocol } = url;
    if (protocol !== "http:" && protocol !== "https:") throw notSendable(url, `${protocol} is not http or https`);
    const mayUseProxy = PROXY_VARIABLES.some((name) => (process.env[name] ?? "") !== "");
    const route = (mayUseProxy ? await this.#proxyRoute(url) : undefined) ?? (await this.#directRoute(protocol));
    if (this.routes.size >= MAX_ROUTES) this.routes.clear();
    this.routes.set(url.origin, route);
    return route;
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
      viaProxy: (given, { url: { host, href } }) => ({
        ...given,
        ...proxyAddress(proxy),
        path: href,
        headers: { ...(given.headers as OutgoingHttpHeaders), ...proxyHeaders(proxy), host },
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
    const seconds = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(String(response.headers["keep-alive"] ?? ""))?.[1];
    if (seconds !== undefined) this.#announced.set(response.socket, Number(seconds) * 1_000 - IDLE_MARGIN_MS);
  }

  /** Closes the idle connections that have expired at this time, by default all. */
  drop(agent: Agent, time: number = Number.POSITIVE_INFINITY): void {
    for (const name in agent.freeSockets) {
      for (const socket of [...(agent.freeSockets[name] ?? [])])
        if ((this.#expiry.get(socket) ?? 0) <= time) socket.destroy();
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const agent of this.#agents.values()) this.drop(agent);
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

/**
 * A discarded body is read up to this size and for this time, so that its connection can be reused. If the body is
 * longer or takes longer, the connection is closed.
 */
const MAX_DISCARD_BYTES = 64 * 1024;
const MAX_DISCARD_MS = 1_000;
/** The time for an SSE stream is shorter, since a stream ends right after its last event or not at all. */
const MAX_DISCARD_STREAM_MS = 100;
/** Buffered bytes above which the response is paused. */
const MAX_UNREAD_BYTES = 64 * 1024;

class NodeHttpResponse extends ReadableResponse {
  readonly #response: IncomingMessage;

  constructor(url: URL, response: IncomingMessage) {
    super(url, response.statusCode ?? 0, joinHeaders(response.headers));
    this.#response = response;
  }

  get body(): AsyncIterable<Uint8Array> {
    return this.#readChunks();
  }

  discard(): void {
    const response = this.#response;
    if (response.destroyed || response.complete) {
      response.resume();
      return;
    }
    const length = Number(this.headers["content-length"] ?? 0);
    const isStream = /^text\/event-stream\b/i.test(this.headers["content-type"] ?? "");
    if (length > MAX_DISCARD_BYTES) {
      response.destroy();
      return;
    }
    let count = 0;
    const timer = unref(setTimeout(() => response.destroy(), isStream ? MAX_DISCARD_STREAM_MS : MAX_DISCARD_MS));
    // An endless body must not keep the process alive; the next request on this connection refs it again.
    response.socket.unref();
    response
      .once("close", () => clearTimeout(timer))
      .on("data", (chunk: Buffer) => {
        count += chunk.length;
        if (count > MAX_DISCARD_BYTES) response.destroy();
      });
  }

  /** Pauses the response while too many bytes are unread. */
  async *#readChunks(): AsyncGenerator<Uint8Array, void> {
    const response = this.#response;
    const reclaimer = new ChunkReclaimer(response);
    const chunks: Buffer[] = [];
    let unread = 0;
    let isEnded = response.readableEnded;
    let failure: ConnectionError | undefined;
    let wake = (): void => undefined;
    const fail = (error?: unknown): void => {
      if (!isEnded) failure ??= bodyBroken(this.url, error);
      wake();
    };
    if (response.destroyed) fail(response.errored);
    response
      .on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        unread += chunk.length;
        if (unread > MAX_UNREAD_BYTES) response.pause();
        wake();
      })
      .once("end", () => {
        isEnded = true;
        wake();
      })
      .once("error", fail)
      .once("close", fail);
    try {
      for (;;) {
        const chunk = chunks.shift();
        // Chunks received before an error are delivered before the error.
        if (chunk !== undefined) {
          unread -= chunk.length;
          if (unread === 0 && response.isPaused()) response.resume();
          yield chunk;
          reclaimer.add(chunk);
        } else if (isEnded) return;
        else if (failure !== undefined) throw failure;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    } finally {
      // If the reader stops early, the connection cannot be reused.
      if (!response.readableEnded) response.destroy();
    }
  }
}

function joinHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const all: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) all[name] = typeof value === "string" ? value : value.join(", ");
  }
  return all;
}

/** Smaller bodies and chunks are left to the garbage collector, since freeing a chunk costs some microseconds. */
const MIN_BODY_BYTES = 256 * 1024;
const MIN_CHUNK_BYTES = 4 * 1024;

/**
 * Frees the memory of a long body's chunks as soon as they are read. Node's parser copies each body chunk from a buffer
 * of the socket. Both become garbage at once, but V8 collects them late: reading 10 MB left 20 MB of garbage.
 */
export class ChunkReclaimer {
  readonly #response: IncomingMessage;
  #bytes = 0;

  constructor(response: IncomingMessage) {
    this.#response = response;
  }

  /** Accepts a chunk of the body that will not be read again. */
  add(chunk: Uint8Array): void {
    if (this.#bytes >= MIN_BODY_BYTES) {
      free(chunk);
      return;
    }
    this.#bytes += chunk.length;
    if (this.#bytes >= MIN_BODY_BYTES) this.#watchSocket();
  }

  #watchSocket(): void {
    const response = this.#response;
    const { socket } = response;
    // After the end of the body, the chunks of the socket belong to other requests.
    if (response.readableEnded || response.destroyed) return;
    // An agent may give us an object that is not Node's own socket. Its byte count is too low, and it may reuse buffers.
    if (socket.bytesRead < this.#bytes) return;
    let newest: ArrayBufferLike | undefined;
    const noteNewest = ({ buffer }: Uint8Array): void => {
      newest = buffer;
    };
    // Node's parser runs before this listener and has copied the body. Should a later Node not copy it, the memory
    // would belong to the newest chunk or to a buffered one, and neither is freed here.
    const reclaim = (chunk: Uint8Array): void => {
      if (response.readableLength === 0 && chunk.buffer !== newest) free(chunk);
    };
    const stop = (): void => void socket.removeListener("data", reclaim);
    socket.on("data", reclaim);
    // Stops before another request gets the socket, since the parser of that request would run after this listener.
    response.on("data", noteNewest).once("end", stop).once("close", stop);
  }
}

let closedPort: InstanceType<typeof MessagePort> | undefined;

/** Frees a buffer by transferring it: that detaches the buffer, and a closed port drops what it is sent. */
function free({ buffer, byteLength }: Uint8Array): void {
  // A chunk that shares its buffer with others must not be detached.
  if (byteLength < MIN_CHUNK_BYTES || byteLength !== buffer.byteLength) return;
  if (closedPort === undefined) {
    closedPort = new MessageChannel().port1;
    closedPort.close();
  }
  closedPort.postMessage(undefined, [buffer as ArrayBuffer]);
}
