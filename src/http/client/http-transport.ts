// What the HTTP transports of both session styles share: requests in flight and their cancellation, and the delivery of
// notifications and answers to the server.

import { onAbort, withTimeout } from "../../core/async.ts";
import { type Cancellation, CancelToken } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import {
  type Id,
  isBatch,
  isId,
  isNotification,
  isRequest,
  isResponse,
  type Message,
  type NotificationMessage,
  plainId,
  type RequestMessage,
  type ResponseMessage,
} from "../../jsonrpc/message.ts";
import { changedMethod } from "../../protocol/lists.ts";
import {
  SessionLost,
  type Inbound,
  type Receive,
  type ReportingTransport,
  type SendOptions,
} from "../../transport/transport.ts";
import type { HttpConnection } from "./http-connection.ts";
import type { HttpResponse } from "./requester.ts";
import { isSameId } from "./responses.ts";
import type { ToolFacts } from "../../tools/facts.ts";

const NOTIFY_TIMEOUT_MS = 5_000;
/** Longer, because the server needs the response. */
const RESPOND_TIMEOUT_MS = 60_000;

const TOOLS_CHANGED = changedMethod("tools");

export interface HttpSession {
  /** Aborted when the session is closed by either side. */
  readonly over: CancelToken;
}

export interface SentRequest<Session> {
  /** Ends it. A signal is created only where an answer is read as a stream. */
  readonly token: CancelToken;
  /** The session in which it may have reached the server. */
  sentIn: Session | undefined;
  /** The caller has cancelled it. */
  isAbandoned: boolean;
}

export abstract class HttpTransport<Session extends HttpSession = HttpSession> implements ReportingTransport {
  readonly reportsRequests = true;
  protected readonly http: HttpConnection;
  protected readonly tools: ToolFacts;
  protected readonly closed: AbortController = new AbortController();
  readonly #inFlight = new Map<Id, SentRequest<Session>>();
  protected session: Session | undefined;
  #receive: Receive = () => undefined;

  constructor(http: HttpConnection, tools: ToolFacts) {
    this.http = http;
    this.tools = tools;
  }

  async start(receive: Receive): Promise<void> {
    this.#receive = receive;
  }

