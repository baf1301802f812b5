// A caller, a bridge and an end, each pair joined by a wire: the bridge is nothing but an end's handler that
// is served again. In memory all three live here, and both wires are on record; over stdio each is a process of
// its own.

import { fileURLToPath } from "node:url";
import { connect, type Client, type ConnectOptions, type Handler } from "../../src/client/index.ts";
import { serveTransport } from "../../src/dialogue/connection.ts";
import { recordTransport, type RecordedMessage } from "../../src/testing.ts";
import { memoryPair } from "../../src/transport/memory.ts";
import { makeServer } from "./end-server.ts";

/** What a bridge declares to its end: its callers' own limits are told question by question. */
export const ALL_CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** All that was said on one wire, by whom, in the one revision that it speaks. */
export interface WireRecord {
  readonly name: string;
  readonly revision: string;
  readonly messages: readonly RecordedMessage[];
}

export interface Flow {
  readonly client: Client;
  /** Where the wires are in this process. */
  readonly wires?: readonly WireRecord[];
  close(): Promise<void>;
}

export type Arrange = (callerRevision: string, serverRevision: string, options: ConnectOptions) => Promise<Flow>;

const inMemory: Arrange = (callerRevision, serverRevision, options) =>
  bridged(makeServer(), callerRevision, serverRevision, options);

/** All three in this process, with a server of one's own at the end. */
export async function bridged(
  server: Handler,
  callerRevision: string,
  serverRevision: string,
  options: ConnectOptions,
): Promise<Flow & { readonly wires: readonly WireRecord[] }> {
  const [endBack, endFront] = memoryPair();
  const [callerBack, callerFront] = memoryPair();
  const behind = recordTransport(endBack);
  const before = recordTransport(callerBack);
  const end = await serveTransport(server, endFront, { revisions: [serverRevision] });
  const inner = await connect(behind, { revision: serverRevision, capabilities: ALL_CAPABILITIES });
  const bridge = await serveTransport(inner.handler, callerFront);
  const client = await connect(before, { ...options, revision: callerRevision });
  return {
    client,
    wires: [
      { name: "caller and bridge", revision: callerRevision, messages: before.messages },
      { name: "bridge and end", revision: serverRevision, messages: behind.messages },
    ],
    close: async () => {
      await client.close();
      await bridge.close();
      await inner.close();
      await end.close();
    },
  };
}

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

/** A script of this folder as a command. */
export function command(name: string, ...args: readonly string[]): { command: string; args: string[] } {
  return { command: process.execPath, args: ["--import", "tsx", script(name), ...args] };
}

const overStdio: Arrange = async (callerRevision, serverRevision, options) => {
  const client = await connect(command("bridge.ts", serverRevision), { ...options, revision: callerRevision });
  return { client, close: () => client.close() };
};

export const ARRANGEMENTS: readonly (readonly [string, Arrange])[] = [
  ["memory", inMemory],
  ["stdio", overStdio],
];
