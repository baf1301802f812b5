// Serves one connection to a client, in both styles at once: each request shows its own style. This file handles the
// life of the connection (calls in flight, batches, ordering, shutdown). The fronts interpret the messages.

import { attempt, ignoreRejection, within } from "../core/async.ts";
import type { Handler } from "../core/handler.ts";
import { encode } from "../jsonrpc/codec.ts";
import {
  type ErrorMessage,
  isId,
  isNotification,
  isRequest,
  isResponse,
  type Message,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
} from "../jsonrpc/message.ts";
import { nextNumber } from "../protocol/caller.ts";
import { type Compat, loadCompat } from "../protocol/compat.ts";
import type { CompatRules } from "../protocol/compat-documents.ts";
import { McpError } from "../protocol/errors.ts";
import { META } from "../protocol/model/base.ts";
import type { Revision } from "../protocol/revision.ts";
import { isVendorMethod, knownRevision, REVISIONS } from "../protocol/revisions/index.ts";
import type { BatchItem, Inbound, Transport } from "../transport/transport.ts";
import { StatelessFront, isStateless } from "./stateless/front.ts";
import { cancellationError, unsendableResponse } from "./calls/errors.ts";
import { InFlightCalls, type InFlightCall, CallLimiter, runRequest, SETTLE_MS, type Front } from "./calls/in-flight.ts";
import { ParkedCalls, type ParkedCallsOptions } from "./stateless/parked-calls.ts";
import { SessionFront } from "./session/front.ts";

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
}

/** Options of every transport, used to reject unknown ones. The type ensures that a new option is added here too. */
export const CONNECTION_OPTIONS: Readonly<Record<keyof Omit<ConnectionOptions, "mayShutDown">, true>> = {
  ordering: true,
  compat: true,
  revisions: true,
  parkedCalls: true,
  env: true,
  maxInFlight: true,
  graceMs: true,
};

