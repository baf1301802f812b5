// The context that handlers of tools, resources and prompts get. Each function is created by a getter when it is read,
// so a call only pays for those it uses, and handlers can destructure the context (`(args, { progress, ask }) => ...`).

import type { StandardSchemaV1 } from "@standard-schema/spec";
import {
  type AskOptions,
  type Caller,
  type Context,
  levelRank,
  LOG_LEVELS,
  type LogLevel,
  type Meta,
  type Notification,
  type Observer,
  type Params,
  type Request,
  type Result,
  type Session,
} from "../core/handler.ts";
import { ignoreRejection } from "../core/async.ts";
import { defined } from "../core/values.ts";
import type {
  CreateMessageParams,
  CreateMessageResult,
  ElicitFormParams,
  ElicitParams,
  ElicitResult,
  InputResponses,
  ListRootsResult,
} from "../protocol/model/index.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { checkNotification } from "../tools/content.ts";
import { invalidParams } from "../protocol/errors.ts";
import { META } from "../protocol/model/base.ts";
import { isVendorMethod } from "../protocol/revisions/standard-methods.ts";
import { NO_INPUT } from "./input-required.ts";
import type { ResultBuilder } from "./result-builder.ts";
import { createSchemaCheck, type FromJsonSchema, type Schema, toFormSchema } from "./schema.ts";
import type { RetryInput } from "./sealed-states.ts";

/** A request for user input. The form may also be a Standard Schema that can produce JSON Schema. */
export type ElicitQuestion =
  | ElicitParams
  | (Pick<ElicitFormParams, "mode" | "message" | "_meta"> & { readonly requestedSchema: StandardSchemaV1 });

/** The answer to a form of a Standard Schema. If the user accepted it, the content is what the schema returned. */
export type ElicitAnswer<Content> =
  | { readonly action: "accept"; readonly content: Content }
  | { readonly action: "decline" | "cancel"; readonly content?: undefined };

/** Sends a request to the client during the call. Throws an McpError if the client has not declared support for it. */
export interface Ask {
  (request: Request, options?: AskOptions): Promise<Result>;
  /**
   * Asks the user, with a form or a URL to open. A form is flat: strings, numbers, booleans, choices. An accepted answer
   * that does not fit the form is an McpError.
   *
   * @example
   * const { action, content } = await context.ask.elicit({
   *   message: "Which city?",
   *   requestedSchema: z.object({ city: z.string() }),
   * });
   */
  elicit<const Form extends StandardSchemaV1>(
    params: Pick<ElicitFormParams, "mode" | "message" | "_meta"> & { readonly requestedSchema: Form },
    options?: AskOptions,
  ): Promise<ElicitAnswer<StandardSchemaV1.InferOutput<Form>>>;
  elicit<const Form extends ElicitFormParams["requestedSchema"]>(
    params: Pick<ElicitFormParams, "mode" | "message" | "_meta"> & { readonly requestedSchema: Form },
    options?: AskOptions,
  ): Promise<ElicitAnswer<FromJsonSchema<Form>>>;
  elicit(params: ElicitQuestion, options?: AskOptions): Promise<ElicitResult>;
  /**
   * Asks the client's model.
   *
   * @deprecated Sampling is deprecated since the newest revision. Call the API of a model provider instead.
   * @example
   * const { content } = await context.ask.sample({
   *   messages: [{ role: "user", content: { type: "text", text: "A word for blue?" } }],
   *   maxTokens: 20,
   * });
   */
  sample(params: CreateMessageParams, options?: AskOptions): Promise<CreateMessageResult>;
  /**
   * Asks for the folders that the client works in.
   *
   * @deprecated Roots are deprecated since the newest revision. Use arguments, resource URIs or the configuration.
   */
  roots(options?: AskOptions): Promise<ListRootsResult>;
}

