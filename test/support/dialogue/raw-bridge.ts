// An end and its callers that speak messages and nothing else, with a bridge of ours between them: the end's handler,
// served again to each caller on a wire of its own. Handshakes are made where a revision has them; all else, on either
// side, is for the test to say.

import type { Context, Notification } from "../../../src/core/handler.ts";
import { openConnection, type ServerConnection } from "../../../src/dialogue/connect.ts";
import { serveTransport } from "../../../src/dialogue/connection.ts";
import { isRequest } from "../../../src/jsonrpc/message.ts";
import { knownRevision, NEWEST } from "../../../src/protocol/revisions/index.ts";
import { memoryPair } from "../../../src/transport/memory.ts";
import type { Transport } from "../../../src/transport/transport.ts";
import { RawPeer, statelessMeta } from "./raw-peer.ts";

type Loose = { readonly [key: string]: unknown };

export interface RawClient {
  readonly revision: string;
  /** In the words of its revision. */
  readonly capabilities?: Loose;
}

export interface BridgeOptions {
  readonly server: string;
  /** Capabilities of the end, in the words of its revision. */
  readonly serverCapabilities?: Loose;
  /** What the bridge declares to its end, in the newest shape. */
  readonly bridgeCapabilities?: Loose;
  readonly clients: readonly RawClient[];
}

export interface RawBridge {
  readonly server: RawPeer;
  readonly connection: ServerConnection;
  readonly clients: readonly RawPeer[];
  /** Who is told what belongs to no caller. */
  readonly unattributed: readonly Notification[];
  /** Asks as that caller's revision does: an exchange says by itself who asks. */
  request(index: number, message: Loose): Promise<Loose>;
  /** The first request or notification with this name that the end has got, come or to come, after those before it. */
  received(method: string, nth?: number): Promise<Loose>;
  close(): Promise<void>;
}

const ALL = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export async function rawBridge({ server: revision, serverCapabilities, bridgeCapabilities = ALL, clients }: BridgeOptions): Promise<RawBridge> {
  const capabilities = serverCapabilities ?? {
    tools: { listChanged: true },
    prompts: {},
    resources: { subscribe: true },
    logging: {},
  };
  const [back, endSide] = memoryPair();
  const end = await new RawPeer(greeting(endSide, revision, capabilities)).start();
  const told: Notification[] = [];
  const home: Context = {
    revision: NEWEST.name,
    caller: { capabilities: bridgeCapabilities },
    signal: new AbortController().signal,
    notify: (notification) => told.push(notification),
    ask: () => Promise.reject(new Error("Nobody is at home")),
  };
  const info = { name: "bridge", version: "1" };
  const opened = await openConnection(() => back, { info, capabilities: bridgeCapabilities, defaultContext: home, revision });
  const fronts = await Promise.all(clients.map((caller) => join(opened, caller)));
  return {
    server,
    connection,
    clients: fronts.map(({ peer }) => peer),
    unattributed: told,
    request: (index, message) => {
      const { peer } = fronts[index]!;
      return peer.request(asSaid(clients[index]!, message));
    },
    received: async (method, nth = 1) => {
      const fits = (): readonly Loose[] => end.received.filter((message) => message["method"] === method);
      await end.until(() => fits().length >= nth);
      return fits()[nth - 1]!;
    },
    close: async () => {
      await Promise.all(fronts.map(({ served }) => served.close()));
      await opened.close();
    },
  };
}

/** The end's side of a wire, which says by itself who is there, and logs as it is told. */
function greeting(side: Transport, revision: string, capabilities: Loose): Transport {
  const results: Readonly<Record<string, Loose>> = {
    initialize: { protocolVersion: revision, capabilities, serverInfo: { name: "end", version: "1" } },
    "server/discover": {
      resultType: "complete",
      supportedVersions: [revision],
      capabilities,
      ttlMs: 0,
      cacheScope: "private",
    },
    "logging/setLevel": {},
  };
  return {
    start: (receive) =>
      side.start((inbound) => {
        receive(inbound);
        const { message } = inbound;
        if (message === undefined || !isRequest(message)) return;
        const result = results[message.method];
        if (result !== undefined) void side.send({ jsonrpc: "2.0", id: message.id, result });
      }),
    send: (message) => side.send(message),
    close: () => side.close(),
  };
}

async function join(opened: ServerConnection, { revision, capabilities = {} }: RawClient) {
  const [front, side] = memoryPair();
  const served = await serveTransport(opened.handler, front);
  const peer = await new RawPeer(side).start();
  if (knownRevision(revision).style === "session") await peer.handshake(revision, capabilities);
  return { peer, served };
}

function asSaid({ revision, capabilities }: RawClient, message: Loose): Loose {
  if (knownRevision(revision).style === "session") return message;
  const params = (message["params"] ?? {}) as { readonly _meta?: Loose };
  return { ...message, params: { ...params, _meta: { ...statelessMeta(revision, capabilities), ...params._meta } } };
}
