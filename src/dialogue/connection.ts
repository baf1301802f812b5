// One connection served whole: both styles at once, chosen for each message by what the message itself
// says. This file owns the life of the connection (requests in flight, batches, order, the end of input);
// the fronts own what the messages mean.

import type { Handler } from "../core/handler.ts";
import { isId, isNotification, isRequest, isResponse, type Message, type NotificationMessage, type RequestMessage, type ResponseMessage } from "../jsonrpc/message.ts";
import { McpError, type Profile } from "../protocol/errors.ts";
import { META } from "../protocol/model/index.ts";
import type { Revision } from "../protocol/revision.ts";
import { knownRevision, REVISIONS } from "../protocol/revisions/index.ts";
import type { BatchItem, Inbound, Transport } from "../transport/transport.ts";
import { takeBatch, unsendable } from "./batch.ts";
import { StatelessFront, isStateless } from "./stateless/front.ts";
import { cancellation } from "./calls/errors.ts";
import { InFlight, type Flight, Slots, outcomeOf, SETTLE_MS, type Front } from "./calls/in-flight.ts";
import { Rounds, type RoundsOptions } from "./stateless/parked-calls.ts";
import { SessionFront } from "./session/front.ts";

export interface ConnectionOptions {
  /** "sequential" takes one request at a time and answers in order. */
  readonly ordering?: "concurrent" | "sequential";
  readonly profile?: Profile;
  /** Revisions that may be spoken; all of them where it is left out. */
  readonly revisions?: readonly string[];
  readonly rounds?: RoundsOptions;
  /** Requests that are worked on at once; more wait for their turn. 256. */
  readonly maxInFlight?: number;
  /** How long work in flight may go on after the end of input. */
  readonly graceMs?: number;
  /** Whether the caller may send `shutdown`; for a wire that has one caller only. */
  readonly mayShutDown?: boolean;
}

/** Names of the options that every transport has, for checks. Typed, so that a new option must be added here too. */
export const CONNECTION_OPTIONS: Readonly<Record<keyof Omit<ConnectionOptions, "mayShutDown">, true>> = {
  ordering: true,
  profile: true,
  revisions: true,
  rounds: true,
  maxInFlight: true,
  graceMs: true,
};

export interface Served {
  readonly closed: Promise<void>;
  /** Work in flight may go on for the grace; none where it is left out. */
  close(graceMs?: number): Promise<void>;
}

const LAST = { last: true } as const;

