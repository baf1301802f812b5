// A raw server and raw clients with our bridge between them: the connection to the server is a handler, which is served to
// each client on a connection of its own. Handshakes are done here; the test sends all other messages, on both sides.

import type { Context, Notification } from "../../../src/core/handler.ts";
import { openConnection, type ServerConnection } from "../../../src/dialogue/connect.ts";
import { serveTransport } from "../../../src/dialogue/connection.ts";
import { isRequest } from "../../../src/jsonrpc/message.ts";
import { knownRevision, NEWEST } from "../../../src/protocol/revisions/index.ts";
import { memoryPair } from "../../../src/transport/memory.ts";
import type { Transport } from "../../../src/transport/transport.ts";
import { fakeCaller } from "../handlers/fake-client.ts";
import { RawPeer, statelessMeta } from "./raw-peer.ts";

type Loose = { readonly [key: string]: unknown };

export interface RawClient {
  readonly revision: string;
  /** In the format of its revision. */
  readonly capabilities?: Loose;
}

export interface BridgeOptions {
  /** The revision of the server. */
  readonly server: string;
  /** In the format of the server's revision. */
  readonly serverCapabilities?: Loose;
  /** The client capabilities that the bridge declares to the server, in the newest format. */
  readonly bridgeCapabilities?: Loose;
  /** Whether the bridge promises the server notifications of changed roots. */
  readonly notifiesRoots?: boolean;
  readonly clients: readonly RawClient[];
}

export interface RawBridge {
  readonly server: RawPeer;
  readonly connection: ServerConnection;
  readonly clients: readonly RawPeer[];
  /** Notifications that belong to no client. */
  readonly unattributed: readonly Notification[];
  /** Sends a request of this client, with the `_meta` that its revision needs. */
  request(index: number, message: Loose): Promise<Loose>;
  /** The nth request or notification with this method that the server received, already or still to come. */
  received(method: string, nth?: number): Promise<Loose>;
  close(): Promise<void>;
}

const ALL = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} };

export async function rawBridge({
  server: revision,
  serverCapabilities,
  bridgeCapabilities = ALL,
  notifiesRoots = false,
  clients,
}: BridgeOptions): Promise<RawBridge> {
  const capabilities = serverCapabilities ?? {
    tools: { listChanged: true },
    prompts: {},
    resources: { subscribe: true },
    logging: {},
  };
  const [back, serverSide] = memoryPair();
  const server = await new RawPeer(answerHandshakes(serverSide, revision, capabilities)).start();
  const unattributed: Notification[] = [];
  const defaultContext: Context = {
    revision: NEWEST.name,
    caller: fakeCaller({ capabilities: bridgeCapabilities, notifiesRoots }),
    signal: new AbortController().signal,
    notify: (notification) => unattributed.push(notification),
    ask: () => Promise.reject(new Error("No client to ask")),
  };
  const info = { name: "bridge", version: "1" };
  const connection = await openConnection(() => back, {
    info,
    capabilities: bridgeCapabilities,
    defaultContext,
    revision,
  });
  const fronts = await Promise.all(clients.map((client) => join(connection, client)));
  return {
    server,
    connection,
    clients: fronts.map(({ peer }) => peer),
    unattributed,
    request: (index, message) => {
      const { peer } = fronts[index]!;
      return peer.request(withMeta(clients[index]!, message));
    },
    received: async (method, nth = 1) => {
      const matching = (): readonly Loose[] => server.received.filter((message) => message["method"] === method);
      await server.until(() => matching().length >= nth);
      return matching()[nth - 1]!;
    },
    close: async () => {
      await Promise.all(fronts.map(({ served }) => served.close()));
      await connection.close();
    },
  };
}

/** The server's side of a connection; answers handshakes and `logging/setLevel`. */
function answerHandshakes(side: Transport, revision: string, capabilities: Loose): Transport {
  const results: Readonly<Record<string, Loose>> = {
    initialize: { protocolVersion: revision, capabilities, serverInfo: { name: "server", version: "1" } },
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
        if (inbound.kind !== "message" || !isRequest(inbound.message)) return;
        const { message } = inbound;
        const result = results[message.method];
        if (result !== undefined) void side.send({ jsonrpc: "2.0", id: message.id, result });
      }),
    send: (message) => side.send(message),
    close: () => side.close(),
  };
}

async function join(connection: ServerConnection, { revision, capabilities = {} }: RawClient) {
  const [front, side] = memoryPair();
  const served = await serveTransport(connection.handler, front);
  const peer = await new RawPeer(side).start();
  if (knownRevision(revision).style === "session") await peer.handshake(revision, capabilities);
  return { peer, served };
}

function withMeta({ revision, capabilities }: RawClient, message: Loose): Loose {
  if (knownRevision(revision).style === "session") return message;
  const params = (message["params"] ?? {}) as { readonly _meta?: Loose };
  return { ...message, params: { ...params, _meta: { ...statelessMeta(revision, capabilities), ...params._meta } } };
}
