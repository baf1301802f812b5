// The transport for a session-style server over HTTP. The response to the handshake carries the session id, which every
// later request sends. Each request is a POST whose stream is resumed if it breaks (session-streams.ts); unsolicited
// messages arrive on one long GET. A session that the server has dropped is reported, so that a new one can be started.

import { onAbort, within, withTimeout } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode, type Decoded } from "../../jsonrpc/codec.ts";
import {
  ExactId,
  isNotification,
  isRequest,
  isResponse,
  type Id,
  type Message,
  type RequestMessage,
} from "../../jsonrpc/message.ts";
import type { HttpResponse } from "./requester.ts";
import {
  SessionLost,
  type Inbound,
  type SendOptions,
  type Transport,
  type QuietCancel,
} from "../../transport/transport.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { isObject } from "../../core/values.ts";
import { SESSION_HEADER, POST_HEADERS, sessionHeaders } from "../headers.ts";
import {
  readFailure,
  isEventStream,
  isSuccess,
  isJson,
  noMessages,
  readJson,
  MessageReceiver,
  sendWithRetry,
} from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { readResponseStream, readUnsolicited } from "./session-streams.ts";
import type { ToolFacts } from "../../protocol/tool-facts.ts";

/** Timeout for the DELETE that closes the session. */
const DELETE_TIMEOUT_MS = 2_000;
/** How long the server may take to acknowledge a notification. */
const NOTIFY_TIMEOUT_MS = 5_000;
/** How long the server may take to acknowledge a response. Longer, because the server needs the response. */
const RESPOND_TIMEOUT_MS = 60_000;
/** Calls wait at most this long for the unsolicited stream: some servers send its head only with the first event. */
const STREAM_HEAD_TIMEOUT_MS = 5_000;

export class SessionHttpTransport implements Transport {
  readonly #http: HttpConnection;
  readonly #closed = new AbortController();
  readonly #receiver: MessageReceiver;
  readonly #inFlight = new Map<Id, SentRequest>();
  #session: Session | undefined;

