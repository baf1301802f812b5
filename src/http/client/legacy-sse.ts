// The transport for a legacy HTTP+SSE server (first revision). One GET stream carries everything from the server, and
// its first event is the URL that we post to. The session lives as long as the stream: when the stream breaks,
// requests in flight fail, and the next handshake opens a new stream.

import { abortable, ignoreRejection, onAbort } from "../../core/async.ts";
import { type Cancellation, CancelToken } from "../../core/cancel.ts";
import { ConnectionError, refused } from "../../core/errors.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import { isResponse, plainId, type Id, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import { SessionLost, type SendOptions } from "../../transport/transport.ts";
import { decodeUtf8 } from "./growable-buffer.ts";
import type { ServerSentEvent } from "./sse-reader.ts";
import { type HttpSession, HttpTransport } from "./http-transport.ts";
import {
  answerableId,
  GET_HEADERS,
  type HttpFailure,
  isEventStream,
  isSuccess,
  noMessages,
  readEvents,
  readFailure,
  StreamPosition,
} from "./responses.ts";
import type { HttpResponse } from "./requester.ts";

interface Session extends HttpSession {
  /** Where to post. Undefined until the server has sent it. */
  address: URL | undefined;
  /** Settles requests that wait for their response on the stream. */
  readonly pending: Map<Id, (failure?: ConnectionError) => void>;
}

const LEGACY_POST_HEADERS: Readonly<Record<string, string>> = { "content-type": "application/json", accept: "*/*" };

export class LegacySseTransport extends HttpTransport<Session> {
  protected async call(message: RequestMessage, options: SendOptions): Promise<void> {
    const { id, method } = message;
    const session = method === "initialize" ? await this.#startSession(options) : this.currentSession();
    const answered = new Promise<void>((resolve, reject) => {
      session.pending.set(id, (failure) => (failure === undefined ? resolve() : reject(failure)));
    });
    // The stream may break while the request is still being sent.
    void ignoreRejection(answered);
    try {
      await this.track(id, options, async (sent) => {
        // A broken stream does not abort the POST: the server may still reject it, which proves that nothing has run.
        const response = await this.postCall(message, session, sent, options);
        if (isSuccess(response)) {
          await this.acknowledged(response, message);
          await abortable(sent.token.signal, answered);
          return;
        }
        const { error, body } = await readPostFailure(response, method);
        if (body === undefined) throw error;
        this.pass({ kind: "message", message: { jsonrpc: "2.0", id, error: body }, about: id });
      });
    } finally {
      session.pending.delete(id);
    }
  }

  protected override currentSession(): Session {
    if (this.session?.address !== undefined) return this.session;
    throw new SessionLost("The server's stream broke, which ended the session");
  }

  protected post(
    message: Message,
    { address }: Session,
    signal: Cancellation,
    options: SendOptions = {},
  ): Promise<HttpResponse> {
    const url = address ?? this.http.url;
    return this.http.send({
      method: "POST",
      url,
      headers: LEGACY_POST_HEADERS,
      body: this.http.encode(message),
      id: answerableId(message),
      signal,
      added: options.headers,
      waiter: options,
      message,
      wire: options.wire,
    });
  }

  protected async acknowledged(response: HttpResponse, message: Message): Promise<void> {
    const what = "method" in message ? message.method : "a response";
    if (!isSuccess(response)) throw (await readPostFailure(response, what)).error;
    // Servers acknowledge a message with any body, but an HTML page means a wrong address.
    if (/^text\/html\b/i.test(response.headers["content-type"] ?? "")) throw noMessages(response, what);
    response.discard();
  }

  /** Resolves when the server has sent the address to post to. */
  async #startSession(waiter: SendOptions): Promise<Session> {
    const { signal } = waiter;
    this.session?.over.abort(new ConnectionError("closed", "A new session was started"));
    const over = new CancelToken();
    const session: Session = { address: undefined, pending: new Map(), over };
    this.session = session;
    const removeListener = onAbort(signal, () => over.abort(signal?.reason));
    try {
      const response = await this.http.send({
        method: "GET",
        headers: GET_HEADERS,
        signal: over.signal,
        waiter,
      });
      if (!isSuccess(response)) throw (await readFailure(response, "GET")).error;
      if (!isEventStream(response)) throw noMessages(response, "GET");
      await this.#read(response, session);
      return session;
    } catch (error) {
      over.abort(error);
      throw error;
    } finally {
      removeListener();
    }
  }

  /** Reads the stream to its end. Resolves as soon as the server has sent the address. */
  #read(response: HttpResponse, session: Session): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = (decoded: Decoded | undefined, { event, data }: ServerSentEvent): boolean => {
        if (session.address === undefined) {
          if (event !== "endpoint") return false;
          session.address = parseAddress(decodeUtf8(data), this.http.url);
          resolve();
        } else if (decoded !== undefined) {
          this.receive(decoded);
          for (const item of decoded.kind === "batch" ? decoded.items : [decoded]) {
            const id = "message" in item ? isResponse(item.message) && item.message.id : item.fault.id;
            if (id !== false && id !== null) session.pending.get(plainId(id))?.();
          }
        }
        return false;
      };
      const finish = (cause: unknown): void => {
        const message = "The server closed its stream before it sent the address to post to";
        const isOther = cause instanceof ConnectionError && cause.kind !== "closed";
        reject(isOther ? cause : new ConnectionError("closed", message, { cause, mayHaveRun: false }));
        this.#endSession(session);
        response.discard();
      };
      readEvents(this.http, response, new StreamPosition(), take).then(() => finish(undefined), finish);
    });
  }

  #endSession(session: Session): void {
    session.over.abort(new ConnectionError("closed", "The server's stream is broken"));
    const message =
      "The server's stream broke before it answered; the request may have run, so check before you call it again";
    for (const settle of session.pending.values()) settle(new ConnectionError("closed", message));
    if (this.session !== session) return;
    this.session = undefined;
    if (session.address !== undefined) this.pass({ kind: "lost" });
  }
}

async function readPostFailure(response: HttpResponse, what: string): Promise<HttpFailure> {
  const failure = await readFailure(response, what);
  const { status } = response;
  if (status === 404) throw new SessionLost("The server has dropped the session (HTTP 404)", { status });
  return failure;
}

/** Messages and credentials must not be sent to another origin. */
function parseAddress(data: string, base: URL): URL {
  if (!URL.canParse(data, base.href))
    throw new ConnectionError("protocol", "The server sent an invalid address to post to");
  const address = new URL(data, base);
  if (address.origin === base.origin) return address;
  throw refused(`The server wants messages sent to another origin, ${address.origin}, which is not allowed`);
}