/** What handlers get as their second argument: the request's context, with functions for progress, logs and questions. */
export interface ToolContext<Env = unknown> extends Context {
  /**
   * What the host passed for the handlers: the option `env` of `serve`, `fetchHandler`, `nodeHandler` or `connect`, or
   * `env` of a single request. Throws if nothing was passed.
   */
  readonly env: Env;
  /** Asks the client something during the call. */
  readonly ask: Ask;
  /** Reports progress to clients that asked for it. Values that are not greater than the last one are dropped. */
  readonly progress: (progress: number, total?: number, message?: string) => void;
  /**
   * Sends a log message to clients that want this level.
   *
   * @deprecated Logging is deprecated since the newest revision. Use stderr, or OpenTelemetry.
   */
  readonly log: (level: LogLevel, data: unknown, logger?: string) => void;
  /** Session-style HTTP only: ends the call's stream, so that the client reconnects for the rest. */
  readonly hangUp: (retryMs: number) => void;
  /**
   * Answers the client with a task, in which the handler continues; for tools with `task.when: "when-detached"`. Does
   * nothing if the client does not support tasks, if there are too many tasks, or if it was called before.
   *
   * @example
   * server.tool("report", { task: { support: "optional", when: "when-detached" } }, async (_args, { ask, detach }) => {
   *   const { content } = await ask.elicit({ message: "Which year?", requestedSchema: YEAR });
   *   detach();
   *   return writeReport(content);
   * });
   */
  readonly detach: () => void;
  /** The client's answers to the requests of `inputRequired`, by key, including those of earlier rounds. */
  readonly answers: Partial<InputResponses>;
  /** The state that was passed to `inputRequired`; undefined in the first call. */
  readonly state: unknown;
  /** `_meta` of the request: what the client sent beside the arguments, such as a trace context. */
  readonly meta: Meta;
}

const ENV_MISSING = "context.env is not set: pass `env` to serve(), fetchHandler(), nodeHandler() or connect()";
const NO_META: Meta = Object.freeze({});

/** One import for all calls: with loader hooks, the duration of each import() varies, which could reorder requests. */
let clientResults: Promise<typeof import("../protocol/client-results.ts")> | undefined;

export class CallContext implements ToolContext {
  readonly revision: string;
  readonly caller: Caller;
  readonly logLevel?: LogLevel;
  readonly timeouts?: NonNullable<Context["timeouts"]>;
  readonly session?: Session;
  readonly answers: Partial<InputResponses>;
  readonly state: unknown;
  readonly #context: Context;
  readonly #request: Request;
  readonly #declared: Pick<ResultBuilder, "logging">;
  readonly #detach: (() => void) | undefined;
  #lastProgress = -Infinity;

  constructor(
    context: Context,
    request: Request,
    declared: Pick<ResultBuilder, "logging">,
    { answers, state }: RetryInput = NO_INPUT,
    detach?: () => void,
  ) {
    this.#detach = detach;
    this.#context = context;
    this.#request = request;
    this.#declared = declared;
    this.revision = context.revision;
    this.caller = context.caller;
    if (context.logLevel !== undefined) this.logLevel = context.logLevel;
    if (context.timeouts !== undefined) this.timeouts = context.timeouts;
    if (context.session !== undefined) this.session = context.session;
    this.answers = answers;
    this.state = state;
  }

  // The signal is not copied in the constructor, because some contexts create their signal when it is first read.
  get signal(): AbortSignal {
    return this.#context.signal;
  }

  /**
   * Returns the wrapped context, from which core/cancel.ts gets the cancellation token. This is a method, because
   * a spread copy of this object may have another signal and must not contain it.
   */
  wrapped(): Context {
    return this.#context;
  }

  get observer(): Observer | undefined {
    return this.#context.observer;
  }

  get env(): unknown {
    const { env } = this.caller;
    if (env === undefined) throw new TypeError(ENV_MISSING);
    return env;
  }

  get meta(): Meta {
    return this.#request.params._meta ?? NO_META;
  }

  get notify(): (notification: Notification) => void {
    return (notification) => {
      checkNotification(notification);
      this.#context.notify(notification);
    };
  }