  constructor(http: HttpConnection, tools: ToolFacts) {
    this.#http = http;
    this.#receiver = new MessageReceiver(
      (message) => this.send(message),
      this.#closed.signal,
      () => tools.forget(),
    );
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receiver.start(receive);
  }

  async send(message: Message | readonly Message[], options: SendOptions = {}): Promise<void> {
    if (this.#closed.signal.aborted)
      throw new ConnectionError("closed", "The connection was closed", { mayHaveRun: false });
    if (Array.isArray(message)) throw new ConnectionError("protocol", "Batches cannot be sent");
    const one = message as Message;
    if (isRequest(one))
      await (one.method === "initialize" ? this.#startSession(one, options) : this.#call(one, options));
    else if (isNotification(one)) await this.#notify(one);
    else await this.#respond(one);
  }

  async close(budgetMs: number = DELETE_TIMEOUT_MS): Promise<void> {
    if (this.#closed.signal.aborted) return;
    const reason = new ConnectionError("closed", "The connection was closed");
    const session = this.#session;
    this.#closed.abort(reason);
    session?.over.abort(reason);
    for (const { controller } of this.#inFlight.values()) controller.abort(reason);
    await this.#deleteSession(session, Math.min(budgetMs, DELETE_TIMEOUT_MS)).catch(() => undefined);
    this.#http.close();
  }

  /** Best effort: the server may not support DELETE (405), or may not be reachable. */
  async #deleteSession(session: Session | undefined, budgetMs: number): Promise<void> {
    if (session?.id === undefined || budgetMs <= 0) return;
    const headers = sessionHeaders(session.id, session.revision);
    const { signal: never } = new AbortController();
    await withTimeout(budgetMs, never, async (signal) => {
      (await this.#http.send({ method: "DELETE", headers, signal, skipSignIn: true })).discard();
    });
  }

  async #startSession(message: RequestMessage, { signal, onWait }: SendOptions): Promise<void> {
    this.#session?.over.abort(new ConnectionError("closed", "A new session was started"));
    const session = newSession();
    const { over } = session;
    this.#session = session;
    // MCP does not allow cancelling `initialize`, so an unwanted handshake is only abandoned.
    const removeListener = onAbort(signal, () => this.#discard(session, signal?.reason));
    try {
      await this.#track(message, async ({ controller }) => {
        const removeOverListener = onAbort(over.signal, () => controller.abort(over.signal.reason));
        try {
          const response = await this.#post(message, session, controller.signal, onWait);
          session.id = response.headers[SESSION_HEADER] || undefined;
          await this.#receiveResponse(response, message, session, controller.signal, (result) => {
            const { protocolVersion } = result;
            if (typeof protocolVersion === "string") session.revision = protocolVersion;
          });
          // The server has answered with an error or an invalid result, so there is no session.
          if (session.revision === undefined)
            this.#discard(session, new ConnectionError("closed", "There is no session"));
        } finally {
          removeOverListener();
        }
      });
    } catch (error) {
      this.#discard(session, error);
      throw error;
    } finally {
      removeListener();
    }
  }

  /** Ends a session whose handshake failed. */
  #discard(session: Session, reason: unknown): void {
    if (this.#session === session) this.#session = undefined;
    session.over.abort(reason);
  }

  async #call(message: RequestMessage, { onWait, quiet }: SendOptions): Promise<void> {
    await this.#track(message, async (sent) => {
      const { signal } = sent.controller;
      abortQuietly(quiet, sent.controller, () => sent.sentIn !== undefined);
      // This wait must not count towards the request's timeout.
      onWait?.(true);
      const session = await this.#readySession(message.method).finally(() => onWait?.(false));
      signal.throwIfAborted();
      sent.sentIn = session;
      const response = await this.#post(message, session, signal, (isWaiting) => {
        // While the authorizer works, the server has not accepted the request.
        sent.sentIn = isWaiting ? undefined : session;
        onWait?.(isWaiting);
      });
      if (session.isStreamRefused) this.#listenAgain(session);
      await this.#receiveResponse(response, message, session, signal);
    });
  }

  /** Makes the request cancellable by its id while `work` runs. */
  async #track({ id }: RequestMessage, work: (sent: SentRequest) => Promise<void>): Promise<void> {
    const sent: SentRequest = { controller: new AbortController(), sentIn: undefined, isAbandoned: false };
    this.#inFlight.set(id, sent);
    try {
      await work(sent);
    } finally {
      this.#inFlight.delete(id);
    }
  }

  /** Waits until this request can be sent in the current session. */
  async #readySession(method: string): Promise<Session> {
    for (;;) {
      const session = this.#currentSession();
      await session.ready;
      // Some servers send a call's requests to the client on the unsolicited stream, and drop them if it is not open.
      if (INPUT_METHODS.has(method)) await session.listening;
      if (session === this.#session) return session;
    }
  }

  #currentSession(): Session {
    if (this.#session === undefined) throw new SessionLost("There is no session with the server");
    return this.#session;
  }

  #post(
    message: Message,
    session: Session,
    signal: AbortSignal,
    onWait?: SendOptions["onWait"],
  ): Promise<HttpResponse> {
    const headers = { ...POST_HEADERS, ...sessionHeaders(session.id, session.revision) };
    return this.#http.send({ method: "POST", headers, body: encode(message), signal, onWait });
  }

  async #receiveResponse(
    response: HttpResponse,
    { id, method }: RequestMessage,
    session: Session,
    signal: AbortSignal,
    onResult?: (result: { readonly [key: string]: unknown }) => void,
  ): Promise<void> {
    if (!isSuccess(response)) {
      const failure = await readFailure(response, method);
      const { status } = response;
      if (method !== "initialize" && isSessionUnknown(status, failure, session)) {
        session.over.abort(new ConnectionError("closed", "The server has dropped the session"));
        throw new SessionLost(`The server has dropped the session (HTTP ${status})`, { status });
      }
      if ("error" in failure) throw failure.error;
      // A server that speaks only legacy HTTP+SSE may answer so, and the style detection needs the status to notice it.
      if (method === "initialize" && (status === 400 || status === 404 || status === 405))
        throw new ConnectionError(
          "http",
          `The server answered ${method} with HTTP ${status}, ${failure.body.message}`,
          {
            status,
          },
        );
      this.#receiver.fail(id, failure.body);
      return;
    }
    const sent = this.#inFlight.get(id);
    const deliver: MessageReceiver["deliver"] = (decoded, about) => {
      // Messages for an abandoned call must not reach another call.
      if (sent?.isAbandoned === true) return true;
      const result = decoded.kind === "message" && "result" in decoded.message ? decoded.message.result : undefined;
      if (onResult !== undefined && isObject(result)) onResult(result);
      return this.#receiver.deliver(decoded, about);
    };
    if (isJson(response)) {
      const decoded = await readJson(response, this.#http.limits);
      if (onResult !== undefined && decoded.kind === "message" && "result" in decoded.message)
        onResult(decoded.message.result);
      this.#receiver.deliverResponse(decoded, id, method);
    } else if (isEventStream(response)) {
      const headers = (): Record<string, string> => sessionHeaders(session.id, session.revision);
      await readResponseStream(this.#http, response, {
        id,
        method,
        signal,
        headers,
        deliver,
        onLost: () => this.#reportLost(session),
        onHangUp: (retryMs) => this.#receiver.hangUp(id, retryMs),
      });
    } else if (response.status === 202) {
      // Some servers answer a request with 202 and send the response on the unsolicited stream.
      response.discard();
    } else throw noMessages(response, method);
  }

  async #notify(message: Message & { method: string; params?: { readonly [key: string]: unknown } }): Promise<void> {
    if (message.method === "notifications/cancelled") {
      await this.#cancel(message);
      return;
    }
    const session = this.#currentSession();
    if (message.method === "notifications/initialized") {
      const delivered = this.#deliver(message, session, NOTIFY_TIMEOUT_MS).catch(() => undefined);
      session.listening = delivered.then(() => this.#awaitStream(session));
      await delivered;
      session.markReady();
    } else await session.ready.then(() => this.#deliver(message, session, NOTIFY_TIMEOUT_MS));
  }

  /** Aborts the call after notifying the server, or at once if the call has not been sent yet. */
  async #cancel(message: Message & { params?: { readonly [key: string]: unknown } }): Promise<void> {
    const given = message.params?.["requestId"] as Id | undefined;
    const sent = given === undefined ? undefined : this.#inFlight.get(given instanceof ExactId ? given.value : given);
    if (sent !== undefined) sent.isAbandoned = true;
    const session = sent === undefined ? this.#session : sent.sentIn;
    try {
      if (session !== undefined) await this.#deliver(message, session, NOTIFY_TIMEOUT_MS);
    } finally {
      sent?.controller.abort(new ConnectionError("cancelled", "Cancelled"));
    }
  }

  async #respond(message: Message): Promise<void> {
    const session = this.#currentSession();
    const send = (): Promise<void> => this.#deliver(message, session, RESPOND_TIMEOUT_MS);
    await this.#http.sendAnswer(() => sendWithRetry(send, !session.over.signal.aborted));
  }

  async #deliver(message: Message, session: Session, ms: number): Promise<void> {
    await withTimeout(ms, this.#closed.signal, async (signal) => {
      const response = await this.#post(message, session, signal);
      response.discard();
      if (response.status === 404 && session.id !== undefined) this.#reportLost(session);
    });
  }

  /** Reports that the server has dropped the session, unless that is known already. */
  #reportLost(session: Session): void {
    if (session !== this.#session || session.over.signal.aborted) return;
    session.over.abort(new ConnectionError("closed", "The server has dropped the session"));
    this.#receiver.sessionLost();
  }

  async #awaitStream(session: Session): Promise<void> {
    if (session.over.signal.aborted) return;
    await within(STREAM_HEAD_TIMEOUT_MS, new Promise<void>((resolve) => void this.#listen(session, resolve)));
  }

  async #listen(session: Session, onHead: () => void): Promise<void> {
    const why = await readUnsolicited(this.#http, {
      headers: sessionHeaders(session.id, session.revision),
      signal: session.over.signal,
      deliver: (decoded) => this.#deliverUnsolicited(decoded),
      onHead,
      onGap: () => this.#receiver.gap(),
    });
    if (why === "lost") this.#reportLost(session);
    session.isStreamRefused = why === "refused";
  }

  /** Opens a refused stream again, after a call has been authorized. */
  #listenAgain(session: Session): void {
    session.isStreamRefused = false;
    void this.#listen(session, () => undefined);
    this.#receiver.gap();
  }

  /** Some servers send the response to a request on this stream, and leave the request's own stream open. */
  #deliverUnsolicited(decoded: Decoded): boolean {
    const id = decoded.kind === "message" && isResponse(decoded.message) ? decoded.message.id : null;
    const isDelivered = this.#receiver.deliver(decoded);
    const sent = id === null ? undefined : this.#inFlight.get(id instanceof ExactId ? id.value : id);
    sent?.controller.abort(new ConnectionError("closed", "The request was answered on another stream"));
    return isDelivered;
  }
}

