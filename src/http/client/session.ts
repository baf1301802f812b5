// A session-style end over HTTP, as a transport. The handshake gives the session its name, which goes with every
// request from then on; each request is a POST, and what comes back on it is read to the answer, over broken
// connections where the end has given its events ids (see session-streams). What belongs to no request comes on one
// stream that is kept open. A session that the end has forgotten is told to whoever can begin a new one.

import { onAbort, within } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode, type Decoded } from "../../jsonrpc/codec.ts";
import { Exact, isNotification, isRequest, isResponse, type Id, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import type { HttpResponse } from "./requester.ts";
import { SessionLost, type Inbound, type SendOptions, type Transport, type QuietLeave } from "../../transport/transport.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { isObject } from "../../core/objects.ts";
import { SESSION_HEADER, POSTED, sessionHeaders } from "../headers.ts";
import { readFailure, isEvents, isSuccess, isJson, noMessages, readJson, MessageReceiver, sendWithRetry } from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { bounded } from "../../dialogue/calls/backoff.ts";
import { readAnswerStream, keepListening } from "./session-streams.ts";
import type { ToolFacts } from "./tool-facts.ts";

/** How long the end of a session may take to be heard. */
const FAREWELL_MS = 2_000;
/** How long the end may take to say that it has heard what wants no answer: it has by then, or never will. */
const HEARD_MS = 5_000;
/** The same for the answer to a question, which it waits for. */
const ANSWERED_MS = 60_000;
/** How long a call waits for that stream: some ends show nothing of it before they have something to say. */
const HEAD_MS = 5_000;

export class SessionHttpTransport implements Transport {
  readonly #link: HttpConnection;
  readonly #life = new AbortController();
  readonly #inbounds: MessageReceiver;
  readonly #live = new Map<Id, Live>();
  #session: Session | undefined;

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
    if (isRequest(one)) await (one.method === "initialize" ? this.#begin(one, options) : this.#call(one, options));
    else if (isNotification(one)) await this.#tell(one);
    else await this.#respond(one);
  }

  async close(budgetMs: number = FAREWELL_MS): Promise<void> {
    if (this.#life.signal.aborted) return;
    const reason = new ConnectionError("closed", "The connection was closed");
    const session = this.#session;
    this.#life.abort(reason);
    session?.over.abort(reason);
    for (const { stop } of this.#live.values()) stop.abort(reason);
    await this.#sayFarewell(session, Math.min(budgetMs, FAREWELL_MS)).catch(() => undefined);
    this.#link.close();
  }

  /** Ends may keep sessions to themselves (405), or be gone: we do not need them for it. */
  async #sayFarewell(session: Session | undefined, budgetMs: number): Promise<void> {
    if (session?.name === undefined || budgetMs <= 0) return;
    const headers = sessionHeaders(session.name, session.revision);
    const { signal: never } = new AbortController();
    await bounded(budgetMs, never, async (signal) => {
      (await this.#link.ask({ method: "DELETE", headers, signal, isParting: true })).discard();
    });
  }

  async #begin(message: RequestMessage, { signal, onWait }: SendOptions): Promise<void> {
    this.#session?.over.abort(new ConnectionError("closed", "The session was begun anew"));
    const session = newSession();
    const { over } = session;
    this.#session = session;
    // The handshake cannot be taken back, only left: by who wanted it, or for the next.
    const forget = onAbort(signal, () => this.#drop(session, signal?.reason));
    try {
      await this.#following(message, async ({ stop }) => {
        const leave = onAbort(over.signal, () => stop.abort(over.signal.reason));
        try {
          const answer = await this.#post(message, session, stop.signal, onWait);
          session.name = answer.headers[SESSION_HEADER] || undefined;
          await this.#take(answer, message, session, stop.signal, (result) => {
            const { protocolVersion } = result;
            if (typeof protocolVersion === "string") session.revision = protocolVersion;
          });
          // Answered, but not by a session.
          if (session.revision === undefined) this.#drop(session, new ConnectionError("closed", "There is no session"));
        } finally {
          leave();
        }
      });
    } catch (error) {
      this.#drop(session, error);
      throw error;
    } finally {
      forget();
    }
  }

  /** A session that did not come to be. */
  #drop(session: Session, reason: unknown): void {
    if (this.#session === session) this.#session = undefined;
    session.over.abort(reason);
  }

  async #call(message: RequestMessage, { onWait, quiet }: SendOptions): Promise<void> {
    await this.#following(message, async (live) => {
      const { signal } = live.stop;
      stopQuietly(quiet, live.stop, () => live.sentIn !== undefined);
      // It is not the end's silence that is waited for.
      onWait?.(true);
      const session = await this.#ready(message.method).finally(() => onWait?.(false));
      signal.throwIfAborted();
      live.sentIn = session;
      const answer = await this.#post(message, session, signal, (isWaiting) => {
        // What waits for a proof of who we are was not sent yet, or refused.
        live.sentIn = isWaiting ? undefined : session;
        onWait?.(isWaiting);
      });
      if (session.isDeaf) this.#listenAgain(session);
      await this.#take(answer, message, session, signal);
    });
  }

  /** The request is known under its id, and can be ended by it, while `work` runs. */
  async #following({ id }: RequestMessage, work: (live: Live) => Promise<void>): Promise<void> {
    const live: Live = { stop: new AbortController(), sentIn: undefined, isLeft: false };
    this.#live.set(id, live);
    try {
      await work(live);
    } finally {
      this.#live.delete(id);
    }
  }

  /** The session in which the request may be sent, once it may. */
  async #ready(method: string): Promise<Session> {
    for (;;) {
      const session = this.#current();
      await session.begun;
      // Some ends put the questions of a call on the other stream, and drop them where there is none.
      if (ASKABLE.has(method)) await session.heard;
      if (session === this.#session) return session;
    }
  }

  #current(): Session {
    if (this.#session === undefined) throw new SessionLost("There is no session with the end");
    return this.#session;
  }

  #post(message: Message, session: Session, signal: AbortSignal, onWait?: SendOptions["onWait"]): Promise<HttpResponse> {
    const headers = { ...POSTED, ...sessionHeaders(session.name, session.revision) };
    return this.#link.ask({ method: "POST", headers, body: encode(message), signal, onWait });
  }

  async #take(
    answer: HttpResponse,
    { id, method }: RequestMessage,
    session: Session,
    signal: AbortSignal,
    look?: (result: { readonly [key: string]: unknown }) => void,
  ): Promise<void> {
    if (!isSuccess(answer)) {
      const failure = await readFailure(answer, method);
      const { status } = answer;
      if (method !== "initialize" && isForgotten(status, failure, session)) {
        session.over.abort(new ConnectionError("closed", "The end has forgotten the session"));
        throw new SessionLost(`The end has forgotten the session (HTTP ${status})`, { status });
      }
      if ("error" in failure) throw failure.error;
      // Whatever else is said with it: where this cannot be posted there may be an end of the first revision.
      if (method === "initialize" && (status === 400 || status === 404 || status === 405))
        throw new ConnectionError("http", `The end answered ${method} with HTTP ${status}, ${failure.body.message}`, {
          status,
        });
      this.#inbounds.fail(id, failure.body);
      return;
    }
    const live = this.#live.get(id);
    const hand: MessageReceiver["hand"] = (decoded, about) => {
      // What is still said in a call that is over belongs to nobody: another must not be taken for it.
      if (live?.isLeft === true) return true;
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
      await readAnswerStream(this.#link, answer, {
        id,
        method,
        signal,
        headers,
        hand,
        onLost: () => this.#lose(session),
        onHangUp: (retryMs) => this.#inbounds.hangUp(id, retryMs),
      });
    } else if (answer.status === 202) answer.discard();
    else throw noMessages(answer, method);
    // Some answer 202 to a request, and send the answer on the stream that belongs to none.
  }

  async #tell(message: Message & { method: string; params?: { readonly [key: string]: unknown } }): Promise<void> {
    if (message.method === "notifications/cancelled") {
      await this.#cancel(message);
      return;
    }
    const session = this.#current();
    if (message.method === "notifications/initialized") {
      const told = this.#deliver(message, session, HEARD_MS).catch(() => undefined);
      session.heard = told.then(() => this.#untilHeard(session));
      await told;
      session.isBegun();
    } else await session.begun.then(() => this.#deliver(message, session, HEARD_MS));
  }

  /** A call is ended once the end has been told, and at once where it was not sent yet. */
  async #cancel(message: Message & { params?: { readonly [key: string]: unknown } }): Promise<void> {
    const given = message.params?.["requestId"] as Id | undefined;
    const live = given === undefined ? undefined : this.#live.get(given instanceof Exact ? given.value : given);
    if (live !== undefined) live.isLeft = true;
    const session = live === undefined ? this.#session : live.sentIn;
    try {
      if (session !== undefined) await this.#deliver(message, session, HEARD_MS);
    } finally {
      live?.stop.abort(new ConnectionError("cancelled", "Cancelled"));
    }
  }

  async #respond(message: Message): Promise<void> {
    const session = this.#current();
    await sendWithRetry(() => this.#deliver(message, session, ANSWERED_MS), !session.over.signal.aborted);
  }

  async #deliver(message: Message, session: Session, ms: number): Promise<void> {
    await bounded(ms, this.#life.signal, async (signal) => {
      const answer = await this.#post(message, session, signal);
      answer.discard();
      if (answer.status === 404 && session.name !== undefined) this.#lose(session);
    });
  }

  /** Nobody asked for anything that could be asked again: whoever has the session is told. */
  #lose(session: Session): void {
    if (session !== this.#session || session.over.signal.aborted) return;
    session.over.abort(new ConnectionError("closed", "The end has forgotten the session"));
    this.#inbounds.lose();
  }

  async #untilHeard(session: Session): Promise<void> {
    if (session.over.signal.aborted) return;
    await within(HEAD_MS, new Promise<void>((resolve) => void this.#listen(session, resolve)));
  }

  async #listen(session: Session, onHead: () => void): Promise<void> {
    const why = await keepListening(this.#link, {
      headers: sessionHeaders(session.name, session.revision),
      signal: session.over.signal,
      hand: (decoded) => this.#handOther(decoded),
      onHead,
      onGap: () => this.#inbounds.miss(),
    });
    if (why === "lost") this.#lose(session);
    session.isDeaf = why === "refused";
  }

  /** We are accepted again. */
  #listenAgain(session: Session): void {
    session.isDeaf = false;
    void this.#listen(session, () => undefined);
    this.#inbounds.miss();
  }

  /** Some ends answer a request here, and never end what they have begun to answer it by. */
  #handOther(decoded: Decoded): boolean {
    const id = decoded.kind === "message" && isResponse(decoded.message) ? decoded.message.id : null;
    const handed = this.#inbounds.hand(decoded);
    const live = id === null ? undefined : this.#live.get(id instanceof Exact ? id.value : id);
    live?.stop.abort(new ConnectionError("closed", "The request was answered on another stream"));
    return handed;
  }
}