  get hangUp(): (retryMs: number) => void {
    return (retryMs) => this.#context.hangUp?.(retryMs);
  }

  get detach(): () => void {
    return () => this.#detach?.();
  }

  get progress(): ToolContext["progress"] {
    return (progress, total, message) => {
      // The specification requires each value to be greater than the last one. NaN never is.
      if (!(progress > this.#lastProgress) || progress === Infinity) return;
      this.#lastProgress = progress;
      // Progress is sent even if this request has no token, because the client may repeat the request with a token
      // while the handler still runs. The connection drops progress for which there is no token.
      const progressToken = this.#request.params._meta?.[META.progressToken];
      this.#context.notify({
        method: "notifications/progress",
        params: defined({ progressToken, progress, total, message }),
      });
    };
  }

  get log(): ToolContext["log"] {
    return (level, data, logger) => {
      const urgency = checkLogLevel(level);
      if (!this.#declared.logging || this.logLevel === undefined || urgency < levelRank(this.logLevel)) return;
      this.#context.notify({
        method: "notifications/message",
        params: logger === undefined ? { level, data } : { level, logger, data },
      });
    };
  }

  get ask(): Ask {
    const send = async ({ method, params }: Request, options?: AskOptions): Promise<Result> => {
      // Loaded on first use, since most servers never send requests to the client.
      const { checkClientResult } = await (clientResults ??= import("../protocol/client-results.ts"));
      // Code without type checks may leave out the params.
      const request = { method, params: params ?? {} };
      if (!isVendorMethod(method)) checkClientRequest(request, this.caller.capabilities);
      const answer = await this.#context.ask(request, options);
      checkClientResult(method, answer);
      return answer;
    };
    // A tool may stop waiting for the answer, and then a rejection must not end the process.
    // The answers were checked, and have the types of their requests.
    const ask = (request: Request, options?: AskOptions): Promise<never> =>
      ignoreRejection(send(request, options)) as Promise<never>;
    const elicit = async (params: ElicitQuestion, options?: AskOptions): Promise<Result> => {
      const answer: Result = await ask({ method: "elicitation/create", params: withJsonSchema(params) }, options);
      const { requestedSchema } = params;
      if (requestedSchema === undefined || answer["action"] !== "accept") return answer;
      return { ...answer, content: await checkAnswer(requestedSchema as Schema, answer["content"] ?? {}) };
    };
    return Object.assign(ask, {
      elicit: (params: ElicitQuestion, options?: AskOptions) =>
        ignoreRejection(elicit(params, options)) as Promise<never>,
      sample: (params: CreateMessageParams, options?: AskOptions) =>
        ask({ method: "sampling/createMessage", params }, options),
      roots: (options?: AskOptions) => ask({ method: "roots/list", params: {} }, options),
    });
  }
}

/** The position of the level. Throws a TypeError if there is no such level. */
export function checkLogLevel(level: LogLevel): number {
  const urgency = levelRank(level);
  if (urgency === -1) throw new TypeError(`Unknown log level "${level}"; the levels are ${LOG_LEVELS.join(", ")}`);
  return urgency;
}

/** The content as the schema of the form returns it. Throws an McpError if it does not fit. */
async function checkAnswer(form: Schema, content: unknown): Promise<unknown> {
  const checked = await createSchemaCheck(form, "ask.elicit(): `requestedSchema`")(content);
  if (checked.issues === undefined) return checked.value;
  const { issues } = checked;
  throw invalidParams(`The caller's answer does not fit the form: ${issues.join("; ")}`, { issues });
}

/** Converts the form to JSON Schema. Throws a TypeError if it cannot be converted. */
function withJsonSchema(params: ElicitQuestion): Params {
  if (params.requestedSchema === undefined) return params;
  const requestedSchema = toFormSchema(params.requestedSchema);
  return requestedSchema === params.requestedSchema ? params : { ...params, requestedSchema };
}
