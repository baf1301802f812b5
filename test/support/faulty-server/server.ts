// An end over HTTP that can be told to fail: it speaks any style, counts every request and every execution, and before
// it serves a request it looks whether a test has laid a fault in the way of it. A fault gets the request and the way
// to serve it properly, so it may answer instead, serve and spoil the answer, or do nothing at all.

import { Desk, NOTE } from "./backend.ts";
import { StatelessStyle, isStateless, type ExchangeOptions } from "./stateless.ts";
import { SessionStyle, type SessionOptions } from "./session.ts";
import { RawServer, type Visit } from "../http/raw-server.ts";

export type Style = "stateless" | "session" | "old" | "both";

export type Fault = (visit: Visit, serve: () => Promise<void>) => unknown;

export interface UpstreamOptions {
  readonly style?: Style;
  readonly session?: SessionOptions;
  readonly exchange?: ExchangeOptions;
}

interface Laid {
  readonly what: string;
  readonly fault: Fault;
  times: number;
}

export class FaultyServer {
  static #count = 0;
  readonly #number: number = (FaultyServer.#count += 1);
  /** Every request that came, in order. */
  readonly visits: Visit[] = [];
  readonly server: RawServer;
  readonly desk: Desk;
  sessions: SessionStyle;
  exchanges: StatelessStyle;
  #style: Style;
  readonly #options: UpstreamOptions;
  #laid: Laid[] = [];

  private constructor(server: RawServer, options: UpstreamOptions) {
    this.server = server;
    this.#options = options;
    this.#style = options.style ?? "stateless";
    this.desk = new Desk(() => server.wake());
    this.sessions = new SessionStyle(this.desk, options.session ?? {});
    this.exchanges = new StatelessStyle(this.desk, options.exchange ?? {});
    server.onVisit = (visit) => this.#take(visit);
  }

  static async open(options: UpstreamOptions = {}): Promise<FaultyServer> {
    return new FaultyServer(await RawServer.open(), options);
  }

  /** No other end has the same: ports come again, and the style of an end is remembered by its address. */
  get url(): string {
    return `${this.server.origin}/mcp?end=${this.#number}`;
  }

  /** What was asked, in order: methods of messages, and GET or DELETE. */
  get asked(): string[] {
    return this.visits.map(({ what }) => what);
  }

  count(what: string): number {
    return this.asked.filter((asked) => asked === what).length;
  }

  /** Lays a fault in the way of the next requests for this: a method, GET, DELETE, "response", or "*" for any. */
  lay(what: string, fault: Fault, times = 1): void {
    this.#laid.push({ what, fault, times });
  }

  /** Takes all faults away that were not met. */
  clear(): void {
    this.#laid = [];
  }

  /** How many faults have not been met yet. */
  get waiting(): number {
    return this.#laid.reduce((sum, { times }) => sum + times, 0);
  }

  /** All connections and all that it knew of its callers are gone; the count of executions stays. */
  async restart(style: Style = this.#style): Promise<void> {
    await this.server.stop();
    this.#style = style;
    this.sessions = new SessionStyle(this.desk, this.#options.session ?? {});
    this.exchanges = new StatelessStyle(this.desk, this.#options.exchange ?? {});
    await this.server.start();
  }

  /** Somebody listens for changes. */
  async untilHeard(): Promise<void> {
    await this.until(() => this.sessions.isHeard || this.exchanges.isHeard);
  }

  touch(): void {
    this.#change("notifications/resources/updated", NOTE);
  }

  grow(name: string): void {
    this.desk.grown.push(name);
    this.#change("notifications/tools/list_changed");
  }

  async until(holds: () => boolean): Promise<void> {
    await this.server.until(holds);
  }

  async close(): Promise<void> {
    await this.server.stop();
  }

  #change(method: string, uri?: string): void {
    const notification = { method, ...(uri !== undefined && { params: { uri } }) };
    this.sessions.change(notification, uri);
    this.exchanges.change(notification, uri);
  }

  #take(visit: Visit): void {
    this.visits.push(visit);
    const serve = async (): Promise<void> => this.#serve(visit);
    const found = this.#laid.find(({ what }) => what === "*" || what === visit.what);
    if (found === undefined) {
      void serve();
      return;
    }
    found.times -= 1;
    if (found.times <= 0) this.#laid = this.#laid.filter((one) => one !== found);
    void found.fault(visit, serve);
  }

  #serve(visit: Visit): void | Promise<void> {
    const { sessions, exchanges } = this;
    const isPost = visit.method === "POST";
    if (this.#style === "old") {
      if (visit.method === "GET") return sessions.oldGet(visit);
      return isPost && visit.path.startsWith("/messages") ? sessions.oldPost(visit) : visit.answer(404, "Cannot POST");
    }
    if (this.#style === "stateless" || (this.#style === "both" && isPost && isStateless(visit.json))) {
      return isPost ? exchanges.post(visit) : visit.answer(405, "", { allow: "POST" });
    }
    if (isPost) return sessions.post(visit);
    return visit.method === "GET" ? sessions.get(visit) : sessions.delete(visit);
  }
}
