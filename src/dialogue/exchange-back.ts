// Our side toward an exchange-style end. Each request says by itself who asks, in which revision and with
// which capabilities, so nothing is kept here. `input_required` is a result like any other and is passed
// on as it is: whether the caller takes it or has to be asked is for the caller's front (see drive).

import type { Context } from "../core/context.ts";
import { LinkError } from "../core/errors.ts";
import type { Handler, Notification, Params, Request, Result } from "../core/handler.ts";
import type { NotificationMessage } from "../jsonrpc/message.ts";
import { ASKABLE } from "../protocol/asks.ts";
import { isObject } from "../protocol/check.ts";
import { McpError, methodNotFound } from "../protocol/errors.ts";
import { META } from "../protocol/model/index.ts";
import type { Json, Revision } from "../protocol/revision.ts";
import { hasTasks } from "../protocol/tasks.ts";
import type { Inbound } from "../transport/transport.ts";
import type { Role, Wire } from "./wire.ts";

export interface ExchangeBackOptions {
  readonly revision: Revision;
  /** What we say we are where the caller says nothing of itself. */
  readonly info: Json;
  /** Who is told what belongs to no call. */
  readonly home: Context;
}

export class ExchangeBack implements Role {
  readonly revision: Revision;
  readonly handler: Handler;
  /** Requests that the end sent although its revision has none. */
  refusedRequests = 0;
  readonly #wire: Wire;
  readonly #options: ExchangeBackOptions;

  constructor(wire: Wire, options: ExchangeBackOptions) {
    this.#wire = wire;
    this.#options = options;
    this.revision = options.revision;
    this.handler = (request, context) => this.#handle(request, context);
  }

  async #handle(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    if (!this.revision.requests.has(method)) throw methodNotFound(method);
    const params = this.revision.lower.request(method, request.params);
    try {
      const result = this.revision.lift.result(method, await this.#call(method, params, context));
      if (!isKnown(result.resultType, method, context)) {
        throw new LinkError(
          "protocol",
          `The end answered ${method} with a result of a type that it cannot have, ${String(result.resultType)}`,
        );
      }
      return method === "subscriptions/listen" ? withoutTag(result) : result;
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      throw McpError.fromBody(this.revision.lift.error(error.toBody(), { method, params }));
    }
  }

  async #call(method: string, params: Params, context: Context): Promise<Result> {
    const stamp = this.#stamp(context);
    const wantsProgress = params._meta?.["progressToken"] !== undefined;
    return this.#wire.call(
      method,
      (id) => ({
        ...params,
        _meta: { ...params._meta, ...stamp, ...(wantsProgress ? { progressToken: id } : undefined) },
      }),
      context,
    );
  }

  /** What every request says of its caller; a log level that an earlier front read is written anew. */
  #stamp(context: Context): Json {
    const { caller, logLevel } = context;
    return {
      [META.revision]: this.revision.name,
      [META.clientInfo]: this.revision.lower.implementation(caller.info ?? this.#options.info),
      [META.clientCapabilities]: this.revision.lower.clientCapabilities(caller.capabilities),
      [META.logLevel]: logLevel,
    };
  }

  request(): void {
    // No revision of this style has requests of an end: there is nobody to whom it could be passed.
    this.refusedRequests += 1;
  }

  notification(message: NotificationMessage, inbound: Inbound): void {
    const lifted = this.revision.lift.notification(message);
    if (lifted === undefined) return;
    const { method, params } = lifted;
    const tag = params?._meta?.[META.subscriptionId];
    if (tag !== undefined) this.#wire.callNamed(tag)?.context.notify({ method, params: untagged(params) });
    else if (method === "notifications/progress") {
      const call = this.#wire.callNamed(params?.["progressToken"]);
      if (call === undefined) return;
      this.#wire.touch(call);
      call.context.notify(lifted);
    } else if (method === "notifications/cancelled") this.#wire.finishListen(params?.["requestId"]);
    else if (method === "notifications/message") this.#log(lifted, inbound);
  }

  /** To the call it came for, or to the only one that wants logs; where that is not clear, to a listen, which is always there. */
  #log(notification: Notification, inbound: Inbound): void {
    const named = this.#wire.callNamed(inbound.about);
    const calls = named === undefined ? [...this.#wire.calls.values()] : [named];
    const listens = calls.filter(({ method }) => method === "subscriptions/listen");
    const takers = calls.filter(
      ({ method, context }) => context.logLevel !== undefined && method !== "subscriptions/listen",
    );
    const taker = takers.length === 1 ? takers[0] : listens.at(-1);
    (taker?.context ?? this.#options.home).notify(notification);
  }
}

/** A kind of result that this request may have, from a caller who has declared what it takes. */
function isKnown(resultType: unknown, method: string, { caller }: Context): boolean {
  if (resultType === undefined || resultType === "complete") return true;
  if (resultType === "input_required") return ASKABLE.has(method);
  return resultType === "task" && method === "tools/call" && hasTasks(caller.capabilities);
}

function untagged(params: Params | undefined): Params {
  const { _meta, ...rest } = params ?? {};
  if (!isObject(_meta)) return rest;
  const { [META.subscriptionId]: _tag, ...meta } = _meta;
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}

function withoutTag(result: Result): Result {
  return untagged(result);
}
