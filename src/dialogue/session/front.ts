// The side that faces session-style clients. Does the handshake and keeps the state that such a client expects us to
// keep (its revision, capabilities, log level, subscriptions). Turns its requests into the self-contained requests of
// the newest revision, and results back into the client's revision. It is independent of the transport.

import { abortable, ignoreRejection } from "../../core/async.ts";
import {
  type AskOptions,
  type Caller,
  type CallerIdentity,
  type Context,
  type Handler,
  isLogLevel,
  levelRank,
  type LogLevel,
  type Notification,
  type Params,
  type Request,
  type Result,
  type Session,
} from "../../core/handler.ts";
import { type ContextBeforeSignal, CANCEL_TOKEN } from "../../core/cancel.ts";
import type { ErrorBody, NotificationMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import { fieldsOf, isObject } from "../../core/values.ts";
import { newCaller, withIdentity } from "../../protocol/caller.ts";
import { checkNotification } from "../../tools/content.ts";
import { ROOTS_LIST_CHANGED } from "../../protocol/lists.ts";
import { checkParams } from "../../protocol/params.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { isVendorMethod, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { hasTasks, isTasksNotDeclared, withTasksExtension } from "../../protocol/tasks.ts";
import type { Carrier } from "../../transport/carrier.ts";
import type { LineCarrier } from "../../transport/line-carrier.ts";
import { asksForVisits, toErrorBody, unsupportedRevision } from "../calls/errors.ts";
import {
  ALREADY_ANSWERED,
  type CallMessage,
  type CallTable,
  checkResult,
  type Front,
  type ServerCall,
} from "../calls/call-table.ts";
import type { ClientRequests, ClientRequestTarget } from "../calls/client-requests.ts";
import type { ClientTasks, ClientTasksHost } from "./client-tasks.ts";
import { ClientSubscriptions } from "./subscriptions-front.ts";

const SHUTDOWN_GRACE_MS = 30_000;

/** One import for all requests to clients, so that they stay in order. */
let loading: Promise<typeof import("../calls/client-requests.ts")> | undefined;

export interface SessionFrontOptions {
  /** Session-style revisions that may be spoken, oldest first. */
  readonly revisions: readonly Revision[];
  /** All revisions that may be spoken. If none is session-style, `initialize` fails with an error that lists them. */
  readonly allRevisions: readonly Revision[];
  readonly compat?: CompatRules | undefined;
  /** Whether the client may stop the server with `shutdown`. True only if the server has no other clients. */
  readonly mayShutDown: boolean;
  /** What is known about the client if the transport knows nothing. */
  readonly identity?: CallerIdentity;
}

export class SessionFront implements Front, ClientTasksHost {
  readonly handler: Handler;
  readonly #options: SessionFrontOptions;
  readonly #calls: CallTable;
  /** Loaded on first use, since most clients are never asked anything. */
  #clientRequests: ClientRequests | undefined;
  readonly #subscriptions: ClientSubscriptions;
  /** Whether both the client's revision and the server support tasks. */
  #hasTasks = false;
  /** Loaded on first use, since most sessions never need it. */
  #tasks: ClientTasks | undefined;
  readonly #rootsListeners = new Set<() => void>();
  readonly #onRootsChanged = (changed: () => void): (() => void) => {
    this.#rootsListeners.add(changed);
    return () => void this.#rootsListeners.delete(changed);
  };
  /** Carries messages that belong to no call to the client. */
  readonly #lines: LineCarrier;
  /** Sends a notification to the client outside any call. */
  readonly deliver = (notification: Notification): void => this.#deliver(notification, this.#lines);
  readonly #notifyClient = (notification: Notification): void => {
    checkNotification(notification);
    this.#deliver(notification, this.#lines);
  };
  readonly #closed = new AbortController();
  #phase: "new" | "starting" | "ready" | "closing" = "new";
  #starting: Promise<Result> | undefined;
  revision: Revision = NEWEST_SESSION;
  /** The client as its handshake described it, without identity. */
  #client: Caller = newCaller("session", {});
  #session: Session = this.#newSession();
  /** The client, with the identity of the handshake. */
  #caller: Caller = this.#client;
  #serverCapabilities: Json = {};
  #level: LogLevel = "info";
  #isSubscribed = false;

  constructor(handler: Handler, lines: LineCarrier, calls: CallTable, options: SessionFrontOptions) {
    this.handler = handler;
    this.#lines = lines;
    this.#calls = calls;
    this.#options = options;
    this.#subscriptions = new ClientSubscriptions(handler);
  }

  get started(): boolean {
    return this.#phase !== "new";
  }

  /** Returns the result in the client's revision. Pass whatever it throws to `errorBody`. */
  async answer(call: ServerCall): Promise<Result> {
    const { method, params = {} } = call.message;
    if (!("id" in call.message)) return this.#answerVendor(call, { method, params });
    if (method === "ping") return {};
    if (method === "initialize") {
      checkParams(method, params);
      return this.#initialize(params, call);
    }
    if (this.#phase === "new") throw McpError.of("not_initialized", "Server not initialized", { method });
    if (this.#phase === "starting") await this.#starting;
    if (this.#phase === "closing") throw McpError.of("shutting_down", "Server is shutting down", { method });
    if (!this.#isSubscribed) this.#ready();
    checkParams(method, params);
    switch (method) {
      case "logging/setLevel":
        if (isLogLevel(params["level"])) this.#level = params["level"];
        return {};
      case "resources/subscribe":
        await this.#subscriptions.subscribe(params["uri"] as string, this.#callerOf(call));
        return {};
      case "resources/unsubscribe":
        await this.#subscriptions.unsubscribe(params["uri"] as string);
        return {};
      case "shutdown":
        if (!this.#options.mayShutDown) break;
        this.#phase = "closing";
        await this.#calls.drainedBefore(call, SHUTDOWN_GRACE_MS);
        return {};
    }
    if (!this.revision.requests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
    const request: Request = { method, params: this.revision.lift.request(method, params) };
    const context = this.#context(call);
    if (this.#hasTasks && isTaskRequest(request))
      return (this.#tasks ?? (await this.#loadTasks())).answer(request, context, call.carrier);
    let result: Result;
    try {
      result = await this.handler(request, context);
      checkResult(method, result);
      if (result.resultType === "input_required") {
        const { answerInputRequired } = await import("../calls/input-required.ts");
        result = await answerInputRequired(result, this.handler, request, context);
      }
    } catch (error) {
      result = isTasksNotDeclared(error)
        ? await this.#runAsTask(error, request, context)
        : await this.#visitsAsText(error, request);
    }
    return this.revision.lower.result(method, result);
  }

  async #loadTasks(): Promise<ClientTasks> {
    const { ClientTasks } = await import("./client-tasks.ts");
    this.#tasks ??= new ClientTasks(this);
    if (this.#closed.signal.aborted) this.#tasks.close();
    return this.#tasks;
  }

  /**
   * Runs a tool that must run as a task, and waits for the outcome. If the client can see in the list of tools that it
   * must request the task, an error says so. Stateless servers cannot declare this: we list their tools as if tasks
   * were optional.
   */
  async #runAsTask(error: unknown, request: Request, context: Context): Promise<Result> {
    const { name } = request.params;
    if (request.method !== "tools/call") throw error;
    const [{ completeTask, taskOutcome }, { ToolFacts }, { callWithInput }] = await Promise.all([
      import("../../tasks/completion.ts"),
      import("../../tools/facts.ts"),
      import("../calls/input-required.ts"),
    ]);
    const listed = this.#hasTasks ? await new ToolFacts().find(name, this.handler, context) : undefined;
    if (listed?.taskSupport === "required")
      throw McpError.of("method_not_found", `Tool ${String(name)} must be called as a task`);
    try {
      const declared = withTasksExtension(context);
      const first = await callWithInput(this.handler, request, declared);
      if (first.resultType !== "task") return first;
      return taskOutcome(await completeTask(this.handler, first, request, declared));
    } catch (thrown) {
      return this.#visitsAsText(thrown, request);
    }
  }

  async #visitsAsText(error: unknown, request: Request): Promise<Result> {
    if (!asksForVisits(error)) throw error;
    const { urlElicitationAsText } = await import("../calls/url-elicitation.ts");
    return urlElicitationAsText(error, request, this.revision);
  }

  errorBody(error: unknown, message: CallMessage): ErrorBody {
    const request: Request = { method: message.method, params: message.params ?? {} };
    return toErrorBody(error, request, this.revision, this.#options.compat);
  }

  /** Handles a notification from the client, except for cancellations, which the connection handles. */
  take(message: NotificationMessage): void {
    // Some clients leave the prefix out.
    if (message.method === "notifications/initialized" || message.method === "initialized") {
      // It may arrive while `initialize` is still being answered.
      void this.#starting?.then(
        () => this.#ready(),
        () => undefined,
      );
    } else if (message.method === ROOTS_LIST_CHANGED) for (const listener of [...this.#rootsListeners]) listener();
  }

  /** Handles a notification that no revision defines. It has no stream of its own. */
  async #answerVendor(call: ServerCall, request: Request): Promise<Result> {
    if (this.#phase === "starting") await this.#starting;
    if (this.#phase !== "ready") return {};
    this.#ready();
    return this.handler(request, { ...this.#context(call, this.#lines), isNotification: true });
  }

  notify(call: ServerCall, notification: Notification): void {
    const event = notification.method === "notifications/progress" ? call.progressEvent(notification) : notification;
    if (event !== undefined) this.#deliver(event, "id" in call.message ? call.carrier : this.#lines);
  }

  /** Takes the answer to a request of ours. Returns false if there was no such request. */
  settle(message: ResponseMessage): boolean {
    return this.#clientRequests?.settle(message) ?? false;
  }

  close(reason: Error): void {
    this.#phase = "closing";
    this.#closed.abort(reason);
    this.#subscriptions.close();
    this.#tasks?.close();
    this.#clientRequests?.failAll(reason);
  }

  async #initialize(params: Params, call: ServerCall): Promise<Result> {
    if (this.#phase !== "new") throw McpError.of("invalid_request", "The session is already initialized");
    const { revisions } = this.#options;
    const requested = params["protocolVersion"] as string;
    const revision = revisions.find(({ name }) => name === requested) ?? revisions.at(-1);
    if (revision === undefined) throw unsupportedRevision(requested, this.#options.allRevisions);
    this.revision = revision;
    this.#phase = "starting";
    this.#starting = this.#start(params, call);
    try {
      return await this.#starting;
    } catch (error) {
      if (!this.#closed.signal.aborted) this.#phase = "new";
      throw error;
    }
  }

  async #start(params: Params, { identity }: ServerCall): Promise<Result> {
    const revision = this.revision;
    const capabilities = fieldsOf(params["capabilities"]);
    const client = newCaller("session", revision.lift.clientCapabilities(capabilities), params["clientInfo"]);
    const { roots } = capabilities;
    this.#client = { ...client, notifiesRoots: isObject(roots) && roots["listChanged"] === true };
    this.#caller = withIdentity(this.#client, identity ?? this.#options.identity ?? {});
    this.#session = this.#newSession();
    const { signal } = this.#closed;
    const discovering = this.handler({ method: "server/discover", params: {} }, { ...this.defaultContext(), signal });
    // Fails when the session is closed, even if the handler ignores its signal.
    const discovered = await abortable(signal, ignoreRejection(discovering));
    this.#serverCapabilities = fieldsOf(discovered["capabilities"]);
    this.#hasTasks = revision.requests.has("tasks/result") && hasTasks(this.#serverCapabilities);
    this.#phase = "ready";
    const serverInfo = discovered._meta?.[META.serverInfo];
    const { supportedVersions: _names, ...rest } = revision.lower.result("server/discover", discovered);
    return {
      ...rest,
      protocolVersion: revision.name,
      capabilities: revision.lower.serverCapabilities(this.#serverCapabilities),
      serverInfo: revision.lower.implementation(isObject(serverInfo) ? serverInfo : { name: "unknown", version: "0" }),
    };
  }

  #newSession(): Session {
    const { key: id, notifiesRoots } = this.#client;
    return {
      id,
      state: new Map(),
      ended: this.#closed.signal,
      notify: this.#notifyClient,
      ...(notifiesRoots === true && { onRootsChanged: this.#onRootsChanged }),
    };
  }

  /** Called when the client has our answer to `initialize`. From now on notifications may be sent. */
  #ready(): void {
    if (this.#isSubscribed || this.#closed.signal.aborted) return;
    this.#isSubscribed = true;
    this.#subscriptions.start({ context: this.defaultContext(), deliver: this.deliver }, this.#serverCapabilities);
  }

  /** The context for work outside any call. */
  defaultContext(): Context {
    return {
      revision: this.revision.name,
      caller: this.#caller,
      signal: new AbortController().signal,
      logLevel: this.#level,
      notify: () => undefined,
      ask: (request, options) => this.#ask(request, this.#target(this.#lines), options),
      session: this.#session,
    };
  }

  /** The context of a call; `lines` take its requests to the client if they do not go the way of its response. */
  #context(call: ServerCall, lines?: LineCarrier): Context {
    call.revision = this.revision.name;
    const carrier: Carrier = lines ?? call.carrier;
    // Functions are named before they become properties. V8 allocates a function that is written in place of a property
    // among its old objects, where it keeps its request in memory until the next full collection.
    const notify: Context["notify"] = (notification) => call.notify(notification);
    const ask: Context["ask"] = (request, options) => {
      call.clientRequests ??= new AbortController();
      if (call.isDone) call.clientRequests.abort(new Error(ALREADY_ANSWERED));
      const signals = [call.signal, call.clientRequests.signal];
      return this.#ask(request, { ...this.#target(lines ?? call.carrier), signals }, options);
    };
    const hangUp = carrier.hangUp === undefined ? undefined : (retryMs: number): void => carrier.hangUp?.(retryMs);
    const context: ContextBeforeSignal = {
      [CANCEL_TOKEN]: call,
      revision: call.revision,
      caller: this.#callerOf(call),
      logLevel: this.#level,
      notify,
      ask,
      session: this.#session,
      hangUp,
      wire: call,
    };
    return call.attachTo(context);
  }

  /** Each message is authenticated on its own, so the identity from the handshake is not reused. */
  #callerOf({ identity }: ServerCall): Caller {
    return identity === undefined ? this.#caller : withIdentity(this.#client, identity);
  }

  #ask(request: Request, target: ClientRequestTarget, options: AskOptions | undefined): Promise<Result> {
    const requests = this.#clientRequests;
    return ignoreRejection(
      requests === undefined ? this.#askFirst(request, target, options) : requests.ask(request, target, options),
    );
  }

  async #askFirst(request: Request, target: ClientRequestTarget, options: AskOptions | undefined): Promise<Result> {
    const { ClientRequests } = await (loading ??= import("../calls/client-requests.ts"));
    this.#closed.signal.throwIfAborted();
    this.#clientRequests ??= new ClientRequests();
    return this.#clientRequests.ask(request, target, options);
  }

  #target(carrier: Carrier): ClientRequestTarget {
    return { caller: this.#caller, revision: this.revision, carrier };
  }

  #deliver(notification: Notification, carrier: Carrier): void {
    const { method, params } = notification;
    if (method === "notifications/message" && levelRank(params?.["level"]) < levelRank(this.#level)) return;
    if (!this.revision.serverNotifications.has(method) && !isVendorMethod(method)) return;
    const lowered = this.revision.lower.notification(notification);
    if (lowered !== undefined) carrier.send({ jsonrpc: "2.0", ...lowered });
  }
}

/** Whether the request of a client with tasks concerns tasks. */
function isTaskRequest({ method, params }: Request): boolean {
  if (method === "tools/call") return params["task"] !== undefined;
  return method === "tools/list" || method.startsWith("tasks/");
}