  async send(message: Message | readonly Message[], options: SendOptions = {}): Promise<void> {
    if (this.closed.signal.aborted)
      throw new ConnectionError("closed", "The connection was closed", { mayHaveRun: false });
    if (isBatch(message)) throw new ConnectionError("protocol", "Batches cannot be sent");
    if (isRequest(message)) await this.call(message, options);
    else if (!isNotification(message)) await this.#respond(message);
    else await (message.method === "notifications/cancelled" ? this.#cancel(message) : this.notify(message));
  }

  async close(_budgetMs?: number): Promise<void> {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.closed.abort(reason);
    this.session?.over.abort(reason);
    for (const { token } of this.#inFlight.values()) token.abort(reason);
  }

  protected abstract call(message: RequestMessage, options: SendOptions): Promise<void>;
  protected abstract post(
    message: Message,
    session: Session | undefined,
    signal: Cancellation,
    options?: SendOptions,
  ): Promise<HttpResponse>;
  /** Reads the response to a message that needs no answer. */
  protected abstract acknowledged(response: HttpResponse, message: Message, session: Session): Promise<void> | void;

  protected notify(message: NotificationMessage): Promise<void> {
    return this.deliver(message, this.currentSession());
  }

  protected currentSession(): Session {
    if (this.session === undefined) throw new SessionLost("There is no session with the server");
    return this.session;
  }

  /** Makes a request cancellable by its id while `work` runs. */
  protected async track<T>(
    id: Id,
    { quiet }: SendOptions,
    work: (sent: SentRequest<Session>) => Promise<T>,
    token: CancelToken = new CancelToken(),
  ): Promise<T> {
    const sent: SentRequest<Session> = { token, sentIn: undefined, isAbandoned: false };
    if (quiet !== undefined) {
      // The request may create a task. The server is not notified, since the task has to be cancelled by its id. So a
      // request that was sent goes on until the response with the id arrives, or until `expired`. Both signals belong
      // to this request alone, so their listeners are not removed.
      const abort = (): void => token.abort(new ConnectionError("cancelled", "Cancelled"));
      onAbort(quiet.abandoned, () => (sent.sentIn === undefined ? abort() : undefined));
      onAbort(quiet.expired, abort);
    }
    this.#inFlight.set(id, sent);
    try {
      return await work(sent);
    } finally {
      this.#inFlight.delete(id);
    }
  }

  /** Posts a request in a session. While the authorizer works, the server has not accepted it. */
  protected postCall(
    message: RequestMessage,
    session: Session,
    sent: SentRequest<Session>,
    { headers, onWait: watch, wire }: SendOptions,
  ): Promise<HttpResponse> {
    sent.sentIn = session;
    const onWait = (isWaiting: boolean): void => {
      sent.sentIn = isWaiting ? undefined : session;
      watch?.(isWaiting);
    };
    return this.post(message, session, sent.token, { headers, onWait, wire });
  }

  protected findSent(id: Id | undefined): SentRequest<Session> | undefined {
    return id === undefined ? undefined : this.#inFlight.get(plainId(id));
  }

  protected deliver(message: Message, session: Session): Promise<void> {
    const ms = isResponse(message) ? RESPOND_TIMEOUT_MS : NOTIFY_TIMEOUT_MS;
    return withTimeout(ms, this.closed.signal, async (signal) => {
      await this.acknowledged(await this.post(message, session, signal), message, session);
    });
  }

  /** Aborts the call after notifying the server, or at once if the call has not been sent yet. */
  async #cancel(message: NotificationMessage): Promise<void> {
    const id = message.params?.["requestId"];
    const sent = isId(id) ? this.findSent(id) : undefined;
    if (sent !== undefined) sent.isAbandoned = true;
    const session = sent === undefined ? this.session : sent.sentIn;
    try {
      if (session !== undefined) await this.deliver(message, session);
    } finally {
      sent?.token.abort(new ConnectionError("cancelled", "Cancelled"));
    }
  }

  /** Sends again once if the connection failed: a duplicate is harmless, but the server would wait for a lost answer. */
  async #respond(message: Message): Promise<void> {
    const session = this.currentSession();
    const mayRetry = !session.over.aborted;
    await this.http.sendAnswer(() =>
      this.deliver(message, session).catch((error: unknown) => {
        const isBroken = error instanceof ConnectionError && (error.kind === "closed" || error.kind === "refused");
        if (!mayRetry || !isBroken) throw error;
        return this.deliver(message, session);
      }),
    );
  }

  /** Passes what was received to the peer; returns whether it contains the response to `requestId`. */
  protected receive(decoded: Decoded, requestId?: Id): boolean {
    if (decoded.kind === "fault") {
      this.pass({ kind: "fault", fault: decoded.fault, about: requestId });
      return isSameId(decoded.fault.id, requestId);
    }
    if (decoded.kind === "message") {
      const { message } = decoded;
      // An error without an id can only belong to the request whose HTTP response contains it.
      const isUnnamed = requestId !== undefined && "error" in message && message.id === null;
      this.pass({ kind: "message", message: isUnnamed ? { ...message, id: requestId } : message, about: requestId });
      return isUnnamed || isResponseTo(message, requestId);
    }
    this.pass({ kind: "batch", items: decoded.items, about: requestId });
    return decoded.items.some((item) => "message" in item && isResponseTo(item.message, requestId));
  }

  /** Passes a message or an event on. */
  protected pass(inbound: Inbound): void {
    if (this.closed.signal.aborted) return;
    const message = inbound.kind === "message" ? inbound.message : undefined;
    const isToolChange = message !== undefined && "method" in message && message.method === TOOLS_CHANGED;
    if (isToolChange || inbound.kind === "lost" || inbound.kind === "gap") this.tools.forget();
    this.#receive(inbound);
  }
}

function isResponseTo(message: Message, id: Id | undefined): message is ResponseMessage {
  return isResponse(message) && isSameId(message.id, id);
}
