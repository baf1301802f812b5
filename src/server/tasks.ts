// Tool calls that run as tasks, and the methods `tasks/*`. A call of a tool that supports tasks runs here. It is a task
// from the start, or becomes one when the tool calls `context.detach()`. It stays a plain call if the tool never does
// that, or if there are too many tasks. This file is loaded when first needed.

import { Buffer } from "node:buffer";
import { demandScopes, permits } from "../protocol/scopes.ts";
import { type ForwardedAbort, forwardAbort, unref } from "../core/async.ts";
import { FairLimit } from "../core/fair-limit.ts";
import type { AskOptions, Caller, Context, Request, Result } from "../core/handler.ts";
import { defined, errorMessage } from "../core/values.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type {
  CallToolResult,
  InputRequiredResult,
  InputResponse,
  Task as TaskFields,
  TaskStatus,
} from "../protocol/model/index.ts";
import type { AnswerOf } from "../protocol/methods.ts";
import type { Json } from "../protocol/revision.ts";
import type { TaskSubscription } from "../protocol/subscribers.ts";
import { hasTasks, isTaskFinished, tasksNotDeclared } from "../protocol/tasks.ts";
import { PendingInputs } from "../tasks/pending-inputs.ts";
import { answerTaskRequest, subscribeToTasks, taskOwner, type TaskStore, type WatchedTask } from "../tasks/store.ts";
import { InputRequired } from "./input-required.ts";
import type { TaskLimits, TaskOptions } from "./options.ts";
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

const SWEEP_MS = 1_000;

/**
 * The tasks of a server. Only the principal that created a task can find it. The number of tasks is limited, in total
 * and for each principal, and so is their lifetime. One timer serves all tasks.
 */
export class Tasks implements TaskStore {
  readonly #results: ResultBuilder;
  readonly #limits: TaskLimits;
  readonly #places: FairLimit;
  readonly #tasks = new Map<string, Task>();
  #sweeper: NodeJS.Timeout | undefined;

