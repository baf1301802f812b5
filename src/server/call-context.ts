// What a handler of a tool, a resource or a prompt gets beside its arguments: the context of the call, with
// typed ways back. Each way is a getter that binds when it is read, so a call that uses none pays for none,
// and a handler may take them out of the context (`(args, { progress, ask }) => ...`).

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type AskOptions, type Caller, type Context, LOG_LEVELS, type LogLevel, type Notification, type Params, type Request, type Result } from "../core/handler.ts";
import { attempt, ignoreRejection } from "../core/async.ts";
import type {
  CreateMessageParams,
  CreateMessageResult,
  ElicitFormParams,
  ElicitParams,
  ElicitResult,
  InputResponses,
  ListRootsResult,
} from "../protocol/model/index.ts";
import { META } from "../protocol/model/meta.ts";
import { formSchemaOf } from "./schema.ts";

/** A question for a person; its form may also be a Standard Schema that says itself in JSON Schema. */
export type ElicitQuestion =
  | ElicitParams
  | (Pick<ElicitFormParams, "mode" | "message" | "_meta"> & { readonly requestedSchema: StandardSchemaV1 });

/** Asks the caller in mid-call. An McpError says so where the caller has not declared that it can answer. */
export interface Ask {
  (request: Request, options?: AskOptions): Promise<Result>;
  /**
   * Asks the person behind the caller, by a form or by an address to visit. A form is flat: texts, numbers, yes or no,
   * choices. What comes back is not held against the form.
   *
   * @example
   * const { action, content } = await context.ask.elicit({
   *   message: "Which city?",
   *   requestedSchema: z.object({ city: z.string() }),
   * });
   */
  elicit(params: ElicitQuestion, options?: AskOptions): Promise<ElicitResult>;
  /**
   * Asks the caller's model.
   *
   * @example
   * const { content } = await context.ask.sample({
   *   messages: [{ role: "user", content: { type: "text", text: "A word for blue?" } }],
   *   maxTokens: 20,
   * });
   */
  sample(params: CreateMessageParams, options?: AskOptions): Promise<CreateMessageResult>;
  /** Asks for the folders that the caller works in. */
  roots(options?: AskOptions): Promise<ListRootsResult>;
}

export interface ToolContext extends Context {
  readonly ask: Ask;
  /** Goes out where `progress` has grown since the last time, to callers that asked for it. */
  readonly progress: (progress: number, total?: number, message?: string) => void;
  /** Goes out where the caller wants messages of this level. */
  readonly log: (level: LogLevel, data: unknown, logger?: string) => void;
  readonly hangUp: (retryMs: number) => void;
  /**
   * Answers the caller with the handle of a task, in which the handler goes on; for tools whose `task` says
   * `when: "when-detached"`. Where the caller cannot have a task, and from the second time on, it does nothing.
   *
   * @example
   * server.tool("report", { task: { support: "optional", when: "when-detached" } }, async (_args, { ask, detach }) => {
   *   const { content } = await ask.elicit({ message: "Which year?", requestedSchema: YEAR });
   *   detach();
   *   return writeReport(content);
   * });
   */
  readonly detach: () => void;
  /** What the caller answered to the questions of `inputRequired`, by their keys. */
  readonly answers: Partial<InputResponses>;
  /** The state that was given to `inputRequired` in the round before; undefined in the first. */
  readonly state: unknown;
}

/** What the server has promised its callers. */
export interface Promised {
  /** Undefined where nothing was said of log messages. */
  readonly logging: boolean | undefined;
}

/** What a retry brought with it. */
export interface Brought {
  readonly answers: Partial<InputResponses>;
  readonly state: unknown;
}

const UNPROMISED = "context.log needs the capability logging: createServer({ ..., logging: true })";

/** One promise for all: with loader hooks each import() settles in a turn of its own, and what is asked at once would part. */
let asks: Promise<typeof import("../protocol/asks.ts")> | undefined;

export class CallContext implements ToolContext {
  readonly revision: string;
  readonly caller: Caller;
  readonly logLevel?: LogLevel;
  readonly timeouts?: NonNullable<Context["timeouts"]>;
  readonly answers: Partial<InputResponses>;
  readonly state: unknown;
  readonly #context: Context;
  readonly #request: Request;
  readonly #promised: Promised;
  readonly #detach: (() => void) | undefined;
  #reached = -Infinity;

