// The side that faces a stateless server. Each request carries its client's identity, revision and capabilities, so no
// state is kept here. `input_required` is passed on like any result. The front that faces the client either returns it
// to the client, or sends the client the requests that it contains (calls/input-required.ts). A subclass sends the
// requests: `UnaryBack` over a transport that answers each request by itself, `DuplexBack` over one that does not.

import { ignoreRejection } from "../../core/async.ts";
import type { Cancellation } from "../../core/cancel.ts";
import { ConnectionError, THE_SERVER } from "../../core/errors.ts";
import type { Caller, Context, Handler, Params, Request, Result } from "../../core/handler.ts";
import { copyFields, isObject } from "../../core/values.ts";
import type { NotificationMessage, RequestMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { codeOf, McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { isVendorMethod, NEWEST } from "../../protocol/revisions/index.ts";
import { hasTasks } from "../../protocol/tasks.ts";
import { Meter, type Tap } from "../../transport/tap.ts";
import type { PendingCall, PendingCalls } from "../calls/pending-calls.ts";

export interface StatelessBackOptions {
  readonly revision: Revision;
  /** The client info for callers that have none. */
  readonly info: Json;
  /** The context for notifications outside any call. */
  readonly defaultContext: Context;
}

export abstract class StatelessBack {
  readonly revision: Revision;
  readonly handler: Handler;
  /** Whether the server has confirmed the revision. If so, a later error that rejects it is not the caller's fault. */
  isConfirmed = false;
  protected readonly options: StatelessBackOptions;
  /** The caller of the last request, most often that of the next one too, and what it says of itself. */
  #caller: Caller | undefined;
  #info: Json | undefined;
  #capabilities: Json | undefined;

  constructor(options: StatelessBackOptions) {
    this.options = options;
    this.revision = options.revision;
    this.handler = this.#handle.bind(this);
  }

  /** Sends a request and resolves with its result. Throws an McpError if the server answers with an error. */
  protected abstract call(method: string, params: Params, context: Context): Promise<Result>;
  protected abstract notify(method: string, params: Params): void;

  async #handle(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    const { lower, lift, requests } = this.revision;
    if (!requests.has(method) && !isVendorMethod(method)) throw methodNotFound(method);
    const params = lower.request(method, request.params);
    if (context.isNotification === true) {
      this.notify(method, this.withEnvelope(params, context));
      return {};
    }
    try {
      const result = lift.result(method, await this.call(method, params, context));
      const type = result.resultType;
      if (type !== undefined && type !== "complete" && !isAllowedType(type, method, context)) {
        throw new ConnectionError("protocol", `The server answered ${method} with an invalid result type, ${type}`);
      }
      return method === "subscriptions/listen" ? withoutTag(result) : result;
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      if (this.isConfirmed && ENVELOPE_ERRORS.has(error.code)) throw envelopeRejected(method, error);
      throw McpError.fromBody(lift.error(error.toBody(), { method, params }));
    }
  }

  /** Adds the `_meta` that every stateless request has. The id of a request becomes the token of its progress. */
  protected withEnvelope(params: Params, { caller, logLevel }: Context, id?: number): Params {
    if (caller !== this.#caller) {
      const { lower } = this.revision;
      this.#caller = caller;
      this.#info = lower.implementation(caller.info ?? this.options.info);
      this.#capabilities = lower.clientCapabilities(caller.capabilities);
    }
    const meta = copyFields(params._meta ?? {});
    if (id !== undefined && meta["progressToken"] !== undefined) meta["progressToken"] = id;
    meta[META.revision] = this.revision.name;
    meta[META.clientInfo] = this.#info;
    meta[META.clientCapabilities] = this.#capabilities;
    meta[META.logLevel] = logLevel;
    const sent = copyFields(params);
    sent["_meta"] = meta;
    return sent;
  }
}

/** A transport whose requests have responses of their own. */
export interface UnaryTransport {
  /** Resolves with the response. Reports the request to the observer of the call. Never throws. Sets `call.onStop` to what ends the request. */
  unary(message: RequestMessage, call: PendingCall, receiver: NotificationReceiver): Promise<ResponseMessage>;
  /** Resolves when the server has taken the message. */
  notify(message: NotificationMessage, closed: Cancellation): Promise<void>;
}

/** Receives the notifications that come before a response. */
export interface NotificationReceiver {
  /** Returns the response if the notification is the last of its call. */
  receive(message: NotificationMessage, call: PendingCall): ResponseMessage | undefined;
}

/** A transport that tells the tap every message that it sends, and every one that it gets. */
export function tapUnary(transport: UnaryTransport, tap: Tap): UnaryTransport {
  const meter = new Meter(tap);
  return {
    async unary(message, call, receiver) {
      meter.pass("client", message);
      const response = await transport.unary(message, call, {
        receive(notification, forCall) {
          meter.pass("server", notification);
          return receiver.receive(notification, forCall);
        },
      });
      meter.pass("server", response);
      return response;
    },
    notify(message, closed) {
      meter.pass("client", message);
      return transport.notify(message, closed);
    },
  };
}

/** Over HTTP. */
export class UnaryBack extends StatelessBack implements NotificationReceiver {
  readonly #transport: UnaryTransport;
  readonly #calls: PendingCalls;

  constructor(transport: UnaryTransport, calls: PendingCalls, options: StatelessBackOptions) {
    super(options);
    this.#transport = transport;
    this.#calls = calls;
  }

  protected call(method: string, params: Params, context: Context): Promise<Result> {
    const call = this.#calls.open(method, context);
    const { id } = call;
    const message: RequestMessage = { jsonrpc: "2.0", id, method, params: this.withEnvelope(params, context, id) };
    const answering = this.#transport.unary(message, call, this);
    if (context.observer?.wire === undefined) return call.answeredBy(answering);
    return call.answeredBy(
      answering.then((response) => {
        this.#report(context, response);
        return response;
      }),
    );
  }

  protected notify(method: string, params: Params): void {
    const { closed } = this.#calls;
    // The signal, since a token keeps what waits for it, and this one lives as long as the connection.
    if (!closed.aborted)
      void ignoreRejection(this.#transport.notify({ jsonrpc: "2.0", method, params }, closed.signal));
  }

  /** The transport reports what we send, since it knows the heads. */
  #report({ observer }: Context, message: ResponseMessage | NotificationMessage): void {
    observer?.wire?.passed({ side: "upstream", sender: "server", message, revision: this.revision.name });
  }

  receive(message: NotificationMessage, call: PendingCall): ResponseMessage | undefined {
    const { id, context } = call;
    this.#report(context, message);
    const lifted = this.revision.lift.notification(message);
    if (lifted === undefined) return undefined;
    const { method, params } = lifted;
    const tag = params?._meta?.[META.subscriptionId];
    if (tag !== undefined) {
      if (tag === id) context.notify({ method, params: withoutTag(params ?? {}) });
    } else if (method === "notifications/progress") {
      if (params?.["progressToken"] !== id) return undefined;
      call.touch();
      context.notify(lifted);
    } else if (method === "notifications/cancelled") {
      // The server ends our subscription. It cannot end other calls in this way.
      const isOurs = params?.["requestId"] === id && call.method === "subscriptions/listen";
      return isOurs ? { jsonrpc: "2.0", id, result: { resultType: "complete" } } : undefined;
    } else if (method === "notifications/message") context.notify(lifted);
    else if (isVendorMethod(method)) {
      const isInternal = context.caller.key === INTERNAL_CALLER.key;
      (isInternal ? this.options.defaultContext : context).notify(
        params === undefined ? { method } : { method, params },
      );
    }
    return undefined;
  }
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

/** Whether a result that is not complete may have this type. */
function isAllowedType(resultType: unknown, method: string, { caller }: Context): boolean {
  if (resultType === "input_required") return INPUT_METHODS.has(method);
  return resultType === "task" && method === "tools/call" && hasTasks(caller.capabilities);
}

/** Removes the subscription id. It is the id of our request to the server, which the subscriber does not know. */
export function withoutTag(fields: Params): Params {
  const { _meta, ...rest } = fields;
  if (!isObject(_meta)) return rest;
  const { [META.subscriptionId]: _tag, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}
