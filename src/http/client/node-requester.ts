// Requests of ours by node:http and node:https. Not by the global fetch: that ends a body which keeps silent for five
// minutes, and does not tell whether a request that failed can have reached the end, which is what decides whether it
// may be sent again. It follows no redirect (redirects.ts does) and knows no time limit but that of connecting: how
// long an answer may take is known to whoever asked.

import { type ClientRequest, type IncomingMessage, Agent, request as plainRequest, type AgentOptions, type RequestOptions } from "node:http";
import type { Socket, LookupFunction } from "node:net";
import { onAbort } from "../../core/async.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { nodeHttpResponse } from "./node-response.ts";
import { cancelled, connectTimeout, encodedBody, otherProtocol, unanswered, unconnected, unsendable, type HttpResponse, type OutgoingRequest, type Requester } from "./requester.ts";

export interface NodeRequesterOptions extends PoolOptions {
  /** For a connection, with its handshake where it has one. */
  readonly connectMs?: number;
}

const CONNECT_MS = 10_000;
/** Silence after which the system asks whether the other side is still there. */
const PROBE_MS = 30_000;
/** Of the head of an answer. */
const HEAD_BYTES = 32 * 1024;

export function nodeRequester(options: NodeRequesterOptions = {}): Requester {
  const { connectMs = CONNECT_MS } = options;
  const pool = new ConnectionPool(options);
  const requester = async (request: OutgoingRequest): Promise<HttpResponse> => {
    const { protocol } = request.url;
    if (protocol !== "http:" && protocol !== "https:")
      throw unsendable(request.url, `${protocol} is not http or https`);
    if (pool.doorFor(protocol) === undefined) await pool.openDoor(protocol);
    // Nothing happens twice by a GET.
    return send(request, { pool, connectMs, mayRepeat: request.method === "GET" });
  };
  requester.close = (): void => pool.close();
  return requester;
}

interface Means {
  readonly pool: ConnectionPool;
  readonly connectMs: number;
  readonly mayRepeat: boolean;
}

function send(request: OutgoingRequest, means: Means): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    new Exchange(request, means, resolve, reject).begin();
  });
}

/** A request until the head of its answer. */
class Exchange {
  readonly #asked: OutgoingRequest;
  readonly #means: Means;
  readonly #resolve: (answer: HttpResponse | Promise<HttpResponse>) => void;
  readonly #reject: (error: ConnectionError) => void;
  #request: ClientRequest | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #free: () => void = () => undefined;
  /** There is a connection, so the request may have gone out. */
  #isReady = false;
  #isSettled = false;

