// Our side toward a session-style caller: the handshake, and the state that such a caller expects us to
// keep (its revision, capabilities, log level, subscriptions). It turns that state into the
// self-contained requests of the newest revision, and what comes back into the caller's own revision.
// It does not know which wire it is on: every message brings its own way back.

import { onAbort, ignoreRejection } from "../../core/async.ts";
import { type Caller, type Context, type LogLevel, LOG_LEVELS, type Handler, type Notification, type Params, type Request, type Result } from "../../core/handler.ts";
import { type ContextBeforeSignal, CANCEL_TOKEN } from "../../core/cancel.ts";
import type {
  ErrorBody,
  Message,
  NotificationMessage,
  RequestMessage,
  ResponseMessage,
} from "../../jsonrpc/message.ts";
import { checkParams } from "../../protocol/check.ts";
import { isObject } from "../../core/objects.ts";
import { McpError, methodNotFound, REFUSED, type Profile, type Refusable } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { ROOTS_NOTIFICATION } from "../../protocol/roots.ts";
import type { Inbound } from "../../transport/transport.ts";
import { goOn } from "../calls/input-required.ts";
import { errorBody, unsupported } from "../calls/errors.ts";
import { type Flight, type InFlight, ANSWERED, progressUnder } from "../calls/in-flight.ts";
import { Questions, type Asked } from "../calls/client-requests.ts";
import { RootChanges } from "./root-changes.ts";
import { SessionListen } from "./subscriptions-front.ts";
import { TaskDoor } from "./tasks-front.ts";
import { toldToVisit } from "../calls/url-elicitation.ts";

const SHUTDOWN_GRACE_MS = 30_000;

export interface SessionFrontOptions {
  /** Session-style revisions that may be spoken, oldest first. */
  readonly revisions: readonly Revision[];
  /** All that is spoken here, in either style: what a caller whom we cannot serve is told. */
  readonly spoken: readonly Revision[];
  readonly profile: Profile;
  /** Whether the caller may end us with `shutdown`: only where it is our only caller. */
  readonly mayShutDown: boolean;
  /** Stands for the connection, in its callers' contexts. */
  readonly origin: object;
}

export class SessionFront {
  readonly #handler: Handler;
  readonly #options: SessionFrontOptions;
  readonly #inFlight: InFlight;
  readonly #questions = new Questions();
  readonly #roots = new RootChanges();
  readonly #listen: SessionListen;
  readonly #tasks: TaskDoor;
  /** Toward the caller, outside any call. */
  readonly #push: (message: Message) => void;
  readonly #toCaller = (notification: Notification): void => this.#deliver(notification);
  readonly #over = new AbortController();
  #phase: "new" | "starting" | "ready" | "closing" = "new";
  #starting: Promise<Result> | undefined;
  #revision: Revision = NEWEST_SESSION;
  #caller: Caller = { capabilities: {} };
  #capabilities: Json = {};
  #level: LogLevel = "info";
  #listening = false;

  constructor(handler: Handler, push: (message: Message) => void, inFlight: InFlight, options: SessionFrontOptions) {
    this.#handler = handler;
    this.#push = push;
    this.#inFlight = inFlight;
    this.#options = options;
    this.#listen = new SessionListen(handler);
    const quiet = (): Context => this.#quiet();
    this.#tasks = new TaskDoor({ handler, revision: () => this.#revision, quiet, deliver: this.#toCaller });
  }

  get revision(): Revision {
    return this.#revision;
  }

  get started(): boolean {
    return this.#phase !== "new";
  }

