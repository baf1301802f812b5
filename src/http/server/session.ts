// One session over HTTP, as the wire that a connection needs: what comes in is its POSTs, each with its own way
// back; what goes out unasked goes by the stream of a GET. A broken connection breaks nothing: streams can be taken
// up again by the id of the last event that came through, and a request goes on until it is cancelled or answered.
// What the messages mean is for the connection that is served over this.

import type { Caller } from "../../core/context.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { isResponse, type Message } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { ReplayStore, ReplayStream } from "./replay.ts";
import { Refusal } from "./visit.ts";
import type { BatchItem, Inbound, Transport } from "../../transport/transport.ts";
import { SESSION_HEADER } from "./headers.ts";
import { PostWay } from "./post-way.ts";
import { SessionStreams } from "./session-event-streams.ts";
import { inboundOf, NEVER_GONE, wantsAnswer, type Taken } from "./taken.ts";
import type { WayBack } from "./way-back.ts";

/** How soon a caller comes back whose connection ended, where nobody says otherwise. */
const RETRY_MS = 1_000;

export class HttpSession implements Transport {
  readonly id: string;
  readonly principal: string | undefined;
  usedAt: number = performance.now();
  readonly #streams: SessionStreams;
  /** Those that are not answered yet. */
  readonly #posts = new Set<PostWay>();
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
  post(taken: Taken, way: WayBack, caller: Partial<Caller>): Promise<void> | undefined {
    this.usedAt = performance.now();
    if (!wantsAnswer(taken)) {
      this.#receive({ ...inboundOf(taken), caller, gone: NEVER_GONE, reply: async () => undefined });
      way.empty(202);
      return undefined;
    }
    return new Promise<void>((resolve) => {
      const post: PostWay = new PostWay(way, this, () => {
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
      this.#receive(new PostInbound(taken, caller, post, reply));
    });
  }

  /** A GET: what comes unasked, or the rest of a stream that broke. */
  get(way: WayBack, lastEventId: string | undefined): void {
    this.usedAt = performance.now();
    if (lastEventId === undefined || lastEventId === "") {
      this.attach(this.#streams.openUnasked(), way);
      return;
    }
    const found = this.#streams.find(lastEventId);
    if (found === undefined) {
      throw new Refusal(400, `What came after the event ${JSON.stringify(lastEventId)} is not kept here any more`);
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
  attach(stream: ReplayStream, way: WayBack, after?: number): void {
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

  #name(way: WayBack): void {
    if (this.#named || way.begun) return;
    this.#named = true;
    way.headers = { ...way.headers, [SESSION_HEADER]: this.id };
  }
}

/** A class, because a literal with a getter would be paid for by every call. */
class PostInbound implements Inbound {
  readonly kind: Inbound["kind"];
  readonly message?: Message;
  readonly batch?: readonly BatchItem[];
  readonly caller: Partial<Caller>;
  readonly reply: Inbound["reply"];
  readonly #post: PostWay;

  constructor(taken: Taken, caller: Partial<Caller>, post: PostWay, reply: Inbound["reply"]) {
    this.kind = taken.kind;
    if (taken.kind === "message") this.message = taken.message;
    else this.batch = taken.items;
    this.caller = caller;
    this.reply = reply;
    this.#post = post;
  }

  get gone(): AbortSignal {
    return this.#post.gone ? AbortSignal.abort() : NEVER_GONE;
  }

  drop(): void {
    this.#post.drop();
  }

  hangUp(retryMs: number): void {
    this.#post.hangUp(retryMs);
  }
}
