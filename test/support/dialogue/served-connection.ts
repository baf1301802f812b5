// A connection under test: a handler of a few tools, served on a wire in memory, with a raw peer at the other end.

import { afterEach } from "vitest";
import type { Caller, Context, Handler, Result } from "../../../src/core/handler.ts";
import { serveTransport, type ConnectionOptions, type ServedConnection } from "../../../src/dialogue/connection.ts";
import { McpError } from "../../../src/protocol/errors.ts";
import { memoryPair } from "../../../src/transport/memory.ts";
import type { Transport } from "../../../src/transport/transport.ts";
import { RawPeer } from "./raw-peer.ts";

const text = (value: string): Result => ({
  resultType: "complete",
  content: [{ type: "text", text: value }],
  isError: false,
});

/** A handler of three tools, whose running calls tests can look into. */
function sampleHandler(): { handler: Handler; running: Map<string, Context>; release(name: string): void } {
  const running = new Map<string, Context>();
  const doors = new Map<string, () => void>();
  const handler: Handler = async (request, context) => {
    switch (request.method) {
      case "server/discover":
        return {
          resultType: "complete",
          capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
          ttlMs: 0,
          cacheScope: "private",
          _meta: { "io.modelcontextprotocol/serverInfo": { name: "stage", version: "1" } },
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
            doors.set(key, resolve);
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
  return { handler, running, release: (key) => doors.get(key)?.() };
}

const open: { peer: RawPeer; served: ServedConnection }[] = [];
export async function serveSample(
  options: ConnectionOptions = {},
): Promise<ReturnType<typeof sampleHandler> & { peer: RawPeer; served: ServedConnection }> {
  const [ours, theirs] = memoryPair();
  const made = sampleHandler();
  const served = await serveTransport(made.handler, ours, options);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  return { ...made, peer, served };
}

afterEach(async () => {
  for (const { served } of open.splice(0)) await served.close();
});

/** A peer in front of this handler, and nothing else. */
export async function servePeer(handler: Handler, options: ConnectionOptions = {}): Promise<RawPeer> {
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(handler, ours, options);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  return peer;
}

export interface AuthenticatedPeer {
  readonly peer: RawPeer;
  /** What the wire proves of whatever comes from now on. */
  setCaller(caller: Partial<Caller>): void;
}

/** The same, on a wire that proves with each message who sends it. */
export async function serveAuthenticatedPeer(handler: Handler, first: Partial<Caller>): Promise<AuthenticatedPeer> {
  const [ours, theirs] = memoryPair();
  let proved = first;
  const wire: Transport = {
    start: (receive) => ours.start((inbound) => receive({ ...inbound, caller: { ...proved } })),
    send: (message) => ours.send(message),
    close: () => ours.close(),
  };
  const served = await serveTransport(handler, wire);
  const peer = await new RawPeer(theirs).start();
  open.push({ peer, served });
  const prove = (caller: Partial<Caller>): void => {
    proved = caller;
  };
  return { peer, setCaller };
}