  /** The result on the caller's wire. Throws whatever `fault` can put into words. */
  async answer(message: RequestMessage, inbound: Inbound, flight: Flight): Promise<Result> {
    const { method } = message;
    const params = (message.params ?? {}) as Params;
    if (method === "ping") return {};
    if (method === "initialize") {
      checkParams(method, params);
      return this.#initialize(params, inbound);
    }
    if (this.#phase === "new") throw McpError.of("not_initialized", "Server not initialized", { method });
    if (this.#phase === "starting") await this.#starting;
    if (this.#phase === "closing") throw McpError.of("shutting_down", "Server is shutting down", { method });
    this.#ready();
    checkParams(method, params);
    switch (method) {
      case "logging/setLevel":
        this.#level = params["level"] as LogLevel;
        return {};
      case "resources/subscribe":
        await this.#listen.subscribe(params["uri"] as string, this.#callerOf(inbound));
        return {};
      case "resources/unsubscribe":
        await this.#listen.unsubscribe(params["uri"] as string);
        return {};
      case "shutdown":
        if (!this.#options.mayShutDown) break;
        this.#phase = "closing";
        await this.#inFlight.drained(SHUTDOWN_GRACE_MS, flight);
        return {};
    }
    if (!this.#revision.requests.has(method)) throw methodNotFound(method);
    const request: Request = { method, params: this.#revision.lift.request(method, params) };
    const context = this.#context(params, inbound, flight);
    if (this.#tasks.takes(request)) return this.#tasks.answer(request, context, inbound.gone);
    let result: Result;
    try {
      result = await this.#handler(request, context);
      if (result.resultType === "input_required") result = await goOn(result, this.#handler, request, context);
    } catch (error) {
      result = await this.#tasks
        .instead(error, request, context)
        .catch((thrown: unknown) => toldToVisit(thrown, request, this.#revision));
    }
    // What later became a result that the model sees is here an error of the request.
    const refused = this.#revision.argumentErrors ? (result as Refusable)[REFUSED] : undefined;
    if (refused !== undefined) throw refused;
    return this.#revision.lower.result(method, result);
  }

  fault(error: unknown, message: RequestMessage): ErrorBody {
    const request: Request = { method: message.method, params: message.params ?? {} };
    return errorBody(error, request, this.#revision, this.#options.profile);
  }

  /** A notification of the caller. Cancellations are not for us: they are found by their id in any style. */
  take(message: NotificationMessage): void {
    // Some clients leave the prefix out.
    if (message.method === "notifications/initialized" || message.method === "initialized") {
      // It may come in one breath with initialize, which is being answered yet.
      void this.#starting?.then(
        () => this.#ready(),
        () => undefined,
      );
    } else if (message.method === ROOTS_NOTIFICATION) this.#roots.tell();
  }

  /** The answer to a question of ours. False where there was none. */
  settle(message: ResponseMessage): boolean {
    return this.#questions.settle(message);
  }

  /** From now on nothing begins here, whatever is still to come. */
  close(reason: Error): void {
    this.#phase = "closing";
    this.#over.abort(reason);
    this.#listen.close();
    this.#tasks.close();
    this.#questions.failAll(reason);
  }

  async #initialize(params: Params, inbound: Inbound): Promise<Result> {
    if (this.#phase !== "new") throw McpError.of("invalid_request", "The session is initialized already");
    const { revisions } = this.#options;
    const requested = params["protocolVersion"] as string;
    const revision = revisions.find(({ name }) => name === requested) ?? revisions.at(-1);
    if (revision === undefined) throw unsupported(requested, this.#options.spoken);
    this.#revision = revision;
    this.#phase = "starting";
    this.#starting = this.#start(params, inbound);
    try {
      return await this.#starting;
    } catch (error) {
      if (!this.#over.signal.aborted) this.#phase = "new";
      throw error;
    }
  }

  async #start(params: Params, inbound: Inbound): Promise<Result> {
    const revision = this.#revision;
    const info = params["clientInfo"];
    this.#caller = {
      origin: this.#options.origin,
      ...inbound.caller,
      ...(isObject(info) ? { info: info as unknown as NonNullable<Caller["info"]> } : undefined),
      capabilities: revision.lift.clientCapabilities((params["capabilities"] as Json | undefined) ?? {}),
    };
    const discovered = await this.#discover();
    this.#capabilities = (discovered["capabilities"] as Json | undefined) ?? {};
    this.#tasks.open(this.#capabilities);
    this.#phase = "ready";
    const { instructions } = discovered;
    const serverInfo = discovered._meta?.[META.serverInfo] as Json | undefined;
    return {
      protocolVersion: revision.name,
      capabilities: revision.lower.serverCapabilities(this.#capabilities),
      serverInfo: revision.lower.implementation(serverInfo ?? { name: "unknown", version: "0" }),
      ...(instructions === undefined ? undefined : { instructions }),
    };
  }

  /** Waited for no longer than the session lives. */
  async #discover(): Promise<Result> {
    const { signal } = this.#over;
    let forget: (() => void) | undefined;
    const over = new Promise<never>((_resolve, reject) => {
      forget = onAbort(signal, () => reject(signal.reason as Error));
    });
    try {
      return await Promise.race([
        this.#handler({ method: "server/discover", params: {} }, { ...this.#quiet(), signal }),
        over,
      ]);
    } finally {
      forget?.();
    }
  }

  /** The caller has our answer to `initialize`: from now on we may speak first. */
  #ready(): void {
    if (this.#listening || this.#over.signal.aborted) return;
    this.#listening = true;
    this.#listen.start({ context: this.#quiet(), deliver: this.#toCaller }, this.#capabilities);
  }

  /** The context of what no call of the caller stands behind. */
  #quiet(): Context {
    return {
      revision: this.#revision.name,
      caller: this.#caller,
      signal: new AbortController().signal,
      logLevel: this.#level,
      notify: () => undefined,
      ask: (question, options) => ignoreRejection(this.#questions.ask(question, this.#asked(this.#push), options)),
      ...this.#roots.way(this.#caller.capabilities),
    };
  }

  #context(params: Params, inbound: Inbound, flight: Flight): Context {
    const progress = progressUnder(params._meta?.["progressToken"]);
    const send = (message: Message): void => void inbound.reply(message).catch(() => undefined);
    const { stop } = flight;
    const context: ContextBeforeSignal = {
      [CANCEL_TOKEN]: stop,
      revision: this.#revision.name,
      caller: this.#callerOf(inbound),
      logLevel: this.#level,
      notify: (notification) => {
        if (flight.done || flight.cancelled) return;
        const event = notification.method === "notifications/progress" ? progress(notification) : notification;
        if (event !== undefined) this.#deliver(event, send);
      },
      ask: (question, options) => {
        flight.asking ??= new AbortController();
        if (flight.done) flight.asking.abort(new Error(ANSWERED));
        const signals = [stop.signal, flight.asking.signal];
        return ignoreRejection(this.#questions.ask(question, { ...this.#asked(send), signals }, options));
      },
    };
    // Set, not spread into the literal: that would be paid for by every call.
    if (inbound.hangUp !== undefined) context.hangUp = (retryMs) => inbound.hangUp?.(retryMs);
    return stop.lend(context);
  }

  /** What the wire proves of a caller, it proves of one message: nothing of that is taken over from the handshake. */
  #callerOf({ caller: proved }: Inbound): Caller {
    if (proved === undefined) return this.#caller;
    const { info, capabilities } = this.#caller;
    return { origin: this.#options.origin, ...(info && { info }), capabilities, ...proved };
  }

  #asked(send: (message: Message) => void): Asked {
    return { caller: this.#caller, revision: this.#revision, send };
  }

  #deliver(notification: Notification, send: (message: Message) => void = this.#push): void {
    const { method, params } = notification;
    const isQuieter = LOG_LEVELS.indexOf(params?.["level"] as LogLevel) < LOG_LEVELS.indexOf(this.#level);
    if (method === "notifications/message" && isQuieter) return;
    if (!this.#revision.endNotifications.has(method)) return;
    const lowered = this.#revision.lower.notification(notification);
    if (lowered !== undefined) send({ jsonrpc: "2.0", ...lowered });
  }
}
