// The transport for a session-style server over HTTP. The response to the handshake carries the session id, which every
// later request sends. Each request is a POST; unsolicited messages arrive on one long GET. A broken stream is resumed
// from its last event id, after the delay that the server asked for (last session-style specification, basic/transports,
// resumability). A session that the server has dropped is reported, so that a new one can be started.

import { backoffMs, onAbort, pause, within, withTimeout } from "../../core/async.ts";
import { type Cancellation, CancelToken } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import { isResponse, type Message, type NotificationMessage, type RequestMessage } from "../../jsonrpc/message.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { SessionLost, type SendOptions } from "../../transport/transport.ts";
import { SESSION_HEADER } from "../headers.ts";
import { POST_HEADERS, sessionHeaders } from "../headers.ts";
import { type HttpSession, HttpTransport, type SentRequest } from "./http-transport.ts";
import {
  answerableId,
  GET_HEADERS,
  type HttpFailure,
  isEventStream,
  isJson,
  isSuccess,
  noMessages,
  notTheResponse,
  readFailure,
  readJson,
  readMessages,
  StreamPosition,
} from "./responses.ts";
import type { HttpResponse } from "./requester.ts";

const DELETE_TIMEOUT_MS = 2_000;
/** Calls wait at most this long for the unsolicited stream: some servers send its head only with the first event. */
const STREAM_HEAD_TIMEOUT_MS = 5_000;
/** After this many consecutive failures to resume its stream, a request fails. */
const MAX_FAILURES = 5;
/** Minimum delay between attempts, even if the server asks for less. */
const MIN_RETRY_MS = 50;
/** Delay if the server does not ask for one. */
const DEFAULT_RETRY_MS = 1_000;

interface Session extends HttpSession {
  /** Undefined if the server does not use session ids. */
  id: string | undefined;
  revision: string | undefined;
  /** Of its requests; undefined until the handshake is over. */
  headers: Readonly<Record<string, string>> | undefined;
  /** Resolves when `initialized` has been delivered or the session is over. Other messages must not overtake it. */
  readonly ready: Promise<void>;
  readonly markReady: () => void;
  /** Resolves when the unsolicited stream is open, has failed to open, or takes too long. */
  listening: Promise<void>;
  /** The unsolicited stream ended because we were unauthorized. */
  isStreamRefused: boolean;
}

function newSession(): Session {
  const over = new CancelToken();
  let markReady = (): void => undefined;
  const ready = new Promise<void>((resolve) => (markReady = resolve));
  over.watch(markReady);
  const names = { id: undefined, revision: undefined, headers: undefined };
  return { ...names, over, ready, markReady, listening: ready, isStreamRefused: false };
}

export class SessionHttpTransport extends HttpTransport<Session> {
  override async close(budgetMs: number = DELETE_TIMEOUT_MS): Promise<void> {
    if (this.closed.signal.aborted) return;
    const { session } = this;
    await super.close();
    const ms = Math.min(budgetMs, DELETE_TIMEOUT_MS);
    if (session?.id === undefined || ms <= 0) return;
    const headers = sessionHeaders(session.id, session.revision);
    // Best effort: the server may not support DELETE (405), or may not be reachable.
    await withTimeout(ms, new AbortController().signal, async (signal) => {
      (await this.http.send({ method: "DELETE", headers, signal, skipSignIn: true })).discard();
    }).catch(() => undefined);
  }

  protected async call(message: RequestMessage, options: SendOptions): Promise<void> {
    if (message.method === "initialize") {
      await this.#startSession(message, options);
      return;
    }
    const { onWait } = options;
    await this.track(message.id, options, async (sent) => {
      // This wait must not count towards the request's timeout.
      onWait?.(true);
      const session = await this.#readySession(message.method).finally(() => onWait?.(false));
      if (sent.token.aborted) throw sent.token.reason;
      const response = await this.postCall(message, session, sent, options);
      if (session.isStreamRefused) {
        // The call has been authorized, so the stream may be too.
        session.isStreamRefused = false;
        void this.#listen(session, () => undefined);
        this.pass({ kind: "gap" });
      }
      await this.#readAnswer(response, message, session, sent);
    });
  }

