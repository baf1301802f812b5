// The transport for a legacy HTTP+SSE server (first revision). One GET stream carries everything from the server, and
// its first event is the URL that we post to. The session lives as long as the stream: when the stream breaks,
// requests in flight fail, and the next handshake opens a new stream.

import { onAbort, abortable, withTimeout } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode, type Decoded } from "../../jsonrpc/codec.ts";
import { ExactId, isRequest, isResponse, type Id, type Message } from "../../jsonrpc/message.ts";
import type { ServerSentEvent } from "./sse-reader.ts";
import type { HttpResponse } from "./requester.ts";
import { SessionLost, type Inbound, type SendOptions, type Transport } from "../../transport/transport.ts";
import {
  StreamPosition,
  readFailure,
  isEventStream,
  isSuccess,
  noMessages,
  readEvents,
  MessageReceiver,
  sendWithRetry,
} from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { abortQuietly } from "./session.ts";
import type { ToolFacts } from "../../protocol/tool-facts.ts";

interface Session {
  readonly address: URL;
  /** Settles requests that wait for their response on the stream. */
  readonly pending: Map<Id, (failure?: ConnectionError) => void>;
  readonly over: AbortController;
}

/** How long the server may take to acknowledge a notification. */
const NOTIFY_TIMEOUT_MS = 5_000;
/** How long the server may take to acknowledge a response. Longer, because the server needs the response. */
const RESPOND_TIMEOUT_MS = 60_000;

