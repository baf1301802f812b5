// Serves a handler over a connection in memory, with a raw peer on the client's side. It is closed after the test.

import { afterEach } from "vitest";
import type { Caller, Context, Handler, Result } from "../../../src/core/handler.ts";
import { serveTransport, type ConnectionOptions, type ServedConnection } from "../../../src/dialogue/connection.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { memoryPair } from "../../../src/transport/memory.ts";
import type { Inbound, Transport } from "../../../src/transport/transport.ts";
import { RawPeer } from "./raw-peer.ts";

const text = (value: string): Result => ({
  resultType: "complete",
  content: [{ type: "text", text: value }],
  isError: false,
});

/** A handler with a few tools; `running` are the contexts of running calls. */
function sampleHandler(): { handler: Handler; running: Map<string, Context>; release(name: string): void } {
  const running = new Map<string, Context>();
  const finish = new Map<string, () => void>();
  const handler: Handler = async (request, context) => {
    switch (request.method) {
      case "server/discover":
        return {
          resultType: "complete",
          capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
          ttlMs: 0,
          cacheScope: "private",
          _meta: { "io.modelcontextprotocol/serverInfo": { name: "sample", version: "1" } },
        };
      case "tools/list":
        return { resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" };
      case "subscriptions/listen":
        context.notify({
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: request.params["notifications"] },
        });
        running.set("listen", context);
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
        return { resultType: "complete" };
      case "tools/call": {
        const name = String(request.params["name"]);
        if (name === "wait") {
          const { key } = request.params["arguments"] as { key: string };
          running.set(key, context);
          await new Promise<void>((resolve, reject) => {
            finish.set(key, resolve);
            context.signal.addEventListener("abort", () => reject(context.signal.reason));
          });
          return text(key);
        }
        if (name === "stuck") {
          running.set("stuck", context);
          await new Promise(() => undefined);
        }
        if (name === "progress") {
          context.notify({ method: "notifications/progress", params: { progress: 1, total: 2, message: "half" } });
          context.notify({ method: "notifications/message", params: { level: "debug", data: "small" } });
          context.notify({ method: "notifications/message", params: { level: "error", data: "big" } });
          return text("done");
        }
        if (name === "cycle") {
          const cycle: Record<string, unknown> = { resultType: "complete" };
          cycle["self"] = cycle;
          return cycle;
        }
        throw McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
      }
    }
    throw McpError.of("method_not_found", `Method not found: ${request.method}`);
  };
  return { handler, running, release: (key) => finish.get(key)?.() };
}

const open: { peer: RawPeer; served: ServedConnection }[] = [];
export async function serveSample(
  options: ConnectionOptions = {},
): Promise<ReturnType<typeof sampleHandler> & { peer: RawPeer; served: ServedConnection }> {
  const [ours, theirs] = memoryPair();
  const sample = sampleHandler();
  const served = await serveTransport(sample.handler, ours, options);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  return { ...sample, peer, served };
}

afterEach(async () => {
  for (const { served } of open.splice(0)) await served.close();
});

/** A peer of this handler. */
export async function servePeer(handler: Handler, options: ConnectionOptions = {}): Promise<RawPeer> {
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(handler, ours, options);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  return peer;
}

export interface AuthenticatedPeer {
  readonly peer: RawPeer;
  /** Sets the authenticated caller of later messages. */
  setCaller(caller: Partial<Caller>): void;
}

/** A peer of this handler on a transport that authenticates each message. */
export async function serveAuthenticatedPeer(handler: Handler, first: Partial<Caller>): Promise<AuthenticatedPeer> {
  const [ours, theirs] = memoryPair();
  let current = first;
  const transport: Transport = {
    start: (receive) => ours.start((inbound) => receive({ ...inbound, caller: { ...current } } as Inbound)),
    send: (message) => ours.send(message),
    close: () => ours.close(),
  };
  const served = await serveTransport(handler, transport);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  const setCaller = (caller: Partial<Caller>): void => {
    current = caller;
  };
  return { peer, setCaller };
}
