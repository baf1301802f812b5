// What a faulty end does when it is asked: a few tools, one resource, and above all the count of how often each call
// was executed, which is what the tests of faults are about. It is the same behind every style; how the answer gets to
// the caller, or does not, is no business of this file.

import type { Json } from "../http/raw-server.ts";

export const NOTE = "note://one";

/** Of all tools only these two may be run again. */
const HINTS: Readonly<Record<string, Json | undefined>> = {
  peek: { readOnlyHint: true },
  again: { idempotentHint: true },
};

const TOOLS = ["run", "peek", "again", "hold", "big", "ask"];

export interface AnswerOptions {
  /** Whether results are dressed as the newest revision wants them. */
  readonly newestFormat: boolean;
  /** Takes what is said before the answer. */
  readonly send: (notification: Json) => void;
}

export class Backend {
  /** How often each key was executed, whichever tool it was. */
  readonly runs = new Map<string, number>();
  /** Names that were added to the list of tools. */
  readonly addedTools: string[] = [];
  /** Notifications and answers that came. */
  readonly received: Json[] = [];
  readonly #asking: (() => void)[] = [];
  #questions = 0;
  readonly #doors = new Map<string, () => void>();
  readonly #wake: () => void;

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  runCount(key: string): number {
    return this.runs.get(key) ?? 0;
  }

  /** Lets a call of `hold` come to its end. */
  release(key: string): void {
    this.#doors.get(key)?.();
  }

  isHolding(key: string): boolean {
    return this.#doors.has(key);
  }

  receive(message: Json): void {
    this.received.push(message);
    for (const look of this.#asking.splice(0)) look();
    this.#wake();
  }

  /** The answers that came to questions of `ask`. */
  get responses(): Json[] {
    return this.received.filter((message) => message["method"] === undefined);
  }

  async answer({ id, method, params = {} }: Json, { newestFormat, send }: AnswerOptions): Promise<Json> {
    const dress = (result: Json, kept = false): Json => ({
      ...(newestFormat && { resultType: "complete" }),
      ...(newestFormat && kept && { ttlMs: 0, cacheScope: "private" }),
      ...result,
    });
    const respond = (result: Json, kept?: boolean): Json => ({ jsonrpc: "2.0", id, result: dress(result, kept) });
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

  async #call({ name, arguments: args = {}, _meta = {} }: Json, say: (notification: Json) => void): Promise<Json> {
    const key = String(args.key);
    this.runs.set(key, this.runCount(key) + 1);
    for (let step = 1; step <= Number(args.steps ?? 0); step += 1) {
      const progress = { progressToken: _meta.progressToken, progress: step, total: args.steps };
      say({ jsonrpc: "2.0", method: "notifications/progress", params: progress });
    }
    if (name === "hold") {
      const released = new Promise<void>((resolve) => this.#doors.set(key, resolve));
      this.#wake();
      await released;
      this.#doors.delete(key);
    }
    if (name === "ask") return this.#ask(say);
    this.#wake();
    const { unit = "x", bytes = 0 } = args;
    const text = name === "big" ? unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit))) : `ran ${key}`;
    return { content: [{ type: "text", text }], isError: false };
  }

  /** A question in mid-call, under an id that the caller's own requests have too. */
  async #ask(say: (notification: Json) => void): Promise<Json> {
    const id = (this.#questions += 1);
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    say({ jsonrpc: "2.0", id, method: "elicitation/create", params: { message: "Who are you?", requestedSchema } });
    for (;;) {
      const answer = this.responses.find((message) => message["id"] === id);
      if (answer !== undefined) return { content: [{ type: "text", text: JSON.stringify(answer["result"]) }] };
      await new Promise<void>((resolve) => this.#asking.push(resolve));
    }
  }
}

function toolNamed(name: string): Json {
  const annotations = HINTS[name];
  return { name, inputSchema: { type: "object" }, ...(annotations && { annotations }) };
}
