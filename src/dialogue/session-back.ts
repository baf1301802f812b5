// Our side toward a session-style end: the handshake, and the session's state seen from the newest
// revision. Requests are written in the end's revision; what the end asks in mid-call goes to the caller
// of the call it belongs to; `server/discover` is answered from the handshake, and `subscriptions/listen`
// becomes subscribe, unsubscribe and a share in the end's change events (see session-changes). A session that the end
// has forgotten is begun anew (see session-renewal). What is about tasks goes through a door (see task-back-door).

import type { Context, LogLevel } from "../core/context.ts";
import { LOG_LEVELS } from "../core/context.ts";
import type { Handler, Notification, Params, Request, Result } from "../core/handler.ts";
import { idKey, isId, type Message, type NotificationMessage, type RequestMessage } from "../jsonrpc/message.ts";
import { ASKABLE } from "../protocol/asks.ts";
import { McpError, methodNotFound } from "../protocol/errors.ts";
import { META } from "../protocol/model/index.ts";
import type { Json, Revision } from "../protocol/revision.ts";
import type { Inbound } from "../transport/transport.ts";
import { cancellation, errorBody } from "./faults.ts";
import { shakeHands, type HandshakeOptions, type Terms } from "./handshake.ts";
import { Origins } from "./origins.ts";
import { SessionChanges } from "./session-changes.ts";
import { SessionRenewal } from "./session-renewal.ts";
import { TaskBackDoor, type Sending } from "./task-back-door.ts";
import type { Outgoing, Role, Wire } from "./wire.ts";

export class SessionBack implements Role {
  readonly handler: Handler;
  readonly #wire: Wire;
  readonly #home: Context;
  readonly #changes: SessionChanges;
  readonly #renewal: SessionRenewal;
  readonly #tasks: TaskBackDoor;
  /** Questions of the end that are being answered. */
  readonly #asked = new Map<string, AbortController>();
  readonly #origins = new Origins();
  #terms: Terms;
  #level: LogLevel | undefined;

  private constructor(wire: Wire, options: HandshakeOptions, terms: Terms, timeoutMs: number) {
    this.#wire = wire;
    this.#home = options.home;
    this.#terms = terms;
    const begin = async (): Promise<void> => {
      this.#terms = await shakeHands(wire, options, options.home, timeoutMs);
      await this.#resume();
    };
    const renewal = new SessionRenewal(begin, options.home.signal);
    this.#renewal = renewal;
    const within: SessionRenewal["within"] = (work, signal) => renewal.within(work, signal);
    this.#changes = new SessionChanges(wire, within, () => this.#capabilities, options.home);
    this.handler = (request, context) => this.#handle(request, context);
    this.#tasks = new TaskBackDoor({
      home: options.home,
      handler: this.handler,
      revision: () => this.revision,
      capabilities: () => this.#capabilities,
      offered: () => this.#terms.offered,
      plain: (request, context) => this.#plain(request, context),
      send: (request, context, how) => this.#renewal.within(() => this.#send(request, context, how), context.signal),
      enter: (caller) => this.#origins.enter(caller),
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
    this.#wantLogs(level);
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
    const answer = await this.#renewal.within(() => this.#send(request, context), context.signal);
    return this.#tasks.noted(method, this.revision.lift.result(method, answer));
  }

