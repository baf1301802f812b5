// One connection served whole: both styles at once, chosen for each message by what the message itself
// says. This file owns the life of the connection (requests in flight, batches, order, the end of input);
// the fronts own what the messages mean.

import type { Handler } from "../core/handler.ts";
import {
  isId,
  isNotification,
  isRequest,
  isResponse,
  type ErrorBody,
  type Message,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
} from "../jsonrpc/message.ts";
import { McpError, type Profile } from "../protocol/errors.ts";
import type { Revision } from "../protocol/revision.ts";
import { REVISIONS, revisionNamed } from "../protocol/revisions/index.ts";
import type { BatchItem, Inbound, Transport } from "../transport/transport.ts";
import { ExchangeFront, isExchange } from "./exchange-front.ts";
import { cancellation } from "./faults.ts";
import { InFlight, type Flight } from "./in-flight.ts";
import { Rounds, type RoundsOptions } from "./rounds.ts";
import { Sequence } from "./sequence.ts";
import { SessionFront } from "./session-front.ts";

export interface ConnectionOptions {
  /** "sequential" takes one request at a time and answers in order. */
  readonly ordering?: "concurrent" | "sequential";
  readonly profile?: Profile;
  /** Revisions that may be spoken; all of them where it is left out. */
  readonly revisions?: readonly string[];
  readonly rounds?: RoundsOptions;
  /** How long work in flight may go on after the end of input. */
  readonly graceMs?: number;
  /** Whether the caller may send `shutdown`; for a wire that has one caller only. */
  readonly mayShutDown?: boolean;
}

export interface Served {
  readonly closed: Promise<void>;
  close(): Promise<void>;
}

interface Front {
  answer(message: RequestMessage, inbound: Inbound, flight: Flight): Promise<{ readonly [key: string]: unknown }>;
  fault(error: unknown, message: RequestMessage): ErrorBody;
}