class Connection implements Served {
  readonly closed: Promise<void>;
  readonly #transport: Transport;
  readonly #inFlight = new InFlight();
  readonly #rounds: Rounds;
  readonly #session: SessionFront;
  readonly #exchange: StatelessFront;
  readonly #speaks: { readonly session: boolean; readonly exchange: boolean };
  readonly #sequence: Sequence | undefined;
  readonly #slots: Slots;
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
    this.#slots = new Slots(options.maxInFlight ?? 256);
    this.#sequence = options.ordering === "sequential" ? new Sequence() : undefined;
    const push = (message: Message): void => void transport.send(message).catch(() => undefined);
    this.#session = new SessionFront(handler, push, this.#inFlight, {
      revisions: spoken.filter(({ style }) => style === "session"),
      spoken,
      profile,
      mayShutDown: this.#mayShutDown,
      origin: this,
    });
    const exchanges = spoken.filter(({ style }) => style === "stateless");
    this.#speaks = { session: exchanges.length < spoken.length, exchange: exchanges.length > 0 };
    this.#exchange = new StatelessFront(handler, this.#rounds, { revisions: exchanges, profile, origin: this });
    this.closed = new Promise((resolve) => {
      this.#markClosed = resolve;
    });
  }

  start(): Promise<void> {
    return this.#transport.start((inbound) => this.#receive(inbound));
  }

  close(graceMs = 0): Promise<void> {
    return (this.#closing ??= this.#finish(graceMs));
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
    if (fault !== undefined) void this.#inTurn(() => this.#respond(fault, inbound));
  }

  /** Work that no request stands for: it counts as in flight all the same, so that the end waits for it. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    const flight = this.#inFlight.beginNameless();
    try {
      await (this.#sequence === undefined ? work() : this.#sequence.enqueue(work));
    } finally {
      this.#inFlight.end(flight);
    }
  }

  /** With `awaited`, somebody waits for the returned promise: it must settle even if the work never does. */
  #take(message: Message, inbound: Inbound, awaited = false): Promise<void> | undefined {
    if (isResponse(message)) this.#session.settle(message);
    else if (isNotification(message)) this.#takeNotification(message);
    else if (isRequest(message)) return this.#takeRequest(message, inbound, awaited || this.#sequence !== undefined);
    return undefined;
  }

  #takeNotification(message: NotificationMessage): void {
    if (message.method === "notifications/cancelled") {
      const { requestId, reason } = message.params ?? {};
      if (isId(requestId)) this.#inFlight.cancel(requestId, cancellation(reason, "the caller"));
    } else if (message.method === "exit" && this.#mayShutDown) this.#closing ??= this.#finish(this.#graceMs);
    else this.#session.take(message);
  }

  #takeRequest(message: RequestMessage, inbound: Inbound, awaited: boolean): Promise<void> {
    const { id, method } = message;
    const front: Front = this.#isStateless(message) ? this.#exchange : this.#session;
    const background = front === this.#exchange && method === "subscriptions/listen";
    const flight = this.#inFlight.begin(id, background, method !== "initialize");
    if (flight === undefined) {
      const error = McpError.of("invalid_request", "A request with this id is still in flight", { method });
      return this.#inTurn(() => this.#respond({ jsonrpc: "2.0", id, error: front.fault(error, message) }, inbound));
    }
    if (inbound.drop !== undefined) flight.onCancel = () => inbound.drop?.();
    if (background) return this.#answerListen(message, inbound, flight);
    if (!awaited) return this.#answer(front, message, inbound, flight);
    // A cancelled call gives up its turn, whether or not it heeds its signal.
    const given = new Promise<void>((resolve) => {
      flight.onCancel = () => {
        inbound.drop?.();
        resolve();
      };
    });
    const work = (): Promise<void> => Promise.race([this.#answer(front, message, inbound, flight), given]);
    if (this.#sequence === undefined) return work();
    return method === "ping" ? this.#sequence.enqueuePing(work) : this.#sequence.enqueue(work);
  }

  /** A request that stands by itself, or one of a session: some methods mean nothing in one of the two styles. */
  #isStateless(message: RequestMessage): boolean {
    if (!this.#speaks.exchange) return false;
    if (!this.#speaks.session) return message.method !== "initialize";
    return isStateless(message) && (message.params?.["_meta"] !== undefined || !this.#session.started);
  }

  /** Runs the request and sends what came of it, unless the caller no longer wants to know. */
  async #answer(front: Front, message: RequestMessage, inbound: Inbound, flight: Flight): Promise<void> {
    // A ping asks whether we live: busy as we may be, it never waits for a slot.
    const slots = message.method === "ping" ? undefined : this.#slots;
    if (slots?.take() === false) await slots.wait();
    if (flight.cancelled) {
      slots?.give();
      return;
    }
    const told = flight.onCancel;
    flight.onCancel = () => {
      slots?.cancel();
      told?.();
    };
    try {
      const response = await this.#outcome(front, message, inbound, flight);
      if (!flight.cancelled) await this.#respond(response, inbound);
    } finally {
      if (flight.cancelled) slots?.endCancelled();
      else slots?.give();
      this.#inFlight.end(flight);
    }
  }

  /** What waited for its turn until the connection was closed never begins. */
  #outcome(
    front: Front,
    message: RequestMessage,
    inbound: Inbound,
    flight: Flight,
  ): Promise<ResponseMessage> | ResponseMessage {
    if (!flight.stop.aborted) return outcomeOf(front, message, inbound, flight);
    const error = McpError.of("shutting_down", "The connection is closed", { method: message.method });
    return { jsonrpc: "2.0", id: message.id, error: front.fault(error, message) };
  }

  async #answerListen(message: RequestMessage, inbound: Inbound, flight: Flight): Promise<void> {
    const { id } = message;
    try {
      const response = await this.#outcome(this.#exchange, message, inbound, flight);
      if (flight.cancelled) return;
      await this.#respond(response, inbound);
      if ("error" in response) return;
      // The pages on cancellation and on subscriptions each ask for one of these two; a caller may rely on either.
      const params = { requestId: id, reason: "The subscription has ended", _meta: { [META.subscriptionId]: id } };
      await inbound.reply({ jsonrpc: "2.0", method: "notifications/cancelled", params }).catch(() => undefined);
    } finally {
      this.#inFlight.end(flight);
    }
  }

  /** An answer that cannot be sent is replaced by one that says so: nobody is left waiting. */
  async #respond(response: ResponseMessage, inbound: Inbound): Promise<void> {
    try {
      await inbound.reply(response, LAST);
    } catch (error) {
      if (!inbound.gone.aborted) await inbound.reply(unsendable(response, error), LAST).catch(() => undefined);
    }
  }

  #takeBatch(items: readonly BatchItem[], inbound: Inbound): void {
    if (!this.#session.started || !this.#session.revision.batches) {
      const details = this.#session.started
        ? `Revision ${this.#session.revision.name} has no batches: send one message at a time`
        : "A batch cannot come before initialize has been answered";
      const refusal = McpError.of("invalid_request", "Invalid Request", { details });
      void this.#inTurn(() => this.#respond({ jsonrpc: "2.0", id: null, error: refusal.toBody() }, inbound));
      return;
    }
    const flight = this.#inFlight.beginNameless();
    const take = (message: Message, one: Inbound): Promise<void> | undefined => this.#take(message, one, true);
    const respond = (response: ResponseMessage): Promise<void> => this.#respond(response, inbound);
    void takeBatch(items, inbound, take, respond).finally(() => this.#inFlight.end(flight));
  }

  async #finish(graceMs: number): Promise<void> {
    if (graceMs > 0) await this.#inFlight.drained(graceMs);
    const reason = new Error("The connection is closed");
    this.#inFlight.abortAll(reason);
    // What heeds its signal still gets its answer out: listens end with a result, calls with an error.
    await this.#inFlight.settled(SETTLE_MS);
    this.#rounds.close();
    this.#session.close(reason);
    await this.#transport.close().catch(() => undefined);
    this.#markClosed();
  }
}

/** The revisions of these names, oldest first; all of them where nothing is said. */
export function spokenRevisions(names: readonly string[] | undefined): readonly Revision[] {
  const spoken = names?.map((name) => knownRevision(name)) ?? REVISIONS;
  return REVISIONS.filter((revision) => spoken.includes(revision));
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

// `ordering: "sequential"`: work requests are taken one at a time and answered in the order in which they
// came. Everything that keeps the dialogue alive stays outside: responses and notifications never wait,
// and a ping waits only while the request before it is young, so that a stuck call cannot hide that we live.

const PING_GRACE_MS = 100;

export class Sequence {
  #tail: Promise<void> = Promise.resolve();

  /** Runs the work when all that came before it is done. */
  enqueue(work: () => Promise<void>): Promise<void> {
    const turn = this.#tail.then(work);
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  /** Its turn, or a short grace, whichever is first. */
  async enqueuePing(work: () => Promise<void>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PING_GRACE_MS);
    });
    await Promise.race([this.#tail, grace]);
    clearTimeout(timer);
    await work();
  }
}
