// Tool calls that run as tasks, and the methods `tasks/*`. A call of a tool that supports tasks runs here. It is a task
// from the start, or becomes one when the tool calls `context.detach()`. It stays a plain call if the tool never does
// that, or if there are too many tasks. This file is loaded when first needed.

import { demandScopes, permits } from "../auth/bearer/scopes.ts";
import { onAbort, unref } from "../core/async.ts";
import type { AskOptions, Caller, Context, Request, Result } from "../core/handler.ts";
import { errorMessage } from "../core/values.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { invalidParams, McpError, methodNotFound } from "../protocol/errors.ts";
import type { DetailedTask, InputResponse, Task as TaskFields, TaskStatus } from "../protocol/model/index.ts";
import { PendingInputs } from "../protocol/client-requests.ts";
import { hasTasks, isTaskFinished, tasksNotDeclared } from "../protocol/tasks.ts";
import type { RetryInput } from "./call-context.ts";
import { InputRequired, type InputRequiredCodec } from "./input-required.ts";
import type { TaskLimits, TaskOptions } from "./options.ts";
import type { ResultBuilder } from "./result-builder.ts";
import type { TaskSubscription } from "./subscriptions.ts";

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
  run(context: Context, retry: RetryInput, detach: () => void): Promise<Result | InputRequired>;
}

export class Tasks {
  readonly #results: ResultBuilder;
  readonly #inputs: InputRequiredCodec;
  readonly #store: TaskStore;

  constructor(results: ResultBuilder, inputs: InputRequiredCodec, limits: TaskLimits) {
    this.#results = results;
    this.#inputs = inputs;
    this.#store = new TaskStore(limits);
  }

  /** Returns a task or the tool's result, depending on what the tool and the caller support. */
  async call(call: TaskCall): Promise<Result> {
    const { context, options, name } = call;
    const isRequired = options.support === "required";
    if (!hasTasks(context.caller.capabilities)) {
      if (isRequired) throw tasksNotDeclared(`Tool ${name} always runs as a task and`);
      return this.#run(call, context, () => undefined);
    }
    // At the limit, a tool with optional tasks runs as a plain call.
    if (isRequired && !this.#store.hasCapacity(context.caller)) {
      throw McpError.of("rate_limited", "Too many tasks; try again after some have expired");
    }
    return new Promise<Result>((resolve, reject) => this.#begin(call, resolve, reject));
  }

  get(request: Request, context: Context): Result {
    return this.#results.complete(this.#find(request, context).detailed());
  }

  update(request: Request, context: Context): Result {
    this.#find(request, context).update(request.params["inputResponses"] as Record<string, unknown>);
    return this.#results.complete({});
  }

  /** A finished task stays as it is. */
  cancel(request: Request, context: Context): Result {
    this.#find(request, context).cancel("The task was cancelled by request");
    return this.#results.complete({});
  }

  /** All tasks of this caller. Only for callers of an older revision, since the newest has no such method. */
  list({ method }: Request, context: Context): Result {
    const { caller } = context;
    if (caller.style !== "session") throw methodNotFound(method);
    checkDeclared(method, context);
    const stored = this.#store.all(caller).filter(({ scopes }) => permits(scopes, caller));
    return this.#results.complete({ tasks: stored.map(({ task }) => task.detailed()) });
  }

  /** A subscription to those of the tasks that belong to the caller, or undefined if there are none. */
  watch(ids: readonly string[], context: Context): TaskSubscription | undefined {
    checkDeclared("A subscription to tasks", context);
    const stored = [...new Set(ids)].flatMap((id) => this.#store.find(id, context.caller) ?? []);
    if (stored.length === 0) return undefined;
    const tasks = stored.map(({ task }) => task);
    return {
      granted: { taskIds: tasks.map(({ id }) => id) },
      scopes: stored.flatMap(({ scopes = [] }) => scopes),
      begin: (end) => notifyChanges(tasks, context, end),
    };
  }

  close(): void {
    this.#store.close();
  }

  #begin(call: TaskCall, resolve: (result: Result) => void, reject: (error: unknown) => void): void {
    const { context, options, scopes } = call;
    const abort = new AbortController();
    let isDone = false;
    let stored: StoredTask | undefined;
    const forget = onAbort(context.signal, () => abort.abort(context.signal.reason));
    if (context.signal.aborted) abort.abort(context.signal.reason);
    const detach = (): void => {
      if (stored !== undefined || isDone || abort.signal.aborted) return;
      stored = this.#store.add(abort, options, context.caller, scopes);
      if (stored === undefined) return;
      // The request is answered now, so its cancellation no longer affects the task.
      forget();
      resolve({ resultType: "task", ...stored.task.fields(), _meta: this.#results.meta });
    };
    if (options.when !== "when-detached") detach();
    const finish = (settleTask: (task: Task) => void, answer: () => void): void => {
      isDone = true;
      forget();
      if (stored === undefined) answer();
      else {
        this.#store.markDone(stored);
        settleTask(stored.task);
      }
    };
    const own = taskContext(context, abort.signal, () => stored?.task);
    this.#run(call, own, detach, () => stored?.task).then(
      (result) =>
        finish(
          (task) => task.complete(result),
          () => resolve(result),
        ),
      (error: unknown) =>
        finish(
          (task) => task.fail(error),
          () => reject(error),
        ),
    );
  }

  /** Runs the tool. If it needs input, a task asks for it and runs the tool again; a plain call must be retried. */
  async #run(call: TaskCall, context: Context, detach: () => void, task?: () => Task | undefined): Promise<Result> {
    let { retry } = call;
    for (let round = 1; round <= MAX_INPUT_ROUNDS; round += 1) {
      const value = await call.run(context, retry, detach);
      if (!(value instanceof InputRequired)) return value;
      const asking = task?.();
      if (asking === undefined) return this.#inputs.encode(value, call.request, call.context);
      retry = { answers: await askAll(asking, value, context), state: value.state };
    }
    throw McpError.of("rate_limited", `Tool ${call.name} has asked for input ${MAX_INPUT_ROUNDS} times`);
  }

  /** A task of another principal gives the same error as an unknown one, so that callers learn nothing about it. */
  #find({ method, params }: Request, context: Context): Task {
    checkDeclared(method, context);
    const { taskId } = params;
    const stored = this.#store.find(taskId, context.caller);
    if (stored === undefined) {
      throw invalidParams("Unknown task: there is none with this id, or it has expired", { taskId });
    }
    demandScopes(stored.scopes, context.caller, `The task ${stored.task.id}`);
    return stored.task;
  }
}

