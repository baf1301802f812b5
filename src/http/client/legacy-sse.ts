// An end of the first revision's HTTP, as a transport: one GET whose stream brings everything that the end says, first
// of all the address to which everything goes that we say (its specification, basic/transports, HTTP with SSE). The stream is
// the session: when it breaks, what is under way has no way back, and the next handshake opens another.

import { onAbort, abortable } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode, type Decoded } from "../../jsonrpc/codec.ts";
import { Exact, isRequest, isResponse, type Id, type Message } from "../../jsonrpc/message.ts";
import type { ServerSentEvent } from "./sse-reader.ts";
import type { HttpResponse } from "./requester.ts";
import { SessionLost, type Inbound, type SendOptions, type Transport } from "../../transport/transport.ts";
import { Cursor, readFailure, isEvents, isSuccess, noMessages, readEvents, MessageReceiver, sendWithRetry } from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { bounded } from "../../dialogue/calls/backoff.ts";
import { stopQuietly } from "./session.ts";
import type { ToolFacts } from "./tool-facts.ts";

interface Session {
  readonly address: URL;
  /** Requests whose answers are still to come on the stream, and how to say that one has, or that none will. */
  readonly waiting: Map<Id, (failure?: ConnectionError) => void>;
  readonly over: AbortController;
}

/** How long the end may take to say that it has heard what wants no answer: it has by then, or never will. */
const HEARD_MS = 5_000;
/** The same for the answer to a question, which it waits for. */
const ANSWERED_MS = 60_000;

const POSTED: Readonly<Record<string, string>> = { "content-type": "application/json", accept: "*/*" };
const GET: Readonly<Record<string, string>> = { accept: "text/event-stream" };

export class LegacySseTransport implements Transport {
  readonly #link: HttpConnection;
  readonly #life = new AbortController();
  readonly #inbounds: MessageReceiver;
  /** What ends each request that is under way, in whichever session. */
  readonly #live = new Map<Id, AbortController>();
  #session: Session | undefined;
  /** Ends the stream of the session that is being begun, or was begun last. */
  #stream = new AbortController();

