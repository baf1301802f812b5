// One session over HTTP, as the wire that a connection needs: what comes in is its POSTs, each with its own way
// back; what goes out unasked goes by the stream of a GET. A broken connection breaks nothing: streams can be taken
// up again by the id of the last event that came through, and a request goes on until it is cancelled or answered.
// What the messages mean is for the connection that is served over this.

import type { Caller } from "../../core/handler.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { isResponse, type Message, type ErrorBody, type ResponseMessage } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { ReplayStore, ReplayStream } from "./replay.ts";
import { HttpError } from "./http-request.ts";
import type { BatchItem, Inbound, Transport } from "../../transport/transport.ts";
import { SESSION_HEADER } from "../headers.ts";
import { SessionStreams } from "./replay.ts";
import { toInbound, NEVER_ABORTED, expectsResponse, type ParsedBody } from "./admission.ts";
import { type Reply, encodeResponse } from "./reply.ts";
import { unref } from "../../core/async.ts";
import type { Served } from "../../dialogue/connection.ts";

/** How soon a caller comes back whose connection ended, where nobody says otherwise. */
const RETRY_MS = 1_000;

export class HttpSession implements Transport {
  readonly id: string;
  readonly principal: string | undefined;
  usedAt: number = performance.now();
  readonly #streams: SessionStreams;
  /** Those that are not answered yet. */
  readonly #posts = new Set<SessionReply>();
  #revision: Revision | undefined;
  /** The caller has been told the id. */
  #named = false;
  #receive: (inbound: Inbound) => void = () => undefined;

  constructor(id: string, principal: string | undefined, store: ReplayStore) {
    this.id = id;
    this.principal = principal;
    this.#streams = new SessionStreams(store);
  }

