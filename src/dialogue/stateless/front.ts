// Our side toward an exchange-style caller: each request brings its revision, identity, capabilities and
// log level in `_meta`, and nothing is kept between requests but the runs that wait for an answer (see
// rounds). It checks `_meta`, makes the context, and tags what belongs to a subscription with its id.

import { type Caller, type LogLevel, LOG_LEVELS, type Handler, type Notification, type Params, type Request, type Result } from "../../core/handler.ts";
import { attempt } from "../../core/async.ts";
import type { ErrorBody, RequestMessage } from "../../jsonrpc/message.ts";
import { ASKABLE, checkAsk } from "../../protocol/asks.ts";
import { CACHEABLE } from "../../protocol/cacheable.ts";
import { checkParams } from "../../protocol/check.ts";
import { isObject } from "../../core/objects.ts";
import {
  invalidParams,
  McpError,
  methodNotFound,
  REFUSED,
  type Profile,
  type Refusable,
} from "../../protocol/errors.ts";
import { isNothing } from "../../protocol/listen-filter.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { hasTasks, TASK_WANTED, tasksUndeclared, type Wanting } from "../../protocol/tasks.ts";
import type { Inbound } from "../../transport/transport.ts";
import { errorBody, unsupported } from "../calls/errors.ts";
import { type Flight, progressUnder } from "../calls/in-flight.ts";
import type { Call, Rounds } from "./parked-calls.ts";
import { askedToVisit } from "../calls/url-elicitation.ts";

export interface StatelessFrontOptions {
  /** Exchange-style revisions that may be spoken, oldest first. */
  readonly revisions: readonly Revision[];
  readonly profile: Profile;
  /** Stands for the connection, in its callers' contexts. */
  readonly origin: object;
}

/** What a listen stream may carry besides its acknowledgement. */
const CHANGES = new Set([
  "notifications/subscriptions/acknowledged",
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/tasks",
]);

/** Whether a request is meant to stand by itself: it carries one of the keys that only such requests have. */
export function isStateless({ method, params }: { readonly method: string; readonly params?: Params }): boolean {
  const meta = params?._meta;
  if (isObject(meta)) return META.revision in meta || META.clientCapabilities in meta || META.clientInfo in meta;
  // Without the keys these two mean nothing in a session either; here the answer says what is missing.
  return method === "server/discover" || method === "subscriptions/listen";
}

export interface Envelope {
  readonly meta: Json;
  /** The revision's name, known or not. */
  readonly name: string;
  readonly capabilities: Json;
}

/** What every request of this style brings with it. Throws invalid params where something of it is missing. */
export function envelope({ _meta: meta }: Params): Envelope {
  const name = isObject(meta) ? meta[META.revision] : undefined;
  const capabilities = isObject(meta) ? meta[META.clientCapabilities] : undefined;
  if (isObject(meta) && typeof name === "string" && isObject(capabilities)) return { meta, name, capabilities };
  const missing = [
    typeof name === "string" ? [] : META.revision,
    isObject(capabilities) ? [] : META.clientCapabilities,
  ];
  throw invalidParams(`Invalid params: \`_meta\` must have ${missing.flat().join(" and ")}`, {
    missing: missing.flat(),
  });
}

export class StatelessFront {
  readonly #handler: Handler;
  readonly #rounds: Rounds;
  readonly #options: StatelessFrontOptions;

  constructor(handler: Handler, rounds: Rounds, options: StatelessFrontOptions) {
    this.#handler = handler;
    this.#rounds = rounds;
    this.#options = options;
  }

