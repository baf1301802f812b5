// The interface of duplex transports. A transport carries messages and does not interpret them. What it receives is an
// `Inbound`, one of a few kinds of events; what answers an event goes back by `send`, or by the carrier that came with it.

import type { CallerIdentity, WireObserver } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import { isObject } from "../core/values.ts";
import type { ErrorMessage, Id, Message } from "../jsonrpc/message.ts";
import type { Carrier } from "./carrier.ts";

/** A duplex connection that carries messages. */
export interface Transport {
  /** Starts reading. `receive` is called once for each inbound event, never concurrently. */
  start(receive: Receive): Promise<void>;
  /** Resolves when the transport accepts more; rejects with a ConnectionError if the message cannot be sent. */
  send(message: Message | readonly Message[], options?: SendOptions): Promise<void>;
  /** Ends the connection, also one that is still starting. `budgetMs` limits how long that may take. */
  close(budgetMs?: number): Promise<void>;
}

/** Whether a transport reports requests to the `wire` of their options itself: one over HTTP knows their heads. */
export interface ReportingTransport extends Transport {
  readonly reportsRequests: boolean;
}

export function reportsRequests(transport: Transport): boolean {
  return "reportsRequests" in transport && transport.reportsRequests === true;
}

/** Opens a transport for each connection, so that a connection that has ended can be opened again. */
export interface TransportSource {
  transport(): Transport | Promise<Transport>;
  /** The style to try first, if the server speaks both. Default: stateless, or the style of the caller. */
  readonly style?: "session" | "stateless" | undefined;
  /** What it leads to, for errors and `status()`. Must not be secret. Default: "a transport". */
  readonly description?: string | undefined;
}

/** What errors say of a part that did not resolve in time: "The transport was not opened". */
export type LateParts = Readonly<Record<"opening" | "starting", string>>;

/** A source that is made here, with errors of its own. */
export interface NamedTransportSource extends TransportSource {
  readonly lateParts?: LateParts;
}

export function isTransportSource(target: object): target is TransportSource {
  return "transport" in target && typeof target.transport === "function";
}

/** Throws a TypeError that says which methods of a transport a value lacks. */
export function checkTransport(value: unknown, where: string): asserts value is Transport {
  const methods = (isObject(value) ? value : {}) as Partial<Transport>;
  const missing = (["start", "send", "close"] as const).filter((name) => typeof methods[name] !== "function");
  if (missing.length === 0) return;
  const lacking = missing.map((name) => `\`${name}\``).join(", ");
  throw new TypeError(`${where} must be a transport, with the methods start, send and close; missing: ${lacking}`);
}

/** Options of `Transport.send()`. */
export interface SendOptions {
  /** Aborts the HTTP request, if the transport makes one. */
  readonly signal?: AbortSignal;
  /** Headers of the HTTP request, if the transport makes one. They may be secret. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Called with true when sending waits for something other than the server (a sign-in), and with false afterwards. */
  readonly onWait?: (isWaiting: boolean) => void;
  /** What wants to know what passes for the request, if anything does. */
  readonly wire?: WireObserver | undefined;
  /** For a request that is cancelled without notifying the server. */
  readonly quiet?: QuietCancel | undefined;
}

/** The signals of a request that is cancelled without notifying the server. */
export interface QuietCancel {
  /** Aborted when the caller has cancelled. A request that has not been sent by then is not sent. */
  readonly abandoned: AbortSignal;
  /** Aborted later, when the response is no longer awaited. */
  readonly expired: AbortSignal;
}

/** Takes what a transport receives. `carrier` is for a transport whose messages each have a reply of their own. */
export type Receive = (inbound: Inbound, carrier?: Carrier) => void;

/** A received message, or an event of the transport. */
export type Inbound =
  | ({ readonly kind: "message"; readonly message: Message } & Received)
  | ({ readonly kind: "batch"; readonly items: readonly BatchItem[] } & Received)
  /** Invalid input; `fault` is the error response for it. */
  | ({ readonly kind: "fault" } & FaultItem & Received)
  /** The server has ended the stream of the request `about`; reconnect for the rest, after `retryMs`. */
  | { readonly kind: "hang-up"; readonly about?: Id; readonly retryMs?: number }
  /** The server no longer knows the session; a new one can be started. */
  | { readonly kind: "lost" }
  /** The stream of messages that belong to no request was resumed, perhaps by a server that has restarted. */
  | { readonly kind: "reopened" }
  /** The same, and messages may have been missed. */
  | { readonly kind: "gap" }
  /** Nothing more will come; `error` says why, unless the other side has just ended the connection. */
  | { readonly kind: "end"; readonly error?: Error };

/** What a transport may know about what it received. */
export interface Received {
  /** The request on whose stream it came. */
  readonly about?: Id | undefined;
  /** Identity and headers of the sender. */
  readonly caller?: CallerIdentity;
}

/** One message of a batch, or the error response for an invalid one. */
export type BatchItem = { readonly message: Message } | FaultItem;

/** The error response for an invalid message. */
export interface FaultItem {
  readonly fault: ErrorMessage;
  /**
   * False if the message is a response, which must not be answered and fails the request that it belongs to; true if it
   * is none. Unknown: a server answers it, and a client takes it for a response.
   */
  readonly answerable?: boolean | undefined;
}

/** The server no longer knows the session. It has not run the request, which can be sent in a new session. */
export class SessionLost extends ConnectionError {
  constructor(message: string, options?: { readonly cause?: unknown; readonly status?: number }) {
    super("closed", message, { ...options, mayHaveRun: false });
  }
}
