// The transport of one session over HTTP, for revisions that have sessions. Each POST has its own reply; unsolicited
// messages are sent on the stream of a GET. A broken connection does not end the session: the client resumes its
// streams after the last event received, and a request runs until it is answered or cancelled.

import type { CallerIdentity } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message, ResponseMessage } from "../../jsonrpc/message.ts";
import { changedMethod, LIST_CAPABILITIES } from "../../protocol/lists.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import { type Carrier, NO_CARRIER } from "../../transport/carrier.ts";
import type { Inbound, Receive, Transport } from "../../transport/transport.ts";
import { SESSION_HEADER } from "../headers.ts";
import { expectsResponse } from "./admission.ts";
import { HttpError } from "./http-request.ts";
import type { HttpReply, ParsedBody, ReplyLog } from "./reply.ts";
import type { ReplayStore, ReplayStream } from "./replay-stream.ts";
import { isUnsolicited, SessionStreams } from "./session-streams.ts";

/** The error for calls that still run when the session closes. */
export const SESSION_CLOSED = "The session was closed before the request was answered";

/** The id of the handshake when a session is opened again. */
const HANDSHAKE_ID = "catenary-handshake";

/** Names of streams begin here or above if the session is opened again: below 36^11, so that a name is short. */
const MAX_FIRST_NAME = 2 ** 48;

/** The reconnection time in a priming event, which starts a stream: it has an id, so that the client can resume. */
const RETRY_MS = 1_000;

export class HttpSession implements Transport, ReplyLog {
  /** Empty if the session lives only for one request. Then the client gets no id, and no stream can be resumed. */
  readonly id: string;
  readonly canResume: boolean;
  readonly principal: string | undefined;
  usedAt: number = performance.now();
  /** Settles when the session is open again; undefined if it is not being opened again. */
  reopening: Promise<boolean> | undefined;
  /** Called when a POST has been answered, or will not be. */
  onAnswered: (() => void) | undefined;
  readonly #isReopened: boolean;
  readonly #maxBytes: number;
  readonly #streams: SessionStreams;
  /** How many POSTs are not answered yet, and the first of them. */
  #pending = 0;
  #handshake: HttpReply | undefined;
  /** Undefined until the handshake has been answered. */
  revision: Revision | undefined;
  hasListened = false;
  /** Whether the session id has been sent to the client. */
  #isIdSent = false;
  #receive: Receive = () => undefined;

  constructor(id: string, principal: string | undefined, store: ReplayStore, isReopened: boolean, maxBytes: number) {
    this.id = id;
    this.canResume = id !== "";
    this.#maxBytes = maxBytes;
    this.principal = principal;
    this.#isReopened = isReopened;
    this.#streams = new SessionStreams(store, isReopened ? Math.floor(Math.random() * MAX_FIRST_NAME) : 0);
  }

  /** Whether no request is pending and no stream is open. */
  get isIdle(): boolean {
    if (this.reopening !== undefined) return false;
    // A session whose client disconnected during the handshake will never be used.
    const isAbandoned = this.revision === undefined && this.#handshake?.isGone === true;
    return (this.#pending === 0 || isAbandoned) && !this.#streams.isAttached;
  }

  get canHangUp(): boolean {
    return this.canResume && this.revision?.primesStreams === true;
  }

  async start(receive: Receive): Promise<void> {
    this.#receive = receive;
  }

  async send(message: Message | readonly Message[]): Promise<void> {
    this.#streams.sendUnsolicited(encode(message, this.#maxBytes));
  }

  async close(): Promise<void> {
    this.#streams.close();
  }

  /**
   * Repeats the handshake of a session that has ended without its client. Resolves with whether it succeeded, with the
   * same revision. Sends a `list_changed` notification for each list, since all may have changed.
   */
  reopen(handshake: Json, caller: CallerIdentity): Promise<boolean> {
    this.#isIdSent = true;
    this.reopening = new Promise<boolean>((resolve) => {
      const finish: Carrier["finish"] = (response) => {
        const isOpen = this.#readRevision(response) && this.revision?.name === handshake["protocolVersion"];
        if (isOpen) {
          const initialized = { jsonrpc: "2.0", method: "notifications/initialized" } as const;
          this.#receive({ kind: "message", message: initialized, caller }, NO_CARRIER);
          this.#announceLists(response);
        }
        this.reopening = undefined;
        resolve(isOpen);
        return undefined;
      };
      const message = { jsonrpc: "2.0", id: HANDSHAKE_ID, method: "initialize", params: handshake } as const;
      this.#receive({ kind: "message", message, caller }, { ...NO_CARRIER, finish });
    });
    return this.reopening;
  }

  #announceLists(handshake: ResponseMessage | readonly ResponseMessage[]): void {
    if (!("result" in handshake)) return;
    const { capabilities } = handshake.result;
    for (const name of LIST_CAPABILITIES) {
      const capability = isObject(capabilities) ? capabilities[name] : undefined;
      if (!isObject(capability) || capability["listChanged"] !== true) continue;
      this.#streams.sendUnsolicited(encode({ jsonrpc: "2.0", method: changedMethod(name) }));
    }
  }

