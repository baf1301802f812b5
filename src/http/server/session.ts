// The transport of one session over HTTP, for revisions that have sessions. Each POST has its own reply; unsolicited
// messages are sent on the stream of a GET. A broken connection does not end the session: the client resumes its
// streams after the last event received, and a request runs until it is answered or cancelled. This file also has the
// session table.

import { unref } from "../../core/async.ts";
import type { FairLimit } from "../../core/budgets.ts";
import { BoundedMap, ChurningSet } from "../../core/collections.ts";
import type { Caller } from "../../core/handler.ts";
import { createSeal, digest } from "../../core/seal.ts";
import type { Seal } from "../../core/seal.ts";
import { isObject } from "../../core/values.ts";
import type { ServedConnection } from "../../dialogue/connection.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { isResponse } from "../../jsonrpc/message.ts";
import type { ErrorBody, Message, ResponseMessage } from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";
import { changedMethod, LIST_CAPABILITIES } from "../../protocol/lists.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { BatchItem, Inbound, ReplyOptions, Transport } from "../../transport/transport.ts";
import { SESSION_HEADER } from "../headers.ts";
import { expectsResponse, neverAbortedSignal, takePlace, toInbound } from "./admission.ts";
import type { ParsedBody, SharedLimits } from "./admission.ts";
import { HttpError } from "./http-request.ts";
import { isUnsolicited, SessionStreams } from "./replay.ts";
import type { ReplayStore, ReplayStream } from "./replay.ts";
import { encodeResponse } from "./reply.ts";
import type { Reply, SilenceListener } from "./reply.ts";

/** Messages are sent, or kept for the client, at once. */
const SENT: Promise<void> = Promise.resolve();

/** The id of the handshake when a session is opened again. */
const HANDSHAKE_ID = "catenary-handshake";

/** Names of streams begin here or above if the session is opened again: below 36^11, so that a name is short. */
const MAX_FIRST_NAME = 2 ** 48;

/** The reconnection time in a priming event, which starts a stream: it has an id, so that the client can resume. */
const RETRY_MS = 1_000;

export class HttpSession implements Transport {
  /** Empty if the session lives only for one request. Then the client gets no id, and no stream can be resumed. */
  readonly id: string;
  readonly principal: string | undefined;
  usedAt: number = performance.now();
  /** Settles when the session is open again; undefined if it is not being opened again. */
  reopening: Promise<boolean> | undefined;
  readonly #streams: SessionStreams;
  /** POSTs that are not answered yet. */
  readonly #replies = new ChurningSet<SessionReply>();
  #revision: Revision | undefined;
  #hasListened = false;
  /** Whether the session id has been sent to the client. */
  #isIdSent = false;
  #receive: (inbound: Inbound) => void = () => undefined;

  readonly #isReopened: boolean;

  readonly #maxBytes: number;

  constructor(id: string, principal: string | undefined, store: ReplayStore, isReopened: boolean, maxBytes: number) {
    this.id = id;
    this.#maxBytes = maxBytes;
    this.principal = principal;
    this.#isReopened = isReopened;
    this.#streams = new SessionStreams(store, isReopened ? Math.floor(Math.random() * MAX_FIRST_NAME) : 0);
  }