  /** The end's own answer. */
  async #send({ method, params: given }: Request, context: Context, how: Sending = {}): Promise<Result> {
    if (!this.revision.requests.has(method)) throw methodNotFound(method);
    this.#wantLogs(context.logLevel);
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
      throw McpError.fromBody(this.revision.lift.error(error.toBody(), { method, params: lowered }));
    } finally {
      leave();
    }
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const leave = this.#origins.enter(context.caller);
    try {
      const besides = this.#tasks.isListened(request) ? await this.#tasks.listening(request, context) : undefined;
      return await this.#changes.listen(request, context, besides);
    } finally {
      leave();
    }
  }

  /** The session has one level for all its callers: the most talkative that anybody wanted; each front filters. */
  #wantLogs(level: LogLevel | undefined): void {
    if (level === undefined || this.#capabilities["logging"] === undefined) return;
    if (this.#level !== undefined && LOG_LEVELS.indexOf(this.#level) <= LOG_LEVELS.indexOf(level)) return;
    this.#level = level;
    this.#wire.call("logging/setLevel", () => ({ level }), this.#home).catch(() => undefined);
  }

  /** Who is asked where no call stands behind the question, or it is not clear which. */
  #outsideCalls(): Context {
    if (this.#origins.isOne) return this.#changes.listener() ?? this.#home;
    const message = "Calls of several callers share this end, and the wire does not say whom it asks";
    throw McpError.of("missing_capability", message, { requiredCapabilities: {} });
  }

  request(message: RequestMessage, inbound: Inbound): void {
    const { id, method } = message;
    if (method === "ping") {
      void inbound.reply({ jsonrpc: "2.0", id, result: {} }).catch(() => undefined);
      return;
    }
    void this.#answer(message, inbound);
  }

  async #answer(message: RequestMessage, inbound: Inbound): Promise<void> {
    const { id, method } = message;
    const question: Request = { method, params: message.params ?? {} };
    const stop = new AbortController();
    this.#asked.set(idKey(id), stop);
    const task = this.#tasks.asker(question.params);
    const call = task === undefined ? this.#askedFor(inbound) : undefined;
    if (call !== undefined) this.#wire.hold(call);
    const asking = async (): Promise<Result> => {
      if (!this.revision.asks.has(method)) throw methodNotFound(method);
      const lifted: Request = { method, params: this.revision.lift.request(method, question.params) };
      const context = (await task) ?? call?.context ?? this.#outsideCalls();
      return this.revision.lower.result(method, await context.ask(lifted, { signal: stop.signal }));
    };
    const answer = await asking().then(
      (result): Message => ({ jsonrpc: "2.0", id, result }),
      (error: unknown): Message => ({
        jsonrpc: "2.0",
        id,
        error: errorBody(refusal(error, method), question, this.revision, "mcp"),
      }),
    );
    this.#asked.delete(idKey(id));
    if (call !== undefined) this.#wire.release(call);
    // An answer that could not be delivered is not followed by another.
    if (!stop.signal.aborted) await inbound.reply(answer).catch(() => undefined);
  }

  /**
   * The call on whose stream the question came. A wire that does not say leaves only one safe guess: the youngest
   * call that can be asked, where all that has been under way lately is of one caller.
   */
  #askedFor(inbound: Inbound): Outgoing | undefined {
    const named = this.#wire.callNamed(inbound.about);
    if (named !== undefined || !this.#origins.isOne) return named;
    return [...this.#wire.calls.values()].findLast(({ method }) => ASKABLE.has(method));
  }

  notification(message: NotificationMessage, inbound: Inbound): void {
    if (this.#tasks.hears(message)) return;
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
      if (isId(requestId)) this.#asked.get(idKey(requestId))?.abort(cancellation(reason, "the end"));
    } else this.#changes.deliver(lifted);
  }

  /** To the call it came for, or to the only one that wants logs; otherwise it belongs to no call. */
  #log(notification: Notification, inbound: Inbound): void {
    const named = this.#wire.callNamed(inbound.about);
    const calls = named === undefined ? [...this.#wire.calls.values()] : [named];
    const takers = calls.filter(({ context }) => context.logLevel !== undefined);
    if (named === undefined && !this.#origins.isOne) this.#home.notify(notification);
    else if (takers.length === 1) takers[0]?.context.notify(notification);
    else this.#changes.deliver(notification);
  }
}

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;

/** What our caller cannot answer, in the words that the client pages of the specification ask for. */
function refusal(error: unknown, method: string): unknown {
  if (!(error instanceof McpError) || error.kind !== "missing_capability") return error;
  return new McpError(method === "elicitation/create" ? INVALID_PARAMS : METHOD_NOT_FOUND, error.message, error.data);
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
