// The side that faces stateless clients. Each request has its revision, identity, capabilities and log level in
// `_meta`, and nothing is kept between requests except parked calls. Checks `_meta`, builds the context, and tags the
// notifications of a subscription with its id.

import {
  type CallerIdentity,
  type Handler,
  isLogLevel,
  levelRank,
  LOG_LEVELS,
  type Notification,
  type Params,
  type Request,
  type Result,
  type TaskWish,
} from "../../core/handler.ts";
import type { ErrorBody, Id } from "../../jsonrpc/message.ts";
import { statelessCaller } from "../../protocol/caller.ts";
import { INPUT_METHODS, checkClientRequest } from "../../protocol/client-requests.ts";
import { CACHEABLE } from "../../protocol/lists.ts";
import { checkParams, readEnvelope } from "../../protocol/params.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { isVendorMethod, NEWEST } from "../../protocol/revisions/index.ts";
import { CHANGES, grantedIn, grantsNothing } from "../../protocol/subscription.ts";
import { hasTasks, tasksNotDeclared } from "../../protocol/tasks.ts";
import { asksForVisits, toErrorBody, unsupportedRevision } from "../calls/errors.ts";
import { type CallMessage, checkResult, type Front, type ServerCall } from "../calls/call-table.ts";
import type { ParkedCalls } from "./parked-calls.ts";

export interface StatelessFrontOptions {
  /** Stateless revisions that may be spoken, oldest first. */
  readonly revisions: readonly Revision[];
  /** The number of the connection. Absent over HTTP, where a client may use a connection for each request. */
  readonly connection?: number;
  /** What is known about the sender of a message if the transport knows nothing. */
  readonly identity?: CallerIdentity;
}

export class StatelessFront implements Front {
  readonly #handler: Handler;
  readonly #parkedCalls: ParkedCalls;
  readonly #options: StatelessFrontOptions;
  readonly #revisions: ReadonlyMap<string, Revision>;
  /** For notifications that no revision defines. They are rejected if they lack the `_meta` of a request. */
  readonly #handleNotification: Handler;

  constructor(handler: Handler, parkedCalls: ParkedCalls, options: StatelessFrontOptions) {
    this.#handler = handler;
    this.#parkedCalls = parkedCalls;
    this.#options = options;
    this.#revisions = new Map(options.revisions.map((revision) => [revision.name, revision]));
    this.#handleNotification = (request, context) => handler(request, { ...context, isNotification: true });
  }