// What a session-style wire over HTTP keeps: the session, from one handshake to the next, and each request that is
// under way. Also how an end says that it does not know a session. What is done with them is the wire's.


export interface Session {
  name: string | undefined;
  revision: string | undefined;
  /** Aborted when the session is over, ours or the end's wish. */
  readonly over: AbortController;
  /** Resolves when the end knows that the handshake is done, or it failed: what comes after must not overtake it. */
  readonly begun: Promise<void>;
  readonly isBegun: () => void;
  /** Resolves when the end has the stream for what belongs to no request, or offers none. */
  heard: Promise<void>;
  /** That stream is gone because we were refused. */
  isDeaf: boolean;
}

/** One whose handshake is still to come. */
export function newSession(): Session {
  const over = new AbortController();
  let isBegun = (): void => undefined;
  const begun = new Promise<void>((resolve) => (isBegun = resolve));
  onAbort(over.signal, isBegun);
  return { name: undefined, revision: undefined, over, begun, isBegun, heard: begun, isDeaf: false };
}

/** A request that is under way. */
export interface Live {
  readonly stop: AbortController;
  /** In which it may have reached the end. */
  sentIn: Session | undefined;
  /** Nobody waits for its answer any more. */
  isLeft: boolean;
}

/** How ends say that they know of no handshake. */
const UNKNOWN = /\bsession\b|\bnot initialized\b/i;

/** Whether the end says that it does not know the session that we named. */
export function isForgotten(
  status: number,
  failure: Awaited<ReturnType<typeof readFailure>>,
  { name }: Session,
): boolean {
  // Many ends say it with the status for a request that names no session.
  const said = "body" in failure ? failure.body : undefined;
  const unknown = status === 400 && said !== undefined && said.code <= -32_000 && UNKNOWN.test(said.message);
  return unknown || (status === 404 && name !== undefined);
}

// Requests that their caller may leave while the end is not told: one that makes a task is cancelled by another request,
// once the task has a name. So its answer is read on for a while; but what was not sent yet stays unsent.


/** Stops the request when its time has come. Both signals belong to this request alone. */
export function stopQuietly(quiet: QuietLeave | undefined, stop: AbortController, isSent: () => boolean): void {
  if (quiet === undefined) return;
  const end = (): void => stop.abort(new ConnectionError("cancelled", "Cancelled"));
  onAbort(quiet.left, () => (isSent() ? undefined : end()));
  onAbort(quiet.over, end);
}