  constructor(
    asked: OutgoingRequest,
    means: Means,
    resolve: (answer: HttpResponse | Promise<HttpResponse>) => void,
    reject: (error: ConnectionError) => void,
  ) {
    this.#asked = asked;
    this.#means = means;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  begin(): void {
    const { url, signal, body } = this.#asked;
    if (signal?.aborted === true) {
      this.#reject(cancelled(url, signal, false));
      return;
    }
    this.#free = onAbort(signal, () => this.#end(cancelled(url, signal, this.#isReady)));
    try {
      this.#request = this.#open();
    } catch (error) {
      this.#end(unsendable(url, error));
      return;
    }
    this.#request
      .once("socket", (socket) => this.#connect(socket))
      .once("response", (response) => this.#answer(response))
      // Where nobody hears it, Node ends the connection without a word.
      .once("upgrade", () => this.#end(otherProtocol(url)))
      .on("error", (error) => this.#break(error))
      .end(body);
    // The signal may have been aborted by what was called to open it.
    if (this.#isSettled) this.#request.destroy();
  }

  #open(): ClientRequest {
    const { method, url, headers, body } = this.#asked;
    const door = this.#means.pool.doorFor(url.protocol);
    if (door === undefined) throw new TypeError("no such door");
    this.#means.pool.dropStale(door.agent);
    return door.request({
      agent: door.agent,
      method,
      hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
      port: url.port === "" ? undefined : Number(url.port),
      path: `${url.pathname}${url.search}`,
      headers: {
        ...headers,
        // What is not compressed needs no limit on what it would unfold to.
        "accept-encoding": "identity",
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
      maxHeaderSize: HEAD_BYTES,
      joinDuplicateHeaders: true,
    });
  }

  #connect(socket: Socket): void {
    const { url } = this.#asked;
    if (this.#isSettled) return;
    if (this.#request?.reusedSocket === true) {
      this.#isReady = true;
      return;
    }
    // A stream may be silent for hours: an end that has gone without a word is found out by the system.
    socket.setKeepAlive(true, PROBE_MS);
    const { connectMs } = this.#means;
    this.#timer = setTimeout(() => this.#end(connectTimeout(url, connectMs)), connectMs);
    socket.once(url.protocol === "https:" ? "secureConnect" : "connect", () => {
      this.#isReady = true;
      clearTimeout(this.#timer);
    });
  }

  #answer(response: IncomingMessage): void {
    const { url, signal } = this.#asked;
    // Whoever reads hears of it; where nobody reads, it must not end the process.
    response.on("error", () => undefined);
    if (this.#isSettled) return;
    const encoding = response.headers["content-encoding"];
    if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity") {
      this.#end(encodedBody(url, encoding));
      return;
    }
    this.#settle();
    this.#means.pool.hear(response);
    response.once(
      "close",
      onAbort(signal, () => response.destroy(cancelled(url, signal, true))),
    );
    this.#resolve(nodeHttpResponse(url, response));
  }

  #break(error: Error): void {
    const { url } = this.#asked;
    if (this.#isSettled) return;
    if (!this.#means.mayRepeat || this.#request?.reusedSocket !== true || isUnreadable(error)) {
      this.#end(this.#isReady ? unanswered(url, error) : unconnected(url, error));
      return;
    }
    // The end let go of an idle connection just when it was taken: of the other idle ones it may have let go too.
    this.#settle();
    const door = this.#means.pool.doorFor(url.protocol);
    if (door !== undefined) this.#means.pool.dropIdle(door.agent);
    this.#resolve(send(this.#asked, { ...this.#means, mayRepeat: false }));
  }

  #end(error: ConnectionError): void {
    this.#settle();
    this.#reject(error);
    this.#request?.destroy();
  }

  #settle(): void {
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#free();
  }
}

/** The end has said something, and it was no HTTP. */
function isUnreadable(error: Error): boolean {
  return String((error as { code?: unknown }).code).startsWith("HPE_");
}

// The connections of one requester: made where there is none, kept a short while for the next request, and never
// what keeps a process alive. Apart, because how long one may be kept decides whether requests get lost.


export interface PoolOptions {
  /** Finds the addresses of a name, and may refuse it; the system's own by default. */
  readonly lookup?: LookupFunction;
  /** Certificates that are trusted, as PEM texts, in place of those that Node brings. */
  readonly ca?: string | readonly string[];
}

/** Connections that are kept for each host. */
const MOST_IDLE = 16;
/**
 * An end closes a connection that was idle for as long as it likes, and a request that is written at that very moment
 * is lost, with nobody knowing whether it was read: a POST cannot be sent again then. So we let go of a connection
 * before the end does: a second before the time that it has told (Keep-Alive: timeout=), and where it has told none,
 * after less than the 5 s that are the shortest usual time.
 */
const IDLE_MS = 4_000;
const LONGEST_IDLE_MS = 30_000;
const IDLE_MARGIN_MS = 1_000;

interface Door {
  readonly agent: Agent;
  readonly request: (options: RequestOptions) => ClientRequest;
}

export class ConnectionPool {
  readonly #options: AgentOptions;
  readonly #doors = new Map<string, Door>();
  /** When an idle connection must not be used any more. */
  readonly #good = new WeakMap<object, number>();
  /** What the end has said of that. */
  readonly #told = new WeakMap<object, number>();
  #isClosed = false;

  constructor(options: PoolOptions) {
    const { lookup, ca } = options;
    this.#options = {
      keepAlive: true,
      maxFreeSockets: MOST_IDLE,
      ...(lookup === undefined ? {} : { lookup }),
      ...(ca === undefined ? {} : { ca: typeof ca === "string" ? ca : [...ca] }),
    };
  }

  /** TLS is loaded where it is needed: undefined until then. */
  doorFor(protocol: string): Door | undefined {
    return this.#doors.get(protocol);
  }

  async openDoor(protocol: string): Promise<Door> {
    const https = protocol === "https:" ? await import("node:https") : undefined;
    const known = this.#doors.get(protocol);
    if (known !== undefined) return known;
    const agent = this.#keepBriefly(new (https?.Agent ?? Agent)(this.#options));
    const door = { agent, request: https?.request ?? plainRequest };
    this.#doors.set(protocol, door);
    return door;
  }

  /** Notes how long the end keeps an idle connection. */
  hear(response: IncomingMessage): void {
    const told = /(?:^|[\s,;])timeout=(\d{1,6})/i.exec(String(response.headers["keep-alive"] ?? ""))?.[1];
    if (told !== undefined) this.#told.set(response.socket, Number(told) * 1_000 - IDLE_MARGIN_MS);
  }

  /** Timers may be late; what is over its time is let go of before a request could take it. */
  dropStale(agent: Agent): void {
    const now = performance.now();
    this.#drop(agent, (socket) => (this.#good.get(socket) ?? 0) <= now);
  }

  dropIdle(agent: Agent): void {
    this.#drop(agent, () => true);
  }

  close(): void {
    this.#isClosed = true;
    for (const { agent } of this.#doors.values()) this.dropIdle(agent);
  }

  #drop(agent: Agent, isMeant: (socket: Socket) => boolean): void {
    for (const name in agent.freeSockets) {
      for (const socket of [...(agent.freeSockets[name] ?? [])]) if (isMeant(socket)) socket.destroy();
    }
  }

  /** Both are named by Node's documentation as what may be replaced. */
  #keepBriefly(agent: Agent): Agent {
    const reuse = agent.reuseSocket.bind(agent);
    agent.keepSocketAlive = (duplex): boolean => {
      const socket = duplex as Socket;
      const ms = Math.min(this.#told.get(socket) ?? IDLE_MS, LONGEST_IDLE_MS);
      if (this.#isClosed || ms <= 0) return false;
      this.#good.set(socket, performance.now() + ms);
      socket.unref();
      // An idle connection that is quiet for so long is destroyed by the agent.
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
