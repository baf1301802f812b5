// An end of the first revision's HTTP, as a transport: one GET whose stream brings everything that the end says, first
// of all the address to which everything goes that we say (its specification, basic/transports, HTTP with SSE). The stream is
// the session: when it breaks, what is under way has no way back, and the next handshake opens another.

import { onAbort } from "../../core/abort.ts";
import { LinkError } from "../../core/errors.ts";
import { encode, type Decoded } from "../../jsonrpc/codec.ts";
import { isRequest, isResponse, type Id, type Message } from "../../jsonrpc/message.ts";
import type { ServerSentEvent } from "../../transport/http/event-reader.ts";
import type { HttpAnswer } from "../../transport/http/requester.ts";
import { SessionLost, type Inbound, type SendOptions, type Transport } from "../../transport/transport.ts";
import { Cursor, failureOf, isEvents, isFine, noMessages, readTexts } from "./answer.ts";
import type { HttpLink } from "./http-link.ts";
import { Inbounds, saidTwice } from "./inbounds.ts";

interface Session {
  readonly address: URL;
  /** Requests whose answers are still to come on the stream, and how to say that one has, or that none will. */
  readonly waiting: Map<Id, (failure?: LinkError) => void>;
  readonly over: AbortController;
}

const POSTED: Readonly<Record<string, string>> = { "content-type": "application/json", accept: "*/*" };
const GET: Readonly<Record<string, string>> = { accept: "text/event-stream" };

export class OldSseWire implements Transport {
  readonly #link: HttpLink;
  readonly #life = new AbortController();
  readonly #inbounds = new Inbounds((message) => this.send(message), this.#life.signal);
  #session: Session | undefined;

  constructor(link: HttpLink) {
    this.#link = link;
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#inbounds.start(receive);
  }

  async send(message: Message | readonly Message[], options: SendOptions = {}): Promise<void> {
    if (this.#life.signal.aborted) throw new LinkError("closed", "The connection was closed", { mayHaveRun: false });
    if (Array.isArray(message)) throw new LinkError("protocol", "Batches are not sent");
    const one = message as Message;
    if (!isRequest(one)) {
      const session = this.#current();
      await saidTwice(() => this.#post(one, session), isResponse(one) && !session.over.signal.aborted);
      return;
    }
    const session = one.method === "initialize" ? await this.#begin(options) : this.#current();
    await this.#call(one.id, one, session, options.onWait);
  }

  async close(): Promise<void> {
    const reason = new LinkError("closed", "The connection was closed");
    this.#life.abort(reason);
    this.#session?.over.abort(reason);
    this.#link.close();
  }

  #current(): Session {
    if (this.#session === undefined) throw new SessionLost("The end's stream is broken, and the session with it");
    return this.#session;
  }

  async #call(id: Id, message: Message, session: Session, onWait: SendOptions["onWait"]): Promise<void> {
    const answered = new Promise<void>((resolve, reject) => {
      session.waiting.set(id, (failure) => (failure === undefined ? resolve() : reject(failure)));
    });
    // The stream may break while the request is still being sent.
    answered.catch(() => undefined);
    try {
      await this.#post(message, session, onWait);
      await answered;
    } finally {
      session.waiting.delete(id);
    }
  }

  async #post(message: Message, session: Session, onWait?: SendOptions["onWait"]): Promise<void> {
    const { address: url } = session;
    // Not ended with the stream: where the end refuses it, it has surely not begun with it.
    const answer = await this.#link.ask({
      method: "POST",
      url,
      headers: POSTED,
      body: encode(message),
      signal: this.#life.signal,
      onWait,
    });
    const what = "method" in message ? message.method : "an answer";
    if (isFine(answer)) {
      // Ends say what they like when they have taken a message; a page for people is none of it.
      if (/^text\/html\b/i.test(answer.headers["content-type"] ?? "")) throw noMessages(answer, what);
      answer.discard();
      return;
    }
    const { status } = answer;
    const failure = await failureOf(answer, what);
    if (status === 404) throw new SessionLost("The end has forgotten the session (HTTP 404)", { status });
    if ("error" in failure) throw failure.error;
    const { code, message: text } = failure.body;
    throw new LinkError("http", `The end refused the message with HTTP ${status}: ${text} (${code})`, {
      status,
      mayHaveRun: false,
    });
  }

  /** Resolves when the end has said where to send to. */
  async #begin({ signal, onWait }: SendOptions): Promise<Session> {
    this.#session?.over.abort(new LinkError("closed", "The session was begun anew"));
    this.#session = undefined;
    const over = new AbortController();
    const forgetCaller = onAbort(signal, () => over.abort(signal?.reason));
    const forgetLife = onAbort(this.#life.signal, () => over.abort(this.#life.signal.reason));
    try {
      const answer = await this.#link.ask({ method: "GET", headers: GET, signal: over.signal, onWait });
      if (!isFine(answer)) {
        const failure = await failureOf(answer, "GET");
        throw "error" in failure
          ? failure.error
          : new LinkError("http", failure.body.message, { status: answer.status });
      }
      if (!isEvents(answer)) throw noMessages(answer, "GET");
      const session = await this.#read(answer, over);
      this.#session = session;
      return session;
    } catch (error) {
      over.abort(error);
      throw error;
    } finally {
      forgetCaller();
      forgetLife();
    }
  }

  /** Reads for as long as the stream lasts; resolves with its first event. */
  #read(answer: HttpAnswer, over: AbortController): Promise<Session> {
    return new Promise((resolve, reject) => {
      let session: Session | undefined;
      const { limits, url } = this.#link;
      const take = (decoded: Decoded | undefined, { event, data }: ServerSentEvent): boolean => {
        if (session !== undefined) {
          if (decoded !== undefined) this.#take(decoded, session);
        } else if (event === "endpoint") {
          session = { address: addressIn(data, url), waiting: new Map(), over };
          resolve(session);
        }
        return false;
      };
      const finish = (error: unknown): void => {
        const unsent = new LinkError("closed", "The end closed its stream before it said where to send to", {
          cause: error,
          mayHaveRun: false,
        });
        reject(error instanceof LinkError && error.kind !== "closed" ? error : unsent);
        if (session !== undefined) this.#lose(session);
        answer.discard();
      };
      readTexts(answer, limits, new Cursor(), take).then(() => finish(undefined), finish);
    });
  }

  #take(decoded: Decoded, session: Session): void {
    this.#inbounds.hand(decoded);
    const items = decoded.kind === "batch" ? decoded.items : [decoded];
    for (const item of items) {
      const id = "message" in item ? isResponse(item.message) && item.message.id : item.fault.id;
      if (id === false || id === null || typeof id === "object") continue;
      session.waiting.get(id)?.();
    }
  }

  #lose(session: Session): void {
    session.over.abort(new LinkError("closed", "The end's stream is broken"));
    for (const settle of session.waiting.values()) {
      settle(new LinkError("closed", "The end's stream broke before it had answered"));
    }
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#inbounds.lose();
  }
}

/** Messages, with all that goes with them, are sent nowhere but to the end itself. */
function addressIn(data: string, base: URL): URL {
  if (!URL.canParse(data, base.href)) throw new LinkError("protocol", "The end named no address to send to");
  const address = new URL(data, base);
  if (address.origin === base.origin) return address;
  throw new LinkError("refused", `The end wants messages sent to another origin, ${address.origin}; that is not done`, {
    mayHaveRun: false,
  });
}
