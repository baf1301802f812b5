// An MCP server over HTTP with fault injection, in any style. It records each request and counts each execution. A fault
// gets the request and a function that serves it, so it can answer instead, spoil the answer, or do nothing.

import { Backend, NOTE } from "./backend.ts";
import { StatelessStyle, isStateless, type StatelessOptions } from "./stateless.ts";
import { SessionStyle, type SessionOptions } from "./session.ts";
import { RawServer, type RawRequest } from "../http/raw-server.ts";

export type Style = "stateless" | "session" | "legacy-sse" | "both";

export type Fault = (request: RawRequest, serve: () => Promise<void>) => unknown;

export interface FaultyServerOptions {
  readonly style?: Style;
  readonly session?: SessionOptions;
  readonly stateless?: StatelessOptions;
}

interface PlannedFault {
  readonly operation: string;
  readonly fault: Fault;
  times: number;
}

export class FaultyServer {
  static #count = 0;
  readonly #number: number = (FaultyServer.#count += 1);
  /** Every request, in order. */
  readonly requests: RawRequest[] = [];
  readonly server: RawServer;
  readonly backend: Backend;
  sessions: SessionStyle;
  stateless: StatelessStyle;
  #style: Style;
  readonly #options: FaultyServerOptions;
  #faults: PlannedFault[] = [];

  private constructor(server: RawServer, options: FaultyServerOptions) {
    this.server = server;
    this.#options = options;
    this.#style = options.style ?? "stateless";
    this.backend = new Backend(() => server.wake());
    this.sessions = new SessionStyle(this.backend, options.session ?? {});
    this.stateless = new StatelessStyle(this.backend, options.stateless ?? {});
    server.onRequest = (request) => this.#handle(request);
  }

  static async open(options: FaultyServerOptions = {}): Promise<FaultyServer> {
    return new FaultyServer(await RawServer.open(), options);
  }

  /** Unique for each server: ports are reused, and clients remember the style of an address. */
  get url(): string {
    return `${this.server.origin}/mcp?server=${this.#number}`;
  }

  /** The operations of all requests: methods of messages, GET, DELETE and "response". */
  get operations(): string[] {
    return this.requests.map(({ operation }) => operation);
  }

  count(operation: string): number {
    return this.operations.filter((one) => one === operation).length;
  }

  /** Injects a fault into the next requests of this operation: a method, GET, DELETE, "response", or "*" for any. */
  inject(operation: string, fault: Fault, times = 1): void {
    this.#faults.push({ operation, fault, times });
  }

  /** Removes all pending faults. */
  clearFaults(): void {
    this.#faults = [];
  }

  /** Drops all connections and sessions; the counts stay. */
  async restart(style: Style = this.#style): Promise<void> {
    await this.server.stop();
    this.#style = style;
    this.sessions = new SessionStyle(this.backend, this.#options.session ?? {});
    this.stateless = new StatelessStyle(this.backend, this.#options.stateless ?? {});
    await this.server.start();
  }

  /** Resolves when a client can receive change notifications. */
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

  #handle(request: RawRequest): void {
    this.requests.push(request);
    const serve = async (): Promise<void> => this.#serve(request);
    const planned = this.#faults.find(({ operation }) => operation === "*" || operation === request.operation);
    if (planned === undefined) {
      void serve();
      return;
    }
    planned.times -= 1;
    if (planned.times <= 0) this.#faults = this.#faults.filter((one) => one !== planned);
    void planned.fault(request, serve);
  }

  #serve(request: RawRequest): void | Promise<void> {
    const { sessions, stateless } = this;
    const isPost = request.method === "POST";
    if (this.#style === "legacy-sse") {
      if (request.method === "GET") return sessions.legacyGet(request);
      return isPost && request.path.startsWith("/messages")
        ? sessions.legacyPost(request)
        : request.answer(404, "Cannot POST");
    }
    if (this.#style === "stateless" || (this.#style === "both" && isPost && isStateless(request.json))) {
      return isPost ? stateless.post(request) : request.answer(405, "", { allow: "POST" });
    }
    if (isPost) return sessions.post(request);
    return request.method === "GET" ? sessions.get(request) : sessions.delete(request);
  }
}
