// Legacy HTTP+SSE, the transport of the first revision. A GET opens one stream that carries everything to the client.
// Its first event is the address that the client posts to. The session ends with the stream and cannot be resumed.

import type { CallerIdentity, Handler } from "../../core/handler.ts";
import { type ConnectionOptions, serveConnection } from "../../dialogue/connection.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message } from "../../jsonrpc/message.ts";
import { LineCarrier } from "../../transport/line-carrier.ts";
import type { Receive, Transport } from "../../transport/transport.ts";
import { callerFrom, checkAccept, type SharedLimits } from "./admission.ts";
import { HttpError } from "./http-request.ts";
import type { HttpReply, MessageReceiver, ParsedBody } from "./reply.ts";
import { SESSION_CLOSED } from "./session.ts";
import { randomId } from "./session-ids.ts";
import { SessionTable } from "./session-table.ts";
import { formatEvent, type SseWriter } from "./sse-writer.ts";

export class LegacySse implements MessageReceiver {
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

  open(reply: HttpReply, address: string): void {
    checkAccept(reply.request, ["text/event-stream"]);
    this.#shared.places.check();
    const session = this.#sessions.add(new LegacySseSession(randomId(), reply.identity?.principal), (added) =>
      serveConnection(this.#handler, added, {
        ...this.#connection,
        places: this.#shared.places,
        unanswered: SESSION_CLOSED,
      }),
    );
    session.open(reply, `${address}?sessionId=${session.id}`, () => void this.#sessions.end(session));
  }

  post(reply: HttpReply): void {
    this.#find(reply);
    reply.readMessage(this);
  }

  take(body: ParsedBody, reply: HttpReply): void {
    // The session may have closed while the body was read.
    const session = this.#find(reply);
    this.#shared.places.check();
    session.post(body, reply, callerFrom(reply, this.#connection.env));
  }

  #find({ request, identity }: HttpReply): LegacySseSession {
    const id = new URLSearchParams(request.query).get("sessionId");
    if (id === null) throw new HttpError(400, "The query has no sessionId; post to the address from the stream");
    const session = this.#sessions.find(id, identity?.principal);
    if (session === undefined || session.isClosed) throw unknownSession();
    return session;
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
  isClosed = false;
  #stream: SseWriter | undefined;
  #maxBytes = Infinity;
  #receive: Receive = () => undefined;

  constructor(id: string, principal: string | undefined) {
    this.id = id;
    this.principal = principal;
  }

  async start(receive: Receive): Promise<void> {
    this.#receive = receive;
  }

  /** Opens the stream and sends the address to post to. */
  open(reply: HttpReply, address: string, onClose: () => void): void {
    this.#maxBytes = reply.limits.messageBytes;
    this.#stream = reply.openStream(() => {
      this.isClosed = true;
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

  /** Throws a CallRefused if there is no place for the request. Its response is sent on the stream. */
  post(body: ParsedBody, reply: HttpReply, caller: CallerIdentity): void {
    this.#receive({ ...body, caller }, new PostCarrier(this, reply.bodyLength));
    reply.sendEmpty(202);
  }
}

/** The lines of the stream, for the requests of one POST. */
class PostCarrier extends LineCarrier {
  readonly bodyLength: number;
  readonly #session: LegacySseSession;

  constructor(session: LegacySseSession, bodyLength: number) {
    super(session);
    this.#session = session;
    this.bodyLength = bodyLength;
  }

  override get isGone(): boolean {
    return this.#session.isClosed;
  }
}
