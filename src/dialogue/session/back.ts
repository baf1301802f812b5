// Our side toward a session-style end: the handshake, and the session's state seen from the newest
// revision. Requests are written in the end's revision; what the end asks in mid-call goes to the caller
// of the call it belongs to (see end-questions); `server/discover` is answered from the handshake, and `subscriptions/listen`
// becomes subscribe, unsubscribe and a share in the end's change events (see session-changes). A session that the end
// has forgotten is begun anew (see session-renewal). What is about tasks goes through a door (see task-back-door).

import type { Context, LogLevel } from "../../core/handler.ts";
import { LOG_LEVELS } from "../../core/handler.ts";
import type { Handler, Notification, Params, Request, Result } from "../../core/handler.ts";
import { within } from "../../core/async.ts";
import { isId, type NotificationMessage, type RequestMessage } from "../../jsonrpc/message.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import { ROOTS_NOTIFICATION, tellsRoots } from "../../protocol/roots.ts";
import { VISITED } from "../../protocol/visits.ts";
import type { Inbound } from "../../transport/transport.ts";
import { ServerRequests } from "./server-requests.ts";
import { shakeHands, type HandshakeOptions, type Terms } from "./handshake.ts";
import { Origins } from "../calls/call-attribution.ts";
import { passOnRoots } from "./root-changes.ts";
import { SessionChanges } from "./subscriptions-back.ts";
import { SessionRenewal } from "./handshake.ts";
import { TaskBackDoor, type Sending } from "./tasks-back.ts";
import { VisitOwners } from "../calls/url-elicitation.ts";
import type { Outgoing, Role, Wire } from "../calls/peer.ts";

/** How long a call waits until the end has heard which logs are wanted. */
const LEVEL_MS = 1_000;

export class SessionBack implements Role {
  readonly handler: Handler;
  readonly #wire: Wire;
  readonly #home: Context;
  /** Whether the end was promised to hear of it when roots change. */
  readonly #tellsRoots: boolean;
  readonly #changes: SessionChanges;
  readonly #renewal: SessionRenewal;
  readonly #tasks: TaskBackDoor;
  readonly #questions: ServerRequests;
  readonly #origins = new Origins();
  readonly #visits = new VisitOwners();
  #terms: Terms;
  #level: LogLevel | undefined;
  /** While the end is being told the level. */
  #levelled: Promise<void> | undefined;

