// A handler with every method, for tests of clients: lists in pages of two, a tool for each event that can happen during
// a call, and change notifications that the test sends.

import type { Context, Handler, Notification, Params, Request, Result } from "../../../src/core/handler.ts";
import { invalidParams, McpError, methodNotFound } from "../../../src/protocol/errors.ts";

const NAMES = ["echo", "hold", "ask", "notes", "boom"];
const PAGE = 2;

export interface SampleServer {
  readonly handler: Handler;
  /** Every request, in order. */
  readonly requests: Request[];
  /** The contexts of running calls of `hold`, by key. */
  readonly held: Map<string, Context>;
  /** How long lists and resources may be cached. */
  ttlMs: number;
  /** Resolves when a call of `hold` with this key is running. */
  holding(key: string): Promise<Context>;
  release(key: string): void;
  notifySubscribers(notification: Notification): void;
  /** The number of open subscriptions. */
  readonly subscriptions: number;
}

export function textResult(value: string): Result {
  return { resultType: "complete", content: [{ type: "text", text: value }], isError: false };
}

export function sampleServer(): SampleServer {
  const requests: Request[] = [];
  const held = new Map<string, Context>();
  const doors = new Map<string, () => void>();
  const waiting = new Map<string, (context: Context) => void>();
  const listeners = new Set<Context>();

  const hold = async (key: string, context: Context): Promise<Result> => {
    held.set(key, context);
    waiting.get(key)?.(context);
    await new Promise<void>((resolve, reject) => {
      doors.set(key, resolve);
      context.signal.addEventListener("abort", () => reject(context.signal.reason as Error), { once: true });
    }).finally(() => held.delete(key));
    return textResult(key);
  };

  const call = async (params: Params, context: Context): Promise<Result> => {
    const args = (params["arguments"] ?? {}) as Record<string, unknown>;
    switch (params["name"]) {
      case "echo":
        return textResult(String(args["text"]));
      case "hold":
        return hold(String(args["key"]), context);
      case "ask": {
        const request = { method: String(args["method"]), params: (args["params"] ?? {}) as Params };
        return textResult(JSON.stringify(await context.ask(request, { key: "only" })));
      }
      case "notes":
        context.notify({ method: "notifications/progress", params: { progress: 1, total: 2, message: "half" } });
        for (const level of ["debug", "info", "error"]) {
          context.notify({ method: "notifications/message", params: { level, data: `${level} note` } });
        }
        return textResult("noted");
      case "boom":
        throw new Error("it broke");
      default:
        throw McpError.of("tool_not_found", `Unknown tool: ${String(params["name"])}`);
    }
  };

  const list = (field: string, { cursor }: Params, item: (name: string) => object): Result => {
    const from = cursor === undefined ? 0 : Number(cursor);
    if (!Number.isInteger(from) || from < 0 || from > NAMES.length) throw invalidParams("Unknown cursor");
    return {
      resultType: "complete",
      [field]: NAMES.slice(from, from + PAGE).map(item),
      ...(from + PAGE < NAMES.length ? { nextCursor: String(from + PAGE) } : undefined),
      ttlMs: self.ttlMs,
      cacheScope: "public",
    };
  };

  const handler: Handler = async (request, context) => {
    requests.push(request);
    const { method, params } = request;
    switch (method) {
      case "server/discover":
        return {
          resultType: "complete",
          capabilities: {
            tools: { listChanged: true },
            prompts: { listChanged: true },
            resources: { listChanged: true, subscribe: true },
            completions: {},
            logging: {},
          },
          instructions: "Ask away.",
          ttlMs: self.ttlMs,
          cacheScope: "public",
          _meta: { "io.modelcontextprotocol/serverInfo": { name: "sample", version: "1" } },
        };
      case "tools/list":
        return list("tools", params, (name) => ({ name, inputSchema: { type: "object" } }));
      case "prompts/list":
        return list("prompts", params, (name) => ({ name }));
      case "resources/list":
        return list("resources", params, (name) => ({ uri: `test://${name}`, name }));
      case "resources/templates/list":
        return list("resourceTemplates", params, (name) => ({ uriTemplate: `test://${name}/{id}`, name }));
      case "tools/call":
        return call(params, context);
      case "resources/read":
        if (params["uri"] === "test://none") {
          throw McpError.of("resource_not_found", "No such resource", { uri: params["uri"] });
        }
        return {
          resultType: "complete",
          contents: [{ uri: params["uri"], text: `${requests.length}` }],
          ttlMs: self.ttlMs,
          cacheScope: "private",
        };
      case "prompts/get": {
        const { word = "nothing" } = (params["arguments"] ?? {}) as { word?: string };
        const content = { type: "text", text: `Say ${word}` };
        return { resultType: "complete", messages: [{ role: "user", content }] };
      }
      case "completion/complete": {
        const { value } = params["argument"] as { value: string };
        return { resultType: "complete", completion: { values: [`${value}1`, `${value}2`], hasMore: false } };
      }
      case "subscriptions/listen":
        context.notify({
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: params["notifications"] },
        });
        listeners.add(context);
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve(), { once: true }));
        listeners.delete(context);
        return { resultType: "complete" };
      default:
        throw methodNotFound(method);
    }
  };

  const self: SampleServer = {
    handler,
    requests,
    held,
    ttlMs: 0,
    holding: async (key) => held.get(key) ?? new Promise((resolve) => waiting.set(key, resolve)),
    release: (key) => doors.get(key)?.(),
    notifySubscribers: (notification) => {
      for (const listener of listeners) listener.notify(notification);
    },
    get subscriptions() {
      return listeners.size;
    },
  };
  return self;
}
