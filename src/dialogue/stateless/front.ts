// The side that faces stateless clients. Each request has its revision, identity, capabilities and log level in
// `_meta`, and nothing is kept between requests except parked calls. Checks `_meta`, builds the context, and tags the
// notifications of a subscription with its id.

import {
  type LogLevel,
  type CallerIdentity,
  type TaskWish,
  LOG_LEVELS,
  type Handler,
  type Notification,
  type Params,
  type Request,
  type Result,
} from "../../core/handler.ts";
import type { ErrorBody, NotificationMessage, RequestMessage } from "../../jsonrpc/message.ts";
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
import type { Inbound } from "../../transport/transport.ts";
import { toErrorBody, unsupportedRevision, urlElicitationAsInput } from "../calls/errors.ts";
import { checkResult, type InFlightCall, progressFilter } from "../calls/in-flight.ts";
import type { StatelessCall } from "./parked-call.ts";
import type { ParkedCalls } from "./parked-calls.ts";

export interface StatelessFrontOptions {
  /** Stateless revisions that may be spoken, oldest first. */
  readonly revisions: readonly Revision[];
  /** The number of the connection. Absent over HTTP, where a client may use a connection for each request. */
  readonly connection?: number;
  /** What is known about the sender of a message if the transport knows nothing. */
  readonly identity?: CallerIdentity;
}

/** Whether a request is meant to be stateless: it has one of the `_meta` keys that only such requests have. */
export function isStateless({ method, params }: { readonly method: string; readonly params?: Params }): boolean {
  const meta = params?._meta;
  if (isObject(meta)) return META.revision in meta || META.clientCapabilities in meta || META.clientInfo in meta;
  // These methods do not exist in a session. The stateless style answers with an error that names the missing keys.
  return method === "server/discover" || method === "subscriptions/listen";
}

export class StatelessFront {
  readonly #handler: Handler;
  readonly #parkedCalls: ParkedCalls;
  readonly #options: StatelessFrontOptions;

  constructor(handler: Handler, parkedCalls: ParkedCalls, options: StatelessFrontOptions) {
    this.#handler = handler;
    this.#parkedCalls = parkedCalls;
    this.#options = options;
  }

  async answer(message: RequestMessage, inbound: Inbound, inFlight: InFlightCall): Promise<Result> {
    const { method } = message;
    const params = (message.params ?? {}) as Params;
    const { revision, call } = this.#call(params, inbound, inFlight);
    if (!revision.requests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
    checkParams(method, params);
    const request: Request = { method, params: revision.lift.request(method, params) };
    if (method === "subscriptions/listen") return this.#listen(message, request, call, inbound);
    let result: Result;
    try {
      result = await this.#parkedCalls.handle(request, call, this.#handler);
    } catch (error) {
      result = urlElicitationAsInput(error, request, call.caller);
    }
    checkResult(method, result);
    const lowered = completeResult(method, revision.lower.result(method, result), call.caller.capabilities);
    if (method !== "server/discover") return lowered;
    return { ...lowered, supportedVersions: this.#options.revisions.map(({ name }) => name) };
  }

  /** Handles a notification that no revision defines. Rejects if it lacks the `_meta` of a request. */
  async takeVendor({ method, params = {} }: NotificationMessage, inbound: Inbound, call: InFlightCall): Promise<void> {
    const handler: Handler = (request, context) => this.#handler(request, { ...context, isNotification: true });
    await this.#parkedCalls.handle({ method, params }, this.#call(params, inbound, call).call, handler);
  }

  errorBody(error: unknown, message: RequestMessage): ErrorBody {
    return toErrorBody(error, { method: message.method, params: message.params ?? {} }, NEWEST);
  }

  #call(params: Params, inbound: Inbound, inFlight: InFlightCall): { revision: Revision; call: StatelessCall } {
    const { meta, name, capabilities } = inFlight.envelope ?? readEnvelope(params);
    const revision = this.#options.revisions.find((candidate) => candidate.name === name);
    if (revision === undefined) throw unsupportedRevision(name, this.#options.revisions);
    const level = meta[META.logLevel];
    if (level !== undefined && !LOG_LEVELS.includes(level as LogLevel)) {
      throw invalidParams(`Invalid params: \`_meta\` ${META.logLevel} must be one of ${LOG_LEVELS.join(", ")}`);
    }
    const lifted = revision.lift.clientCapabilities(capabilities);
    const { connection, identity } = this.#options;
    const caller = statelessCaller(meta[META.clientInfo], lifted, inbound.caller ?? identity, connection);
    const progress = progressFilter(meta["progressToken"]);
    const logLevel = level as LogLevel | undefined;
    const minLevel = logLevel === undefined ? Infinity : LOG_LEVELS.indexOf(logLevel);
    const notify = (notification: Notification): void => {
      if (inFlight.done || inFlight.cancelled) return;
      const { method, params: fields } = notification;
      if (method === "notifications/progress") {
        const event = progress(notification);
        if (event !== undefined) this.#send(event, revision, inbound);
      } else if (method === "notifications/message") {
        if (LOG_LEVELS.indexOf(fields?.["level"] as LogLevel) >= minLevel) this.#send(notification, revision, inbound);
      } else if (isVendorMethod(method)) this.#send(notification, revision, inbound);
    };
    const task = hasTasks(lifted) ? TASKS_DECLARED : undefined;
    return { revision, call: { revision: name, caller, logLevel, task, inFlight, notify } };
  }

  async #listen(message: RequestMessage, request: Request, call: StatelessCall, inbound: Inbound): Promise<Result> {
    const tag = { [META.subscriptionId]: message.id };
    const { inFlight } = call;
    const { cancelToken } = inFlight;
    const revision = this.#options.revisions.find(({ name }) => name === call.revision) ?? NEWEST;
    let finish: (result: Result) => void = () => undefined;
    const empty = new Promise<Result>((resolve) => {
      finish = resolve;
    });
    const notify = (notification: Notification): void => {
      const { method } = notification;
      if (inFlight.done || inFlight.cancelled) return;
      const granted = grantedIn(notification);
      if (granted === undefined && !CHANGES.has(method) && !isVendorMethod(method)) return;
      const params = { ...notification.params, _meta: { ...notification.params?._meta, ...tag } };
      this.#send({ method, params }, revision, inbound);
      // A subscription that grants nothing ends at once.
      if (granted !== undefined && grantsNothing(granted)) finish({});
    };
    const listening = this.#parkedCalls.handle(request, { ...call, notify }, this.#handler);
    const result = await Promise.race([listening, empty]);
    cancelToken.abort(new Error("The subscription is over"));
    listening.catch(() => undefined);
    return { ...result, resultType: "complete", _meta: { ...result._meta, ...tag } };
  }

  #send(notification: Notification, revision: Revision, inbound: Inbound): void {
    const lowered = revision.lower.notification(notification);
    if (lowered !== undefined) void inbound.reply({ jsonrpc: "2.0", ...lowered }).catch(() => undefined);
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
