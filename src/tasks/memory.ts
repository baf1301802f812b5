// The tasks of a server in this process. Only the principal that created a task can find it. The number of tasks is
// limited, in total and for each principal, and so is their lifetime.

import { Buffer } from "node:buffer";
import type { ForwardedAbort } from "../core/async.ts";
import { FairLimit } from "../core/fair-limit.ts";
import type { AskOptions, Caller, Context, Request, Result } from "../core/handler.ts";
import { defined, errorMessage } from "../core/values.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { Task as TaskFields, TaskStatus } from "../protocol/model/index.ts";
import type { Json } from "../protocol/revision.ts";
import { demandScopes, permits } from "../protocol/scopes.ts";
import { isTaskFinished } from "../protocol/tasks.ts";
import { PendingInputs } from "./pending-inputs.ts";
import { TaskStore, TaskTable, type WatchedTask } from "./store.ts";

/**
 * Limits on the tasks of a server.
 *
 * @example
 * createServer({ name: "notes", version: "1.0.0", tasks: { max: 50, ttlMs: 60_000 } });
 */
export interface TaskLimits {
  /** How many tasks are kept at once, running or finished. Default: 1000. */
  readonly max?: number | undefined;
  /** How many tasks are kept for each principal; clients without a principal count as one. Default: 100. */
  readonly maxPerCaller?: number | undefined;
  /** Lifetime of a task if its tool sets none. Default: one hour. */
  readonly ttlMs?: number | undefined;
  /** Longest lifetime of any task, whatever its tool sets. Default: one day. */
  readonly maxTtlMs?: number | undefined;
  /** How long clients should wait between two polls. Default: one second. */
  readonly pollIntervalMs?: number | undefined;
}

interface TaskTimes {
  readonly ttlMs: number;
  readonly pollIntervalMs: number;
}

export class MemoryTasks extends TaskStore {
  readonly #limits: TaskLimits;
  readonly #places: FairLimit;
  readonly #tasks = new TaskTable<Task>((task) => this.#dropped(task));

  constructor(limits: TaskLimits) {
    super();
    this.#limits = limits;
    this.#places = new FairLimit(limits.max ?? 1_000, limits.maxPerCaller ?? 100);
  }

  async get(id: string, { caller }: Context): Promise<Json> {
    return this.#find(id, caller).state;
  }

  async update(id: string, responses: Json, { caller }: Context): Promise<void> {
    this.#find(id, caller).update(responses);
  }

  async cancel(id: string, { caller }: Context): Promise<void> {
    this.#find(id, caller).cancel("The task was cancelled by request");
  }

  async list({ caller }: Context): Promise<readonly Json[]> {
    const owned = this.#tasks.values().filter(({ principal }) => principal === caller.principal);
    return owned.filter(({ scopes }) => permits(scopes, caller)).map(({ state }) => state);
  }