  constructor(results: ResultBuilder, limits: TaskLimits) {
    this.#results = results;
    this.#limits = limits;
    this.#places = new FairLimit(limits.max ?? 1_000, limits.maxPerCaller ?? 100);
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
    if (isRequired && !this.#hasPlace(context.caller)) {
      throw McpError.of("rate_limited", "Too many tasks; try again after some have expired");
    }
    return new Promise((resolve, reject) => this.#begin(call, resolve, reject));
  }

  /** Answers `tasks/*`. */
  async answer(request: Request, context: Context): Promise<Result> {
    return this.#results.complete(await answerTaskRequest(this, request, context));
  }

  subscribe(ids: readonly string[], context: Context): Promise<TaskSubscription | undefined> {
    return subscribeToTasks(this, ids, context);
  }

  async get(id: string, { caller }: Context): Promise<Json> {
    return this.#find(id, caller).detailed();
  }

  async update(id: string, responses: Json, { caller }: Context): Promise<void> {
    this.#find(id, caller).update(responses);
  }

  async cancel(id: string, { caller }: Context): Promise<void> {
    this.#find(id, caller).cancel("The task was cancelled by request");
  }

  async list({ caller }: Context): Promise<readonly Json[]> {
    const owned = [...this.#tasks.keys()].flatMap((id) => this.#get(id, caller) ?? []);
    return owned.filter(({ scopes }) => permits(scopes, caller)).map((task) => task.detailed());
  }

  async watch(ids: readonly string[], { caller }: Context): Promise<readonly WatchedTask[]> {
    return ids.flatMap((id) => this.#get(id, caller) ?? []);
  }

  close(): void {
    for (const task of this.#tasks.values()) {
      task.cancel("The server is closing");
      this.#forget(task);
    }
  }

  #begin(call: TaskCall, resolve: (answer: AnswerOf<"tools/call">) => void, reject: (error: unknown) => void): void {
    const { context, options, scopes } = call;
    const abort = forwardAbort(context.signal);
    let isDone = false;
    let task: Task | undefined;
    const detach = (): void => {
      if (task !== undefined || isDone || abort.signal.aborted) return;
      task = this.#add(abort, options, context.caller, scopes);
      if (task === undefined) return;
      // The request is answered now, so its cancellation no longer affects the task.
      abort.forget();
      resolve({ resultType: "task", ...task.fields(), _meta: this.#results.meta });
    };
    if (options.when !== "when-detached") detach();
    const end = (): void => {
      isDone = true;
      abort.forget();
      if (task === undefined) return;
      task.isDone = true;
      if (!this.#tasks.has(task.id)) this.#places.release(task.principal);
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

  /** A task of another principal gives the same error as an unknown one, so that callers learn nothing about it. */
  #find(taskId: string, caller: Caller): Task {
    const task = this.#get(taskId, caller);
    if (task === undefined) {
      throw invalidParams("Unknown task: there is none with this id, or it has expired", { taskId });
    }
    demandScopes(task.scopes, caller, `The task ${taskId}`);
    return task;
  }

  #get(id: string, caller: Caller): Task | undefined {
    const task = this.#tasks.get(id);
    if (task === undefined || task.principal !== taskOwner(caller)) return undefined;
    if (task.expires > performance.now()) return task;
    this.#expire(task);
    return undefined;
  }

  #hasPlace({ principal }: Caller): boolean {
    if (this.#places.take(principal) !== undefined) return false;
    this.#places.release(principal);
    return true;
  }

  /** Returns undefined if there are too many tasks. */
  #add(
    abort: ForwardedAbort,
    options: TaskOptions,
    { principal }: Caller,
    scopes: readonly string[] | undefined,
  ): Task | undefined {
    if (this.#places.take(principal) !== undefined) return undefined;
    const { ttlMs = 3_600_000, maxTtlMs = 86_400_000, pollIntervalMs = 1_000 } = this.#limits;
    const task = new Task(abort, principal, scopes, {
      ttlMs: Math.min(options.ttlMs ?? ttlMs, maxTtlMs),
      pollIntervalMs: options.pollIntervalMs ?? pollIntervalMs,
    });
    this.#tasks.set(task.id, task);
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), SWEEP_MS));
    return task;
  }

  #sweep(): void {
    const now = performance.now();
    for (const task of this.#tasks.values()) if (task.expires <= now) this.#expire(task);
  }

  #expire(task: Task): void {
    task.expire();
    this.#forget(task);
  }

  /** The task keeps its place until its tool is done: a tool may ignore its signal. */
  #forget(task: Task): void {
    this.#tasks.delete(task.id);
    if (task.isDone) this.#places.release(task.principal);
    if (this.#tasks.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

/** The tool's context. It is like the caller's, but once the call is a task, the task sends requests to the client. */
function taskContext(context: Context, signal: AbortSignal, task: () => Task | undefined): Context {
  const { revision, caller, logLevel, timeouts, session } = context;
  // A stateless request ends with its answer, so no later notification can belong to it.
  const isSession = caller.style === "session";
  return {
    ...defined({ revision, caller, signal, logLevel, timeouts, session }),
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
  const answer = async ({ key, request }: (typeof checked)[number]): Promise<[string, InputResponse]> => [
    key,
    (await task.ask(request, { key })) as never,
  ];
  return Object.fromEntries(await Promise.all(checked.map(answer)));
}

type Outcome = { readonly result: Result } | { readonly error: ReturnType<McpError["toBody"]> };

type TaskWatcher = (task: Json) => void;

/**
 * One task. Its status alternates between working and input_required until the task is finished, and then never changes
 * again, whatever the tool does.
 */
class Task {
  readonly id: string = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  readonly principal: string | undefined;
  /** The scopes of the tool. Every request about the task needs them too. */
  readonly scopes: readonly string[];
  readonly expires: number;
  /** Whether the tool has returned or thrown. It may run on after its task is finished. */
  isDone = false;
  readonly #times: { readonly ttlMs: number; readonly pollIntervalMs: number };
  /** Aborts the tool. */
  readonly #abort: ForwardedAbort;
  readonly #inputs = new PendingInputs(() => this.#move(this.#inputs.size === 0 ? "working" : "input_required"));
  readonly #watchers = new Set<TaskWatcher>();
  readonly #createdAt = new Date().toISOString();
  #updatedAt = this.#createdAt;
  #status: TaskStatus = "working";
  #message: string | undefined;
  #outcome: Outcome | undefined;
  #isNotifying = false;

  constructor(
    abort: ForwardedAbort,
    principal: string | undefined,
    scopes: readonly string[] | undefined,
    times: { readonly ttlMs: number; readonly pollIntervalMs: number },
  ) {
    this.#abort = abort;
    this.principal = principal;
    this.scopes = scopes ?? [];
    this.#times = times;
    this.expires = performance.now() + times.ttlMs;
  }

  get isFinished(): boolean {
    return isTaskFinished(this.#status);
  }

  /** The fields that every status has. */
  fields(): TaskFields {
    return defined({
      taskId: this.id,
      status: this.#status,
      statusMessage: this.#message,
      createdAt: this.#createdAt,
      lastUpdatedAt: this.#updatedAt,
      ...this.#times,
    });
  }

  get state(): Json {
    return this.detailed();
  }

  detailed(): Json {
    const { requests: inputRequests } = this.#inputs;
    return { ...this.fields(), ...defined({ inputRequests }), ...this.#outcome };
  }

  /** Sets the status message. Watchers are not notified, but `tasks/get` returns it. */
  setMessage(message: string): void {
    if (this.isFinished || message === this.#message) return;
    this.#message = message;
    this.#updatedAt = new Date().toISOString();
  }

  async ask(request: Request, options: AskOptions = {}): Promise<Result> {
    this.#abort.signal.throwIfAborted();
    if (this.isFinished) throw new Error("The task is finished and can send no more requests to the client");
    return this.#inputs.ask(request, options);
  }

  /** Answers the open requests with these keys. Throws if a response is invalid. */
  update(responses: { readonly [key: string]: unknown }): void {
    this.#inputs.answer(responses);
  }

  /** Fails the task if the result cannot be sent as JSON. */
  complete(result: Result): void {
    try {
      JSON.stringify(result);
    } catch (error) {
      this.fail(McpError.of("internal_error", `The result cannot be sent as JSON: ${errorMessage(error)}`));
      return;
    }
    this.#end("completed", { result });
  }

  /** Never throws, even if the thrown value is a Proxy whose traps throw. */
  fail(error: unknown): void {
    let body: ReturnType<McpError["toBody"]>;
    try {
      body = (error instanceof McpError ? error : McpError.of("internal_error", errorMessage(error))).toBody();
      JSON.stringify(body);
    } catch {
      body = McpError.of("internal_error", "The tool threw a value that cannot be read").toBody();
    }
    this.#end("failed", { error: body }, body.message);
  }

  cancel(reason: string): void {
    this.#end("cancelled", undefined, reason);
    this.#abort.abort(new Error(reason));
  }

  /** Ends the task at the end of its lifetime and aborts a tool that is still running. */
  expire(): void {
    if (this.isFinished) return;
    const error = McpError.of("timeout", `The task did not finish within its lifetime of ${this.#times.ttlMs} ms`);
    this.fail(error);
    this.#abort.abort(error);
  }

  /** Calls `watcher` after every change except a new status message. Returns a function that stops it. */
  follow(watcher: TaskWatcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #end(status: TaskStatus, outcome: Outcome | undefined, message?: string): void {
    if (this.isFinished) return;
    this.#outcome = outcome;
    this.#message = message;
    this.#inputs.drop(new Error("The task is finished"));
    this.#move(status);
  }

  #move(status: TaskStatus): void {
    if (this.isFinished) return;
    this.#status = status;
    this.#updatedAt = new Date().toISOString();
    // Several changes in one tick cause one notification.
    if (this.#isNotifying || this.#watchers.size === 0) return;
    this.#isNotifying = true;
    queueMicrotask(() => {
      this.#isNotifying = false;
      const detailed = this.detailed();
      for (const watcher of [...this.#watchers]) watcher(detailed);
    });
  }
}