  /** Nobody waits for anything here. */
  get idle(): boolean {
    // A handshake that nobody waits for any more will never be used.
    const forsaken = this.#revision === undefined && [...this.#posts].every(({ gone }) => gone);
    return (this.#posts.size === 0 || forsaken) && !this.#streams.attached;
  }

  /** Undefined until the handshake has been answered. */
  get revision(): Revision | undefined {
    return this.#revision;
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
  }

  /** What no request stands behind. */
  async send(message: Message | readonly Message[]): Promise<void> {
    this.#streams.sendUnasked(encode(message));
  }

  async close(): Promise<void> {
    const error = McpError.of("unreachable", "The session was ended before the answer was there").toBody();
    for (const post of this.#posts) post.abandon(error);
    this.#streams.close();
  }

  /** Resolves when its answers are out, or none will come. */
  post(taken: ParsedBody, way: Reply, caller: Partial<Caller>): Promise<void> | undefined {
    this.usedAt = performance.now();
    if (!expectsResponse(taken)) {
      this.#receive({ ...toInbound(taken), caller, gone: NEVER_ABORTED, reply: async () => undefined });
      way.empty(202);
      return undefined;
    }
    return new Promise<void>((resolve) => {
      const post: SessionReply = new SessionReply(way, this, () => {
        this.#posts.delete(post);
        this.usedAt = performance.now();
        resolve();
      });
      this.#posts.add(post);
      way.hold(() => {
        // A handshake that takes long: the head of its stream is the only place where the session can be named.
        this.#name(way);
        post.begin();
      });
      const reply: Inbound["reply"] = async (message, options) => {
        if (this.#learn(message)) this.#name(way);
        post.reply(message, options?.last === true);
      };
      this.#receive(new SessionInbound(taken, caller, post, reply));
    });
  }

  /** A GET: what comes unasked, or the rest of a stream that broke. */
  get(way: Reply, lastEventId: string | undefined): void {
    this.usedAt = performance.now();
    if (lastEventId === undefined || lastEventId === "") {
      this.attach(this.#streams.openUnasked(), way);
      return;
    }
    const found = this.#streams.find(lastEventId);
    if (found === undefined) {
      throw new HttpError(400, `What came after the event ${JSON.stringify(lastEventId)} is not kept here any more`);
    }
    // By the standard of event streams this, and nothing else, keeps a caller from coming back once more.
    if (found.stream.endsAt(found.after)) way.empty(204);
    else {
      this.attach(found.stream, way, found.after);
      this.#streams.gather(found.stream);
    }
  }

  newStream(): ReplayStream {
    return this.#streams.open();
  }

  /** Lets the stream go on by this way; without a place in it, from the beginning, which is marked. */
  attach(stream: ReplayStream, way: Reply, after?: number): void {
    const outlet = way.events((over) => {
      stream.detach(over);
      this.usedAt = performance.now();
    });
    // The caller may have gone while nobody looked.
    if (outlet.isOver) return;
    stream.attach(outlet, after);
    if (after === undefined && this.#revision?.primes === true) stream.prime(RETRY_MS);
  }

  /** The revision is known from the answer to the handshake; true where this is it. */
  #learn(message: Message | readonly Message[]): boolean {
    if (this.#revision !== undefined || Array.isArray(message) || !isResponse(message as Message)) return false;
    const { result } = message as { result?: unknown };
    const name = isObject(result) ? result["protocolVersion"] : undefined;
    if (typeof name === "string") this.#revision = revisionNamed(name);
    return this.#revision !== undefined;
  }

  #name(way: Reply): void {
    if (this.#named || way.begun) return;
    this.#named = true;
    way.headers = { ...way.headers, [SESSION_HEADER]: this.id };
  }
}

/** A class, because a literal with a getter would be paid for by every call. */
class SessionInbound implements Inbound {
  readonly kind: Inbound["kind"];
  readonly message?: Message;
  readonly batch?: readonly BatchItem[];
  readonly caller: Partial<Caller>;
  readonly reply: Inbound["reply"];
  readonly #post: SessionReply;

  constructor(taken: ParsedBody, caller: Partial<Caller>, post: SessionReply, reply: Inbound["reply"]) {
    this.kind = taken.kind;
    if (taken.kind === "message") this.message = taken.message;
    else this.batch = taken.items;
    this.caller = caller;
    this.reply = reply;
    this.#post = post;
  }

  get gone(): AbortSignal {
    return this.#post.gone ? AbortSignal.abort() : NEVER_ABORTED;
  }

  drop(): void {
    this.#post.drop();
  }

  hangUp(retryMs: number): void {
    this.#post.hangUp(retryMs);
  }
}

// The answers to one POST of a session. Where nothing but the answer is to be sent it is one JSON body; otherwise
// a stream of events, each with an id, that lives on when its connection breaks. What can reach nobody by this way
// any more goes by the stream for what comes unasked, except answers, which have no place there.


/** What the session lends to its POSTs. */
export interface PostHost {
  readonly revision: Revision | undefined;
  newStream(): ReplayStream;
  attach(stream: ReplayStream, way: Reply): void;
  send(message: Message | readonly Message[]): Promise<void>;
}

export class SessionReply {
  readonly #way: Reply;
  readonly #host: PostHost;
  readonly #done: () => void;
  #stream: ReplayStream | undefined;
  #over = false;

  constructor(way: Reply, host: PostHost, done: () => void) {
    this.#way = way;
    this.#host = host;
    this.#done = done;
  }

  /** Neither is anybody there, nor can anybody come back. */
  get gone(): boolean {
    return this.#stream === undefined ? this.#way.visit.isGone : !this.#stream.reachable;
  }

  reply(message: Message | readonly Message[], last: boolean): void {
    if (this.#over) return;
    if (last) this.#over = true;
    if (this.gone) this.#divert(message);
    else if (last && this.#stream === undefined) {
      this.#way.whole(message as ResponseMessage | readonly Message[]);
    } else (this.#stream ?? this.begin()).send(encodeResponse(message), last);
    if (last) this.#done();
  }

  /** No answer will come. */
  drop(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#stream !== undefined) this.#stream.finish();
    // Without an event that has an id nobody comes back for an answer that is not there.
    else if (!this.gone) this.#way.events(() => undefined).end();
    this.#done();
  }

  /** The session is over, and whoever works on the answer has not heeded that. */
  abandon(error: ErrorBody): void {
    const { id } = this.#way;
    if (id === null) this.drop();
    else this.reply({ jsonrpc: "2.0", id, error }, true);
  }

  /** In revisions in which a server may not end a stream before its time, nothing. */
  hangUp(retryMs: number): void {
    if (this.#over || this.gone || this.#host.revision?.primes !== true) return;
    (this.#stream ?? this.begin()).hangUp(retryMs);
  }

  /** Makes it a stream of events. */
  begin(): ReplayStream {
    const stream = this.#host.newStream();
    this.#stream = stream;
    this.#host.attach(stream, this.#way);
    return stream;
  }

  #divert(message: Message | readonly Message[]): void {
    if (Array.isArray(message) || isResponse(message as Message)) return;
    void this.#host.send(message).catch(() => undefined);
  }
}

// The sessions that are open, by their ids. An id is 128 bits of randomness and proves nothing: a session belongs
// to the principal that opened it, and for everybody else it does not exist. A session ends when its caller ends
// it, or after a long time in which nobody waited for anything.


export interface TableSession {
  readonly id: string;
  readonly principal: string | undefined;
  readonly idle: boolean;
  readonly usedAt: number;
}

const MOST_SWEEP_MS = 30_000;

/** How many sessions there may be, in all tables that share it. */
export class SessionLimiter {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws a HttpError where there is none. */
  take(): void {
    if (this.#taken >= this.#most) {
      throw new HttpError(503, "Too many sessions are open; try again later", { "retry-after": "10" });
    }
    this.#taken += 1;
  }

  give(): void {
    this.#taken -= 1;
  }
}

export class SessionTable<Session extends TableSession> {
  readonly #sessions = new Map<string, { readonly session: Session; readonly served: Promise<Served> }>();
  readonly #room: SessionLimiter;
  readonly #idleMs: number;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(room: SessionLimiter, idleMs: number) {
    this.#room = room;
    this.#idleMs = idleMs;
  }

  /** Throws a HttpError where there is no room. */
  add<Made extends Session>(make: (id: string) => Made, serve: (session: Made) => Promise<Served>): Made {
    this.#room.take();
    const session = make(newId());
    const served = serve(session);
    this.#sessions.set(session.id, { session, served });
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), Math.min(MOST_SWEEP_MS, this.#idleMs)));
    return session;
  }

  find(id: string | undefined, principal: string | undefined): Session | undefined {
    const found = id === undefined ? undefined : this.#sessions.get(id)?.session;
    return found?.principal === principal ? found : undefined;
  }

  async end({ id }: Session, graceMs = 0): Promise<void> {
    const found = this.#sessions.get(id);
    if (found === undefined) return;
    this.#sessions.delete(id);
    this.#room.give();
    if (this.#sessions.size === 0) this.#rest();
    await (await found.served).close(graceMs);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ session }) => this.end(session, graceMs)));
    this.#rest();
  }

  #sweep(): void {
    const now = performance.now();
    for (const { session } of this.#sessions.values()) {
      if (session.idle && now - session.usedAt >= this.#idleMs) void this.end(session);
    }
  }

  #rest(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
