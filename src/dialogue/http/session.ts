// One session over HTTP, as the wire that a connection needs: what comes in is its POSTs, each with its own way
// back; what goes out unasked goes by the stream of a GET. A broken connection breaks nothing: streams can be taken
// up again by the id of the last event that came through, and a request goes on until it is cancelled or answered.
// What the messages mean is for the connection that is served over this.

import type { Caller } from "../../core/context.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { isResponse, type Message } from "../../jsonrpc/message.ts";
import { isObject } from "../../protocol/check.ts";
import type { Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import { readEventId, ReplayStream, type ReplayStore } from "../../transport/http/replay.ts";
import { Refusal } from "../../transport/http/visit.ts";
import type { BatchItem, Inbound, Transport } from "../../transport/transport.ts";
import { SESSION_HEADER } from "./headers.ts";
import { PostWay } from "./post-way.ts";
import type { WayBack } from "./way-back.ts";
import { wantsAnswer } from "./work.ts";

/** How soon a caller comes back whose connection ended, where nobody says otherwise. */
const RETRY_MS = 1_000;
/** Streams that have ended and are kept for callers who did not get their last events. */
const MOST_FINISHED = 32;

/** The name of the stream for what comes unasked. */
const UNASKED = "0";

export type Taken =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "batch"; readonly items: readonly BatchItem[] };

export class HttpSession implements Transport {
  readonly id: string;
  readonly principal: string | undefined;
  usedAt: number = performance.now();
  readonly #store: ReplayStore;
  readonly #streams = new Map<string, ReplayStream>();
  #revision: Revision | undefined;
  /** The caller has been told the id. */
  #named = false;
  #receive: (inbound: Inbound) => void = () => undefined;
  #names = 0;
  /** Those that are not answered yet. */
  readonly #posts = new Set<PostWay>();

  constructor(id: string, principal: string | undefined, store: ReplayStore) {
    this.id = id;
    this.principal = principal;
    this.#store = store;
    this.#streams.set(UNASKED, new ReplayStream(UNASKED, store));
  }

  /** Nobody waits for anything here. */
  get idle(): boolean {
    return this.#posts.size === 0 && ![...this.#streams.values()].some((stream) => stream.attached);
  }

  get primes(): boolean {
    return this.#revision?.primes === true;
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
    this.#unasked().send(encode(message));
  }

  async close(): Promise<void> {
    for (const post of this.#posts) post.drop();
    for (const stream of this.#streams.values()) {
      stream.finish();
      stream.forget();
    }
  }

  /** Resolves when its answers are out, or none will come. */
  post(taken: Taken, way: WayBack, caller: Partial<Caller>): Promise<void> | undefined {
    this.usedAt = performance.now();
    if (!wantsAnswer(taken)) {
      this.#receive({ ...inboundOf(taken), caller, gone: NEVER, reply: async () => undefined });
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
      this.#receive({
        ...inboundOf(taken),
        caller,
        get gone() {
          return post.gone ? AbortSignal.abort() : NEVER;
        },
        reply: async (message, options) => {
          if (this.#learn(message)) this.#name(way);
          post.reply(message, options?.last === true);
        },
        drop: () => post.drop(),
        hangUp: (retryMs) => post.hangUp(retryMs),
      });
    });
  }

  /** A GET: what comes unasked, or the rest of a stream that broke. */
  get(way: WayBack, lastEventId: string | undefined): void {
    this.usedAt = performance.now();
    if (lastEventId === undefined) {
      this.#attach(this.#unasked(), way);
      return;
    }
    const place = readEventId(lastEventId);
    const stream = place && this.#streams.get(place.stream);
    if (place === undefined || stream === undefined || !stream.reaches(place.number)) {
      throw new Refusal(400, `What came after the event ${JSON.stringify(lastEventId)} is not kept here any more`);
    }
    this.#attach(stream, way, place.number);
  }

  /** A stream for the events of one POST. */
  newStream(): ReplayStream {
    const name = (this.#names += 1).toString(36);
    const stream = new ReplayStream(name, this.#store);
    this.#streams.set(name, stream);
    this.#forgetFinished();
    return stream;
  }

  prime(stream: ReplayStream): void {
    if (this.primes) stream.prime(RETRY_MS);
  }

  #attach(stream: ReplayStream, way: WayBack, after?: number): void {
    const outlet = way.events(() => {
      stream.detach(outlet);
      this.usedAt = performance.now();
    });
    stream.attach(outlet, after);
    if (after === undefined) this.prime(stream);
  }

  #unasked(): ReplayStream {
    return this.#streams.get(UNASKED) ?? new ReplayStream(UNASKED, this.#store);
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

  #forgetFinished(): void {
    const finished = [...this.#streams].filter(([, stream]) => stream.finished && !stream.attached);
    for (const [name, stream] of finished.slice(0, -MOST_FINISHED)) {
      stream.forget();
      this.#streams.delete(name);
    }
  }
}

function inboundOf(taken: Taken): Pick<Inbound, "kind" | "message" | "batch"> {
  return taken.kind === "message" ? taken : { kind: "batch", batch: taken.items };
}

const NEVER: AbortSignal = new AbortController().signal;