function checkDeclared(what: string, { caller }: Context): void {
  if (!hasTasks(caller.capabilities)) throw tasksNotDeclared(what);
}

/** The tool's context. It is like the caller's, but once the call is a task, the task sends requests to the client. */
function taskContext(context: Context, signal: AbortSignal, task: () => Task | undefined): Context {
  const { revision, caller, logLevel, timeouts } = context;
  // A stateless request ends with its answer, so no later notification can belong to it.
  const isSession = caller.style === "session";
  return {
    revision,
    caller,
    signal,
    ...(logLevel === undefined ? undefined : { logLevel }),
    ...(timeouts === undefined ? undefined : { timeouts }),
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
  const checked = Object.entries(requests).map(([key, { method, params }]) => {
    const request: Request = { method, params: params ?? {} };
    checkClientRequest(request, caller.capabilities);
    return { key, request };
  });
  const answers = await Promise.all(
    checked.map(async ({ key, request }) => {
      const answer = await task.ask(request, { key });
      return [key, answer as unknown as InputResponse] as const;
    }),
  );
  return Object.fromEntries(answers);
}

/** Sends the current state of each task first, so that no change before the subscription is missed. */
function notifyChanges(tasks: readonly Task[], context: Context, end: () => void): () => void {
  const watching = new Map<string, () => void>();
  const watcher = (detailed: DetailedTask): void => {
    context.notify({ method: "notifications/tasks", params: { ...detailed } });
    if (!isTaskFinished(detailed.status)) return;
    watching.get(detailed.taskId)?.();
    watching.delete(detailed.taskId);
    if (watching.size === 0) end();
  };
  for (const task of tasks) watching.set(task.id, task.watch(watcher));
  for (const task of tasks) watcher(task.detailed());
  return () => {
    for (const unwatch of watching.values()) unwatch();
  };
}

const SWEEP_MS = 1_000;

interface StoredTask {
  readonly task: Task;
  readonly principal: string | undefined;
  /** The scopes of the tool. Every request about the task needs them too. */
  readonly scopes: readonly string[] | undefined;
  readonly expires: number;
  /** Whether the tool has returned or thrown. A tool may ignore its signal and run on after its task is forgotten. */
  isDone: boolean;
  /** Whether the store has removed the task. A task counts against the limits until it is both done and forgotten. */
  isForgotten: boolean;
}

/**
 * The tasks of a server. Only the principal that created a task can find it. The number of tasks is limited, in total
 * and for each principal, and so is their lifetime. One timer serves all tasks.
 */
class TaskStore {
  readonly #limits: Required<TaskLimits>;
  readonly #tasks = new Map<string, StoredTask>();
  readonly #counts = new Map<string | undefined, number>();
  #total = 0;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(limits: TaskLimits) {
    this.#limits = {
      max: limits.max ?? 1_000,
      maxPerCaller: limits.maxPerCaller ?? 100,
      ttlMs: limits.ttlMs ?? 3_600_000,
      maxTtlMs: limits.maxTtlMs ?? 86_400_000,
      pollIntervalMs: limits.pollIntervalMs ?? 1_000,
    };
  }

  hasCapacity({ principal }: Caller): boolean {
    return this.#total < this.#limits.max && (this.#counts.get(principal) ?? 0) < this.#limits.maxPerCaller;
  }

  /** Adds a task that aborts its tool through `abort`. Returns undefined if there are too many. */
  add(
    abort: AbortController,
    options: TaskOptions,
    caller: Caller,
    scopes: readonly string[] | undefined,
  ): StoredTask | undefined {
    if (!this.hasCapacity(caller)) return undefined;
    const { ttlMs, maxTtlMs, pollIntervalMs } = this.#limits;
    const task = new Task(abort, {
      ttlMs: Math.min(options.ttlMs ?? ttlMs, maxTtlMs),
      pollIntervalMs: options.pollIntervalMs ?? pollIntervalMs,
    });
    const { principal } = caller;
    const expires = performance.now() + task.ttlMs;
    const stored: StoredTask = { task, principal, scopes, expires, isDone: false, isForgotten: false };
    this.#tasks.set(task.id, stored);
    this.#count(principal, 1);
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), SWEEP_MS));
    return stored;
  }

  find(id: unknown, { principal }: Caller): StoredTask | undefined {
    const stored = this.#tasks.get(id as string);
    if (stored === undefined || stored.principal !== principal) return undefined;
    if (stored.expires > performance.now()) return stored;
    this.#expire(stored);
    return undefined;
  }

  /** All tasks of this principal, oldest first. */
  all({ principal }: Caller): readonly StoredTask[] {
    const now = performance.now();
    return [...this.#tasks.values()].filter((stored) => stored.principal === principal && stored.expires > now);
  }

  /** Call this when the tool has returned or thrown. */
  markDone(stored: StoredTask): void {
    stored.isDone = true;
    if (stored.isForgotten) this.#count(stored.principal, -1);
  }

  close(): void {
    for (const stored of this.#tasks.values()) {
      stored.task.cancel("The server is closing");
      this.#forget(stored);
    }
  }

  #count(principal: string | undefined, change: 1 | -1): void {
    this.#total += change;
    const count = (this.#counts.get(principal) ?? 0) + change;
    if (count === 0) this.#counts.delete(principal);
    else this.#counts.set(principal, count);
  }

  #sweep(): void {
    const now = performance.now();
    for (const stored of this.#tasks.values()) if (stored.expires <= now) this.#expire(stored);
  }

  #expire(stored: StoredTask): void {
    stored.task.expire();
    this.#forget(stored);
  }

  #forget(stored: StoredTask): void {
    if (!this.#tasks.delete(stored.task.id)) return;
    stored.isForgotten = true;
    if (stored.isDone) this.#count(stored.principal, -1);
    if (this.#tasks.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

type Outcome = { readonly result: Result } | { readonly error: ReturnType<McpError["toBody"]> };

type TaskWatcher = (task: DetailedTask) => void;

/**
 * One task. Its status alternates between working and input_required until the task is finished, and then never changes
 * again, whatever the tool does.
 */
export class Task {
  readonly id: string = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  readonly ttlMs: number;
  readonly #pollIntervalMs: number;
  /** Aborts the tool. */
  readonly #abort: AbortController;
  readonly #inputs = new PendingInputs(() => this.#move(this.#inputs.size === 0 ? "working" : "input_required"));
  readonly #watchers = new Set<TaskWatcher>();
  readonly #createdAt = new Date().toISOString();
  #updatedAt = this.#createdAt;
  #status: TaskStatus = "working";
  #message: string | undefined;
  #outcome: Outcome | undefined;
  #isNotifying = false;

  constructor(abort: AbortController, times: { readonly ttlMs: number; readonly pollIntervalMs: number }) {
    this.#abort = abort;
    this.ttlMs = times.ttlMs;
    this.#pollIntervalMs = times.pollIntervalMs;
  }

  get isFinished(): boolean {
    return isTaskFinished(this.#status);
  }

  /** The fields that every status has. */
  fields(): TaskFields {
    return {
      taskId: this.id,
      status: this.#status,
      ...(this.#message === undefined ? undefined : { statusMessage: this.#message }),
      createdAt: this.#createdAt,
      lastUpdatedAt: this.#updatedAt,
      ttlMs: this.ttlMs,
      pollIntervalMs: this.#pollIntervalMs,
    };
  }

  detailed(): DetailedTask {
    const inputRequests = this.#inputs.requests;
    return {
      ...this.fields(),
      ...(inputRequests === undefined ? undefined : { inputRequests }),
      ...this.#outcome,
    } as DetailedTask;
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
    const error = McpError.of("timeout", `The task did not finish within its lifetime of ${this.ttlMs} ms`);
    this.fail(error);
    this.#abort.abort(error);
  }

  /** Calls `watcher` after every change except a new status message. Returns a function that stops it. */
  watch(watcher: TaskWatcher): () => void {
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