  async answer(call: ServerCall): Promise<Result> {
    const { message } = call;
    const { method } = message;
    const params = (message.params ?? {}) as Params;
    const revision = this.#prepare(call, params);
    if (!("id" in message)) return this.#parkedCalls.handle({ method, params }, call, this.#handleNotification);
    if (!revision.requests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
    checkParams(method, params);
    const request: Request = { method, params: revision.lift.request(method, params) };
    if (method === "subscriptions/listen") return this.#listen(message.id, request, call);
    let result: Result;
    try {
      result = await this.#parkedCalls.handle(request, call, this.#handler);
    } catch (error) {
      if (!asksForVisits(error)) throw error;
      const { urlElicitationAsInput } = await import("../calls/url-elicitation.ts");
      result = urlElicitationAsInput(error, request, call.caller);
    }
    checkResult(method, result);
    const lowered = completeResult(method, revision.lower.result(method, result), call.caller.capabilities);
    if (method !== "server/discover") return lowered;
    return { ...lowered, supportedVersions: this.#options.revisions.map(({ name }) => name) };
  }

  errorBody(error: unknown, message: CallMessage): ErrorBody {
    return toErrorBody(error, { method: message.method, params: message.params ?? {} }, NEWEST);
  }

  /** Sends a notification of a call to the client, if the client wants it. */
  notify(call: ServerCall, notification: Notification): void {
    const { method, params } = notification;
    if (method === "notifications/progress") {
      const event = call.progressEvent(notification);
      if (event !== undefined) this.#send(event, call);
    } else if (method === "notifications/message") {
      const { logLevel } = call;
      if (logLevel === undefined) return;
      if (levelRank(params?.["level"]) >= levelRank(logLevel)) this.#send(notification, call);
    } else if (isVendorMethod(method)) this.#send(notification, call);
  }

  /** Reads `_meta`: the revision, the caller and what it wants of this call. */
  #prepare(call: ServerCall, params: Params): Revision {
    const { meta, name, capabilities } = call.envelope ?? readEnvelope(params);
    const revision = this.#revisions.get(name);
    if (revision === undefined) throw unsupportedRevision(name, this.#options.revisions);
    const level = meta[META.logLevel];
    if (level !== undefined && !isLogLevel(level)) {
      throw invalidParams(`Invalid params: \`_meta\` ${META.logLevel} must be one of ${LOG_LEVELS.join(", ")}`);
    }
    const lifted = revision.lift.clientCapabilities(capabilities);
    const { connection, identity } = this.#options;
    call.revision = name;
    call.caller = statelessCaller(meta[META.clientInfo], lifted, call.identity ?? identity, connection);
    call.logLevel = level;
    call.task = hasTasks(lifted) ? TASKS_DECLARED : undefined;
    return revision;
  }

  async #listen(id: Id, request: Request, call: ServerCall): Promise<Result> {
    const tag = { [META.subscriptionId]: id };
    let finish: (result: Result) => void = () => undefined;
    const empty = new Promise<Result>((resolve) => {
      finish = resolve;
    });
    const notify = (notification: Notification): void => {
      const { method } = notification;
      if (call.isDone || call.isCancelled) return;
      const granted = grantedIn(notification);
      if (granted === undefined && !CHANGES.has(method) && !isVendorMethod(method)) return;
      const params = { ...notification.params, _meta: { ...notification.params?._meta, ...tag } };
      this.#send({ method, params }, call);
      // A subscription that grants nothing ends at once.
      if (granted !== undefined && grantsNothing(granted)) finish({});
    };
    const listening = this.#parkedCalls.handle(request, call, this.#handler, notify);
    const result = await Promise.race([listening, empty]);
    call.abort(new Error("The subscription is over"));
    listening.catch(() => undefined);
    return { ...result, resultType: "complete", _meta: { ...result._meta, ...tag } };
  }

  #send(notification: Notification, { revision, carrier }: ServerCall): void {
    const { lower } = this.#revisions.get(revision) ?? NEWEST;
    const lowered = lower.notification(notification);
    if (lowered !== undefined) carrier.send({ jsonrpc: "2.0", ...lowered });
  }
}

/** A stateless client only declares that it can handle tasks, and lets the server decide. */
const TASKS_DECLARED: TaskWish = { mode: "if-supported" };

/** Adds `resultType` and cache hints if they are missing. Throws if the client cannot handle the result. */
function completeResult(method: string, result: Result, capabilities: Json): Result {
  const { resultType } = result;
  if (resultType === "input_required") {
    if (!INPUT_METHODS.has(method)) throw McpError.of("internal_error", `${method} cannot ask for input`);
    checkInputRequests(result, capabilities);
    return result;
  }
  // Only a client that declares support for tasks in this request can handle a task.
  if (resultType === "task" && (method !== "tools/call" || !hasTasks(capabilities))) throw tasksNotDeclared(method);
  const hinted = !CACHEABLE.has(method) || (result["ttlMs"] !== undefined && result["cacheScope"] !== undefined);
  if (resultType !== undefined && hinted) return result;
  const { ttlMs = 0, cacheScope = "private" } = result;
  const hints = CACHEABLE.has(method) ? { ttlMs, cacheScope } : undefined;
  return { ...result, ...hints, resultType: resultType ?? "complete" };
}

/** Throws if an input request needs a capability that the client has not declared. */
function checkInputRequests(result: Result, capabilities: Json): void {
  const inputRequests = result["inputRequests"];
  if (!isObject(inputRequests)) return;
  for (const request of Object.values(inputRequests)) {
    if (isObject(request)) {
      checkClientRequest(
        { method: String(request["method"]), params: (request["params"] as Params | undefined) ?? {} },
        capabilities,
      );
    }
  }
}
