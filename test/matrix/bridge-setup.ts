// Connects a client, a bridge and a server. The bridge serves the handler of a client connected to the server. In
// memory all three are in this process and both connections are recorded; over stdio each is a process.

import { compiled } from "../support/programs.ts";
import { connect, type Client, type ConnectOptions, type Handler } from "../../src/client/index.ts";
import { serveTransport } from "../../src/dialogue/connection.ts";
import { recordTransport, type RecordedMessage } from "../../src/testing.ts";
import { memoryPair } from "../../src/transport/memory.ts";
import { makeServer } from "./matrix-server.ts";

/** The capabilities a bridge declares to its server. Those of its own caller are checked for each request. */
export const ALL_CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** All messages of one connection, in both directions, and the revision that it speaks. */
export interface RecordedConnection {
  readonly name: string;
  readonly revision: string;
  readonly messages: readonly RecordedMessage[];
}

export interface BridgedClient {
  readonly client: Client;
  /** Only where the connections are in this process. */
  readonly connections?: readonly RecordedConnection[];
  close(): Promise<void>;
}

export type ConnectBridged = (
  callerRevision: string,
  serverRevision: string,
  options: ConnectOptions,
) => Promise<BridgedClient>;

const connectInMemory: ConnectBridged = (callerRevision, serverRevision, options) =>
  bridgeInMemory(makeServer(), callerRevision, serverRevision, options);

/** Client, bridge and the given server in this process. */
export async function bridgeInMemory(
  server: Handler,
  callerRevision: string,
  serverRevision: string,
  options: ConnectOptions,
): Promise<BridgedClient & { readonly connections: readonly RecordedConnection[] }> {
  const [bridgeToServer, serverSide] = memoryPair();
  const [clientToBridge, bridgeSide] = memoryPair();
  const recordedServer = recordTransport(bridgeToServer);
  const recordedClient = recordTransport(clientToBridge);
  const served = await serveTransport(server, serverSide, { revisions: [serverRevision] });
  const inner = await connect(recordedServer, { revision: serverRevision, capabilities: ALL_CAPABILITIES });
  const bridge = await serveTransport(inner.handler, bridgeSide);
  const client = await connect(recordedClient, { ...options, revision: callerRevision });
  return {
    client,
    connections: [
      { name: "client and bridge", revision: callerRevision, messages: recordedClient.messages },
      { name: "bridge and server", revision: serverRevision, messages: recordedServer.messages },
    ],
    close: async () => {
      await client.close();
      await bridge.close();
      await inner.close();
      await served.close();
    },
  };
}

const connectOverStdio: ConnectBridged = async (callerRevision, serverRevision, options) => {
  const program = { command: process.execPath, args: [compiled("bridge-program.ts", import.meta.url), serverRevision] };
  const client = await connect(program, { ...options, revision: callerRevision });
  return { client, close: () => client.close() };
};

export const TRANSPORTS: readonly (readonly [string, ConnectBridged])[] = [
  ["memory", connectInMemory],
  ["stdio", connectOverStdio],
];
