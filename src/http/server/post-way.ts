// The answers to one POST of a session. Where nothing but the answer is to be sent it is one JSON body; otherwise
// a stream of events, each with an id, that lives on when its connection breaks. What can reach nobody by this way
// any more goes by the stream for what comes unasked, except answers, which have no place there.

import { isResponse, type ErrorBody, type Message, type ResponseMessage } from "../../jsonrpc/message.ts";
import type { Revision } from "../../protocol/revision.ts";
import type { ReplayStream } from "./replay.ts";
import { written, type WayBack } from "./way-back.ts";

/** What the session lends to its POSTs. */
export interface PostHost {
  readonly revision: Revision | undefined;
  newStream(): ReplayStream;
  attach(stream: ReplayStream, way: WayBack): void;
  send(message: Message | readonly Message[]): Promise<void>;
}

export class PostWay {
  readonly #way: WayBack;
  readonly #host: PostHost;
  readonly #done: () => void;
  #stream: ReplayStream | undefined;
  #over = false;

  constructor(way: WayBack, host: PostHost, done: () => void) {
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
    } else (this.#stream ?? this.begin()).send(written(message), last);
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
