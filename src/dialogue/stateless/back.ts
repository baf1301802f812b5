// The side that faces a stateless server. Each request carries its client's identity, revision and capabilities, so no
// state is kept here. `input_required` is passed on like any result. The front that faces the client either returns it
// to the client, or sends the client the requests that it contains (calls/input-required.ts).

import {
  LOG_LEVELS,
  type Context,
  type LogLevel,
  type Handler,
  type Notification,
  type Params,
  type Request,
  type Result,
} from "../../core/handler.ts";
import { ConnectionError, THE_SERVER } from "../../core/errors.ts";
import type { NotificationMessage } from "../../jsonrpc/message.ts";
import { INTERNAL_CALLER, isSameClient } from "../../protocol/caller.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { isObject } from "../../core/values.ts";
import { codeOf, McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { isVendorMethod, NEWEST } from "../../protocol/revisions/index.ts";
import { hasTasks } from "../../protocol/tasks.ts";
import type { Inbound } from "../../transport/transport.ts";
import type { OutgoingCall, PeerListener, Peer } from "../calls/peer.ts";

export interface StatelessBackOptions {
  readonly revision: Revision;
  /** The client info for callers that have none. */
  readonly info: Json;
  /** The context for notifications outside any call. */
  readonly defaultContext: Context;
}

export class StatelessBack implements PeerListener {
  readonly revision: Revision;
  readonly handler: Handler;
  /** Whether the server has confirmed the revision. If so, a later error that rejects it is not the caller's fault. */
  isConfirmed = false;
  readonly #peer: Peer;
  readonly #options: StatelessBackOptions;

  constructor(peer: Peer, options: StatelessBackOptions) {
    this.#peer = peer;
    this.#options = options;
    this.revision = options.revision;
    this.handler = (request, context) => this.#handle(request, context);
  }

  async #handle(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    if (!this.revision.requests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
    const params = this.revision.lower.request(method, request.params);
    if (context.isNotification === true) {
      this.#peer.notify(method, { ...params, _meta: { ...params._meta, ...this.#envelope(context) } });
      return {};
    }
    try {
      const result = this.revision.lift.result(method, await this.#call(method, params, context));
      if (!isAllowedType(result.resultType, method, context)) {
        throw new ConnectionError(
          "protocol",
          `The server answered ${method} with an invalid result type, ${String(result.resultType)}`,
        );
      }
      return method === "subscriptions/listen" ? withoutTag(result) : result;
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      if (this.isConfirmed && ENVELOPE_ERRORS.has(error.code)) throw envelopeRejected(method, error);
      throw McpError.fromBody(this.revision.lift.error(error.toBody(), { method, params }));
    }
  }

  async #call(method: string, params: Params, context: Context): Promise<Result> {
    const envelope = this.#envelope(context);
    const wantsProgress = params._meta?.["progressToken"] !== undefined;
    return this.#peer.call(
      method,
      (id) => ({
        ...params,
        _meta: { ...params._meta, ...envelope, ...(wantsProgress ? { progressToken: id } : undefined) },
      }),
      context,
    );
  }

  /** The `_meta` that every stateless request has. */
  #envelope(context: Context): Json {
    const { caller, logLevel } = context;
    return {
      [META.revision]: this.revision.name,
      [META.clientInfo]: this.revision.lower.implementation(caller.info ?? this.#options.info),
      [META.clientCapabilities]: this.revision.lower.clientCapabilities(caller.capabilities),
      [META.logLevel]: logLevel,
    };
  }

  onRequest(): void {
    // Stateless servers send no requests. If one does, the request is ignored, since no client could answer it.
  }

  onNotification(message: NotificationMessage, inbound: Inbound): void {
    const lifted = this.revision.lift.notification(message);
    if (lifted === undefined) return;
    const { method, params } = lifted;
    const tag = params?._meta?.[META.subscriptionId];
    if (tag !== undefined) this.#peer.findCall(tag)?.context.notify({ method, params: withoutTag(params ?? {}) });
    else if (method === "notifications/progress") {
      const call = this.#peer.findCall(params?.["progressToken"]);
      if (call === undefined) return;
      this.#peer.pending.touch(call);
      call.context.notify(lifted);
    } else if (method === "notifications/cancelled") this.#peer.endSubscription(params?.["requestId"]);
    else if (method === "notifications/message") this.#log(lifted, inbound);
    else if (isVendorMethod(method)) this.#deliver(params === undefined ? { method } : { method, params }, inbound);
  }

  /** Delivers a vendor's notification to its call. If that is unknown, each caller gets it once. */
  #deliver(notification: Notification, inbound: Inbound): void {
    const named = this.#peer.findCall(inbound.about);
    const calls = named === undefined ? [...this.#peer.calls.values()] : [named];
    const subscriptions = calls.filter(({ method }) => method === "subscriptions/listen");
    const receivers = new Map([...calls, ...subscriptions].map(({ context }) => [context.caller.key, context]));
    receivers.delete(INTERNAL_CALLER.key);
    if (receivers.size === 0) this.#options.defaultContext.notify(notification);
    for (const context of receivers.values()) context.notify(notification);
  }

  /**
   * Delivers a log message to the call that it belongs to. On stdio that call is unknown. There the message goes to a
   * call that asked for logs, since no other call may get it (specification, server/utilities/logging). If no call
   * asked for logs, it goes to the client's subscriptions. If it could belong to more than one client, no call gets it.
   */
  #log(notification: Notification, inbound: Inbound): void {
    const named = this.#peer.findCall(inbound.about);
    const receivers = named === undefined ? this.#logReceivers(notification.params?.["level"]) : [named];
    if (receivers.length === 0) this.#options.defaultContext.notify(notification);
    for (const { context } of receivers) context.notify(notification);
  }

  #logReceivers(level: unknown): readonly OutgoingCall[] {
    const calls = this.#peer.calls.values().filter(({ context }) => context.caller.key !== INTERNAL_CALLER.key);
    const subscriptions = calls.filter(({ method }) => method === "subscriptions/listen");
    const wanting = calls.filter((call) => call.context.logLevel !== undefined && !subscriptions.includes(call));
    const best = wanting.findLast(({ context }) => wantsLevel(level, context.logLevel)) ?? wanting.at(-1);
    const receivers = best === undefined ? subscriptions : [best];
    const [first, ...others] = (wanting.length > 0 ? wanting : calls).map(({ context }) => context.caller);
    return first !== undefined && others.every((other) => isSameClient(first, other)) ? receivers : [];
  }
}

