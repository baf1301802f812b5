// The tools and the resource behind a faulty server. It counts how often each call was executed, which is what tests of
// faults check. It is the same in every style; the style classes send its answers.

import type { Json } from "../http/raw-server.ts";

export const NOTE = "note://one";

/** Only these two tools declare that they may run again. */
const HINTS: Readonly<Record<string, Json | undefined>> = {
  peek: { readOnlyHint: true },
  again: { idempotentHint: true },
};

const TOOLS = ["run", "peek", "again", "hold", "big", "ask"];

export interface AnswerOptions {
  /** Whether results have the fields of the newest revision. */
  readonly newestFormat: boolean;
  /** Sends a message before the answer. */
  readonly send: (notification: Json) => void;
}

export class Backend {
  /** How often each key was executed, by any tool. */
  readonly runs = new Map<string, number>();
  /** Tools that were added to the list. */
  readonly addedTools: string[] = [];
  /** Notifications and responses from clients. */
  readonly received: Json[] = [];
  readonly #waiting: (() => void)[] = [];
  #clientRequests = 0;
  readonly #held = new Map<string, () => void>();
  readonly #wake: () => void;

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  runCount(key: string): number {
    return this.runs.get(key) ?? 0;
  }

  /** Finishes a call of `hold`. */
  release(key: string): void {
    this.#held.get(key)?.();
  }

  isHolding(key: string): boolean {
    return this.#held.has(key);
  }

  receive(message: Json): void {
    this.received.push(message);
    for (const check of this.#waiting.splice(0)) check();
    this.#wake();
  }

  /** Responses to requests of the tool `ask`. */
  get responses(): Json[] {
    return this.received.filter((message) => message["method"] === undefined);
  }

  async answer({ id, method, params = {} }: Json, { newestFormat, send }: AnswerOptions): Promise<Json> {
    const withFields = (result: Json, isCacheable = false): Json => ({
      ...(newestFormat && { resultType: "complete" }),
      ...(newestFormat && isCacheable && { ttlMs: 0, cacheScope: "private" }),
      ...result,
    });
    const respond = (result: Json, isCacheable?: boolean): Json => ({
      jsonrpc: "2.0",
      id,
      result: withFields(result, isCacheable),
    });
    switch (method) {
      case "ping":
      case "logging/setLevel":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return respond({});
      case "tools/list":
        return respond({ tools: [...TOOLS, ...this.addedTools].map(toolNamed) }, true);
      case "resources/list":
        return respond({ resources: [{ uri: NOTE, name: "one" }] }, true);
      case "resources/read":
        return respond({ contents: [{ uri: params.uri, text: "The first note" }] }, true);
      case "tools/call":
        return respond(await this.#call(params, send));
      default:
        return { jsonrpc: "2.0", id, error: { code: -32601, message: `Method not found: ${String(method)}` } };
    }
  }

  async #call({ name, arguments: args = {}, _meta = {} }: Json, send: (message: Json) => void): Promise<Json> {
    const key = String(args.key);
    this.runs.set(key, this.runCount(key) + 1);
    for (let step = 1; step <= Number(args.steps ?? 0); step += 1) {
      const progress = { progressToken: _meta.progressToken, progress: step, total: args.steps };
      send({ jsonrpc: "2.0", method: "notifications/progress", params: progress });
    }
    if (name === "hold") {
      const released = new Promise<void>((resolve) => this.#held.set(key, resolve));
      this.#wake();
      await released;
      this.#held.delete(key);
    }
    if (name === "ask") return this.#ask(send);
    this.#wake();
    const { unit = "x", bytes = 0 } = args;
    const text = name === "big" ? unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit))) : `ran ${key}`;
    return { content: [{ type: "text", text }], isError: false };
  }

  /** Sends a request to the client during the call, with an id that the client also uses for its own requests. */
  async #ask(send: (message: Json) => void): Promise<Json> {
    const id = (this.#clientRequests += 1);
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    send({ jsonrpc: "2.0", id, method: "elicitation/create", params: { message: "Who are you?", requestedSchema } });
    for (;;) {
      const response = this.responses.find((message) => message["id"] === id);
      if (response !== undefined) return { content: [{ type: "text", text: JSON.stringify(response["result"]) }] };
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

function toolNamed(name: string): Json {
  const annotations = HINTS[name];
  return { name, inputSchema: { type: "object" }, ...(annotations && { annotations }) };
}