class Connection implements Served {
  readonly closed: Promise<void>;
  readonly #transport: Transport;
  readonly #inFlight = new InFlight();
  readonly #rounds: Rounds;
  readonly #session: SessionFront;
  readonly #exchange: ExchangeFront;
  readonly #speaksExchange: boolean;
  readonly #sequence: Sequence | undefined;
  readonly #graceMs: number;
  readonly #mayShutDown: boolean;
  #markClosed: () => void = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(handler: Handler, transport: Transport, options: ConnectionOptions) {
    const spoken = spokenRevisions(options.revisions);
    const profile = options.profile ?? "mcp";
    this.#transport = transport;
    this.#graceMs = options.graceMs ?? 1_000;
    this.#mayShutDown = options.mayShutDown ?? false;
    this.#rounds = new Rounds(options.rounds);
    this.#sequence = options.ordering === "sequential" ? new Sequence() : undefined;
    const push = (message: Message): void => void transport.send(message).catch(() => undefined);
    this.#session = new SessionFront(handler, push, this.#inFlight, {
      revisions: spoken.filter(({ style }) => style === "session"),
      spoken,
      profile,
      mayShutDown: this.#mayShutDown,
    });
    const exchanges = spoken.filter(({ style }) => style === "exchange");
    this.#speaksExchange = exchanges.length > 0;
    this.#exchange = new ExchangeFront(handler, this.#rounds, { revisions: exchanges, profile });
    this.closed = new Promise((resolve) => {
      this.#markClosed = resolve;
    });
  }

  start(): Promise<void> {
    return this.#transport.start((inbound) => this.#receive(inbound));
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#finish(0));
  }

  #receive(inbound: Inbound): void {
    if (inbound.kind === "end") this.#closing ??= this.#finish(this.#graceMs);
    else if (inbound.kind === "fault") this.#takeFault(inbound);
    else if (inbound.kind === "batch") this.#takeBatch(inbound.batch ?? [], inbound);
    else if (inbound.message !== undefined) void this.#take(inbound.message, inbound);
  }

  /** The answer to what is no message waits for its turn like any other. */
  #takeFault(inbound: Inbound): void {
    const { fault } = inbound;
    if (fault === undefined) return;
    const answer = (): Promise<void> => inbound.reply(fault, { last: true }).catch(() => undefined);
    void (this.#sequence === undefined ? answer() : this.#sequence.enqueue(answer));
  }

  #take(message: Message, inbound: Inbound): Promise<void> | undefined {
    if (isResponse(message)) this.#session.settle(message);
    else if (isNotification(message)) this.#takeNotification(message);
    else if (isRequest(message)) return this.#takeRequest(message, inbound);
    return undefined;
  }

  #takeNotification(message: NotificationMessage): void {
    if (message.method === "notifications/cancelled") {
      const { requestId, reason } = message.params ?? {};
      if (isId(requestId)) this.#inFlight.cancel(requestId, cancellation(reason, "the caller"));
    } else if (message.method === "exit" && this.#mayShutDown) this.#closing ??= this.#finish(0);
    else this.#session.take(message);
  }

  #takeRequest(message: RequestMessage, inbound: Inbound): Promise<void> {
    const front: Front = this.#isExchange(message) ? this.#exchange : this.#session;
    const background = message.method === "subscriptions/listen";
    const flight = this.#inFlight.begin(message.id, background);
    if (flight === undefined) {
      const error = McpError.of("invalid_request", "A request with this id is still in flight", {
        method: message.method,
      });
      return this.#respond({ jsonrpc: "2.0", id: message.id, error: front.fault(error, message) }, inbound);
    }
    if (this.#sequence === undefined || background) return this.#answer(front, message, inbound, flight);
    const work = (): Promise<void> => this.#answer(front, message, inbound, flight);
    return message.method === "ping" ? this.#sequence.enqueuePing(work) : this.#sequence.enqueue(work);
  }

  /** A session that has begun keeps the two methods that mean nothing to it; see isExchange. */
  #isExchange(message: RequestMessage): boolean {
    if (!this.#speaksExchange || !isExchange(message)) return false;
    return message.params?.["_meta"] !== undefined || !this.#session.started;
  }

  async #answer(front: Front, message: RequestMessage, inbound: Inbound, flight: Flight): Promise<void> {
    let response: ResponseMessage;
    try {
      if (flight.cancelled) return;
      response = { jsonrpc: "2.0", id: message.id, result: await front.answer(message, inbound, flight) };
    } catch (error) {
      response = { jsonrpc: "2.0", id: message.id, error: front.fault(error, message) };
    } finally {
      this.#inFlight.end(flight);
    }
    if (flight.cancelled) return;
    await this.#respond(response, inbound);
    if (flight.background && !inbound.gone.aborted) {
      // The pages on cancellation and on subscriptions each ask for one of these two; a caller may rely on either.
      const params = { requestId: message.id, reason: "The subscription has ended" };
      await inbound.reply({ jsonrpc: "2.0", method: "notifications/cancelled", params }).catch(() => undefined);
    }
  }

  async #respond(response: ResponseMessage, inbound: Inbound): Promise<void> {
    try {
      await inbound.reply(response, { last: true });
    } catch (error) {
      if (inbound.gone.aborted || "error" in response) return;
      // What a handler returned cannot be written as JSON: the caller is told so instead of waiting for ever.
      const message = `The result cannot be sent: ${error instanceof Error ? error.message : String(error)}`;
      const body = McpError.of("internal_error", message).toBody();
      await inbound.reply({ jsonrpc: "2.0", id: response.id, error: body }, { last: true }).catch(() => undefined);
    }
  }

  #takeBatch(items: readonly BatchItem[], inbound: Inbound): void {
    if (!this.#session.started || !this.#session.revision.batches) {
      const data = this.#session.started
        ? `Revision ${this.#session.revision.name} has no batches: send one message at a time`
        : "A batch cannot come before initialize has been answered";
      void inbound
        .reply({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "Invalid Request", data } }, { last: true })
        .catch(() => undefined);
      return;
    }
    const answers = new Map<number, ResponseMessage>();
    const work = items.map(async (item, index) => {
      if ("fault" in item) {
        answers.set(index, item.fault);
        return;
      }
      const { message } = item;
      if (isRequest(message) && (message.method === "initialize" || isExchange(message))) {
        const error = { code: -32600, message: "Invalid Request", data: `${message.method} cannot be part of a batch` };
        answers.set(index, { jsonrpc: "2.0", id: message.id, error });
        return;
      }
      // Answers are kept until all are there; everything else goes out as it comes.
      const reply: Inbound["reply"] = async (sent, how) => {
        if (!Array.isArray(sent) && isResponse(sent as Message)) answers.set(index, sent as ResponseMessage);
        else await inbound.reply(sent, how);
      };
      await this.#take(message, { ...inbound, kind: "message", message, reply });
    });
    void Promise.all(work).then(async () => {
      if (answers.size === 0) return;
      const ordered = [...answers].toSorted(([a], [b]) => a - b).map(([, answer]) => answer);
      await inbound.reply(ordered, { last: true }).catch(() => undefined);
    });
  }

  async #finish(graceMs: number): Promise<void> {
    if (graceMs > 0) await this.#inFlight.drained(graceMs);
    const reason = new Error("The connection is closed");
    this.#inFlight.abortAll(reason);
    this.#rounds.close();
    this.#session.close(reason);
    await this.#transport.close().catch(() => undefined);
    this.#markClosed();
  }
}

function spokenRevisions(names: readonly string[] | undefined): readonly Revision[] {
  if (names === undefined) return REVISIONS;
  for (const name of names) {
    if (revisionNamed(name) === undefined) {
      throw new TypeError(`Unknown revision ${name}; known are ${REVISIONS.map((known) => known.name).join(", ")}`);
    }
  }
  return REVISIONS.filter(({ name }) => names.includes(name));
}

export async function serveTransport(
  handler: Handler,
  transport: Transport,
  options: ConnectionOptions = {},
): Promise<Served> {
  const connection = new Connection(handler, transport, options);
  await connection.start();
  return connection;
}
