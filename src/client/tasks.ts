// Handles of tasks, for `callToolAsTask` and `task`. There is one handle for each task, so that no input request is
// shown to the user twice. Loaded when the first handle is created.

import { callListener, type ListenerErrors } from "../core/listeners.ts";
import { onAbort } from "../core/async.ts";
import type { Context, Handler, Result } from "../core/handler.ts";
import { callWithInput } from "../dialogue/calls/input-required.ts";
import { CallerTask } from "../tasks/completion.ts";
import { initialTaskState, taskRequest } from "../tasks/watch.ts";
import { INVALID_PARAMS, McpError } from "../protocol/errors.ts";
import type { CallToolResult, DetailedTask, TaskStatus } from "../protocol/model/index.ts";
import type { Json } from "../protocol/revision.ts";
import { isTaskFinished, withTasksExtension } from "../protocol/tasks.ts";
import { type CallOptions, type Calls, resultOfTask } from "./calls.ts";

export interface TaskClient {
  readonly handler: Handler;
  readonly onError: ListenerErrors | undefined;
  readonly calls: Calls;
  /** The context of the connection, for requests that belong to no call. */
  readonly defaultContext: Context;
}

const MAX_HANDLES = 1_000;
/** How many changes an iteration may fall behind. The oldest are dropped. */
const MAX_BUFFERED_CHANGES = 100;

export class Tasks {
  readonly #client: TaskClient;
  /** Handles of tasks that were not over when last seen. */
  readonly #handles = new Map<string, TaskHandle>();

  constructor(client: TaskClient) {
    this.#client = { ...client, defaultContext: withTasksExtension(client.defaultContext) };
  }

