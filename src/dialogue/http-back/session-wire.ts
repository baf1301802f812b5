// A session-style end over HTTP, as a transport. The handshake gives the session its name, which goes with every
// request from then on; each request is a POST, and what comes back on it is read to the answer, over broken
// connections where the end has given its events ids (see session-streams). What belongs to no request comes on one
// stream that is kept open. A session that the end has forgotten is told to whoever can begin a new one.

import { onAbort } from "../../core/abort.ts";
import { LinkError } from "../../core/errors.ts";
import { within } from "../../core/within.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { Exact, isNotification, isRequest, type Id, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import type { HttpAnswer } from "../../transport/http/requester.ts";
import { SessionLost, type Inbound, type SendOptions, type Transport } from "../../transport/transport.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { isObject } from "../../protocol/check.ts";
import { SESSION_HEADER } from "../http/headers.ts";
import { failureOf, isEvents, isFine, isJson, noMessages, readJson } from "./answer.ts";
import type { HttpLink } from "./http-link.ts";
import { Inbounds, saidTwice } from "./inbounds.ts";
import { POSTED, sessionHeaders } from "./request-headers.ts";
import { readAnswerStream, keepListening } from "./session-streams.ts";

/** How long the end of a session may take to be heard. */
const FAREWELL_MS = 2_000;
/** How long a call waits for that stream: some ends show nothing of it before they have something to say. */
const HEAD_MS = 5_000;

/** How ends say that they know of no handshake. */
const UNKNOWN = /\bsession\b|\bnot initialized\b/i;

/** One session, from one handshake to the next. */
interface Session {
  name: string | undefined;
  revision: string | undefined;
  /** Aborted when the session is over, ours or the end's wish. */
  readonly over: AbortController;
  /** Resolves when the end knows that the handshake is done: what comes after must not overtake it. */
  begun: Promise<void>;
  /** Resolves when the end has the stream for what belongs to no request, or offers none. */
  heard: Promise<void>;
}

export class SessionWire implements Transport {
  readonly #link: HttpLink;
  readonly #life = new AbortController();
  readonly #inbounds = new Inbounds((message) => this.send(message), this.#life.signal);
  readonly #live = new Map<Id, AbortController>();
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
    if (isRequest(one)) await (one.method === "initialize" ? this.#begin(one, options) : this.#call(one, options));
    else if (isNotification(one)) await this.#tell(one);
    else await this.#respond(one);
  }