  /** Throws an HttpError for a batch that the revision does not have, and a CallRefused if there is no place. */
  post(body: ParsedBody, reply: HttpReply, caller: CallerIdentity): void {
    if (body.kind === "batch" && this.revision?.batches !== true) {
      const name = this.revision?.name ?? "of this session";
      throw new HttpError(400, `Revision ${name} has no batches: send one message at a time`);
    }
    this.usedAt = performance.now();
    const isAnswered = expectsResponse(body);
    if (isAnswered) {
      this.#pending += 1;
      this.#handshake ??= reply;
      reply.carry(this);
    }
    try {
      this.#receive(inboundOf(body, caller), isAnswered ? reply : NO_CARRIER);
    } catch (error) {
      if (isAnswered) this.onDone();
      throw error;
    }
    if (!isAnswered) reply.sendEmpty(202);
  }

  /** Handles a GET: opens a stream for unsolicited messages, or resumes a broken stream. */
  get(reply: HttpReply, lastEventId: string | undefined): void {
    this.usedAt = performance.now();
    this.hasListened = true;
    const position = lastEventId === undefined || lastEventId === "" ? undefined : this.#streams.find(lastEventId);
    if (position === undefined) {
      // Unsolicited messages of before are lost. The client has been told that everything may have changed.
      const isFormer = this.#isReopened && isUnsolicited(lastEventId ?? "");
      if (lastEventId === undefined || lastEventId === "" || isFormer) {
        return this.#attach(this.#streams.openUnsolicited(), reply);
      }
      throw new HttpError(400, `The events after ${JSON.stringify(lastEventId)} are no longer available`);
    }
    // In the SSE standard only a 204 stops a client from reconnecting.
    if (position.stream.endsAt(position.after)) reply.sendEmpty(204);
    else {
      this.#attach(position.stream, reply, position.after);
      this.#streams.collectUnsent(position.stream);
    }
  }

  /** Opens the stream of a POST. */
  openStream(reply: HttpReply): ReplayStream {
    const stream = this.#streams.open();
    // The session id is a header, so if the handshake is slow, the id must be sent with the stream's head.
    this.#addSessionId(reply);
    this.#attach(stream, reply);
    return stream;
  }

  /** Continues the stream on this reply after the event `after`. Without `after`, starts it, with a priming event. */
  #attach(stream: ReplayStream, reply: HttpReply, after?: number): void {
    const output = reply.openStream((closed) => {
      stream.detach(closed);
      this.usedAt = performance.now();
    });
    // The client may have disconnected already.
    if (output.isClosed) return;
    stream.attach(output, after);
    if (after === undefined && this.canHangUp) stream.prime(RETRY_MS);
  }

  beforeResponse(reply: HttpReply, response: ResponseMessage | readonly ResponseMessage[]): void {
    if (this.revision === undefined && this.#readRevision(response)) this.#addSessionId(reply);
  }

  divert(message: Message): void {
    this.#streams.sendUnsolicited(encode(message, this.#maxBytes));
  }

  onDone(): void {
    this.#pending -= 1;
    this.usedAt = performance.now();
    this.onAnswered?.();
  }

  /** Reads the revision if this is the response to the handshake. Returns whether it is. */
  #readRevision(response: ResponseMessage | readonly ResponseMessage[]): boolean {
    const result = "result" in response ? response.result : undefined;
    const name = result?.["protocolVersion"];
    if (typeof name === "string") this.revision = revisionNamed(name);
    return this.revision !== undefined;
  }

  #addSessionId(reply: HttpReply): void {
    if (this.#isIdSent || this.id === "" || reply.hasStarted) return;
    this.#isIdSent = true;
    reply.headers = { ...reply.headers, [SESSION_HEADER]: this.id };
  }
}

/** Not by a spread alone: of several shapes, V8 makes a new hidden class each time. */
function inboundOf(body: ParsedBody, caller: CallerIdentity): Inbound {
  return body.kind === "message" ? { kind: "message", message: body.message, caller } : { ...body, caller };
}