/** A connection that is being served. */
export interface ServedConnection {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Calls in flight may go on for `graceMs`; they are aborted at once by default. */
  close(graceMs?: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** How long to wait until the transport is closed. */
const CLOSE_TIMEOUT_MS = 10_000;
/** How many of a client's notifications wait or run at once. */
const MAX_NOTIFICATIONS = 1_000;

const LAST = { last: true } as const;

class Connection implements ServedConnection {
  readonly closed: Promise<void>;
  readonly #transport: Transport;
  readonly #inFlight = new InFlightCalls();
  readonly #parkedCalls: ParkedCalls;
  readonly #session: SessionFront;
  readonly #stateless: StatelessFront;
  readonly #speaks: { readonly session: boolean; readonly stateless: boolean };
  readonly #queue: SequentialQueue | undefined;
  readonly #compat: CompatRules | undefined;
  readonly #limiter: CallLimiter;
  readonly #graceMs: number;
  readonly #mayShutDown: boolean;
  /** Vendors' notifications that wait or run. */
  #notifications = 0;
  #markClosed: () => void = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, transport: Transport, options: ConnectionOptions, compat: CompatRules | undefined) {
    const allRevisions = selectRevisions(options.revisions);
    this.#transport = transport;
    this.#compat = compat;
    this.#graceMs = options.graceMs ?? 1_000;
    this.#mayShutDown = options.mayShutDown ?? false;
    this.#parkedCalls = new ParkedCalls(options.parkedCalls);
    this.#limiter = new CallLimiter(options.maxInFlight ?? 256);
    this.#queue = (options.ordering ?? compat?.ordering) === "sequential" ? new SequentialQueue() : undefined;
    const identity = { env: options.env };
    const push = (message: Message): void => void ignoreRejection(attempt(() => transport.send(message)));
    this.#session = new SessionFront(compat?.handler(handler) ?? handler, push, this.#inFlight, {
      revisions: allRevisions.filter(({ style }) => style === "session"),
      allRevisions,
      compat,
      mayShutDown: this.#mayShutDown,
      identity,
    });
    const revisions = allRevisions.filter(({ style }) => style === "stateless");
    this.#speaks = { session: revisions.length < allRevisions.length, stateless: revisions.length > 0 };
    const connection = nextNumber();
    this.#stateless = new StatelessFront(handler, this.#parkedCalls, { revisions, connection, identity });
    this.closed = new Promise((resolve) => {
      this.#markClosed = resolve;
    });
  }

  start(): Promise<void> {
    return this.#transport.start((inbound) => this.#receive(inbound));
  }

  close(graceMs = 0): Promise<void> {
    this.#closing ??= this.#finish(graceMs);
    // Also ends the time that calls in flight got at the end of the input.
    if (graceMs === 0) this.#inFlight.abortAll(closedError());
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #receive(inbound: Inbound): void {
    if (inbound.kind === "end") this.#closing ??= this.#finish(this.#graceMs);
    else if (inbound.kind === "fault") this.#takeFault(inbound);
    else if (inbound.kind === "batch") this.#takeBatch(inbound.batch ?? [], inbound);
    else if (inbound.message !== undefined) void this.#take(inbound.message, inbound);
  }

  /** Answers an invalid message. With `ordering: "sequential"`, the answer waits for earlier requests. */
  #takeFault(inbound: Inbound, fault = inbound.fault): void {
    if (fault === undefined) return;
    if (inbound.answerable === false) {
      this.#failQuestion(fault);
      return;
    }
    const answer = this.#compat?.fault(fault) ?? fault;
    void this.#runInOrder(() => this.#respond(answer, inbound));
  }

  /** Fails the request of the server that an invalid response belongs to, so that it does not have to time out. */
  #failQuestion({ error, ...response }: ErrorMessage): void {
    const message = "The client's answer is not a valid message";
    this.#session.settle({ ...response, error: { ...error, message } });
  }

  /** Runs work that is not a request; with `ordering: "sequential"`, in its turn. A shutdown waits for the work. */
  async #runInOrder(work: () => Promise<void>): Promise<void> {
    const call = this.#inFlight.beginAnonymous();
    try {
      await (this.#queue === undefined ? work() : this.#queue.enqueue(work));
    } finally {
      this.#inFlight.end(call);
    }
  }

  /** With `awaited`, the returned promise settles on cancellation even if the handler never does. */
  #take(message: Message, inbound: Inbound, awaited = false): Promise<void> | undefined {
    if (isResponse(message)) this.#session.settle(message);
    else if (isNotification(message)) this.#takeNotification(message, inbound);
    else if (isRequest(message)) return this.#takeRequest(message, inbound, awaited || this.#queue !== undefined);
    return undefined;
  }

  #takeNotification(message: NotificationMessage, inbound: Inbound): void {
    if (message.method === "notifications/cancelled") {
      const { requestId, reason } = message.params ?? {};
      if (isId(requestId)) this.#inFlight.cancel(requestId, cancellationError(reason, "the client"));
    } else if (message.method === "exit" && this.#mayShutDown) this.#closing ??= this.#finish(this.#graceMs);
    else if (isVendorMethod(message.method)) void this.#takeVendor(message, inbound);
    else this.#session.take(message);
  }

  /** Runs a vendor's notification as a request without a response. Drops it if too many wait or run. */
  async #takeVendor(message: NotificationMessage, inbound: Inbound): Promise<void> {
    if (this.#notifications >= MAX_NOTIFICATIONS) return;
    this.#notifications += 1;
    const front = this.#isStateless(message) ? this.#stateless : this.#session;
    const call = this.#inFlight.beginAnonymous();
    const work = async (): Promise<void> => {
      await this.#limiter.acquire();
      await front.takeVendor(message, inbound, call).catch(() => undefined);
      this.#limiter.release();
    };
    await (this.#queue === undefined ? work() : this.#queue.enqueue(work));
    this.#inFlight.end(call);
    this.#notifications -= 1;
  }

  #takeRequest(message: RequestMessage, inbound: Inbound, awaited: boolean): Promise<void> {
    const { id, method } = message;
    const front: Front = this.#isStateless(message) ? this.#stateless : this.#session;
    const background = front === this.#stateless && method === "subscriptions/listen";
    const call =
      this.#inFlight.begin(id, background, method !== "initialize") ??
      // In a sequence, the request before it is answered first.
      (this.#queue && front === this.#session ? this.#inFlight.beginAnonymous() : undefined);
    if (call === undefined) {
      const error = McpError.of("invalid_request", "A request with this id is still in flight", { method });
      return this.#runInOrder(() =>
        this.#respond({ jsonrpc: "2.0", id, error: front.errorBody(error, message) }, inbound),
      );
    }
    call.inbound = inbound;
    if (background || !awaited) return this.#answer(front, message, inbound, call);
    // A cancelled call no longer holds up its queue or batch, even if its handler ignores the signal.
    const cancelled = new Promise<void>((resolve) => {
      call.onCancel = resolve;
    });
    const work = (): Promise<void> => Promise.race([this.#answer(front, message, inbound, call), cancelled]);
    if (this.#queue === undefined) return work();
    return this.#queue.enqueue(work);
  }

  #isStateless(message: RequestMessage | NotificationMessage): boolean {
    if (!this.#speaks.stateless) return false;
    if (!this.#speaks.session) return message.method !== "initialize";
    return isStateless(message) && (message.params?.["_meta"] !== undefined || !this.#session.started);
  }

  /** Runs the request and sends the response, unless the call was cancelled. */
  async #answer(front: Front, message: RequestMessage, inbound: Inbound, call: InFlightCall): Promise<void> {
    const { id, method } = message;
    // A ping needs no slot: it asks whether the server is alive, not whether it is idle.
    const limiter = method === "ping" || call.background ? undefined : this.#limiter;
    const turn = limiter?.acquire();
    if (turn !== undefined) await turn;
    if (call.cancelled) {
      limiter?.release();
      return;
    }
    call.limiter = limiter;
    try {
      let response: ResponseMessage;
      if (call.cancelToken.aborted) {
        // The connection was closed while the request waited.
        const error = McpError.of("shutting_down", "The connection is closed", { method });
        response = { jsonrpc: "2.0", id, error: front.errorBody(error, message) };
      } else response = await runRequest(front, message, inbound, call);
      if (call.cancelled) return;
      await this.#respond(response, inbound);
      if (!call.background || "error" in response) return;
      // The subscription ends with a response and a notification: the specification's pages on cancellation and on
      // subscriptions each require one of them.
      const params = { requestId: id, reason: "The subscription has ended", _meta: { [META.subscriptionId]: id } };
      const ended: Message = { jsonrpc: "2.0", method: "notifications/cancelled", params };
      await attempt(() => inbound.reply(ended)).catch(() => undefined);
    } finally {
      if (call.cancelled) limiter?.cancelledEnded();
      else limiter?.release();
      this.#inFlight.end(call);
    }
  }

  /** Sends a response. If that fails, sends an error instead, so that the client does not wait forever. */
  async #respond(response: ResponseMessage, inbound: Inbound): Promise<void> {
    try {
      await inbound.reply(response, LAST);
    } catch (error) {
      if (inbound.gone.aborted) return;
      await attempt(() => inbound.reply(unsendableResponse(response, error), LAST)).catch(() => undefined);
    }
  }

  #takeBatch(items: readonly BatchItem[], inbound: Inbound): void {
    if (!this.#session.started || !this.#session.revision.batches) {
      const details = this.#session.started
        ? `Revision ${this.#session.revision.name} has no batches: send one message at a time`
        : "A batch cannot be sent before initialize has been answered";
      const error = McpError.of("invalid_request", "Invalid Request", { details }).toBody();
      this.#takeFault(inbound, { jsonrpc: "2.0", id: null, error });
      return;
    }
    for (const item of items) if ("fault" in item && item.answerable === false) this.#failQuestion(item.fault);
    const call = this.#inFlight.beginAnonymous();
    const take = (message: Message, one: Inbound): Promise<void> | undefined => this.#take(message, one, true);
    const respond = (response: ResponseMessage): Promise<void> => this.#respond(response, inbound);
    const compat = this.#compat;
    const documented =
      compat === undefined
        ? items
        : items.map((item) => ("fault" in item ? { ...item, fault: compat.fault(item.fault) } : item));
    void takeBatch(documented, inbound, take, respond).finally(() => this.#inFlight.end(call));
  }

  async #finish(graceMs: number): Promise<void> {
    if (graceMs > 0) await this.#inFlight.drained(graceMs);
    const reason = closedError();
    this.#inFlight.abortAll(reason);
    this.#queue?.release();
    // Handlers that observe their signal can still answer: subscriptions with a result, calls with an error.
    await this.#inFlight.settled(SETTLE_MS);
    this.#parkedCalls.close();
    this.#session.close(reason);
    await within(
      CLOSE_TIMEOUT_MS,
      attempt(() => this.#transport.close()),
    ).catch(() => undefined);
    this.#markClosed();
  }
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
export async function serveTransport(
  handler: Handler,
  transport: Transport,
  options: ConnectionOptions = {},
): Promise<ServedConnection> {
  const compat = loadCompat(options.compat);
  // A session over HTTP gets its first message at once.
  const connection = new Connection(handler, transport, options, compat instanceof Promise ? await compat : compat);
  await connection.start();
  return connection;
}

/** For `ordering: "sequential"`: runs requests one at a time, pings too. Responses and notifications are not queued. */
class SequentialQueue {
  #tail: Promise<void> = Promise.resolve();
  /** Starts each waiting request. */
  readonly #waiting = new Set<() => void>();

  enqueue(work: () => Promise<void>): Promise<void> {
    const turn = this.#next().then(work);
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  /** Starts all that wait, once they are aborted: each is answered, even if the request before them never ends. */
  release(): void {
    for (const start of this.#waiting) start();
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      const start = (): void => {
        this.#waiting.delete(start);
        resolve();
      };
      this.#waiting.add(start);
      void this.#tail.then(start);
    });
  }
}

/**
 * Takes each message of a batch as if it had come alone. Sends the responses together, in the order of the requests,
 * when the last one is ready. Notifications and requests to the client are sent at once.
 */
async function takeBatch(
  items: readonly BatchItem[],
  inbound: Inbound,
  take: (message: Message, inbound: Inbound) => Promise<void> | undefined,
  respond: (response: ResponseMessage) => Promise<void>,
): Promise<void> {
  const responses = new Map<number, ResponseMessage>();
  const work = items.map(async (item, index) => {
    if ("fault" in item) {
      if (item.answerable !== false) responses.set(index, item.fault);
      return;
    }
    const { message } = item;
    if (isRequest(message) && (message.method === "initialize" || isStateless(message))) {
      const details = `${message.method} cannot be part of a batch`;
      const error = McpError.of("invalid_request", "Invalid Request", { details }).toBody();
      responses.set(index, { jsonrpc: "2.0", id: message.id, error });
      return;
    }
    const reply: Inbound["reply"] = async (sent, how) => {
      if (!Array.isArray(sent) && isResponse(sent as Message)) responses.set(index, encodable(sent as ResponseMessage));
      else await inbound.reply(sent, how);
    };
    // Without `drop`: one cancelled request must not drop the reply of the whole batch.
    const { caller, gone } = inbound;
    await take(message, { kind: "message", message, ...(caller && { caller }), gone, reply });
  });
  await Promise.all(work);
  const ordered = [...responses].toSorted(([a], [b]) => a - b).map(([, response]) => response);
  if (ordered.length === 0) {
    inbound.drop?.();
    return;
  }
  try {
    await inbound.reply(ordered, LAST);
  } catch {
    // The batch may be too long. Send each response alone; one that is still too long becomes an error.
    for (const response of ordered) await respond(response);
  }
}

/** Replaces a response that cannot be encoded as JSON, so that the others of the batch can be sent. */
function encodable(response: ResponseMessage): ResponseMessage {
  try {
    encode(response);
    return response;
  } catch (error) {
    return unsendableResponse(response, error);
  }
}
