// Serves one connection to a client, in both styles at once: each request shows its own style. This file handles the
// life of the connection: it takes what comes, and passes requests to the table of calls. The fronts interpret them.

import { attempt, within } from "../core/async.ts";
import type { CallerIdentity, Handler } from "../core/handler.ts";
import { type OptionNames, optionNames } from "../core/options.ts";
import {
  type ErrorMessage,
  isId,
  isNotification,
  isRequest,
  isResponse,
  type Message,
  type NotificationMessage,
} from "../jsonrpc/message.ts";
import { nextNumber } from "../protocol/caller.ts";
import { type Compat, loadCompat } from "../protocol/compat.ts";
import type { CompatRules } from "../protocol/compat-documents.ts";
import { McpError } from "../protocol/errors.ts";
import type { Revision } from "../protocol/revision.ts";
import { isVendorMethod, knownRevision, REVISIONS } from "../protocol/revisions/index.ts";
import type { Carrier } from "../transport/carrier.ts";
import { LineCarrier } from "../transport/line-carrier.ts";
import { type Tap, tapTransport } from "../transport/tap.ts";
import type { BatchItem, Inbound, Transport } from "../transport/transport.ts";
import { Batch } from "./calls/batch.ts";
import type { CallPlaces } from "./calls/call-places.ts";
import { type CallMessage, CallTable, type Front } from "./calls/call-table.ts";
import { cancellationError } from "./calls/errors.ts";
import { SessionFront } from "./session/front.ts";
import { StatelessFront } from "./stateless/front.ts";
import { ParkedCalls, type ParkedCallsOptions } from "./stateless/parked-calls.ts";
import { isStateless, styleOf, type Styles, stylesOf } from "./style.ts";

/** Options of `serve()` and `serveTransport()` for a connection. */
export interface ConnectionOptions {
  /** "sequential" runs one request at a time and answers in order. */
  readonly ordering?: "concurrent" | "sequential" | undefined;
  /**
   * As which document session-style callers are answered: "mcp" (the default), the specification; "cl-mcp",
   * "llm-pharo" and "chain", those of CL-MCP-Server, LLM-Pharo-MCP and mcp-chain; "reference", a widespread protocol
   * reference.
   */
  readonly compat?: Compat | undefined;
  /** Revisions that may be spoken; all by default. */
  readonly revisions?: readonly string[] | undefined;
  /** Limits of stateless calls that wait for an answer of the client. */
  readonly parkedCalls?: ParkedCallsOptions | undefined;
  /** What handlers get as `context.env`: a database, the bindings of the host, or anything else that they need. */
  readonly env?: unknown;
  /** How many requests run at once. Others wait. Default: 256. */
  readonly maxInFlight?: number | undefined;
  /** How long calls in flight may go on after the client has closed its side. */
  readonly graceMs?: number | undefined;
  /** Whether the client may send `shutdown`; for transports with a single client. */
  readonly mayShutDown?: boolean | undefined;
  /** Called with every message of the connection, as it is on the wire. */
  readonly tap?: Tap | undefined;
}

/** Options of a connection that is one of several of a server. */
export interface SharedConnectionOptions extends ConnectionOptions {
  readonly places?: CallPlaces | undefined;
  /** The error for calls that still run when the connection closes. */
  readonly unanswered?: string | undefined;
}

/** Options of every transport, used to reject unknown ones. */
export const CONNECTION_OPTIONS: OptionNames<Omit<ConnectionOptions, "mayShutDown">> = /* @__PURE__ */ optionNames(
  "ordering compat revisions parkedCalls env maxInFlight graceMs tap",
);

/** Throws a TypeError for options that would fail only once a connection is open, or with its messages. */
export function checkConnection({ maxInFlight, tap }: ConnectionOptions): void {
  if (maxInFlight !== undefined && !(maxInFlight > 0)) throw new TypeError("maxInFlight must be a number above 0");
  if (tap !== undefined && typeof tap !== "function") throw new TypeError("tap must be a function");
}

