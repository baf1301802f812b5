// The transport of the first revision: one stream that a GET opens and that carries everything to the caller, and
// an address, told as the stream's first event, to which the caller posts everything. The session lives exactly as
// long as its stream; there is nothing to come back to.

import { onAbort } from "../../core/async.ts";
import type { Identity } from "../../core/authentication.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message } from "../../jsonrpc/message.ts";
import { type SseWriter, formatEvent } from "./sse.ts";
import { HttpError } from "./http-request.ts";
import type { Inbound, Transport } from "../../transport/transport.ts";
import { serveTransport, type ConnectionOptions } from "../../dialogue/connection.ts";
import { callerFrom, checkAccept, readMessage, toInbound, expectsResponse, type ParsedBody } from "./admission.ts";
import type { SharedLimits } from "./options.ts";
import { SessionTable } from "./session.ts";
import type { Reply } from "./reply.ts";

export class LegacySse {
  readonly #handler: Handler;
  readonly #connection: ConnectionOptions;
  readonly #common: SharedLimits;
  readonly #sessions: SessionTable<LegacySseSession>;

  constructor(handler: Handler, connection: ConnectionOptions, common: SharedLimits) {
    this.#handler = handler;
    this.#connection = connection;
    this.#common = common;
    this.#sessions = new SessionTable(common.room, common.limits.sessionIdleMs);
  }

  open(way: Reply, identity: Identity | undefined, address: string): void {
    checkAccept(way.visit, "text/event-stream");
    this.#common.work.check();
    const session = this.#sessions.add(
      (id) => new LegacySseSession(id, identity?.principal),
      (made) => serveTransport(this.#handler, made, this.#connection),
    );
    session.open(way, `${address}?sessionId=${session.id}`, () => void this.#sessions.end(session));
  }

  async post(way: Reply, identity: Identity | undefined): Promise<void> {
    const id = new URLSearchParams(way.visit.query).get("sessionId");
    if (id === null) throw new HttpError(400, "The address lacks its sessionId; post to the one that the stream named");
    const session = this.#sessions.find(id, identity?.principal);
    if (session === undefined) throw unknown();
    const taken = await readMessage(way, this.#common.limits);
    if (taken === undefined) return;
    // It may have ended while its message came in.
    if (session.isOver) throw unknown();
    session.post(taken, way, callerFrom(way.visit, identity), this.#common.work.begin(taken));
  }

  close(graceMs: number): Promise<void> {
    return this.#sessions.close(graceMs);
  }
}

function unknown(): HttpError {
  return new HttpError(404, "There is no such session; open a stream first");
}

class LegacySseSession implements Transport {
  readonly id: string;
  readonly principal: string | undefined;
  /** As long as it lives its stream is open, so it is never idle. */
  readonly idle = false;
  readonly usedAt = 0;
  readonly #gone = new AbortController();
  #stream: SseWriter | undefined;
  #receive: (inbound: Inbound) => void = () => undefined;

  constructor(id: string, principal: string | undefined) {
    this.id = id;
    this.principal = principal;
  }

  get isOver(): boolean {
    return this.#gone.signal.aborted;
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
  }

  /** Begins the stream, and says where to post. */
  open(way: Reply, address: string, ended: () => void): void {
    this.#stream = way.events(() => {
      this.#gone.abort();
      ended();
    });
    this.#stream.send(formatEvent({ event: "endpoint", data: address }));
  }

  async send(message: Message | readonly Message[]): Promise<void> {
    this.#stream?.send(formatEvent({ event: "message", data: encode(message) }));
  }

  async close(): Promise<void> {
    this.#stream?.end();
  }

  /** `over` is called when its answers are out, or none will come. */
  post(taken: ParsedBody, way: Reply, caller: Partial<Caller>, over: () => void): void {
    way.empty(202);
    const { signal } = this.#gone;
    const forget = expectsResponse(taken) ? onAbort(signal, over) : undefined;
    const drop = (): void => {
      forget?.();
      over();
    };
    this.#receive({
      ...toInbound(taken),
      caller,
      gone: signal,
      reply: async (message, options) => {
        if (options?.last === true) drop();
        await this.send(message);
      },
      drop,
    });
  }
}