  constructor(link: HttpConnection, tools: ToolFacts) {
    this.#link = link;
    this.#inbounds = new MessageReceiver(
      (message) => this.send(message),
      this.#life.signal,
      () => tools.forget(),
    );
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#inbounds.start(receive);
  }

  async send(message: Message | readonly Message[], options: SendOptions = {}): Promise<void> {
    if (this.#life.signal.aborted)
      throw new ConnectionError("closed", "The connection was closed", { mayHaveRun: false });
    if (Array.isArray(message)) throw new ConnectionError("protocol", "Batches are not sent");
    const one = message as Message;
    if (!isRequest(one)) {
      await this.#say(one).finally(() => this.#leave(one));
      return;
    }
    const session = one.method === "initialize" ? await this.#begin(options) : this.#current();
    await this.#call(one.id, one, session, options);
  }

  async close(): Promise<void> {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#life.abort(reason);
    this.#stream.abort(reason);
    for (const stop of this.#live.values()) stop.abort(reason);
    this.#link.close();
  }

  #current(): Session {
    if (this.#session === undefined) throw new SessionLost("The end's stream is broken, and the session with it");
    return this.#session;
  }

  async #call(id: Id, message: Message, session: Session, { onWait, quiet }: SendOptions): Promise<void> {
    // Not ended with the stream: where the end refuses it, it has surely not begun with it.
    const stop = new AbortController();
    let isSent = true;
    stopQuietly(quiet, stop, () => isSent);
    this.#live.set(id, stop);
    const answered = new Promise<void>((resolve, reject) => {
      session.waiting.set(id, (failure) => (failure === undefined ? resolve() : reject(failure)));
    });
    // The stream may break while the request is still being sent.
    answered.catch(() => undefined);
    try {
      await this.#post(message, session, stop.signal, (isWaiting) => {
        isSent = !isWaiting;
        onWait?.(isWaiting);
      });
      await abortable(stop.signal, answered);
    } finally {
      session.waiting.delete(id);
      this.#live.delete(id);
    }
  }

  async #say(message: Message): Promise<void> {
    const session = this.#current();
    const isAnswer = isResponse(message);
    const ms = isAnswer ? ANSWERED_MS : HEARD_MS;
    const say = (): Promise<void> => bounded(ms, this.#life.signal, (signal) => this.#post(message, session, signal));
    await sendWithRetry(say, isAnswer && !session.over.signal.aborted);
  }

  /** The end has been told, as far as that was possible, that nobody waits for a call any more. */
  #leave(message: Message): void {
    if (!("method" in message) || message.method !== "notifications/cancelled") return;
    const given = message.params?.["requestId"] as Id;
    this.#live.get(given instanceof Exact ? given.value : given)?.abort(new ConnectionError("cancelled", "Cancelled"));
  }

  async #post(message: Message, session: Session, signal: AbortSignal, onWait?: SendOptions["onWait"]): Promise<void> {
    const { address: url } = session;
    const body = encode(message);
    const answer = await this.#link.ask({ method: "POST", url, headers: POSTED, body, signal, onWait });
    const what = "method" in message ? message.method : "an answer";
    if (isSuccess(answer)) {
      // Ends say what they like when they have taken a message; a page for people is none of it.
      if (/^text\/html\b/i.test(answer.headers["content-type"] ?? "")) throw noMessages(answer, what);
      answer.discard();
      return;
    }
    const { status } = answer;
    const failure = await readFailure(answer, what);
    if (status === 404) throw new SessionLost("The end has forgotten the session (HTTP 404)", { status });
    if ("error" in failure) throw failure.error;
    const { code, message: text } = failure.body;
    throw new ConnectionError("http", `The end refused the message with HTTP ${status}: ${text} (${code})`, {
      status,
      mayHaveRun: false,
    });
  }

  /** Resolves when the end has said where to send to. */
  async #begin({ signal, onWait }: SendOptions): Promise<Session> {
    this.#stream.abort(new ConnectionError("closed", "The session was begun anew"));
    this.#session = undefined;
    const over = new AbortController();
    this.#stream = over;
    const forgetCaller = onAbort(signal, () => over.abort(signal?.reason));
    try {
      const answer = await this.#link.ask({ method: "GET", headers: GET, signal: over.signal, onWait });
      if (!isSuccess(answer)) {
        const failure = await readFailure(answer, "GET");
        throw "error" in failure
          ? failure.error
          : new ConnectionError("http", failure.body.message, { status: answer.status });
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
    }
  }

  /** Reads for as long as the stream lasts; resolves with its first event. */
  #read(answer: HttpResponse, over: AbortController): Promise<Session> {
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
        const unsent = new ConnectionError("closed", "The end closed its stream before it said where to send to", {
          cause: error,
          mayHaveRun: false,
        });
        reject(error instanceof ConnectionError && error.kind !== "closed" ? error : unsent);
        if (session !== undefined) this.#lose(session);
        answer.discard();
      };
      readEvents(answer, limits, new Cursor(), take).then(() => finish(undefined), finish);
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
    session.over.abort(new ConnectionError("closed", "The end's stream is broken"));
    for (const settle of session.waiting.values()) {
      settle(
        new ConnectionError(
          "closed",
          "The end's stream broke before it had answered: look what has run before you call it again",
        ),
      );
    }
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#inbounds.lose();
  }
}

/** Messages, with all that goes with them, are sent nowhere but to the end itself. */
function addressIn(data: string, base: URL): URL {
  if (!URL.canParse(data, base.href)) throw new ConnectionError("protocol", "The end named no address to send to");
  const address = new URL(data, base);
  if (address.origin === base.origin) return address;
  throw new ConnectionError(
    "refused",
    `The end wants messages sent to another origin, ${address.origin}; that is not done`,
    {
      mayHaveRun: false,
    },
  );
}
