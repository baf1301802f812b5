// The stateless style of a faulty server: each answer is JSON or an event stream of its own, and changes are sent to open
// subscriptions. This part is correct; faults are injected by the server.

import { META } from "../../../src/protocol/model/base.ts";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import type { Backend } from "./backend.ts";
import type { Json, RawRequest } from "../http/raw-server.ts";

export interface StatelessOptions {
  /** The format of answers; "auto" is JSON unless a message comes before the answer. */
  readonly answers?: "auto" | "sse" | "json";
}

interface Subscription {
  readonly visit: RawRequest;
  readonly id: unknown;
  readonly filter: Json;
}

const CAPABILITIES = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  logging: {},
};

export function isStateless(message: Json | undefined): boolean {
  return message?.["params"]?._meta?.[META.revision] !== undefined;
}

export class StatelessStyle {
  readonly #desk: Backend;
  readonly #options: StatelessOptions;
  readonly #subscriptions = new Set<Subscription>();

  constructor(backend: Backend, options: StatelessOptions) {
    this.#desk = backend;
    this.#options = options;
  }

  get hasSubscriber(): boolean {
    return this.#subscriptions.size > 0;
  }

  change({ method, params = {} }: Json, uri?: string): void {
    for (const { visit, id, filter } of this.#subscriptions) {
      const wanted: unknown = uri === undefined ? filter["toolsListChanged"] : filter["resourceSubscriptions"];
      if (wanted !== true && !(Array.isArray(wanted) && wanted.includes(uri))) continue;
      const tagged = { ...params, _meta: { [META.subscriptionId]: id } };
      visit.chunk(sseEvent({ jsonrpc: "2.0", method, params: tagged }));
    }
  }

  async post(request: RawRequest): Promise<void> {
    const message = request.json ?? {};
    const { id, method, params } = message;
    const respond = (status: number, error: Json): void => request.answer(status, { jsonrpc: "2.0", id, error });
    if (!isStateless(message)) return respond(400, { code: -32602, message: "The request has no revision" });
    const wanted: unknown = params._meta[META.revision];
    if (wanted !== NEWEST.name)
      return respond(400, {
        code: -32022,
        message: "Unsupported protocol version",
        data: { supported: [NEWEST.name], requested: wanted },
      });
    if (request.headers["mcp-method"] !== method || request.headers["mcp-protocol-version"] !== wanted)
      return respond(400, { code: -32020, message: "Header mismatch" });
    if (id === undefined) {
      this.#desk.receive(message);
      return request.answer(202);
    }
    if (method === "server/discover") return request.answer(200, { jsonrpc: "2.0", id, result: DISCOVERED });
    if (method === "subscriptions/listen") return this.#subscribe(request, id, params.notifications ?? {});
    return this.#answer(request, message);
  }

  async #answer(request: RawRequest, message: Json): Promise<void> {
    const { answers = "auto" } = this.#options;
    let isStream = false;
    const send = (message: Json): void => {
      if (answers === "json") return;
      if (!isStream) request.begin(200, { "content-type": "text/event-stream" });
      isStream = true;
      request.chunk(sseEvent(message));
    };
    const answer = await this.#desk.answer(message, { newestFormat: true, send });
    if (isStream || answers === "sse") {
      send(answer);
      request.end();
    } else request.answer(answer["error"]?.code === -32601 ? 404 : 200, answer);
  }

  #subscribe(request: RawRequest, id: unknown, filter: Json): void {
    const subscription = { visit: request, id, filter };
    this.#subscriptions.add(subscription);
    request.closed.addEventListener("abort", () => this.#subscriptions.delete(subscription), { once: true });
    request.begin(200, { "content-type": "text/event-stream" });
    const params = { notifications: filter, _meta: { [META.subscriptionId]: id } };
    request.chunk(sseEvent({ jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged", params }));
  }
}

export function sseEvent(message: Json): string {
  return `event: message\ndata: ${JSON.stringify(message)}\n\n`;
}

const DISCOVERED = {
  resultType: "complete",
  supportedVersions: [NEWEST.name],
  capabilities: CAPABILITIES,
  ttlMs: 0,
  cacheScope: "private",
  _meta: { [META.serverInfo]: { name: "faulty", version: "1" } },
};