  private constructor(wire: Wire, options: HandshakeOptions, terms: Terms, timeoutMs: number) {
    this.#wire = wire;
    this.#home = options.home;
    this.#tellsRoots = tellsRoots(options.capabilities);
    this.#terms = terms;
    const begin = async (): Promise<void> => {
      this.#terms = await shakeHands(wire, options, options.home, timeoutMs);
      await this.#resume();
    };
    const renewal = new SessionRenewal(begin, options.home.signal);
    this.#renewal = renewal;
    const within: SessionRenewal["within"] = (work, whose) => renewal.within(work, whose);
    this.#changes = new SessionChanges(wire, within, () => this.#capabilities, options.home);
    this.handler = (request, context) => this.#handle(request, context);
    this.#tasks = new TaskBackDoor({
      home: options.home,
      handler: this.handler,
      revision: () => this.revision,
      capabilities: () => this.#capabilities,
      offered: () => this.#terms.offered,
      plain: (request, context) => this.#plain(request, context),
      send: (request, context, how) => this.#renewal.within(() => this.#send(request, context, how), context),
      enter: (caller) => this.#origins.enter(caller),
    });
    this.#questions = new ServerRequests({
      wire,
      home: options.home,
      changes: this.#changes,
      tasks: this.#tasks,
      origins: this.#origins,
      visits: this.#visits,
      revision: () => this.revision,
    });
  }

  static async initialize(
    wire: Wire,
    options: HandshakeOptions,
    starting: Context,
    timeoutMs: number,
  ): Promise<SessionBack> {
    const back = new SessionBack(wire, options, await shakeHands(wire, options, starting, timeoutMs), timeoutMs);
    wire.role = back;
    wire.notify("notifications/initialized");
    return back;
  }

  get revision(): Revision {
    return this.#terms.revision;
  }

  get discovered(): Result {
    return this.#terms.discovered;
  }

  get #capabilities(): Json {
    return this.#terms.capabilities;
  }

  lost(): void {
    this.#renewal.lost();
  }

  missed(): void {
    this.#changes.tellAll();
  }

  /** What the end had been told in the session before. */
  async #resume(): Promise<void> {
    this.#wire.notify("notifications/initialized");
    this.#tasks.renewed();
    const level = this.#level;
    this.#level = undefined;
    void this.#wantLogs(level);
    await this.#changes.renew();
  }

  async #handle(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    if (method === "server/discover") return this.discovered;
    if (method === "subscriptions/listen") return this.#listen(request, context);
    if (this.#tasks.takes(method)) return this.#tasks.answer(request, context);
    return this.#plain(request, context);
  }

  async #plain(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    const answer = await this.#renewal.within(() => this.#send(request, context), context);
    return this.#signed(this.#tasks.noted(method, this.revision.lift.result(method, answer)), context);
  }

  /** In an exchange every result says who made it; in a session that was said once. */
  #signed(result: Result, { revision }: Context): Result {
    const info = this.discovered._meta?.[META.serverInfo];
    if (info === undefined || revisionNamed(revision)?.style !== "stateless") return result;
    return { ...result, _meta: { [META.serverInfo]: info, ...result._meta } };
  }

  /** The end's own answer. */
  async #send({ method, params: given }: Request, context: Context, how: Sending = {}): Promise<Result> {
    if (!this.revision.requests.has(method)) throw methodNotFound(method);
    const levelled = this.#wantLogs(context.logLevel);
    if (levelled !== undefined) await levelled;
    const plain = this.revision.lower.request(method, bare(given));
    const lowered: Params = how.more === undefined ? plain : { ...plain, ...how.more };
    const wantsProgress = given._meta?.["progressToken"] !== undefined;
    const params = (id: number): Params => {
      how.sent?.(id);
      return wantsProgress ? { ...lowered, _meta: { ...lowered._meta, progressToken: id } } : lowered;
    };
    const leave = this.#origins.enter(context.caller);
    try {
      const answer = await this.#wire.call(method, params, context, how.leaving);
      // Said by a caller itself: a session that comes after this one is to be told the same.
      if (method === "logging/setLevel") this.#level = lowered["level"] as LogLevel;
      return answer;
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      const lifted = McpError.fromBody(this.revision.lift.error(error.toBody(), { method, params: lowered }));
      this.#visits.failed(lifted, context.caller);
      throw lifted;
    } finally {
      leave();
    }
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const forget = passOnRoots(request, context, () => {
      if (this.#tellsRoots) this.#wire.notify(ROOTS_NOTIFICATION);
    });
    try {
      const besides = this.#tasks.isListened(request) ? await this.#tasks.listening(request, context) : undefined;
      return await this.#changes.listen(request, context, besides);
    } finally {
      forget();
      // The listen of a session ends with it: its caller can no longer be taken for another.
      if (context.signal.aborted && this.#changes.listenerOf(context.caller) === undefined) {
        this.#origins.gone(context.caller);
      }
    }
  }

  /**
   * The session has one level for all its callers: the most talkative that anybody wanted; each front filters. Requests
   * over HTTP may overtake each other, so who wants logs waits until the end has been told; for an end that never says
   * so, not for long.
   */
  #wantLogs(level: LogLevel | undefined): Promise<void> | undefined {
    if (level === undefined || this.#capabilities["logging"] === undefined) return undefined;
    if (this.#level !== undefined && LOG_LEVELS.indexOf(this.#level) <= LOG_LEVELS.indexOf(level))
      return this.#levelled;
    this.#level = level;
    const told = this.#wire.call("logging/setLevel", () => ({ level }), this.#home).catch(() => undefined);
    const levelled = within(LEVEL_MS, told).then(() => {
      if (this.#levelled === levelled) this.#levelled = undefined;
    });
    this.#levelled = levelled;
    return levelled;
  }

  request(message: RequestMessage, inbound: Inbound): void {
    const { id, method } = message;
    if (method === "ping") {
      void inbound.reply({ jsonrpc: "2.0", id, result: {} }).catch(() => undefined);
      return;
    }
    void this.#questions.answer(message, inbound);
  }

  notification(message: NotificationMessage, inbound: Inbound): void {
    if (this.#tasks.hears(message)) return;
    if (message.method === VISITED) this.#visited(message);
    const lifted = this.revision.lift.notification(message);
    if (lifted === undefined) return;
    const { method, params } = lifted;
    if (method === "notifications/progress") {
      const call = this.#wire.callNamed(params?.["progressToken"]);
      if (call === undefined) return;
      this.#wire.touch(call);
      call.context.notify({ method, params: params ?? {} });
    } else if (method === "notifications/message") this.#log({ method, params: params ?? {} }, inbound);
    else if (method === "notifications/cancelled") {
      const { requestId, reason } = params ?? {};
      if (isId(requestId)) this.#questions.withdraw(requestId, reason);
    } else this.#changes.deliver(params === undefined ? { method } : { method, params });
  }

  /** For whoever was asked to visit, and where that one listens, since the call may be over; another never hears of it. */
  #visited({ method, params = {} }: NotificationMessage): void {
    const owner = this.revision.endNotifications.has(method) ? this.#visits.take(params["elicitationId"]) : undefined;
    if (owner !== undefined) (this.#changes.listenerOf(owner) ?? this.#home).notify({ method, params });
  }

  /** To the call it came for, or to the only one that wants logs; otherwise to its caller outside of any call. */
  #log(notification: Notification, inbound: Inbound): void {
    const named = this.#wire.callNamed(inbound.about);
    const calls = named === undefined ? [...this.#wire.calls.values()] : [named];
    const wanting = calls.filter(({ context }) => context.logLevel !== undefined);
    // What runs something of the end's own is likelier to have something to say than a list is.
    const running = wanting.filter(({ method }) => ASKABLE.has(method));
    const takers = running.length === 1 ? running : wanting;
    const [one] = takers;
    if (named === undefined && !this.#origins.isOne) this.#home.notify(notification);
    else if (one === undefined && this.#changes.isOfOne) this.#changes.deliver(notification);
    else if (one === undefined) this.#home.notify(notification);
    else if (takers.length === 1 && !calls.some(mayBeAnothers)) one.context.notify(notification);
    else (this.#changes.listenerOf(one.context.caller) ?? this.#home).notify(notification);
  }
}

/** A call without logs beside one with them, behind a front: what comes may be its, and its caller another of the kind. */
function mayBeAnothers({ method, context: { logLevel, caller } }: Outgoing): boolean {
  return logLevel === undefined && caller.origin !== undefined && ASKABLE.has(method);
}

const ENVELOPE: ReadonlySet<string> = new Set([
  META.revision,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
  "progressToken",
]);

/** Params without what only an exchange carries. */
function bare(params: Params): Params {
  const { _meta, inputResponses: _answers, requestState: _state, ...rest } = params;
  if (_meta === undefined) return rest;
  const kept = Object.entries(_meta).filter(([key]) => !ENVELOPE.has(key));
  return kept.length === 0 ? rest : { ...rest, _meta: Object.fromEntries(kept) };
}