  async close(budgetMs: number = FAREWELL_MS): Promise<void> {
    if (this.#life.signal.aborted) return;
    const reason = new LinkError("closed", "The connection was closed");
    const session = this.#session;
    this.#life.abort(reason);
    session?.over.abort(reason);
    for (const stop of this.#live.values()) stop.abort(reason);
    await this.#sayFarewell(session, Math.min(budgetMs, FAREWELL_MS)).catch(() => undefined);
    this.#link.close();
  }

  /** Ends may keep sessions to themselves (405), or be gone: we do not need them for it. */
  async #sayFarewell(session: Session | undefined, budgetMs: number): Promise<void> {
    if (session?.name === undefined || budgetMs <= 0) return;
    const headers = sessionHeaders(session.name, session.revision);
    (await this.#link.ask({ method: "DELETE", headers, signal: AbortSignal.timeout(budgetMs) })).discard();
  }

  async #begin(message: RequestMessage, { signal, onWait }: SendOptions): Promise<void> {
    this.#session?.over.abort(new LinkError("closed", "The session was begun anew"));
    const session: Session = {
      name: undefined,
      revision: undefined,
      over: new AbortController(),
      begun: Promise.resolve(),
      heard: Promise.resolve(),
    };
    this.#session = session;
    await this.#following(message, signal, async (stop) => {
      const answer = await this.#post(message, session, stop, onWait);
      session.name = answer.headers[SESSION_HEADER] || undefined;
      await this.#take(answer, message, session, stop, (result) => {
        const { protocolVersion } = result;
        if (typeof protocolVersion === "string") session.revision = protocolVersion;
      });
    });
  }

  async #call(message: RequestMessage, { signal, onWait }: SendOptions): Promise<void> {
    await this.#following(message, signal, async (stop) => {
      const session = this.#current();
      // Some ends put the questions of a call on the other stream, and drop them where there is none.
      await (ASKABLE.has(message.method) ? session.heard : session.begun);
      const answer = await this.#post(message, session, stop, onWait);
      await this.#take(answer, message, session, stop);
    });
  }

  /** The request is known under its id, and can be ended by it, while `work` runs. */
  async #following(
    { id, method }: RequestMessage,
    signal: AbortSignal | undefined,
    work: (stop: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const stop = new AbortController();
    // A call is ended once the end has been told; the handshake cannot be taken back, only left.
    const forget = method === "initialize" ? onAbort(signal, () => stop.abort(signal?.reason)) : undefined;
    this.#live.set(id, stop);
    try {
      await work(stop.signal);
    } finally {
      forget?.();
      this.#live.delete(id);
    }
  }

  #current(): Session {
    if (this.#session === undefined) throw new SessionLost("There is no session with the end");
    return this.#session;
  }

  #post(message: Message, session: Session, signal: AbortSignal, onWait?: SendOptions["onWait"]): Promise<HttpAnswer> {
    const headers = { ...POSTED, ...sessionHeaders(session.name, session.revision) };
    return this.#link.ask({ method: "POST", headers, body: encode(message), signal, onWait });
  }

  async #take(
    answer: HttpAnswer,
    { id, method }: RequestMessage,
    session: Session,
    signal: AbortSignal,
    look?: (result: { readonly [key: string]: unknown }) => void,
  ): Promise<void> {
    if (!isFine(answer)) {
      const failure = await failureOf(answer, method);
      this.#checkKept(answer, failure, session);
      if ("error" in failure) throw failure.error;
      const { status } = answer;
      // Whatever else is said with it: nothing can be posted here, and it may be an end of the first revision.
      if (method === "initialize" && (status === 404 || status === 405))
        throw new LinkError("http", `The end answered ${method} with HTTP ${status}, ${failure.body.message}`, {
          status,
        });
      this.#inbounds.fail(id, failure.body);
      return;
    }
    const hand: Inbounds["hand"] = (decoded, about) => {
      const result = decoded.kind === "message" && "result" in decoded.message ? decoded.message.result : undefined;
      if (look !== undefined && isObject(result)) look(result);
      return this.#inbounds.hand(decoded, about);
    };
    if (isJson(answer)) {
      const decoded = await readJson(answer, this.#link.limits);
      if (look !== undefined && decoded.kind === "message" && "result" in decoded.message) look(decoded.message.result);
      this.#inbounds.handOnly(decoded, id, method);
    } else if (isEvents(answer)) {
      const headers = (): Record<string, string> => sessionHeaders(session.name, session.revision);
      await readAnswerStream(this.#link, answer, { id, method, signal, headers, hand });
    } else if (answer.status === 202) answer.discard();
    else throw noMessages(answer, method);
    // Some answer 202 to a request, and send the answer on the stream that belongs to none.
  }

  /** Throws where the end says that it does not know the session that we named. */
  #checkKept(answer: HttpAnswer, failure: Awaited<ReturnType<typeof failureOf>>, session: Session): void {
    const { status } = answer;
    // Many ends say it with the status for a request that names no session.
    const said = "body" in failure ? failure.body : undefined;
    const unknown = status === 400 && said !== undefined && said.code <= -32_000 && UNKNOWN.test(said.message);
    if (!unknown && (status !== 404 || session.name === undefined)) return;
    session.over.abort(new LinkError("closed", "The end has forgotten the session"));
    throw new SessionLost(`The end has forgotten the session (HTTP ${status})`, { status });
  }

  async #tell(message: Message & { method: string; params?: { readonly [key: string]: unknown } }): Promise<void> {
    const session = this.#current();
    if (message.method === "notifications/initialized") {
      session.begun = this.#deliver(message, session).catch(() => undefined);
      session.heard = session.begun.then(() => this.#untilHeard(session));
      await session.begun;
      return;
    }
    await session.begun;
    const ended = message.method === "notifications/cancelled" ? message.params?.["requestId"] : undefined;
    try {
      await this.#deliver(message, session);
    } finally {
      const id = ended instanceof Exact ? ended.value : (ended as Id | undefined);
      if (id !== undefined) this.#live.get(id)?.abort(new LinkError("cancelled", "Cancelled"));
    }
  }

  async #respond(message: Message): Promise<void> {
    const session = this.#current();
    await saidTwice(() => this.#deliver(message, session), !session.over.signal.aborted);
  }

  async #deliver(message: Message, session: Session): Promise<void> {
    (await this.#post(message, session, this.#life.signal)).discard();
  }

  async #untilHeard(session: Session): Promise<void> {
    if (session.over.signal.aborted) return;
    await within(HEAD_MS, new Promise<void>((resolve) => void this.#listen(session, resolve)));
  }

  async #listen(session: Session, onHead: () => void): Promise<void> {
    const lost = await keepListening(this.#link, {
      headers: sessionHeaders(session.name, session.revision),
      signal: session.over.signal,
      hand: (decoded) => this.#inbounds.hand(decoded),
      onHead,
    });
    if (!lost || session !== this.#session) return;
    session.over.abort(new LinkError("closed", "The end has forgotten the session"));
    this.#inbounds.lose();
  }
}