interface Session {
  /** Undefined if the server does not use session ids. */
  id: string | undefined;
  revision: string | undefined;
  /** Aborted when the session is closed by either side. */
  readonly over: AbortController;
  /** Resolves when `initialized` has been delivered or the session is over. Other messages must not overtake it. */
  readonly ready: Promise<void>;
  readonly markReady: () => void;
  /** Resolves when the unsolicited stream is open, has failed to open, or takes too long. */
  listening: Promise<void>;
  /** The unsolicited stream ended because we were unauthorized. */
  isStreamRefused: boolean;
}

function newSession(): Session {
  const over = new AbortController();
  let markReady = (): void => undefined;
  const ready = new Promise<void>((resolve) => (markReady = resolve));
  onAbort(over.signal, markReady);
  return { id: undefined, revision: undefined, over, ready, markReady, listening: ready, isStreamRefused: false };
}

/** A request in flight. */
interface SentRequest {
  readonly controller: AbortController;
  /** The session in which it may have reached the server. */
  sentIn: Session | undefined;
  /** The caller has cancelled it. */
  isAbandoned: boolean;
}

/** Found in the error messages of servers that do not know the session. */
const UNKNOWN_SESSION = /\bsession\b|\bnot initialized\b/i;

/** Whether the response means that the server does not know our session. */
function isSessionUnknown(status: number, failure: Awaited<ReturnType<typeof readFailure>>, { id }: Session): boolean {
  // The specified status is 404, but many servers answer with 400, which is meant for a missing session id.
  const error = "body" in failure ? failure.body : undefined;
  const unknown = status === 400 && error !== undefined && error.code <= -32_000 && UNKNOWN_SESSION.test(error.message);
  return unknown || (status === 404 && id !== undefined);
}

/**
 * Cancels a request that may create a task. The server is not notified, since the task has to be cancelled by its id.
 * So a request that was sent goes on until the response with the id arrives, or until `expired`. A request that has not
 * been sent is aborted at once. Both signals belong to this request alone, so their listeners are not removed.
 */
export function abortQuietly(quiet: QuietCancel | undefined, controller: AbortController, isSent: () => boolean): void {
  if (quiet === undefined) return;
  const abort = (): void => controller.abort(new ConnectionError("cancelled", "Cancelled"));
  onAbort(quiet.abandoned, () => (isSent() ? undefined : abort()));
  onAbort(quiet.expired, abort);
}
