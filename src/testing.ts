// The subpath `catenary/testing`: a client and a server connected in memory, in any revision, with a record of every
// message. A test that needs neither a revision nor the record can use `connect(server)`.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Client } from "./client/client.ts";
import type { ToolsOf, ToolTypes } from "./client/tool-types.ts";
import { connect, type ConnectOptions } from "./client/connect.ts";
import type { CallerIdentity, EnvOf, Handler } from "./core/handler.ts";
import { checkOptions, type OptionNames, optionNames } from "./core/options.ts";
import { CONNECTION_OPTIONS, serveTransport, type ConnectionOptions } from "./dialogue/connection.ts";
import type { Message } from "./jsonrpc/message.ts";
import { defined, isObject, type Optional } from "./core/values.ts";
import { freezeMessages } from "./protocol/compose.ts";
import { NEWEST, REVISIONS } from "./protocol/revisions/index.ts";
import { memoryPair } from "./transport/memory.ts";
import { tapTransport } from "./transport/tap.ts";
import type { Inbound, Transport } from "./transport/transport.ts";

export { memoryPair };
export type * from "./client/index.ts";
export type { CallerIdentity, ConnectionOptions };
export type { ParkedCallsOptions } from "./dialogue/stateless/parked-calls.ts";
export type { Compat } from "./protocol/compat.ts";

/** All supported revisions, oldest first: `it.each(REVISION_NAMES)(...)`. */
export const REVISION_NAMES: readonly string[] = REVISIONS.map(({ name }) => name);

/** A message and the side that sent it. */
export interface RecordedMessage {
  /** The side that sent the message. */
  readonly from: "client" | "server";
  /** The message as it was sent. */
  readonly message: Message;
}

/** A transport that records its messages. */
export interface RecordedTransport extends Transport {
  /** Messages that this side sent, in order. The messages of a batch are recorded one by one. */
  readonly sent: readonly Message[];
  /** Messages that this side received, in order. */
  readonly received: readonly Message[];
  /** Sent and received messages together, in order. The transport is taken to be a client's: what it sends is `from: "client"`. */
  readonly messages: readonly RecordedMessage[];
}

/** Wraps a transport and records its messages. */
export function recordTransport(transport: Transport): RecordedTransport {
  const sent: Message[] = [];
  const received: Message[] = [];
  const messages: RecordedMessage[] = [];
  const record = (from: RecordedMessage["from"], message: Message): void => {
    (from === "client" ? sent : received).push(message);
    messages.push({ from, message });
  };
  const tapped = tapTransport(transport, ({ sender, message }) => record(sender, message), "client");
  return { sent, received, messages, ...tapped };
}

/** Options of `connectInMemory()`. */
export interface ConnectInMemoryOptions extends ConnectOptions {
  /**
   * The identity that an authenticated client would have: the server sees it in `context.caller`, and asks for the
   * scopes of tools, resources and prompts.
   *
   * @example
   * connectInMemory(server, { caller: { principal: "ada", scopes: ["notes:read"] } })
   */
  readonly caller?: Optional<CallerIdentity> | undefined;
  /** Options of the server's side. Default: all revisions, and calls run concurrently. */
  readonly serving?: ConnectionOptions | undefined;
}

/** A client that is connected in memory, with a record of the messages. */
export interface InMemoryConnection<Tools extends object = ToolTypes> extends Pick<
  RecordedTransport,
  "sent" | "received" | "messages"
> {
  /** The connected client. */
  readonly client: Client<Tools>;
  /** Closes the connection, but not the server. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const CALLER_OPTIONS: OptionNames<CallerIdentity> = optionNames("endpoint principal scopes claims headers env");

/** Set while a message of a connection in memory is handled, so that no others are frozen. Undefined in browsers. */
const inMemory = (AsyncLocalStorage as typeof AsyncLocalStorage | undefined) && new AsyncLocalStorage<true>();
freezeMessages((value) => (inMemory?.getStore() === true ? deepFreeze(value) : value));

/** The transport of a server, as if its messages were authenticated. What middleware gets of them is frozen. */
function serverTransport(transport: Transport, caller: CallerIdentity | undefined): Transport {
  return {
    start: (receive) =>
      transport.start((inbound, carrier) => {
        const isMessage = inbound.kind === "message" || inbound.kind === "batch";
        const received: Inbound = isMessage && caller !== undefined ? { ...inbound, caller } : inbound;
        return inMemory === undefined ? receive(received, carrier) : inMemory.run(true, receive, received, carrier);
      }),
    send: (message, options) => transport.send(message, options),
    close: (budgetMs) => transport.close(budgetMs),
  };
}

/** Freezes objects and arrays, as JSON has them. */
function deepFreeze<Value>(value: Value): Value {
  const prototype: unknown = isObject(value) ? Object.getPrototypeOf(value) : undefined;
  const isPlain = Array.isArray(value) || prototype === Object.prototype || prototype === null;
  if (!isPlain || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const inner of Object.values(value as object)) deepFreeze(inner);
  return value;
}

/**
 * Connects a client to a server in memory, in the revision `options.revision` (the newest by default). `Of` types the
 * tools, as for `connect()`. Requests of this client and their results are frozen as they pass through middleware:
 * middleware that changes one in place fails, since others may hold the same object.
 *
 * @example
 * await using connection = await connectInMemory<typeof server>(server, { revision });
 */
export async function connectInMemory<Of = unknown>(
  server: Handler,
  options: ConnectInMemoryOptions & { readonly env?: EnvOf<Of> | undefined } = {},
): Promise<InMemoryConnection<ToolsOf<Of> & object>> {
  const { serving = {}, caller, env = serving.env, ...rest } = options;
  if (caller !== undefined) checkOptions("connectInMemory()", caller, CALLER_OPTIONS, "caller.");
  checkOptions("connectInMemory()", serving, { ...CONNECTION_OPTIONS, mayShutDown: true }, "serving.");
  const [clientSide, serverSide] = memoryPair();
  const recorded = recordTransport(clientSide);
  const identity = caller === undefined ? undefined : { env, ...defined(caller) };
  const served = await serveTransport(server, serverTransport(serverSide, identity), { ...serving, env });
  let closing: Promise<void> | undefined;
  const close = (opened?: { close(): Promise<void> }): Promise<void> =>
    (closing ??= (async () => {
      await opened?.close();
      await served.close();
    })());
  let client: Client<ToolsOf<Of> & object>;
  try {
    client = await connect<Of>(recorded, { ...rest, revision: rest.revision ?? NEWEST.name });
  } catch (error) {
    await close();
    throw error;
  }
  const { sent, received, messages } = recorded;
  return { client, sent, received, messages, close: () => close(client), [Symbol.asyncDispose]: () => close(client) };
}