/** A connection that is being served. */
export interface ServedConnection {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Calls in flight may go on for `graceMs`; they are aborted at once by default. */
  close(graceMs?: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const CLOSE_TIMEOUT_MS = 10_000;
class Connection implements ServedConnection {
  readonly closed: Promise<void>;
  readonly #transport: Transport;
  readonly #lines: LineCarrier;
  readonly #calls: CallTable;
  readonly #places: CallPlaces | undefined;
  readonly #parkedCalls: ParkedCalls;
  readonly #session: SessionFront;
  readonly #stateless: StatelessFront;
  readonly #styles: Styles;
  readonly #compat: CompatRules | undefined;
  readonly #graceMs: number;
  readonly #mayShutDown: boolean;
  #markClosed: () => void = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(
    handler: Handler,
    transport: Transport,
    options: SharedConnectionOptions,
    compat: CompatRules | undefined,
  ) {
    checkConnection(options);
    const allRevisions = selectRevisions(options.revisions);
    const { graceMs = 1_000, mayShutDown = false, maxInFlight = 256, places, unanswered, tap } = options;
    this.#transport = tap === undefined ? transport : tapTransport(transport, tap, "server");
    this.#lines = new LineCarrier(this.#transport);
    this.#compat = compat;
    this.#graceMs = graceMs;
    this.#mayShutDown = mayShutDown;
    this.#places = places;
    this.#parkedCalls = new ParkedCalls(options.parkedCalls);
    const isSequential = (options.ordering ?? compat?.ordering) === "sequential";
    this.#calls = new CallTable({ maxRunning: maxInFlight, isSequential, hasIds: true, places, unanswered });
    const identity = { env: options.env };
    this.#session = new SessionFront(compat?.handler(handler) ?? handler, this.#lines, this.#calls, {
      revisions: allRevisions.filter(({ style }) => style === "session"),
      allRevisions,
      compat,
      mayShutDown,
      identity,
    });
    const revisions = allRevisions.filter(({ style }) => style === "stateless");
    this.#styles = stylesOf(allRevisions);
    this.#stateless = new StatelessFront(handler, this.#parkedCalls, { revisions, connection: nextNumber(), identity });
    this.closed = new Promise((resolve) => {
      this.#markClosed = resolve;
    });
  }

  start(): Promise<void> {
    return this.#transport.start(this.#receive);
  }

  close(graceMs = 0): Promise<void> {
    this.#closing ??= this.#finish(graceMs);
    // Also ends the time that calls in flight got at the end of the input.
    if (graceMs === 0) this.#calls.abortAll(closedError());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  readonly #receive = (inbound: Inbound, carrier: Carrier = this.#lines): void => {
    switch (inbound?.kind) {
      case "message":
        return this.#take(inbound.message, carrier, inbound.caller);
      case "batch":
        return this.#takeBatch(inbound.items, carrier, inbound.caller);
      case "fault":
        if (inbound.answerable === false) this.#failQuestion(inbound.fault);
        else this.#refuse(inbound.fault, carrier);
        return;
      case "end":
        if (inbound.error !== undefined) this.#lines.break();
        this.#closing ??= this.#finish(this.#graceMs);
        return;
      default:
        // No event, or one that only a server causes.
        throw new TypeError("receive() takes { kind, ... }");
    }
  };

  #take(message: Message, carrier: Carrier, caller: CallerIdentity | undefined): void {
    if (isResponse(message)) this.#session.settle(message);
    else if (isRequest(message)) this.#calls.open(message, carrier, caller, this.#frontFor(message));
    else if (isNotification(message)) this.#takeNotification(message, carrier, caller);
  }

  #takeNotification(message: NotificationMessage, carrier: Carrier, caller: CallerIdentity | undefined): void {
    if (message.method === "notifications/cancelled") {
      const { requestId, reason } = message.params ?? {};
      if (isId(requestId)) this.#calls.cancel(requestId, cancellationError(reason, "the client"), message);
    } else if (message.method === "exit" && this.#mayShutDown) this.#closing ??= this.#finish(this.#graceMs);
    // A vendor's notification runs as a request without a response.
    else if (isVendorMethod(message.method)) this.#calls.open(message, carrier, caller, this.#frontFor(message));
    else this.#session.take(message);
  }

  #frontFor(message: CallMessage): Front {
    const style = styleOf(message, this.#styles, this.#session.started);
    return style === "stateless" ? this.#stateless : this.#session;
  }

  #refuse(fault: ErrorMessage, carrier: Carrier): void {
    const { id, error } = this.#compat?.fault(fault) ?? fault;
    this.#calls.refuse(id, error, carrier);
  }

  /** Fails the request of the server that an invalid response belongs to, so that it does not have to time out. */
  #failQuestion({ error, ...response }: ErrorMessage): void {
    const message = "The client's answer is not a valid message";
    this.#session.settle({ ...response, error: { ...error, message } });
  }

  #takeBatch(items: readonly BatchItem[], carrier: Carrier, caller: CallerIdentity | undefined): void {
    if (!this.#session.started || !this.#session.revision.batches) {
      const details = this.#session.started
        ? `Revision ${this.#session.revision.name} has no batches: send one message at a time`
        : "A batch cannot be sent before initialize has been answered";
      return this.#refuse(invalidRequest(null, details), carrier);
    }
    const batch = new Batch(carrier, items, caller?.principal, this.#places);
    items.forEach((item, index) => {
      const part = batch.part(index);
      if ("fault" in item) {
        if (item.answerable !== false) return this.#refuse(item.fault, part);
        this.#failQuestion(item.fault);
      } else if (isRequest(item.message)) {
        const { id, method } = item.message;
        if (method !== "initialize" && !isStateless(item.message)) return this.#take(item.message, part, caller);
        const { error } = invalidRequest(id, `${method} cannot be part of a batch`);
        return this.#calls.refuse(id, error, part);
      } else this.#take(item.message, part, caller);
      part.drop();
    });
  }

  async #finish(graceMs: number): Promise<void> {
    const reason = closedError();
    await this.#calls.close(graceMs, reason);
    this.#parkedCalls.close();
    this.#session.close(reason);
    await within(
      CLOSE_TIMEOUT_MS,
      attempt(() => this.#transport.close()),
    ).catch(() => undefined);
    this.#lines.break();
    this.#markClosed();
  }
}

function invalidRequest(id: ErrorMessage["id"], details: string): ErrorMessage {
  return { jsonrpc: "2.0", id, error: McpError.of("invalid_request", "Invalid Request", { details }).toBody() };
}

function closedError(): Error {
  return new Error("The connection is closed");
}

/** The revisions with these names, oldest first; all by default. */
export function selectRevisions(names: readonly string[] | undefined): readonly Revision[] {
  const selected = names?.map((name) => knownRevision(name)) ?? REVISIONS;
  return REVISIONS.filter((revision) => selected.includes(revision));
}

/** Answers the messages of one connection with a handler. `serve()` does this for the stdio of the process. */
export function serveTransport(
  handler: Handler,
  transport: Transport,
  options: ConnectionOptions = {},
): Promise<ServedConnection> {
  return serveConnection(handler, transport, options);
}

export async function serveConnection(
  handler: Handler,
  transport: Transport,
  options: SharedConnectionOptions,
): Promise<ServedConnection> {
  const compat = loadCompat(options.compat);
  // A session over HTTP gets its first message at once.
  const connection = new Connection(handler, transport, options, compat instanceof Promise ? await compat : compat);
  await connection.start();
  return connection;
}
