// A back faces a server; this one faces a session-style server. It presents the session in the form of the newest
// revision: requests are lowered into the server's revision, `server/discover` is answered from the handshake, and
// `subscriptions/listen` becomes subscribe and unsubscribe. The handshake, subscriptions and tasks are in other files.

import {
  type Caller,
  type Context,
  type Handler,
  isLogLevel,
  levelRank,
  type LogLevel,
  type Notification,
  type Params,
  type Request,
  type Result,
} from "../../core/handler.ts";
import { within } from "../../core/async.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { addFields, copyFields, fieldsOf } from "../../core/values.ts";
import {
  type Id,
  isId,
  type NotificationMessage,
  type RequestMessage,
  type IdKey,
  idKey,
  type Message,
} from "../../jsonrpc/message.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { INVALID_PARAMS, McpError, METHOD_NOT_FOUND, methodNotFound } from "../../protocol/errors.ts";
import { ROOTS_LIST_CHANGED } from "../../protocol/lists.ts";
import { META } from "../../protocol/model/base.ts";
import type { Revision } from "../../protocol/revision.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import { initialize, SessionRenewal, type HandshakeOptions, type SessionTerms } from "./handshake.ts";
import { CallAttribution } from "./call-attribution.ts";
import { ServerSubscriptions } from "./subscriptions-back.ts";
import type { ServerTasksHost, TaskRequestOptions } from "./server-task.ts";
import { TasksBack } from "./tasks-back.ts";
import type { OutgoingCall, PeerListener, Peer } from "../calls/peer.ts";
import { cancellationError, toErrorBody } from "../calls/errors.ts";
import { ELICITATION_COMPLETE, requiredUrlElicitations } from "../calls/url-elicitation.ts";

/** How long a call waits for the server to confirm the log level. */
const LOG_LEVEL_WAIT_MS = 1_000;
const MAX_URL_ELICITATIONS = 1_000;
/** How many requests of one server may wait for their answers. More are refused. */
const MAX_OPEN_REQUESTS = 256;

export class SessionBack implements PeerListener, ServerTasksHost {
  readonly #peer: Peer;
  /** The context for requests outside any call. */
  readonly defaultContext: Context;
  readonly #onAsked: (() => void) | undefined;
  /** Calls whose client lacked a capability that the server was told of, and the error. Only of a shared session. */
  readonly #refused: Map<Context, McpError> | undefined;
  readonly #subscriptions: ServerSubscriptions;
  readonly #renewal: SessionRenewal;
  readonly #tasks: TasksBack;
  /** The server's requests that are being answered, by id. */
  readonly #questions = new Map<IdKey, AbortController>();
  /** How many they are. A server may use one id for many requests. */
  #openRequests = 0;
  readonly #attribution = new CallAttribution();
  /** Which client was asked to visit a URL, by the server's elicitation id. */
  readonly #urlElicitations = new ExpiringMap<unknown, Caller>({ maxEntries: MAX_URL_ELICITATIONS });
  terms: SessionTerms;
  #level: LogLevel | undefined;
  #settingLevel: Promise<void> | undefined;

