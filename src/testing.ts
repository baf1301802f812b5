// The door `catenary/testing`, for those who test their own servers: a client and a server joined by a wire in
// memory, in any revision, with every message of the wire on record. Without a wire, `connect(server)` is enough.

import { connect, type ConnectOptions } from "./client/connect.ts";
import type { Client } from "./client/client.ts";
import type { Handler } from "./core/handler.ts";
import { serveTransport, type ConnectionOptions } from "./dialogue/connection.ts";
import type { Message } from "./jsonrpc/message.ts";
import { NEWEST, REVISIONS } from "./protocol/revisions/index.ts";
import { memoryPair } from "./transport/memory.ts";
import type { Inbound, Transport } from "./transport/transport.ts";

export { memoryPair };
export type { Message, Transport };

/** All revisions that can be spoken, oldest first: `it.each(REVISION_NAMES)(...)`. */
export const REVISION_NAMES: readonly string[] = REVISIONS.map(({ name }) => name);

/** One message of a wire, with the side that sent it. */
export interface Recorded {
  readonly from: "caller" | "end";
  readonly message: Message;
}

export interface Recording extends Transport {
  /** What this side sent, in order; of a batch, each message by itself. */
  readonly sent: readonly Message[];
  /** What this side received, in order. */
  readonly received: readonly Message[];
  /** Both, in the order in which they passed. This side is the caller. */
  readonly messages: readonly Recorded[];
}

/** A transport that carries what the given one carries, and keeps a record of it. */
export function recorded(transport: Transport): Recording {
  const sent: Message[] = [];
  const received: Message[] = [];
  const messages: Recorded[] = [];
  const note = (from: Recorded["from"], message: Message | readonly Message[]): void => {
    for (const one of isBatch(message) ? message : [message]) {
      (from === "caller" ? sent : received).push(one);
      messages.push({ from, message: one });
    }
  };
  return {
    sent,
    received,
    messages,
    start: (receive) =>
      transport.start((inbound: Inbound) => {
        if (inbound.message !== undefined) note("end", inbound.message);
        for (const item of inbound.batch ?? []) if ("message" in item) note("end", item.message);
        receive({
          ...inbound,
          reply: (message, options) => {
            note("caller", message);
            return inbound.reply(message, options);
          },
        });
      }),
    send: (message, options) => {
      note("caller", message);
      return transport.send(message, options);
    },
    close: (budgetMs) => transport.close(budgetMs),
  };
}

function isBatch(message: Message | readonly Message[]): message is readonly Message[] {
  return Array.isArray(message);
}

export interface ConnectAtOptions extends ConnectOptions {
  /** How the server is served; by default in all revisions, concurrently. */
  readonly serving?: ConnectionOptions;
}

export interface Connected extends Pick<Recording, "sent" | "received" | "messages"> {
  readonly client: Client;
  /** Closes both sides; the server itself stays as it is. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A client joined to a server by a wire that speaks `revision` (the newest where it is left out). */
export async function connectAt(server: Handler, options: ConnectAtOptions = {}): Promise<Connected> {
  const { serving, ...rest } = options;
  const [ours, theirs] = memoryPair();
  const recording = recorded(ours);
  const served = await serveTransport(server, theirs, serving);
  const close = async (client?: Client): Promise<void> => {
    await client?.close();
    await served.close();
  };
  let client: Client;
  try {
    client = await connect(recording, { revision: NEWEST.name, ...rest });
  } catch (error) {
    await close();
    throw error;
  }
  const { sent, received, messages } = recording;
  return { client, sent, received, messages, close: () => close(client), [Symbol.asyncDispose]: () => close(client) };
}