  async watch(ids: readonly string[], { caller }: Context): Promise<readonly WatchedTask[]> {
    return ids.flatMap((id) => this.#get(id, caller) ?? []);
  }

  hasPlace({ principal }: Caller): boolean {
    if (this.#places.take(principal) !== undefined) return false;
    this.#places.release(principal);
    return true;
  }

  /** Undefined if there are too many tasks. `abort` aborts the tool. */
  add(
    abort: ForwardedAbort,
    wishes: Partial<TaskTimes>,
    { principal }: Caller,
    scopes: readonly string[] | undefined,
  ): Task | undefined {
    if (this.#places.take(principal) !== undefined) return undefined;
    const { ttlMs = 3_600_000, maxTtlMs = 86_400_000, pollIntervalMs = 1_000 } = this.#limits;
    const times = {
      ttlMs: Math.min(wishes.ttlMs ?? ttlMs, maxTtlMs),
      pollIntervalMs: wishes.pollIntervalMs ?? pollIntervalMs,
    };
    return this.#tasks.add(new Task(abort, principal, scopes, times));
  }

  /** Call when the tool of a task has returned or thrown. */
  done(task: Task): void {
    if (!this.#tasks.has(task.id)) this.#places.release(task.principal);
    task.isDone = true;
  }

  close(): void {
    for (const task of this.#tasks.values()) task.cancel("The server is closing");
    this.#tasks.close();
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

  #get(id: string, { principal }: Caller): Task | undefined {
    const task = this.#tasks.get(id);
    return task?.principal === principal ? task : undefined;
  }

  /** The task keeps its place until its tool is done: a tool may ignore its signal. */
  #dropped(task: Task): void {
    task.expire();
    if (task.isDone) this.#places.release(task.principal);
  }
}

/** The fields that every status has. */
type Fields = Omit<TaskFields, "statusMessage"> & { readonly statusMessage: string | undefined };

/**
 * One task. Its status alternates between working and input_required until the task is finished, and then never changes
 * again, whatever the tool does.
 */
export class Task implements WatchedTask {
  readonly id: string = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  readonly principal: string | undefined;
  /** The scopes of the tool. Every request about the task needs them too. */
  readonly scopes: readonly string[];
  /** Whether the tool has returned or thrown. It may run on after its task is finished. */
  isDone = false;
  /** Aborts the tool. */
  readonly #abort: ForwardedAbort;
  readonly #inputs = new PendingInputs(() => this.#move(this.#inputs.size === 0 ? "working" : "input_required"));
  readonly #watchers = new Set<(state: Json) => void>();
  #fields: Fields;
  /** The field `result` or `error` of a finished task. */
  #outcome: Json | undefined;
  #isNotifying = false;

  constructor(
    abort: ForwardedAbort,
    principal: string | undefined,
    scopes: readonly string[] | undefined,
    times: TaskTimes,
  ) {
    this.#abort = abort;
    this.principal = principal;
    this.scopes = scopes ?? [];
    const now = new Date().toISOString();
    const status = "working";
    this.#fields = { taskId: this.id, status, statusMessage: undefined, createdAt: now, lastUpdatedAt: now, ...times };
  }

  get fields(): TaskFields {
    return defined(this.#fields);
  }

  get state(): Json {
    const { requests: inputRequests } = this.#inputs;
    return { ...this.fields, ...defined({ inputRequests }), ...this.#outcome };
  }

  get isFinished(): boolean {
    return isTaskFinished(this.#fields.status);
  }

  /** Sets the status message. Watchers are not notified, but `tasks/get` returns it. */
  setMessage(message: string): void {
    if (!this.isFinished && message !== this.#fields.statusMessage) this.#set({ statusMessage: message });
  }

  async ask(request: Request, options: AskOptions = {}): Promise<Result> {
    this.#abort.signal.throwIfAborted();
    if (this.isFinished) throw new Error("The task is finished and can send no more requests to the client");
    return this.#inputs.ask(request, options);
  }

  /** Answers the open requests with these keys. Throws if a response is invalid. */
  update(responses: Json): void {
    this.#inputs.answer(responses);
  }

  /** Fails the task if the result cannot be sent as JSON. */
  complete(result: Result): void {
    try {
      JSON.stringify(result);
      this.#end("completed", { result });
    } catch (error) {
      this.fail(McpError.of("internal_error", `The result cannot be sent as JSON: ${errorMessage(error)}`));
    }
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
    const error = McpError.of("timeout", `The task did not finish within its lifetime of ${this.#fields.ttlMs} ms`);
    this.fail(error);
    this.#abort.abort(error);
  }

  /** Calls `watcher` after every change except a new status message. Returns a function that stops it. */
  follow(watcher: (state: Json) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #end(status: TaskStatus, outcome: Json | undefined, statusMessage?: string): void {
    if (this.isFinished) return;
    this.#outcome = outcome;
    this.#set({ statusMessage });
    this.#inputs.drop(new Error("The task is finished"));
    this.#move(status);
  }

  #set(change: Partial<Fields>): void {
    this.#fields = { ...this.#fields, ...change, lastUpdatedAt: new Date().toISOString() };
  }

  #move(status: TaskStatus): void {
    if (this.isFinished) return;
    this.#set({ status });
    // Several changes in one tick cause one notification.
    if (this.#isNotifying || this.#watchers.size === 0) return;
    this.#isNotifying = true;
    queueMicrotask(() => {
      this.#isNotifying = false;
      for (const watcher of [...this.#watchers]) watcher(this.state);
    });
  }
}