  /** Whether no request is pending and no stream is open. */
  get isIdle(): boolean {
    // A session whose client disconnected during the handshake will never be used.
    const isAbandoned = this.#revision === undefined && this.#replies.all().every(({ isUnreachable }) => isUnreachable);
    if (this.reopening !== undefined) return false;
    return (this.#replies.size === 0 || isAbandoned) && !this.#streams.isAttached;
  }

  get hasListened(): boolean {
    return this.#hasListened;
  }

  /** Undefined until the handshake has been answered. */
  get revision(): Revision | undefined {
    return this.#revision;
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
  }

  /** Sends a message that belongs to no request. */
  async send(message: Message | readonly Message[]): Promise<void> {
    this.#streams.sendUnsolicited(encode(message, this.#maxBytes));
  }

  async close(): Promise<void> {
    const error = McpError.of("unreachable", "The session was closed before the request was answered").toBody();
    for (const reply of this.#replies.all()) reply.abandon(error);
    this.#streams.close();
  }

  /**
   * Repeats the handshake of a session that has ended without its client. Resolves with whether it succeeded, with the
   * same revision. Sends a `list_changed` notification for each list, since all may have changed.
   */
  reopen(handshake: Json, caller: Partial<Caller>): Promise<boolean> {
    this.#isIdSent = true;
    const inbound = { kind: "message", caller, gone: neverAbortedSignal() } as const;
    this.reopening = new Promise<boolean>((resolve) => {
      const answered: Inbound["reply"] = async (message) => {
        const isOpen = this.readRevision(message) && this.#revision?.name === handshake["protocolVersion"];
        if (isOpen) {
          const initialized = { jsonrpc: "2.0", method: "notifications/initialized" } as const;
          this.#receive({ ...inbound, message: initialized, reply: async () => undefined });
          this.#announceLists(message as ResponseMessage);
        }
        this.reopening = undefined;
        resolve(isOpen);
      };
      const message = { jsonrpc: "2.0", id: HANDSHAKE_ID, method: "initialize", params: handshake } as const;
      this.#receive({ ...inbound, message, reply: answered });
    });
    return this.reopening;
  }

  #announceLists(message: ResponseMessage): void {
    const { capabilities } = (message as { result: Json }).result;
    for (const name of LIST_CAPABILITIES) {
      const capability = isObject(capabilities) ? capabilities[name] : undefined;
      if (!isObject(capability) || capability["listChanged"] !== true) continue;
      this.#streams.sendUnsolicited(encode({ jsonrpc: "2.0", method: changedMethod(name) }));
    }
  }

  /** Calls `onDone` when the response has been sent, or no response will be sent. */
  post(body: ParsedBody, reply: Reply, caller: Partial<Caller>, onDone: () => void): void {
    this.usedAt = performance.now();
    if (!expectsResponse(body)) {
      this.#receive({ ...toInbound(body), caller, gone: neverAbortedSignal(), reply: () => SENT });
      reply.sendEmpty(202);
      return onDone();
    }
    const sessionReply = new SessionReply(body, reply, caller, this, onDone);
    this.#replies.add(sessionReply);
    reply.watchSilence(sessionReply);
    this.#receive(sessionReply);
  }

  /** Called when a POST has been answered, or will not be. */
  onDone(reply: SessionReply): void {
    this.#replies.delete(reply);
    this.usedAt = performance.now();
  }

  /** Handles a GET: opens a stream for unsolicited messages, or resumes a broken stream. */
  get(reply: Reply, lastEventId: string | undefined): void {
    this.usedAt = performance.now();
    this.#hasListened = true;
    const found = lastEventId === undefined || lastEventId === "" ? undefined : this.#streams.find(lastEventId);
    if (found === undefined) {
      // Unsolicited messages of before are lost. The client has been told that everything may have changed.
      const isFormer = this.#isReopened && isUnsolicited(lastEventId ?? "");
      if (lastEventId === undefined || lastEventId === "" || isFormer) {
        return this.attach(this.#streams.openUnsolicited(), reply);
      }
      throw new HttpError(400, `The events after ${JSON.stringify(lastEventId)} are no longer available`);
    }
    // In the SSE standard only a 204 stops a client from reconnecting.
    if (found.stream.endsAt(found.after)) reply.sendEmpty(204);
    else {
      this.attach(found.stream, reply, found.after);
      this.#streams.collectUnsent(found.stream);
    }
  }

  newStream(): ReplayStream {
    return this.#streams.open();
  }

  /** Continues the stream on this reply after the event `after`. Without `after`, starts it, with a priming event. */
  attach(stream: ReplayStream, reply: Reply, after?: number): void {
    const output = reply.openStream((closed) => {
      stream.detach(closed);
      this.usedAt = performance.now();
    });
    // The client may have disconnected already.
    if (output.isClosed) return;
    stream.attach(output, after);
    if (after === undefined && this.id !== "" && this.#revision?.primesStreams === true) stream.prime(RETRY_MS);
  }

  /** Reads the revision if this is the response to the handshake. Returns whether it is. */
  readRevision(message: Message | readonly Message[]): boolean {
    if (this.#revision !== undefined || Array.isArray(message) || !isResponse(message as Message)) return false;
    const { result } = message as { result?: unknown };
    const name = isObject(result) ? result["protocolVersion"] : undefined;
    if (typeof name === "string") this.#revision = revisionNamed(name);
    return this.#revision !== undefined;
  }

  addSessionId(reply: Reply): void {
    if (this.#isIdSent || this.id === "" || reply.hasStarted) return;
    this.#isIdSent = true;
    reply.headers = { ...reply.headers, [SESSION_HEADER]: this.id };
  }
}

/**
 * A POST and the reply to it. The reply is a JSON body if the response is the only message, and a resumable stream
 * otherwise. If the client disconnects and cannot resume, the response is dropped, and other messages are sent as
 * unsolicited ones.
 */
class SessionReply implements Inbound, SilenceListener {
  readonly kind: Inbound["kind"];
  readonly message?: Message;
  readonly batch?: readonly BatchItem[];
  readonly caller: Partial<Caller>;
  readonly #reply: Reply;
  readonly #session: HttpSession;
  readonly #onDone: () => void;
  #stream: ReplayStream | undefined;
  #isDone = false;

  constructor(body: ParsedBody, reply: Reply, caller: Partial<Caller>, session: HttpSession, onDone: () => void) {
    this.kind = body.kind;
    if (body.kind === "message") this.message = body.message;
    else this.batch = body.items;
    this.caller = caller;
    this.#reply = reply;
    this.#session = session;
    this.#onDone = onDone;
  }

  get gone(): AbortSignal {
    return this.isUnreachable ? AbortSignal.abort() : neverAbortedSignal();
  }

  /** Whether the client has disconnected and cannot resume. */
  get isUnreachable(): boolean {
    return this.#stream === undefined ? this.#reply.request.isDisconnected : !this.#stream.isReachable;
  }

  reply(message: Message | readonly Message[], options?: ReplyOptions): Promise<void> {
    try {
      if (this.#session.revision === undefined && this.#session.readRevision(message)) {
        this.#session.addSessionId(this.#reply);
      }
      this.#send(message, options?.last === true);
      return SENT;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  onSilence(): void {
    // The session id is a header, so if the handshake is slow, the id must be sent with the stream's head.
    this.#session.addSessionId(this.#reply);
    this.#openStream();
  }

  #send(message: Message | readonly Message[], isLast: boolean): void {
    if (this.#isDone) return;
    if (isLast) this.#isDone = true;
    if (this.isUnreachable) this.#divert(message);
    else if (isLast && this.#stream === undefined) {
      this.#reply.sendJson(message as ResponseMessage | readonly Message[]);
    } else (this.#stream ?? this.#openStream()).send(encodeResponse(message, this.#reply.limits), isLast);
    if (isLast) this.#finish();
  }

  #finish(): void {
    this.#session.onDone(this);
    this.#onDone();
  }

  /** Ends the reply without a response. */
  drop(): void {
    if (this.#isDone) return;
    this.#isDone = true;
    if (this.#stream !== undefined) this.#stream.finish();
    // This stream sends no event id, so the client does not try to resume it.
    else if (!this.isUnreachable) this.#reply.openStream(() => undefined).end();
    this.#finish();
  }

  /** Responds with an error. Called when the session closes while a handler ignores its signal. */
  abandon(error: ErrorBody): void {
    const { id } = this.#reply;
    if (id === null) this.drop();
    else this.#send({ jsonrpc: "2.0", id, error }, true);
  }

  /** Closes the connection of the stream, except in revisions that forbid this before the response. */
  hangUp(retryMs: number): void {
    if (this.#isDone || this.isUnreachable || this.#session.revision?.primesStreams !== true) return;
    if (this.#session.id === "") return;
    (this.#stream ?? this.#openStream()).hangUp(retryMs);
  }

  #openStream(): ReplayStream {
    const stream = this.#session.newStream();
    this.#stream = stream;
    this.#session.attach(stream, this.#reply);
    return stream;
  }

  #divert(message: Message | readonly Message[]): void {
    if (Array.isArray(message) || isResponse(message as Message)) return;
    void this.#session.send(message).catch(() => undefined);
  }
}

interface TableSession {
  readonly id: string;
  readonly principal: string | undefined;
  readonly isIdle: boolean;
  /** Whether the client has ever opened a stream with GET. */
  readonly hasListened: boolean;
  readonly usedAt: number;
}

const MAX_SWEEP_INTERVAL_MS = 5_000;

/**
 * The open sessions by id. A session belongs to the principal that opened it, and is not found for others. It ends on
 * request, or after a long idle time.
 */
export class SessionTable<Session extends TableSession> {
  readonly #sessions = new Map<string, { readonly session: Session; readonly served: Promise<ServedConnection> }>();
  readonly #limit: FairLimit;
  readonly #idleMs: number;
  readonly #disconnectedMs: number;
  #sweeper: NodeJS.Timeout | undefined;

  constructor({ sessions, limits }: SharedLimits) {
    this.#limit = sessions;
    this.#idleMs = limits.sessionIdleMs;
    this.#disconnectedMs = Math.min(limits.sessionDisconnectedMs, limits.sessionIdleMs);
  }

  /** Throws a 503 if too many sessions are open, of all callers or of this principal. */
  add<Added extends Session>(session: Added, serve: (session: Added) => Promise<ServedConnection>): Added {
    takePlace(this.#limit, session.principal, "sessions");
    this.#sessions.set(session.id, { session, served: serve(session) });
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), Math.min(MAX_SWEEP_INTERVAL_MS, this.#disconnectedMs)));
    return session;
  }

  find(id: string | undefined, principal: string | undefined): Session | undefined {
    const found = id === undefined ? undefined : this.#sessions.get(id)?.session;
    return found?.principal === principal ? found : undefined;
  }

  get isEmpty(): boolean {
    return this.#sessions.size === 0;
  }

  async end({ id, principal }: Session, graceMs = 0): Promise<void> {
    const found = this.#sessions.get(id);
    if (found === undefined) return;
    this.#sessions.delete(id);
    this.#limit.release(principal);
    if (this.#sessions.size === 0) this.#stopSweeping();
    await (await found.served).close(graceMs);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ session }) => this.end(session, graceMs)));
    this.#stopSweeping();
  }

  #sweep(): void {
    const now = performance.now();
    for (const { session } of this.#sessions.values()) {
      const idleMs = session.hasListened ? this.#disconnectedMs : this.#idleMs;
      if (now - session.usedAt >= idleMs && session.isIdle) void this.end(session);
    }
  }

  #stopSweeping(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

// Session ids. With a key, an id is the sealed handshake of its session: after a restart of the server, the session is
// opened again from it, and the client goes on. An id that a client has ended is not accepted again in this process.
// Without a key, or if the handshake is too long for a header, an id is 128 random bits. An id is no credential: a
// session belongs to the principal that opened it.

/** How long after its beginning a session can be opened again. */
const SEALED_MS = 7 * 24 * 60 * 60 * 1_000;
const MAX_LENGTH = 2_048;
const MAX_ENDED = 10_000;
const PREFIX = "s.";

interface SealedSession {
  readonly session: Json;
  readonly principal: string;
}

export class SessionIds {
  readonly #seal: Seal | undefined;
  readonly #ended = new BoundedMap<string, true>(MAX_ENDED);

  constructor(key: string | Uint8Array | undefined) {
    this.#seal = key === undefined ? undefined : createSeal(key);
  }

  /** `handshake` is the params of `initialize`, with the revision that was agreed on. */
  create(handshake: Json, principal: string | undefined): string {
    const payload: SealedSession = { session: handshake, principal: digest(principal) };
    const sealed = this.#seal?.seal(payload, SEALED_MS);
    return sealed === undefined || sealed.length > MAX_LENGTH ? randomId() : `${PREFIX}${sealed}`;
  }

  /** The handshake; undefined if the id is forged, expired, ended, or of another principal. */
  open(id: string, principal: string | undefined): Json | undefined {
    if (!id.startsWith(PREFIX) || id.length > MAX_LENGTH + PREFIX.length || this.#ended.get(id) === true) {
      return undefined;
    }
    const payload: Partial<SealedSession> | undefined = this.#seal?.open(id.slice(PREFIX.length));
    // The same key may seal other things.
    return isObject(payload?.session) && payload.principal === digest(principal) ? payload.session : undefined;
  }

  /** Makes the id invalid. */
  end(id: string): void {
    if (id.startsWith(PREFIX)) this.#ended.set(id, true);
  }
}

export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