  protected override async notify(message: NotificationMessage): Promise<void> {
    const session = this.currentSession();
    if (message.method === "notifications/initialized") {
      const delivered = this.deliver(message, session).catch(() => undefined);
      session.listening = delivered.then(() => this.#awaitStream(session));
      await delivered;
      session.markReady();
    } else await session.ready.then(() => this.deliver(message, session));
  }

  protected post(
    message: Message,
    session: Session,
    signal: Cancellation,
    options: SendOptions = {},
  ): Promise<HttpResponse> {
    const headers = session.headers ?? { ...POST_HEADERS, ...sessionHeaders(session.id, session.revision) };
    if (session.revision !== undefined) session.headers = headers;
    const id = answerableId(message);
    const body = this.http.encode(message);
    const { headers: added, wire } = options;
    return this.http.send({ method: "POST", headers, body, signal, added, waiter: options, id, message, wire });
  }

  protected acknowledged(response: HttpResponse, _message: Message, session: Session): void {
    response.discard();
    if (response.status === 404 && session.id !== undefined) this.#reportLost(session);
  }

  async #startSession(message: RequestMessage, options: SendOptions): Promise<void> {
    const { signal } = options;
    this.session?.over.abort(new ConnectionError("closed", "A new session was started"));
    const session = newSession();
    this.session = session;
    // MCP does not allow cancelling `initialize`, so an unwanted handshake is only abandoned.
    const removeListener = onAbort(signal, () => this.#discard(session, signal?.reason));
    const start = async (sent: SentRequest<Session>): Promise<void> => {
      const response = await this.post(message, session, session.over.signal, options);
      session.id = response.headers[SESSION_HEADER] || undefined;
      await this.#readAnswer(response, message, session, sent);
      // If the server has answered with an error or an invalid result, there is no session.
      if (session.revision === undefined) this.#discard(session, new ConnectionError("closed", "There is no session"));
    };
    try {
      await this.track(message.id, options, start, session.over);
    } catch (error) {
      this.#discard(session, error);
      throw error;
    } finally {
      removeListener();
    }
  }

  /** Ends a session whose handshake failed. */
  #discard(session: Session, reason: unknown): void {
    if (this.session === session) this.session = undefined;
    session.over.abort(reason);
  }

