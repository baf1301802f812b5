// Our side toward an exchange-style end. Each request says by itself who asks, in which revision and with
// which capabilities, so nothing is kept here. `input_required` is a result like any other and is passed
// on as it is: whether the caller takes it or has to be asked is for the caller's front (see drive).

import { LOG_LEVELS, type Context, type LogLevel, type Handler, type Notification, type Params, type Request, type Result } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { NotificationMessage } from "../../jsonrpc/message.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { isObject } from "../../core/objects.ts";
import { codeOf, McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { hasTasks } from "../../protocol/tasks.ts";
import type { Inbound } from "../../transport/transport.ts";
import { NOBODY } from "../calls/call-attribution.ts";
import type { Outgoing, Role, Wire } from "../calls/peer.ts";

export interface StatelessBackOptions {
  readonly revision: Revision;
  /** What we say we are where the caller says nothing of itself. */
  readonly info: Json;
  /** Who is told what belongs to no call. */
  readonly home: Context;
}

export class StatelessBack implements Role {
  readonly revision: Revision;
  readonly handler: Handler;
  /** Requests that the end sent although its revision has none. */
  refusedRequests = 0;
  /** Whether it is known that the end speaks our revision: from then on, that it does not is no answer to a caller. */
  isFound = false;
  readonly #wire: Wire;
  readonly #options: StatelessBackOptions;

  constructor(wire: Wire, options: StatelessBackOptions) {
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
        throw new ConnectionError(
          "protocol",
          `The end answered ${method} with a result of a type that it cannot have, ${String(result.resultType)}`,
        );
      }
      return method === "subscriptions/listen" ? withoutTag(result) : result;
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      if (this.isFound && MISSPOKEN.has(error.code)) throw misspoken(method, error);
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

  /**
   * To the call it came for. A pipe does not say which that is: then to the one that wants logs, for no other may have
   * any (specification, server/utilities/logging), or to one of several of the same caller that wants as much. What comes for none goes to
   * the caller's listens, which are always there; what may be another's is nobody's.
   */
  #log(notification: Notification, inbound: Inbound): void {
    const named = this.#wire.callNamed(inbound.about);
    const takers = named === undefined ? this.#takers(notification.params?.["level"]) : [named];
    if (takers.length === 0) this.#options.home.notify(notification);
    for (const { context } of takers) context.notify(notification);
  }

  #takers(level: unknown): readonly Outgoing[] {
    const calls = [...this.#wire.calls.values()].filter(({ context }) => context.caller.origin !== NOBODY);
    const listens = calls.filter(({ method }) => method === "subscriptions/listen");
    const wanting = calls.filter((call) => call.context.logLevel !== undefined && !listens.includes(call));
    const wanted = wanting.findLast(({ context }) => isWanted(level, context.logLevel)) ?? wanting.at(-1);
    const takers = wanted === undefined ? listens : [wanted];
    const origins = new Set((wanting.length > 0 ? wanting : calls).map(({ context }) => context.caller.origin));
    return origins.size === 1 ? takers : [];
  }
}

/** Whether a call that wants this and all that is more urgent wants a message of that level. */
function isWanted(level: unknown, least: LogLevel | undefined): boolean {
  return least !== undefined && LOG_LEVELS.indexOf(level as LogLevel) >= LOG_LEVELS.indexOf(least);
}

/** By these an end refuses how it is spoken to, and that is our doing: a caller would take them for our own refusal. */
const MISSPOKEN: ReadonlySet<number> = new Set(
  (["header_mismatch", "unsupported_revision"] as const).map((kind) => codeOf(kind, NEWEST)),
);

function misspoken(method: string, error: McpError): ConnectionError {
  const message = `The end refuses how ${method} is said to it: ${error.message} (${error.code})`;
  return new ConnectionError("protocol", `${message}; connect to it anew`, { cause: error, mayHaveRun: false });
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