function wantsLevel(level: unknown, minLevel: LogLevel | undefined): boolean {
  return minLevel !== undefined && LOG_LEVELS.indexOf(level as LogLevel) >= LOG_LEVELS.indexOf(minLevel);
}

/** Errors about the envelope or headers that we wrote. A caller would mistake them for errors of its own request. */
const ENVELOPE_ERRORS: ReadonlySet<number> = new Set(
  (["header_mismatch", "unsupported_revision"] as const).map((kind) => codeOf(kind, NEWEST)),
);

function envelopeRejected(method: string, error: McpError): ConnectionError {
  const message = `The server rejected the headers or revision of ${method}: ${error.message} (${error.code})`;
  return new ConnectionError("protocol", `${message}; connect to it again`, {
    ...THE_SERVER,
    cause: error,
    mayHaveRun: false,
  });
}

function isAllowedType(resultType: unknown, method: string, { caller }: Context): boolean {
  if (resultType === undefined || resultType === "complete") return true;
  if (resultType === "input_required") return INPUT_METHODS.has(method);
  return resultType === "task" && method === "tools/call" && hasTasks(caller.capabilities);
}

/** Removes the subscription id. It is the id of our request to the server, which the subscriber does not know. */
function withoutTag(fields: Params): Params {
  const { _meta, ...rest } = fields;
  if (!isObject(_meta)) return rest;
  const { [META.subscriptionId]: _tag, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}
