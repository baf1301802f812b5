// The exchange style of a faulty end: every request brings all, its answer is JSON or a stream that belongs to it, and
// changes go to whoever keeps a listen open. As right as it can be; what goes wrong is done from outside.

import { META } from "../../../src/protocol/model/index.ts";
import { NEWEST } from "../../../src/protocol/revisions/index.ts";
import type { Desk } from "./backend.ts";
import type { Json, Visit } from "../http/raw-server.ts";

export interface ExchangeOptions {
  /** How a request is answered; as JSON where nothing is said before the answer. */
  readonly answers?: "auto" | "sse" | "json";
}

interface Listen {
  readonly visit: Visit;
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
  readonly #desk: Desk;
  readonly #options: ExchangeOptions;
  readonly #listens = new Set<Listen>();

  constructor(desk: Desk, options: ExchangeOptions) {
    this.#desk = desk;
    this.#options = options;
  }

  get isHeard(): boolean {
    return this.#listens.size > 0;
  }

  change({ method, params = {} }: Json, uri?: string): void {
    for (const { visit, id, filter } of this.#listens) {
      const wanted: unknown = uri === undefined ? filter["toolsListChanged"] : filter["resourceSubscriptions"];
      if (wanted !== true && !(Array.isArray(wanted) && wanted.includes(uri))) continue;
      const said = { ...params, _meta: { [META.subscriptionId]: id } };
      visit.chunk(eventOf({ jsonrpc: "2.0", method, params: said }));
    }
  }

  async post(visit: Visit): Promise<void> {
    const message = visit.json ?? {};
    const { id, method, params } = message;
    const respond = (status: number, error: Json): void => visit.answer(status, { jsonrpc: "2.0", id, error });
    if (!isStateless(message)) return respond(400, { code: -32602, message: "The request names no revision" });
    const wanted: unknown = params._meta[META.revision];
    if (wanted !== NEWEST.name)
      return respond(400, {
        code: -32022,
        message: "Unsupported protocol version",
        data: { supported: [NEWEST.name], requested: wanted },
      });
    if (visit.headers["mcp-method"] !== method || visit.headers["mcp-protocol-version"] !== wanted)
      return respond(400, { code: -32020, message: "Header mismatch" });
    if (id === undefined) {
      this.#desk.hear(message);
      return visit.answer(202);
    }
    if (method === "server/discover") return visit.answer(200, { jsonrpc: "2.0", id, result: DISCOVERED });
    if (method === "subscriptions/listen") return this.#listen(visit, id, params.notifications ?? {});
    return this.#answer(visit, message);
  }

  async #answer(visit: Visit, message: Json): Promise<void> {
    const { answers = "auto" } = this.#options;
    let isStream = false;
    const say = (said: Json): void => {
      if (answers === "json") return;
      if (!isStream) visit.begin(200, { "content-type": "text/event-stream" });
      isStream = true;
      visit.chunk(eventOf(said));
    };
    const answer = await this.#desk.answer(message, { dressed: true, say });
    if (isStream || answers === "sse") {
      say(answer);
      visit.end();
    } else visit.answer(answer["error"]?.code === -32601 ? 404 : 200, answer);
  }

  #listen(visit: Visit, id: unknown, filter: Json): void {
    const listen = { visit, id, filter };
    this.#listens.add(listen);
    visit.gone.addEventListener("abort", () => this.#listens.delete(listen), { once: true });
    visit.begin(200, { "content-type": "text/event-stream" });
    const params = { notifications: filter, _meta: { [META.subscriptionId]: id } };
    visit.chunk(eventOf({ jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged", params }));
  }
}

export function eventOf(message: Json): string {
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