  async start(name: string, args: Json, options: CallOptions = {}): Promise<TaskHandle> {
    const { handler, calls } = this.#client;
    const request = calls.createRequest("tools/call", { name, arguments: args }, options);
    const asTask: Context["task"] = { mode: "if-supported" };
    const work = (context: Context): Promise<Result> => callWithInput(handler, request, { ...context, task: asTask });
    const result = await calls.run(request.method, options, work, true);
    if (result.resultType !== "task") return new TaskHandle(this.#client, completedState(result), name);
    return this.#keep(new TaskHandle(this.#client, initialTaskState(result), name));
  }

  async find(taskId: string, options: CallOptions = {}): Promise<TaskHandle> {
    const known = this.#handles.get(taskId);
    if (known !== undefined) {
      await known.refresh(options);
      return known;
    }
    const { handler, calls } = this.#client;
    const find = (context: Context): Promise<Result> => handler(taskRequest("tasks/get", taskId), context);
    const state = await calls.run("tasks/get", options, find, true).catch((error: unknown) => {
      throw unknownTask(taskId, error);
    });
    const { resultType: _complete, ...fields } = state;
    return this.#handles.get(taskId) ?? this.#keep(new TaskHandle(this.#client, fields, "the tool"));
  }

  #keep(handle: TaskHandle): TaskHandle {
    for (const [id, { isOver }] of this.#handles) if (isOver) this.#handles.delete(id);
    const [oldest] = this.#handles.keys();
    if (this.#handles.size >= MAX_HANDLES && oldest !== undefined) this.#handles.delete(oldest);
    this.#handles.set(handle.id, handle);
    return handle;
  }
}

/** The state of a call that the server answered at once, without a task. */
function completedState(result: Result): Json {
  const now = new Date().toISOString();
  return { taskId: "", status: "completed", createdAt: now, lastUpdatedAt: now, ttlMs: null, result };
}

function unknownTask(taskId: string, error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
  const message = `The server has no task ${taskId}: it has expired or never existed (${error.message})`;
  return McpError.of("invalid_params", message, { taskId }, { cause: error });
}

/**
 * One task: its state, its result and its cancellation. While the result is awaited or changes are watched, the handle
 * subscribes to the task, or polls no faster than the server wants. Only `cancel` cancels the task.
 */
export class TaskHandle implements AsyncIterable<DetailedTask> {
  readonly #client: TaskClient;
  readonly #watch: CallerTask;
  #watchers = 0;

  /** Use `client.callToolAsTask()` or `client.task()`. */
  constructor(client: TaskClient, state: Json, tool: string) {
    this.#client = client;
    this.#watch = new CallerTask(client.handler, client.defaultContext, state, tool);
  }

  /** The id of the task; empty if the server answered at once without one. */
  get id(): string {
    return this.#watch.id;
  }

  /** The last known state. */
  get state(): DetailedTask {
    return this.#watch.state as unknown as DetailedTask;
  }

  /** The last known status. */
  get status(): TaskStatus {
    return this.state.status;
  }

  /** Whether the task has completed, failed or been cancelled. */
  get isOver(): boolean {
    return this.#watch.isFinished;
  }

  /** Asks the server for the current state. */
  async refresh(options: CallOptions = {}): Promise<DetailedTask> {
    const refresh = (context: Context): Promise<unknown> => this.#watch.refresh(context);
    await this.#client.calls.run(`refresh() of task ${this.id}`, options, refresh, true);
    return this.state;
  }

  /**
   * Waits for the tool's result and answers the task's input requests. Throws the error that ended the task. A signal
   * or a timeout ends the wait, not the task.
   */
  async result(options: CallOptions = {}): Promise<CallToolResult> {
    const release = this.#subscribe();
    try {
      const wait = (context: Context): Promise<Json> => this.#watch.complete(context, { respectsPollInterval: true });
      const state = await this.#client.calls.run(`result() of task ${this.id}`, options, wait, true);
      return (await resultOfTask(state)) as CallToolResult;
    } finally {
      release();
    }
  }

  /** Resolves when the server has accepted the cancellation. A finished task stays as it is. */
  async cancel(options: CallOptions = {}): Promise<void> {
    if (this.isOver) return;
    const cancel = async (context: Context): Promise<void> => {
      await this.#client.handler(taskRequest("tasks/cancel", this.id), context);
      await this.#watch.refresh(context).catch(() => undefined);
    };
    await this.#client.calls.run(`cancel() of task ${this.id}`, options, cancel, true);
    // The server may take its time or ignore the request. For this handle, the task is cancelled now.
    this.#watch.setCancelled();
  }

  /** Calls the listener with every change until the task is over. Returns a function that stops it. */
  onStatus(listener: (state: DetailedTask) => void): () => void {
    return this.#follow(
      (state) => callListener("onStatus", listener, [state], this.#client.onError),
      () => undefined,
    );
  }

  /** Yields the current state and every change until the task is over. Throws if the task can no longer be observed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<DetailedTask, void, undefined> {
    const buffer: DetailedTask[] = [this.state];
    let wake = (): void => undefined;
    let lost: { readonly error: unknown } | undefined;
    const stop = this.#follow(
      (state) => {
        buffer.push(state);
        if (buffer.length > MAX_BUFFERED_CHANGES) buffer.shift();
        wake();
      },
      (error) => {
        lost = { error };
        wake();
      },
    );
    try {
      for (;;) {
        const state = buffer.shift();
        if (state === undefined) {
          if (lost !== undefined) throw lost.error;
          await new Promise<void>((resolve) => (wake = resolve));
        } else {
          yield state;
          if (isTaskFinished(state.status)) return;
        }
      }
    } finally {
      stop();
    }
  }

  #follow(onChange: (state: DetailedTask) => void, onLost: (error: unknown) => void): () => void {
    const { signal } = this.#client.defaultContext;
    const release = this.#subscribe();
    let last = this.state;
    const unfollow = this.#watch.follow(() => {
      const { state } = this;
      if (summary(state) === summary(last)) return;
      last = state;
      onChange(state);
    }, onLost);
    const forget = onAbort(signal, () => {
      stop();
      onLost(signal.reason);
    });
    let isStopped = false;
    const stop = (): void => {
      if (isStopped) return;
      isStopped = true;
      unfollow();
      forget();
      release();
    };
    return stop;
  }

  /** Subscribes to the task while at least one caller needs it. A caller that is done calls the returned function. */
  #subscribe(): () => void {
    this.#watchers += 1;
    if (this.#watchers === 1) this.#watch.subscribe();
    return () => {
      this.#watchers -= 1;
      if (this.#watchers === 0) this.#watch.unsubscribe();
    };
  }
}

/** The part of a state whose changes are reported. */
function summary(state: DetailedTask): string {
  const inputs = state.status === "input_required" ? Object.keys(state.inputRequests) : [];
  return JSON.stringify([state.status, state.statusMessage, inputs]);
}
