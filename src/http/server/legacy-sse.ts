// Legacy HTTP+SSE, the transport of the first revision. A GET opens one stream that carries everything to the client.
// Its first event is the address that the client posts to. The session ends with the stream and cannot be resumed.

import { onAbort } from "../../core/async.ts";
import type { Identity } from "../../core/authentication.ts";
import type { Caller, Handler } from "../../core/handler.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message } from "../../jsonrpc/message.ts";
import { type SseWriter, formatEvent } from "./reply.ts";
import { HttpError } from "./http-request.ts";
import type { Inbound, Transport } from "../../transport/transport.ts";
import { serveTransport, type ConnectionOptions } from "../../dialogue/connection.ts";
import {
  callerFrom,
  checkAccept,
  readMessage,
  toInbound,
  expectsResponse,
  type ParsedBody,
  type SharedLimits,
} from "./admission.ts";

import { randomId, SessionTable } from "./session.ts";
import type { Reply } from "./reply.ts";

export class LegacySse {
  readonly #handler: Handler;
  readonly #connection: ConnectionOptions;
  readonly #shared: SharedLimits;
  readonly #sessions: SessionTable<LegacySseSession>;

  constructor(handler: Handler, connection: ConnectionOptions, shared: SharedLimits) {
    this.#handler = handler;
    this.#connection = connection;
    this.#shared = shared;
    this.#sessions = new SessionTable(shared);
  }

  open(reply: Reply, identity: Identity | undefined, address: string): void {
    checkAccept(reply.request, ["text/event-stream"]);
    this.#shared.requests.check();
    const session = this.#sessions.add(new LegacySseSession(randomId(), identity?.principal), (added) =>
      serveTransport(this.#handler, added, this.#connection),
    );
    session.open(reply, `${address}?sessionId=${session.id}`, () => void this.#sessions.end(session));
  }

  post(reply: Reply, identity: Identity | undefined): void {
    const id = new URLSearchParams(reply.request.query).get("sessionId");
    if (id === null) throw new HttpError(400, "The query has no sessionId; post to the address from the stream");
    const session = this.#sessions.find(id, identity?.principal);
    if (session === undefined) throw unknownSession();
    readMessage(reply, this.#shared, (body) => {
      // The session may have closed while the body was read.
      if (session.isClosed) throw unknownSession();
      const release = this.#shared.requests.begin(body, identity?.principal);
      session.post(body, reply, callerFrom(reply.request, identity, this.#connection.env), release);
    });
  }

  close(graceMs: number): Promise<void> {
    return this.#sessions.close(graceMs);
  }
}

function unknownSession(): HttpError {
  return new HttpError(404, "There is no such session; open a stream first");
}

class LegacySseSession implements Transport {
  readonly id: string;
  readonly principal: string | undefined;
  /** Such a session is never idle, because its stream is open as long as the session exists. */
  readonly isIdle = false;
  readonly hasListened = true;
  readonly usedAt = 0;
  readonly #closed = new AbortController();
  #stream: SseWriter | undefined;
  #maxBytes = Infinity;
  #receive: (inbound: Inbound) => void = () => undefined;

  constructor(id: string, principal: string | undefined) {
    this.id = id;
    this.principal = principal;
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
  }

  /** Opens the stream and sends the address to post to. */
  open(reply: Reply, address: string, onClose: () => void): void {
    this.#maxBytes = reply.limits.messageBytes;
    this.#stream = reply.openStream(() => {
      this.#closed.abort();
      onClose();
    });
    this.#stream.send(formatEvent({ event: "endpoint", data: address }));
  }

  async send(message: Message | readonly Message[]): Promise<void> {
    this.#stream?.send(formatEvent({ event: "message", data: encode(message, this.#maxBytes) }));
  }

  async close(): Promise<void> {
    this.#stream?.end();
  }

  /** Calls `release` when the responses have been sent, or no more will be sent. */
  post(body: ParsedBody, reply: Reply, caller: Partial<Caller>, release: () => void): void {
    reply.sendEmpty(202);
    const { signal } = this.#closed;
    const removeListener = expectsResponse(body) ? onAbort(signal, release) : undefined;
    const drop = (): void => {
      removeListener?.();
      release();
    };
    this.#receive({
      ...toInbound(body),
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