  async answer(message: RequestMessage, inbound: Inbound, flight: Flight): Promise<Result> {
    const { method } = message;
    const params = (message.params ?? {}) as Params;
    const { revision, call } = this.#call(params, inbound, flight);
    if (!revision.requests.has(method)) throw methodNotFound(method);
    checkParams(method, params);
    const request: Request = { method, params: wanting(method, revision.lift.request(method, params), call.caller) };
    if (method === "subscriptions/listen") return this.#listen(message, request, call, inbound);
    const result = await attempt(() => this.#rounds.handle(request, call, this.#handler)).catch((error: unknown) =>
      askedToVisit(error, request, call.caller),
    );
    if (!isObject(result)) throw McpError.of("internal_error", `The handler's result of ${method} is no object`);
    const lowered = whole(method, revision.lower.result(method, result), call.caller.capabilities);
    if (method !== "server/discover") return lowered;
    return { ...lowered, supportedVersions: this.#options.revisions.map(({ name }) => name) };
  }

  fault(error: unknown, message: RequestMessage): ErrorBody {
    return errorBody(error, { method: message.method, params: message.params ?? {} }, NEWEST, this.#options.profile);
  }

  #call(params: Params, inbound: Inbound, flight: Flight): { revision: Revision; call: Call } {
    const { meta, name, capabilities } = envelope(params);
    const revision = this.#options.revisions.find((candidate) => candidate.name === name);
    if (revision === undefined) throw unsupported(name, this.#options.revisions);
    const info = meta[META.clientInfo];
    const level = meta[META.logLevel];
    if (level !== undefined && !LOG_LEVELS.includes(level as LogLevel)) {
      throw invalidParams(`Invalid params: \`_meta\` ${META.logLevel} must be one of ${LOG_LEVELS.join(", ")}`);
    }
    const caller: Caller = {
      origin: this.#options.origin,
      ...inbound.caller,
      ...(isObject(info) ? { info: info as unknown as NonNullable<Caller["info"]> } : undefined),
      capabilities: revision.lift.clientCapabilities(capabilities),
    };
    const progress = progressUnder(meta["progressToken"]);
    const logLevel = level as LogLevel | undefined;
    const least = logLevel === undefined ? Infinity : LOG_LEVELS.indexOf(logLevel);
    const notify = (notification: Notification): void => {
      if (flight.done || flight.cancelled) return;
      const { method, params: said } = notification;
      if (method === "notifications/progress") {
        const event = progress(notification);
        if (event !== undefined) this.#send(event, revision, inbound);
      } else if (method === "notifications/message" && LOG_LEVELS.indexOf(said?.["level"] as LogLevel) >= least) {
        this.#send(notification, revision, inbound);
      }
    };
    return { revision, call: { revision: name, caller, logLevel, flight, notify } };
  }

  async #listen(message: RequestMessage, request: Request, call: Call, inbound: Inbound): Promise<Result> {
    const tag = { [META.subscriptionId]: message.id };
    const { flight } = call;
    const { stop } = flight;
    const revision = this.#options.revisions.find(({ name }) => name === call.revision) ?? NEWEST;
    let finish: (result: Result) => void = () => undefined;
    const empty = new Promise<Result>((resolve) => {
      finish = resolve;
    });
    const notify = (notification: Notification): void => {
      if (flight.done || flight.cancelled || !CHANGES.has(notification.method)) return;
      const params = { ...notification.params, _meta: { ...notification.params?._meta, ...tag } };
      this.#send({ method: notification.method, params }, revision, inbound);
      // A stream on which nothing can ever come is over at once.
      const acknowledged = notification.method === "notifications/subscriptions/acknowledged";
      if (acknowledged && isNothing(notification.params?.["notifications"])) finish({});
    };
    const listening = this.#rounds.handle(request, { ...call, notify }, this.#handler);
    const result = await Promise.race([listening, empty]);
    stop.abort(new Error("The listen is over"));
    listening.catch(() => undefined);
    return { ...result, resultType: "complete", _meta: { ...result._meta, ...tag } };
  }

  #send(notification: Notification, revision: Revision, inbound: Inbound): void {
    const lowered = revision.lower.notification(notification);
    if (lowered !== undefined) void inbound.reply({ jsonrpc: "2.0", ...lowered }).catch(() => undefined);
  }
}

/** Who declares tasks with a call leaves it to the end to make one; an end of the revision before must be told so. */
function wanting(method: string, params: Params, { capabilities }: Caller): Params {
  if (method !== "tools/call" || !hasTasks(capabilities)) return params;
  const wanted: Params & Wanting = { ...params, [TASK_WANTED]: "if-it-can" };
  return wanted;
}

/** A result with all that the style asks of one, whoever made it. */
function whole(method: string, made: Result, capabilities: Json): Result {
  // A mark for session fronts; in memory it would cross to the other side.
  const { [REFUSED]: _refused, ...unmarked } = made as Result & Refusable;
  const result: Result = REFUSED in made ? unmarked : made;
  const { resultType } = result;
  if (resultType === "input_required") {
    if (!ASKABLE.has(method)) throw McpError.of("internal_error", `${method} cannot ask for input`);
    checkQuestions(result, capabilities);
    return result;
  }
  // A handle is of use only to a caller that says, with this very request, that it knows what to do with one.
  if (resultType === "task" && (method !== "tools/call" || !hasTasks(capabilities))) throw tasksUndeclared(method);
  const hinted = !CACHEABLE.has(method) || (result["ttlMs"] !== undefined && result["cacheScope"] !== undefined);
  if (resultType !== undefined && hinted) return result;
  const { ttlMs = 0, cacheScope = "private" } = result;
  const hints = CACHEABLE.has(method) ? { ttlMs, cacheScope } : undefined;
  return { ...result, ...hints, resultType: resultType ?? "complete" };
}

/** No caller is asked what it has not declared, whoever wrote the question. */
function checkQuestions(result: Result, capabilities: Json): void {
  const questions = result["inputRequests"];
  if (!isObject(questions)) return;
  for (const question of Object.values(questions)) {
    if (isObject(question)) {
      checkAsk(
        { method: String(question["method"]), params: (question["params"] as Params | undefined) ?? {} },
        capabilities,
      );
    }
  }
}