const LEGACY_POST_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json", accept: "*/*" };
const GET_HEADERS: Readonly<Record<string, string>> = { accept: "text/event-stream" };

export class LegacySseTransport implements Transport {
  readonly #http: HttpConnection;
  readonly #closed = new AbortController();
  readonly #receiver: MessageReceiver;
  /** Aborts requests in flight, of any session. */
  readonly #inFlight = new Map<Id, AbortController>();
  #session: Session | undefined;
  /** Aborts the newest stream. */
  #stream = new AbortController();

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
    if (!isRequest(one)) {
      await this.#deliver(one).finally(() => this.#abortCancelled(one));
      return;
    }
    const session = one.method === "initialize" ? await this.#startSession(options) : this.#currentSession();
    await this.#call(one.id, one, session, options);
  }

  async close(): Promise<void> {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#closed.abort(reason);
    this.#stream.abort(reason);
    for (const controller of this.#inFlight.values()) controller.abort(reason);
    this.#http.close();
  }

  #currentSession(): Session {
    if (this.#session === undefined) throw new SessionLost("The server's stream broke, which ended the session");
    return this.#session;
  }

  async #call(id: Id, message: Message, session: Session, { onWait, quiet }: SendOptions): Promise<void> {
    // A broken stream does not abort the POST: the server may still reject it, which proves that nothing has run.
    const controller = new AbortController();
    let isSent = true;
    abortQuietly(quiet, controller, () => isSent);
    this.#inFlight.set(id, controller);
    const answered = new Promise<void>((resolve, reject) => {
      session.pending.set(id, (failure) => (failure === undefined ? resolve() : reject(failure)));
    });
    // Prevents an unhandled rejection if the stream breaks while the request is still being sent.
    answered.catch(() => undefined);
    try {
      await this.#post(message, session, controller.signal, (isWaiting) => {
        isSent = !isWaiting;
        onWait?.(isWaiting);
      });
      await abortable(controller.signal, answered);
    } finally {
      session.pending.delete(id);
      this.#inFlight.delete(id);
    }
  }

  async #deliver(message: Message): Promise<void> {
    const session = this.#currentSession();
    const isReply = isResponse(message);
    const ms = isReply ? RESPOND_TIMEOUT_MS : NOTIFY_TIMEOUT_MS;
    const send = (): Promise<void> =>
      withTimeout(ms, this.#closed.signal, (signal) => this.#post(message, session, signal));
    if (!isReply) await send();
    else await this.#http.sendAnswer(() => sendWithRetry(send, !session.over.signal.aborted));
  }

  /** Aborts the request that a cancellation names. The server has already been notified, if that was possible. */
  #abortCancelled(message: Message): void {
    if (!("method" in message) || message.method !== "notifications/cancelled") return;
    const given = message.params?.["requestId"] as Id;
    this.#inFlight
      .get(given instanceof ExactId ? given.value : given)
      ?.abort(new ConnectionError("cancelled", "Cancelled"));
  }

  async #post(message: Message, session: Session, signal: AbortSignal, onWait?: SendOptions["onWait"]): Promise<void> {
    const { address: url } = session;
    const body = encode(message);
    const response = await this.#http.send({ method: "POST", url, headers: LEGACY_POST_HEADERS, body, signal, onWait });
    const what = "method" in message ? message.method : "a response";
    if (isSuccess(response)) {
      // Servers acknowledge a message with any body, but an HTML page means a wrong address.
      if (/^text\/html\b/i.test(response.headers["content-type"] ?? "")) throw noMessages(response, what);
      response.discard();
      return;
    }
    const { status } = response;
    const failure = await readFailure(response, what);
    if (status === 404) throw new SessionLost("The server has dropped the session (HTTP 404)", { status });
    if ("error" in failure) throw failure.error;
    const { code, message: text } = failure.body;
    throw new ConnectionError("http", `The server rejected the message with HTTP ${status}: ${text} (${code})`, {
      status,
      mayHaveRun: false,
    });
  }

  /** Resolves when the server has sent the address to post to. */
  async #startSession({ signal, onWait }: SendOptions): Promise<Session> {
    this.#stream.abort(new ConnectionError("closed", "A new session was started"));
    this.#session = undefined;
    const over = new AbortController();
    this.#stream = over;
    const removeListener = onAbort(signal, () => over.abort(signal?.reason));
    try {
      const response = await this.#http.send({ method: "GET", headers: GET_HEADERS, signal: over.signal, onWait });
      if (!isSuccess(response)) {
        const failure = await readFailure(response, "GET");
        throw "error" in failure
          ? failure.error
          : new ConnectionError("http", failure.body.message, { status: response.status });
      }
      if (!isEventStream(response)) throw noMessages(response, "GET");
      const session = await this.#read(response, over);
      this.#session = session;
      return session;
    } catch (error) {
      over.abort(error);
      throw error;
    } finally {
      removeListener();
    }
  }

  /** Reads the stream until it ends. Resolves earlier, when the `endpoint` event has arrived. */
  #read(response: HttpResponse, over: AbortController): Promise<Session> {
    return new Promise((resolve, reject) => {
      let session: Session | undefined;
      const { url } = this.#http;
      const take = (decoded: Decoded | undefined, { event, data }: ServerSentEvent): boolean => {
        if (session !== undefined) {
          if (decoded !== undefined) this.#receiveMessage(decoded, session);
        } else if (event === "endpoint") {
          session = { address: parseAddress(data, url), pending: new Map(), over };
          resolve(session);
        }
        return false;
      };
      const finish = (error: unknown): void => {
        const unsent = new ConnectionError(
          "closed",
          "The server closed its stream before it sent the address to post to",
          {
            cause: error,
            mayHaveRun: false,
          },
        );
        reject(error instanceof ConnectionError && error.kind !== "closed" ? error : unsent);
        if (session !== undefined) this.#endSession(session);
        response.discard();
      };
      readEvents(this.#http, response, new StreamPosition(), take).then(() => finish(undefined), finish);
    });
  }

  #receiveMessage(decoded: Decoded, session: Session): void {
    this.#receiver.deliver(decoded);
    const items = decoded.kind === "batch" ? decoded.items : [decoded];
    for (const item of items) {
      const id = "message" in item ? isResponse(item.message) && item.message.id : item.fault.id;
      if (id === false || id === null || typeof id === "object") continue;
      session.pending.get(id)?.();
    }
  }

  #endSession(session: Session): void {
    session.over.abort(new ConnectionError("closed", "The server's stream is broken"));
    for (const settle of session.pending.values()) {
      settle(
        new ConnectionError(
          "closed",
          "The server's stream broke before it answered; the request may have run, so check before you call it again",
        ),
      );
    }
    if (this.#session !== session) return;
    this.#session = undefined;
    this.#receiver.sessionLost();
  }
}

/** Messages and credentials must not be sent to another origin. */
function parseAddress(data: string, base: URL): URL {
  if (!URL.canParse(data, base.href))
    throw new ConnectionError("protocol", "The server sent an invalid address to post to");
  const address = new URL(data, base);
  if (address.origin === base.origin) return address;
  throw new ConnectionError(
    "refused",
    `The server wants messages sent to another origin, ${address.origin}, which is not allowed`,
    {
      mayHaveRun: false,
    },
  );
}