  private constructor(peer: Peer, options: HandshakeOptions, terms: SessionTerms, timeoutMs: number) {
    this.#peer = peer;
    this.defaultContext = options.defaultContext;
    this.#onAsked = options.onAsked;
    this.#refused = options.isShared === true ? new Map() : undefined;
    this.terms = terms;
    this.#renewal = new SessionRenewal(async () => {
      this.terms = await initialize(peer, options, options.defaultContext, timeoutMs);
      await this.#resume();
    }, options.defaultContext.signal);
    this.#subscriptions = new ServerSubscriptions(peer, this.#renewal, this);
    this.#tasks = new TasksBack(this);
  }

  static async initialize(
    peer: Peer,
    options: HandshakeOptions,
    startContext: Context,
    timeoutMs: number,
  ): Promise<SessionBack> {
    const back = new SessionBack(peer, options, await initialize(peer, options, startContext, timeoutMs), timeoutMs);
    peer.listener = back;
    peer.notify("notifications/initialized");
    return back;
  }

  get revision(): Revision {
    return this.terms.revision;
  }

  get discovered(): Result {
    return this.terms.discovered;
  }

  /** Marks work of this caller as running on the server; returns a function to call when it has ended. */
  attribute(caller: Caller): () => void {
    const client = this.#attribution.begin(caller);
    return () => this.#attribution.end(client, false);
  }

  onSessionLost(): void {
    this.#renewal.lost();
  }

  /** A server that keeps its sessions across a restart has lost what they had set. */
  onReopened(mayHaveMissed: boolean): void {
    void this.#restore(mayHaveMissed);
  }

  /** Restores the state of the lost session in the new one. */
  async #resume(): Promise<void> {
    this.#peer.notify("notifications/initialized");
    this.#tasks.forgetTools();
    await this.#restore(true);
  }

  async #restore(mayHaveMissed: boolean): Promise<void> {
    const level = this.#level;
    this.#level = undefined;
    void this.#setLevel(level);
    await this.#subscriptions.renew(mayHaveMissed);
  }

  readonly handler: Handler = (request, context): Promise<Result> => {
    const { method } = request;
    if (context.isNotification === true) {
      this.#peer.notify(method, withoutEnvelope(request.params));
      return Promise.resolve({});
    }
    if (method === "server/discover") return Promise.resolve(this.discovered);
    if (method === "subscriptions/listen") return this.#listen(request, context);
    const isTask = method.startsWith("tasks/") || (method === "tools/call" && this.terms.supportsTasks);
    return isTask ? this.#tasks.answer(request, context) : this.plain(request, context);
  };

  /** Sends a request that has nothing to do with tasks. */
  async plain(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    const renewal = this.#renewal;
    // The same as `renewal.run`, without a function for each call.
    if (renewal.isLost) await renewal.renewed(renewal.count, context);
    const { count } = renewal;
    let answer: Result;
    try {
      answer = await this.#send(request, context, PLAIN);
    } catch (error) {
      await renewal.renewedAfter(error, count, context);
      answer = await this.#send(request, context, PLAIN);
    }
    const result = this.#tasks.inspect(method, this.terms.revision.lift.result(method, answer));
    return context.caller.style === "stateless" ? this.#withServerInfo(method, result) : result;
  }

  /** Adds the server's info for stateless callers: in a session, only the handshake contains it. */
  #withServerInfo(method: string, result: Result): Result {
    const info = this.terms.discovered._meta?.[META.serverInfo];
    if (info === undefined || isVendorMethod(method)) return result;
    const visible = copyFields(result);
    visible["_meta"] = addFields({ [META.serverInfo]: info }, result._meta);
    return visible;
  }

  /** Sends a request of a task. Returns the answer in the server's revision; errors are in the newest. */
  send(request: Request, context: Context, how: TaskRequestOptions = PLAIN): Promise<Result> {
    return this.#renewal.run(() => this.#send(request, context, how), context);
  }

  async #send({ method, params: modelParams }: Request, context: Context, how: TaskRequestOptions): Promise<Result> {
    const { revision, capabilities } = this.terms;
    if (!revision.requests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
    if (context.logLevel !== undefined && capabilities["logging"] !== undefined) {
      const settingLevel = this.#setLevel(context.logLevel);
      if (settingLevel !== undefined) await settingLevel;
    }
    const plain = revision.lower.request(method, withoutEnvelope(modelParams));
    const lowered: Params = how.extraParams === undefined ? plain : { ...plain, ...how.extraParams };
    const wantsProgress = modelParams._meta?.["progressToken"] !== undefined;
    const params = wantsProgress || how.onSent !== undefined ? withProgress(lowered, wantsProgress, how) : lowered;
    const client = this.#attribution.begin(context.caller);
    let isAnswered = false;
    try {
      const answer = await this.#peer.call(method, params, context, how.abandonment);
      isAnswered = true;
      // The server was told of the capability, so the missing one is not its error.
      const missing = answer["isError"] === true ? this.#refused?.get(context) : undefined;
      if (missing !== undefined) throw missing;
      // A client has set the level itself. A renewed session must get the same level.
      if (method === "logging/setLevel" && isLogLevel(lowered["level"])) this.#level = lowered["level"];
      return answer;
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      isAnswered = true;
      const refused = this.#refused?.get(context);
      if (refused !== undefined) throw refused;
      const lifted = McpError.fromBody(this.terms.revision.lift.error(error.toBody(), { method, params: lowered }));
      for (const { id } of requiredUrlElicitations(lifted) ?? []) this.#urlElicitations.set(id, context.caller);
      throw lifted;
    } finally {
      this.#attribution.end(client, isAnswered);
      this.#refused?.delete(context);
    }
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    // The handshake has promised such notifications only if the caller that it was made for sends them.
    const isPromised = this.defaultContext.caller.notifiesRoots === true;
    const forget = isPromised ? onRootsChanged(request, context, () => this.#peer.notify(ROOTS_LIST_CHANGED)) : nothing;
    try {
      return await this.#subscriptions.listen(request, context, await this.#tasks.subscribe(request, context));
    } finally {
      forget();
      // A session front has a subscription for as long as its client is connected, so without one the client is gone.
      if (context.signal.aborted && this.#subscriptions.contextOf(context.caller) === undefined) {
        this.#attribution.forget(context.caller);
      }
    }
  }

  /**
   * The session has one log level, the most verbose that any caller wants. Each front filters for its client. HTTP
   * requests may overtake each other, so a call that wants logs waits for the confirmation, but not for long.
   */
  #setLevel(level: LogLevel | undefined): Promise<void> | undefined {
    if (level === undefined || this.terms.capabilities["logging"] === undefined) return undefined;
    if (this.#level !== undefined && levelRank(this.#level) <= levelRank(level)) return this.#settingLevel;
    this.#level = level;
    const sent = this.#peer.call("logging/setLevel", { level }, this.defaultContext).catch(() => undefined);
    const settingLevel = within(LOG_LEVEL_WAIT_MS, sent).then(() => {
      if (this.#settingLevel === settingLevel) this.#settingLevel = undefined;
    });
    this.#settingLevel = settingLevel;
    return settingLevel;
  }

  onRequest(message: RequestMessage, requestId: Id | undefined): void {
    const { id, method } = message;
    if (method === "ping") {
      this.#peer.send({ jsonrpc: "2.0", id, result: {} });
      return;
    }
    if (this.revision.clientRequests.has(method) || isVendorMethod(method)) this.#onAsked?.();
    void this.#answer(message, requestId);
  }

  onNotification(message: NotificationMessage, requestId: Id | undefined): void {
    if (this.#tasks.handleNotification(message)) return;
    if (message.method === ELICITATION_COMPLETE) this.#elicitationComplete(message);
    const lifted = this.revision.lift.notification(message);
    if (lifted === undefined) return;
    const { method, params = {} } = lifted;
    if (method === "notifications/progress") {
      const call = this.#peer.findCall(params["progressToken"]);
      if (call === undefined) return this.#tasks.onProgress(params);
      call.touch?.();
      this.#peer.report(call.context, "server", message);
      call.context.notify({ method, params });
    } else if (method === "notifications/message") this.#log({ method, params }, message, requestId);
    else if (method === "notifications/cancelled") {
      const { requestId, reason } = params;
      if (isId(requestId)) this.#questions.get(idKey(requestId))?.abort(cancellationError(reason, "the server"));
    } else {
      const plain: Notification = lifted.params === undefined ? { method } : { method, params };
      const call = isVendorMethod(method) ? this.#peer.findCall(requestId) : undefined;
      if (call !== undefined) {
        this.#peer.report(call.context, "server", message);
        call.context.notify(plain);
      } else if (isVendorMethod(method)) this.#subscriptions.deliverToAll(plain);
      else this.#subscriptions.deliver(plain);
    }
  }

  /**
   * Answers a request that the server makes during a call (elicitation, sampling, roots). The request goes to the client
   * whose call it came with. If the transport does not say which call that is, one of the calls in flight is chosen,
   * provided that all are of one client. Outside any call, a subscriber is asked. A request never goes to a client that
   * it may not be meant for. Never rejects.
   */
  async #answer(message: RequestMessage, requestId: Id | undefined): Promise<void> {
    const { id, method } = message;
    const request: Request = { method, params: message.params ?? {} };
    const stop = new AbortController();
    this.#questions.set(idKey(id), stop);
    const task = this.#tasks.askTarget(request.params);
    const named = this.#peer.findCall(requestId);
    const calls = task !== undefined ? [] : named === undefined ? this.#candidates() : [named];
    for (const call of calls) call.onWait?.(true);
    const isFinal = (): boolean => named !== undefined || stop.signal.aborted || this.#peer.calls.closed.aborted;
    /** The call through which the client is asked. */
    let asked: Pick<Context, "observer"> | undefined;
    const run = async (): Promise<Result> => {
      if (!this.revision.clientRequests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
      if (this.#openRequests > MAX_OPEN_REQUESTS)
        throw McpError.of("rate_limited", `${MAX_OPEN_REQUESTS} requests of this server are not answered yet`);
      const lifted: Request = { method, params: this.revision.lift.request(method, request.params) };
      const target = await task;
      const ask = (context: Pick<Context, "ask" | "caller" | "observer">): Promise<Result> => {
        this.#peer.report((asked = context), "server", message);
        const { elicitationId } = lifted.params;
        if (elicitationId !== undefined) this.#urlElicitations.set(elicitationId, context.caller);
        return context.ask(lifted, { signal: stop.signal });
      };
      const answered = target === undefined ? this.#askOneOf(calls, ask, isFinal) : ask(target);
      return this.revision.lower.result(method, await answered);
    };
    this.#openRequests += 1;
    const answer = await run().then(
      (result): Message => ({ jsonrpc: "2.0", id, result }),
      (error: unknown): Message => ({
        jsonrpc: "2.0",
        id,
        error: toErrorBody(asRefusal(error, method), request, this.revision),
      }),
    );
    this.#openRequests -= 1;
    this.#questions.delete(idKey(id));
    for (const call of calls) call.onWait?.(false);
    if (stop.signal.aborted) return;
    if (asked !== undefined) this.#peer.report(asked, "client", answer);
    this.#peer.send(answer);
  }

  /** The calls that may have caused a request, newest last; none if calls of several clients are running. */
  #candidates(): readonly OutgoingCall[] {
    const calls = this.#peer.calls.values().filter(({ method }) => INPUT_METHODS.has(method));
    const [client, ...others] = new Set(calls.map(({ context }) => context.caller.key));
    return client !== undefined && others.length === 0 && this.#attribution.isOnlyOne(client) ? calls : [];
  }

  /**
   * Asks through the newest call. The call that made the request does not end before the client has replied. So if the
   * newest call ends earlier, another call made the request, and the next candidate is used.
   */
  async #askOneOf(
    calls: readonly OutgoingCall[],
    ask: (context: Pick<Context, "ask" | "caller" | "observer">) => Promise<Result>,
    isFinal: () => boolean,
  ): Promise<Result> {
    for (let remaining = calls; ;) {
      const call = remaining.at(-1);
      try {
        return await ask(call?.context ?? this.#outsideCalls());
      } catch (error) {
        const isRefusal = error instanceof McpError && error.kind === "missing_capability";
        if (isRefusal && call !== undefined && this.#peer.calls.has(call.id)) {
          this.#refused?.set(call.context, error);
        }
        // A call that was cancelled by its client may have made the request. Then the answer no longer matters.
        const isAnswered = call !== undefined && !this.#peer.calls.has(call.id) && !call.context.signal.aborted;
        if (!isAnswered || isFinal()) throw error;
        remaining = remaining.filter(({ id }) => this.#peer.calls.has(id));
      }
    }
  }

  /** The context to ask if no call made the request, or it is unclear which. */
  #outsideCalls(): Context {
    if (this.#attribution.isUnambiguous && this.#subscriptions.isUnambiguous)
      return this.#subscriptions.askableContext() ?? this.defaultContext;
    const why = "Several clients share this connection, and the server's request does not say which of them it is for";
    const advice = "send it as part of a call (relatedRequestId in the SDK), or give each client a session of its own";
    const message = `${why}; ${advice} (\`share\`: "per-session", or "per-request" for stateless clients)`;
    throw McpError.of("missing_capability", message, { requiredCapabilities: {} });
  }

  /** Notifies only the client that was asked to visit. Uses its subscription, since its call may have been answered. */
  #elicitationComplete({ method, params = {} }: NotificationMessage): void {
    const isKnown = this.revision.serverNotifications.has(method);
    const owner = isKnown ? this.#urlElicitations.get(params["elicitationId"]) : undefined;
    if (owner !== undefined) (this.#subscriptions.contextOf(owner) ?? this.defaultContext).notify({ method, params });
  }

  /**
   * Delivers a log message to the call that it belongs to. If the transport does not say which call that is, but only
   * one client uses the connection and only one call wants logs, the message goes to that call. Otherwise it is
   * delivered outside any call.
   */
  #log(notification: Notification, message: NotificationMessage, requestId: Id | undefined): void {
    const named = this.#peer.findCall(requestId);
    const calls = named === undefined ? this.#peer.calls.values() : [named];
    const wanting = calls.filter(({ context }) => context.logLevel !== undefined);
    // A tool, prompt or resource is a more likely source than a list request.
    const running = wanting.filter(({ method }) => INPUT_METHODS.has(method));
    const candidates = running.length === 1 ? running : wanting;
    const [candidate] = candidates;
    if (named === undefined && !this.#attribution.isUnambiguous) this.defaultContext.notify(notification);
    else if (candidate === undefined && this.#subscriptions.isUnambiguous) this.#subscriptions.deliver(notification);
    else if (candidate === undefined) this.defaultContext.notify(notification);
    else if (candidates.length === 1 && !calls.some((call) => this.#mayBeSource(call))) {
      this.#peer.report(candidate.context, "server", message);
      candidate.context.notify(notification);
    } else (this.#subscriptions.contextOf(candidate.context.caller) ?? this.defaultContext).notify(notification);
  }

  /** Whether a call that wants no logs may still have caused a log message. Not if all calls are of our own client. */
  #mayBeSource({ method, context: { logLevel, caller } }: OutgoingCall): boolean {
    return logLevel === undefined && caller.key !== this.defaultContext.caller.key && INPUT_METHODS.has(method);
  }
}

/**
 * Calls `notify` when the client's roots change, for as long as the subscription lasts. Only a session front's
 * subscription to list changes reports changed roots. Subscriptions to resources or tasks are ignored.
 */
function onRootsChanged(listen: Request, { session }: Context, notify: () => void): () => void {
  const filter = fieldsOf(listen.params["notifications"]);
  const isOther = filter["resourceSubscriptions"] !== undefined || filter["taskIds"] !== undefined;
  return (isOther ? undefined : session?.onRootsChanged?.(notify)) ?? nothing;
}

const nothing = (): void => undefined;

const ENVELOPE: ReadonlySet<string> = new Set([
  META.revision,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
  "progressToken",
]);

/** Removes the params that only stateless requests have. */
function withoutEnvelope(params: Params): Params {
  const { _meta } = params;
  const isPlain = params["inputResponses"] === undefined && params["requestState"] === undefined;
  if (_meta === undefined && isPlain) return params;
  const { _meta: _envelope, inputResponses: _answers, requestState: _state, ...rest } = params;
  if (_meta === undefined) return rest;
  const visibleMeta = Object.entries(_meta).filter(([key]) => !ENVELOPE.has(key));
  return visibleMeta.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(visibleMeta) };
}

const PLAIN: TaskRequestOptions = {};

/** Params that depend on the id of the request. */
function withProgress(params: Params, wantsProgress: boolean, how: TaskRequestOptions): (id: number) => Params {
  return (id) => {
    how.onSent?.(id);
    return wantsProgress ? { ...params, _meta: { ...params._meta, progressToken: id } } : params;
  };
}

/** Gives a missing capability the error code that the specification requires of clients. */
function asRefusal(error: unknown, method: string): unknown {
  if (!(error instanceof McpError) || error.kind !== "missing_capability") return error;
  return new McpError(method === "elicitation/create" ? INVALID_PARAMS : METHOD_NOT_FOUND, error.message, error.data);
}