  /** Waits until this request can be sent in the current session. */
  async #readySession(method: string): Promise<Session> {
    for (;;) {
      const session = this.currentSession();
      await session.ready;
      // Some servers send a call's requests to the client on the unsolicited stream, and drop them if it is not open.
      if (INPUT_METHODS.has(method)) await session.listening;
      if (session === this.session) return session;
    }
  }

  /** Reads the response to a request, and passes on what it contains. */
  async #readAnswer(
    response: HttpResponse,
    message: RequestMessage,
    session: Session,
    sent: SentRequest<Session>,
  ): Promise<void> {
    const { id, method } = message;
    const isHandshake = method === "initialize";
    if (!isSuccess(response)) {
      const failure = await readFailure(response, method);
      const { status } = response;
      if (!isHandshake && isSessionUnknown(status, failure, session)) {
        session.over.abort(new ConnectionError("closed", "The server has dropped the session"));
        throw new SessionLost(`The server has dropped the session (HTTP ${status})`, { status });
      }
      // A server that speaks only legacy HTTP+SSE may answer the handshake so, and the style detection needs the status.
      const showsStyle = isHandshake && (status === 400 || status === 404 || status === 405);
      if (failure.body === undefined || showsStyle) throw failure.error;
      this.pass({ kind: "message", message: { jsonrpc: "2.0", id, error: failure.body }, about: id });
      return;
    }
    const take = (decoded: Decoded): boolean => {
      // Messages for an abandoned call must not reach another call.
      if (sent.isAbandoned) return true;
      const result = decoded.kind === "message" && "result" in decoded.message ? decoded.message.result : undefined;
      const revision = isHandshake && isObject(result) ? result["protocolVersion"] : undefined;
      if (typeof revision === "string") session.revision = revision;
      return this.receive(decoded, id);
    };
    if (isJson(response)) {
      const decoded = await readJson(response, this.http.limits);
      if (!take(decoded)) throw notTheResponse(decoded, method);
    } else if (isEventStream(response)) await this.#readCallStream(response, message, session, sent, take);
    // Some servers answer a request with 202 and send the response on the unsolicited stream.
    else if (response.status === 202) response.discard();
    else throw noMessages(response, method);
  }

  /** Reads the stream of a request, and resumes it when it breaks, until the response has been delivered. */
  async #readCallStream(
    first: HttpResponse,
    { id, method }: RequestMessage,
    session: Session,
    { token: { signal } }: SentRequest<Session>,
    take: (decoded: Decoded) => boolean,
  ): Promise<void> {
    const position = new StreamPosition();
    let response: HttpResponse | undefined = first;
    let failures = 0;
    for (;;) {
      if (response !== undefined) {
        const outcome = await this.#readUntilBreak(response, position, take, signal);
        if (outcome === "answered") return;
        if (position.lastId === undefined) throw brokenStream(method, "and no event had an id to resume from");
        // The server has closed the stream, and has told us how long to wait before reconnecting.
        const { retryMs } = position;
        if (outcome === "ended" && retryMs !== undefined) this.pass({ kind: "hang-up", about: id, retryMs });
      }
      await pause(retryDelayMs(position, failures), signal);
      const resumed = await this.#openStream(session, position, signal, false);
      if (resumed instanceof ConnectionError) {
        failures += 1;
        if (failures >= MAX_FAILURES) throw brokenStream(method, `and could not be reached again: ${resumed.message}`);
        response = undefined;
      } else if (isOpen(resumed)) {
        failures = 0;
        response = resumed;
      } else {
        resumed.discard();
        if (resumed.status === 404) this.#reportLost(session);
        throw brokenStream(method, `and refuses to resume it (HTTP ${resumed.status})`);
      }
    }
  }

  async #awaitStream(session: Session): Promise<void> {
    if (session.over.aborted) return;
    await within(STREAM_HEAD_TIMEOUT_MS, new Promise<void>((resolve) => void this.#listen(session, resolve)));
  }

  /**
   * Reads the stream for unsolicited messages, and opens it again when it breaks, as long as the session lives and the
   * server offers the stream. `onHead` is called when it is open or could not be opened. Never rejects.
   */
  async #listen(session: Session, onHead: () => void): Promise<void> {
    const { signal } = session.over;
    const position = new StreamPosition();
    let hasOpened = false;
    let failures = 0;
    const take = (decoded: Decoded): boolean => this.#takeUnsolicited(decoded);
    try {
      for (;;) {
        const canResume = position.lastId !== undefined;
        // No call waits for this stream, so it must not send the user to a sign-in. The next call does, if it has to.
        const response = await this.#openStream(session, position, signal, true);
        onHead();
        if (response instanceof ConnectionError) failures += 1;
        else if (isOpen(response)) {
          // Without an id to resume from, or after a time without a server, messages may be missing.
          if (hasOpened) this.pass({ kind: canResume && failures === 0 ? "reopened" : "gap" });
          hasOpened = true;
          failures = 0;
          await this.#readUntilBreak(response, position, take, signal);
        } else {
          response.discard();
          const { status } = response;
          if (hasOpened && status === 404) {
            this.#reportLost(session);
            return;
          }
          // The server does not offer the stream, unless it considers the previous one still open or limits the rate.
          if (!hasOpened && status !== 409 && status !== 429) return;
          failures += 1;
        }
        await pause(retryDelayMs(position, failures), signal);
      }
    } catch (error) {
      // Not an error, since the stream is optional. A refused stream is opened again when the server accepts a call.
      session.isStreamRefused = error instanceof ConnectionError && error.kind === "unauthorized";
    } finally {
      onHead();
    }
  }

  /** Some servers send the response to a request on this stream, and leave the request's own stream open. */
  #takeUnsolicited(decoded: Decoded): false {
    const id = decoded.kind === "message" && isResponse(decoded.message) ? decoded.message.id : null;
    this.receive(decoded);
    const sent = this.findSent(id ?? undefined);
    sent?.token.abort(new ConnectionError("closed", "The request was answered on another stream"));
    return false;
  }

  /** Resolves even if the connection breaks, since a broken stream is resumed just like one that has ended. */
  async #readUntilBreak(
    response: HttpResponse,
    position: StreamPosition,
    take: (decoded: Decoded) => boolean,
    signal: AbortSignal,
  ): Promise<"answered" | "ended" | "broken"> {
    try {
      return (await readMessages(this.http, response, position, take)) ? "answered" : "ended";
    } catch (error) {
      if (signal.aborted || !(error instanceof ConnectionError) || error.kind !== "closed") throw error;
      return "broken";
    }
  }

  /** Returns an error if a later attempt may succeed: the server cannot be reached, or answers with a 5xx except 501. */
  async #openStream(
    session: Session,
    { lastId }: StreamPosition,
    signal: AbortSignal,
    skipSignIn: boolean,
  ): Promise<HttpResponse | ConnectionError> {
    const resume = lastId === undefined ? undefined : { "last-event-id": lastId };
    const headers = { ...GET_HEADERS, ...sessionHeaders(session.id, session.revision), ...resume };
    try {
      const response = await this.http.send({ method: "GET", headers, signal, skipSignIn });
      const { status } = response;
      if (status < 500 || status === 501) return response;
      response.discard();
      return new ConnectionError("http", `The server answered GET with HTTP ${status}`, { status });
    } catch (error) {
      if (signal.aborted || !(error instanceof ConnectionError) || error.kind === "unauthorized") throw error;
      return error;
    }
  }

  /** Reports that the server has dropped the session, unless that is known already. */
  #reportLost(session: Session): void {
    if (session !== this.session || session.over.aborted) return;
    session.over.abort(new ConnectionError("closed", "The server has dropped the session"));
    this.pass({ kind: "lost" });
  }
}

function isOpen(response: HttpResponse): boolean {
  return response.status === 200 && isEventStream(response);
}

function retryDelayMs({ retryMs }: StreamPosition, failures: number): number {
  if (failures > 0) return Math.max(backoffMs(failures - 1), retryMs ?? 0);
  return Math.max(retryMs ?? DEFAULT_RETRY_MS, MIN_RETRY_MS);
}

function brokenStream(method: string, why: string): ConnectionError {
  return new ConnectionError(
    "closed",
    `The server closed the stream of ${method} before it answered, ${why}; ` +
      "the request may have run, so check before you call it again",
  );
}

/** Found in the error messages of servers that do not know the session. */
const UNKNOWN_SESSION = /\bsession\b|\bnot initialized\b/i;

/** Whether the response means that the server does not know our session. */
function isSessionUnknown(status: number, { body }: HttpFailure, { id }: Session): boolean {
  // The specified status is 404, but many servers answer with 400, which is meant for a missing session id.
  const unknown = status === 400 && body !== undefined && body.code <= -32_000 && UNKNOWN_SESSION.test(body.message);
  return unknown || (status === 404 && id !== undefined);
}