  constructor(
    context: Context,
    request: Request,
    promised: Promised,
    { answers, state }: Brought,
    detach?: () => void,
  ) {
    this.#detach = detach;
    this.#context = context;
    this.#request = request;
    this.#promised = promised;
    this.revision = context.revision;
    this.caller = context.caller;
    if (context.logLevel !== undefined) this.logLevel = context.logLevel;
    if (context.timeouts !== undefined) this.timeouts = context.timeouts;
    this.answers = answers;
    this.state = state;
  }

  // Not copied: some contexts make their signal only when it is looked at.
  get signal(): AbortSignal {
    return this.#context.signal;
  }

  /** For core/stop. On the prototype, so that a copy, whose signal may be another, does not have it. */
  behind(): Context {
    return this.#context;
  }

  get notify(): (notification: Notification) => void {
    return (notification) => this.#context.notify(notification);
  }

  get hangUp(): (retryMs: number) => void {
    return (retryMs) => this.#context.hangUp?.(retryMs);
  }

  get detach(): () => void {
    return () => this.#detach?.();
  }

  get progress(): ToolContext["progress"] {
    return (progress, total, message) => {
      // The specification wants progress to grow with each message, and NaN never does.
      if (!(progress > this.#reached) || progress === Infinity) return;
      this.#reached = progress;
      // Without a token it still goes out: a caller that comes back for the rest may have brought one by then,
      // and whoever speaks with the caller knows.
      const progressToken = this.#request.params._meta?.[META.progressToken];
      this.#context.notify({
        method: "notifications/progress",
        params: {
          ...(progressToken === undefined ? undefined : { progressToken }),
          progress,
          ...(total === undefined ? undefined : { total }),
          ...(message === undefined ? undefined : { message }),
        },
      });
    };
  }

  get log(): ToolContext["log"] {
    return (level, data, logger) => {
      const urgency = LOG_LEVELS.indexOf(level);
      if (urgency === -1) throw new TypeError(`Unknown log level "${level}"; there are ${LOG_LEVELS.join(", ")}`);
      const { logging } = this.#promised;
      // Whatever the level, so that the author finds it at the first try and not with the first caller who listens.
      if (logging === undefined) throw new TypeError(UNPROMISED);
      if (!logging || this.logLevel === undefined || urgency < LOG_LEVELS.indexOf(this.logLevel)) return;
      this.#context.notify({
        method: "notifications/message",
        params: logger === undefined ? { level, data } : { level, logger, data },
      });
    };
  }

  get ask(): Ask {
    const put = async ({ method, params }: Request, options?: AskOptions): Promise<Result> => {
      // Most calls ask nothing, and most programs never do.
      const { checkAnswer, checkAsk } = await (asks ??= import("../protocol/asks.ts"));
      // Whoever writes JavaScript may leave the params out.
      const request = { method, params: params ?? {} };
      checkAsk(request, this.caller.capabilities);
      const answer = await this.#context.ask(request, options);
      checkAnswer(method, answer);
      return answer;
    };
    // A tool may stop waiting for its question.
    const ask = (request: Request, options?: AskOptions): Promise<Result> => ignoreRejection(put(request, options));
    return Object.assign(ask, {
      elicit: (params: ElicitQuestion, options?: AskOptions) =>
        ignoreRejection(
          attempt(
            () =>
              ask({ method: "elicitation/create", params: sayable(params) }, options) as Promise<Result & ElicitResult>,
          ),
        ),
      sample: (params: CreateMessageParams, options?: AskOptions) =>
        ask({ method: "sampling/createMessage", params }, options) as Promise<Result & CreateMessageResult>,
      roots: (options?: AskOptions) =>
        ask({ method: "roots/list", params: {} }, options) as Promise<Result & ListRootsResult>,
    });
  }
}

/** With its form in JSON Schema; throws where that cannot be. */
function sayable(params: ElicitQuestion): Params {
  if (params.requestedSchema === undefined) return params;
  const requestedSchema = formSchemaOf(params.requestedSchema);
  return requestedSchema === params.requestedSchema ? params : { ...params, requestedSchema };
}
