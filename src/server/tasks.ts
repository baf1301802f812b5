// Tool calls that run as tasks, and the methods `tasks/*`. A call of a tool that supports tasks runs here. It is a task
// from the start, or becomes one when the tool calls `context.detach()`. It stays a plain call if the tool never does
// that, or if there are too many tasks. This file is loaded when first needed.

import { forwardAbort } from "../core/async.ts";
import type { Context, Observer, Request } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { McpError } from "../protocol/errors.ts";
import type { AnswerOf } from "../protocol/methods.ts";
import type { CallToolResult, InputRequiredResult } from "../protocol/model/index.ts";
import { hasTasks, tasksNotDeclared } from "../protocol/tasks.ts";
import { MemoryTasks, type Task, type TaskLimits } from "../tasks/memory.ts";
import { InputRequired } from "./input-required.ts";
import type { TaskOptions } from "./options.ts";
import type { ResultBuilder } from "./result-builder.ts";
import type { RetryInput } from "./sealed-states.ts";

/** Stops a tool that returns `inputRequired` again and again. */
const MAX_INPUT_ROUNDS = 100;

/** A call of a tool that supports tasks. */
export interface TaskCall {
  readonly name: string;
  readonly scopes: readonly string[] | undefined;
  readonly options: TaskOptions;
  readonly request: Request;
  readonly context: Context;
  readonly retry: RetryInput;
  /** Runs the tool once. Failures of the tool are results; a thrown error is a protocol error. */
  run(context: Context, retry: RetryInput, detach: () => void): Promise<CallToolResult | InputRequired>;
}

export class Tasks {
  readonly #results: ResultBuilder;
  readonly store: MemoryTasks;

  constructor(results: ResultBuilder, limits: TaskLimits) {
    this.#results = results;
    this.store = new MemoryTasks(limits);
  }

  /** Returns a task or the tool's result, depending on what the tool and the caller support. */
  async call(call: TaskCall): Promise<AnswerOf<"tools/call">> {
    const { context, options, name } = call;
    const isRequired = options.support === "required";
    if (!hasTasks(context.caller.capabilities)) {
      if (isRequired) throw tasksNotDeclared(`Tool ${name} always runs as a task and`);
      return this.#run(call, context, () => undefined);
    }
    // At the limit, a tool with optional tasks runs as a plain call.
    if (isRequired && !this.store.hasPlace(context.caller)) {
      throw McpError.of("rate_limited", "Too many tasks; try again after some have expired");
    }
    return new Promise((resolve, reject) => this.#begin(call, resolve, reject));
  }

  #begin(call: TaskCall, resolve: (answer: AnswerOf<"tools/call">) => void, reject: (error: unknown) => void): void {
    const { context, options, scopes } = call;
    const abort = forwardAbort(context.signal);
    let isDone = false;
    let task: Task | undefined;
    const detach = (): void => {
      if (task !== undefined || isDone || abort.signal.aborted) return;
      task = this.store.add(abort, defined(options), context.caller, scopes);
      if (task === undefined) return;
      // The request is answered now, so its cancellation no longer affects the task.
      abort.forget();
      resolve({ resultType: "task", ...task.fields, _meta: this.#results.meta });
    };
    if (options.when !== "when-detached") detach();
    const end = (): void => {
      isDone = true;
      abort.forget();
      if (task !== undefined) this.store.done(task);
    };
    this.#run(
      call,
      taskContext(context, abort.signal, () => task),
      detach,
      () => task,
    )
      .finally(end)
      .then(
        (result) => (task === undefined ? resolve(result) : task.complete(result)),
        (error: unknown) => (task === undefined ? reject(error) : task.fail(error)),
      );
  }

  /** Runs the tool. If it needs input, a task asks for it and runs the tool again; a plain call must be retried. */
  async #run(
    call: TaskCall,
    context: Context,
    detach: () => void,
    task?: () => Task | undefined,
  ): Promise<CallToolResult | InputRequiredResult> {
    let { retry } = call;
    for (let round = 1; round <= MAX_INPUT_ROUNDS; round += 1) {
      const value = await call.run(context, retry, detach);
      if (!(value instanceof InputRequired)) return value;
      const asking = task?.();
      if (asking === undefined) return this.#results.inputs.encode(value, call.request, call.context, retry);
      retry = { answers: { ...retry.answers, ...(await askAll(asking, value, context)) }, state: value.state };
    }
    throw McpError.of("rate_limited", `Tool ${call.name} has asked for input ${MAX_INPUT_ROUNDS} times`);
  }
}

/** The task goes on after its call. All that it can still report is which calls code makes for it. */
function ofTask(observer: Observer): Observer {
  return { routed: () => undefined, ran: (run) => observer.ran?.(run) };
}

/** The tool's context. It is like the caller's, but once the call is a task, the task sends requests to the client. */
function taskContext(context: Context, signal: AbortSignal, task: () => Task | undefined): Context {
  const { revision, caller, logLevel, timeouts, session } = context;
  const observer = context.observer && ofTask(context.observer);
  // A stateless request ends with its answer, so no later notification can belong to it.
  const isSession = caller.style === "session";
  return {
    ...defined({ revision, caller, signal, logLevel, timeouts, session, observer }),
    notify: (notification) => {
      if (task()?.isFinished === true) return;
      const message = notification.method === "notifications/progress" ? notification.params?.["message"] : undefined;
      if (typeof message === "string") task()?.setMessage(message);
      if (isSession || task() === undefined) context.notify(notification);
    },
    ask: (request, options) => (task() ?? context).ask(request, options),
    hangUp: (retryMs) => context.hangUp?.(retryMs),
  };
}

/** Sends all requests and returns the answers under the tool's own keys. The keys that the caller sees may differ. */
async function askAll(task: Task, { requests }: InputRequired, { caller }: Context): Promise<RetryInput["answers"]> {
  const checked = Object.entries(requests).map(([key, { method, params = {} }]) => {
    const request: Request = { method, params };
    checkClientRequest(request, caller.capabilities);
    return { key, request };
  });
  const answers = checked.map(async ({ key, request }) => [key, await task.ask(request, { key })] as const);
  return Object.fromEntries(await Promise.all(answers)) as RetryInput["answers"];
}
