// An end over HTTP that can be told to fail: it speaks any style, counts every request and every execution, and before
// it serves a request it looks whether a test has laid a fault in the way of it. A fault gets the request and the way
// to serve it properly, so it may answer instead, serve and spoil the answer, or do nothing at all.

import { Backend, NOTE } from "./backend.ts";
import { StatelessStyle, isStateless, type StatelessOptions } from "./stateless.ts";
import { SessionStyle, type SessionOptions } from "./session.ts";
import { RawServer, type RawRequest } from "../http/raw-server.ts";

export type Style = "stateless" | "session" | "old" | "both";

export type Fault = (request: RawRequest, serve: () => Promise<void>) => unknown;

export interface FaultyServerOptions {
  readonly style?: Style;
  readonly session?: SessionOptions;
  readonly stateless?: StatelessOptions;
}

interface PlannedFault {
  readonly what: string;
  readonly fault: Fault;
  times: number;
}

export class FaultyServer {
  static #count = 0;
  readonly #number: number = (FaultyServer.#count += 1);
  /** Every request that came, in order. */
  readonly requests: RawRequest[] = [];
  readonly server: RawServer;
  readonly backend: Backend;
  sessions: SessionStyle;
  stateless: StatelessStyle;
  #style: Style;
  readonly #options: FaultyServerOptions;
  #laid: PlannedFault[] = [];

  private constructor(server: RawServer, options: FaultyServerOptions) {
    this.server = server;
    this.#options = options;
    this.#style = options.style ?? "stateless";
    this.backend = new Backend(() => server.wake());
    this.sessions = new SessionStyle(this.backend, options.session ?? {});
    this.stateless = new StatelessStyle(this.backend, options.stateless ?? {});
    server.onRequest = (request) => this.#take(request);
  }

  static async open(options: FaultyServerOptions = {}): Promise<FaultyServer> {
    return new FaultyServer(await RawServer.open(), options);
  }

  /** No other end has the same: ports come again, and the style of an end is remembered by its address. */
  get url(): string {
    return `${this.server.origin}/mcp?end=${this.#number}`;
  }

  /** What was asked, in order: methods of messages, and GET or DELETE. */
  get operations(): string[] {
    return this.requests.map(({ operation }) => operation);
  }

  count(what: string): number {
    return this.operations.filter((asked) => asked === what).length;
  }

  /** Lays a fault in the way of the next requests for this: a method, GET, DELETE, "response", or "*" for any. */
  inject(what: string, fault: Fault, times = 1): void {
    this.#laid.push({ what, fault, times });
  }

  /** Takes all faults away that were not met. */
  clearFaults(): void {
    this.#laid = [];
  }

  /** How many faults have not been met yet. */
  get pendingFaults(): number {
    return this.#laid.reduce((sum, { times }) => sum + times, 0);
  }

  /** All connections and all that it knew of its callers are gone; the count of executions stays. */
  async restart(style: Style = this.#style): Promise<void> {
    await this.server.stop();
    this.#style = style;
    this.sessions = new SessionStyle(this.backend, this.#options.session ?? {});
    this.stateless = new StatelessStyle(this.backend, this.#options.stateless ?? {});
    await this.server.start();
  }

  /** Somebody listens for changes. */
  async untilSubscribed(): Promise<void> {
    await this.until(() => this.sessions.hasSubscriber || this.stateless.hasSubscriber);
  }

  updateNote(): void {
    this.#change("notifications/resources/updated", NOTE);
  }

  addTool(name: string): void {
    this.backend.addedTools.push(name);
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
    this.stateless.change(notification, uri);
  }

  #take(request: RawRequest): void {
    this.requests.push(request);
    const serve = async (): Promise<void> => this.#serve(request);
    const found = this.#laid.find(({ what }) => what === "*" || what === request.operation);
    if (found === undefined) {
      void serve();
      return;
    }
    found.times -= 1;
    if (found.times <= 0) this.#laid = this.#laid.filter((one) => one !== found);
    void found.fault(request, serve);
  }

  #serve(request: RawRequest): void | Promise<void> {
    const { sessions, stateless } = this;
    const isPost = request.method === "POST";
    if (this.#style === "old") {
      if (request.method === "GET") return sessions.legacyGet(request);
      return isPost && request.path.startsWith("/messages") ? sessions.legacyPost(request) : request.answer(404, "Cannot POST");
    }
    if (this.#style === "stateless" || (this.#style === "both" && isPost && isStateless(request.json))) {
      return isPost ? stateless.post(request) : request.answer(405, "", { allow: "POST" });
    }
    if (isPost) return sessions.post(request);
    return request.method === "GET" ? sessions.get(request) : sessions.delete(request);
  }
}
