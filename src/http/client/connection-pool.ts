// The connections of one requester: made where there is none, kept a short while for the next request, and never
// what keeps a process alive. Apart, because how long one may be kept decides whether requests get lost.

import { Agent, request as plainRequest } from "node:http";
import type { AgentOptions, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { LookupFunction, Socket } from "node:net";

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
