// What keeps tasks: in this process (memory.ts), or over a session with another server
// (dialogue/session/server-tasks.ts). All that goes in and out is data, and everything may take a while, so that a store
// can be shared by several processes. Also what all of them have in common: the answers to `tasks/*`, subscriptions to
// tasks, and the table that drops a task when its lifetime is over.

import { ExpiringMap } from "../core/expiring-map.ts";
import type { Context, Request } from "../core/handler.ts";
import { methodNotFound } from "../protocol/errors.ts";
import { isRequestOf } from "../protocol/methods.ts";
import type { Json } from "../protocol/revision.ts";
import type { TaskSubscription } from "../protocol/subscribers.ts";
import { TASK_CHANGED } from "../protocol/subscription.ts";
import { hasTasks, isTaskFinished, tasksNotDeclared } from "../protocol/tasks.ts";

/**
 * Tasks by id. A task belongs to a principal, and callers without one count as one. The methods throw `invalid_params` for
 * the id of another's task, as for one that does not exist, and `access_denied` if the caller lacks a scope. A state is a
 * task with the fields that belong to its status, in the shape of the newest revision.
 */
export abstract class TaskStore {
  abstract get(id: string, context: Context): Promise<Json>;
  /** Answers input requests of the task by their keys. Unknown keys are ignored. */
  abstract update(id: string, responses: Json, context: Context): Promise<void>;
  /** Resolves when the cancellation is accepted. A finished task stays as it is. */
  abstract cancel(id: string, context: Context): Promise<void>;
  /** The states of the caller's tasks, oldest first. */
  abstract list(context: Context): Promise<readonly Json[]>;
  /** Those of the tasks that exist and belong to the caller. */
  abstract watch(ids: readonly string[], context: Context): Promise<readonly WatchedTask[]>;

  /** Answers `tasks/get`, `tasks/update` and `tasks/cancel`, and `tasks/list` of older revisions. */
  async answer(request: Request, context: Context): Promise<Json> {
    const { method } = request;
    if (method === "tasks/list" && context.caller.style !== "session") throw methodNotFound(method);
    checkDeclared(method, context);
    if (method === "tasks/list") return { tasks: await this.list(context) };
    if (isRequestOf(request, "tasks/get")) return this.get(request.params.taskId, context);
    if (isRequestOf(request, "tasks/update")) {
      await this.update(request.params.taskId, request.params.inputResponses, context);
    } else if (isRequestOf(request, "tasks/cancel")) await this.cancel(request.params.taskId, context);
    else throw methodNotFound(method);
    return {};
  }

  /** A subscription to those of the tasks that the caller may see; undefined if there are none. */
  async subscribe(ids: readonly string[], context: Context): Promise<TaskSubscription | undefined> {
    checkDeclared("A subscription to tasks", context);
    const tasks = await this.watch([...new Set(ids)], context);
    if (tasks.length === 0) return undefined;
    return {
      granted: { taskIds: tasks.map(({ id }) => id) },
      scopes: tasks.flatMap(({ scopes }) => scopes),
      begin: (onEnd) => notifyChanges(tasks, context, onEnd),
    };
  }
}

/** A task as far as this process knows it. */
export interface WatchedTask {
  readonly id: string;
  /** The scopes that a subscriber needs. */
  readonly scopes: readonly string[];
  readonly state: Json;
  /**
   * Calls `onChange` after each change, once for several changes in one tick, and `onLost` if no more can be learned.
   * Returns a function that stops this.
   */
  follow(onChange: (state: Json) => void, onLost: () => void): () => void;
}

/** Tasks by id, oldest first, up to a limit. */
export class TaskTable<Task extends WatchedTask> extends ExpiringMap<string, Task> {
  readonly #max: number;
  readonly #onDrop: (task: Task) => void;
  #isClosed = false;

  constructor(onDrop: (task: Task) => void, max = Infinity) {
    super({ onExpired: onDrop });
    this.#max = max;
    this.#onDrop = onDrop;
  }

  /** If the table is full, drops the oldest finished task, or the oldest if none is finished. */
  add(task: Task): Task {
    if (this.size >= this.#max) {
      const all = this.values();
      const oldest = all.find(({ state }) => isTaskFinished(state["status"])) ?? all[0];
      if (all.length >= this.#max && oldest !== undefined) this.drop(oldest);
    }
    const { ttlMs } = task.state;
    this.set(task.id, task, typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : Infinity);
    if (this.#isClosed) this.drop(task);
    return task;
  }

  drop(task: Task): void {
    if (this.delete(task.id)) this.#onDrop(task);
  }

  /** Drops all tasks, and those that are added later. */
  close(): void {
    this.#isClosed = true;
    for (const task of this.values()) this.drop(task);
    this.clear();
  }
}

function checkDeclared(what: string, { caller }: Context): void {
  if (!hasTasks(caller.capabilities)) throw tasksNotDeclared(what);
}

/** Sends the current states first, so that no change before the subscription is missed. */
function notifyChanges(tasks: readonly WatchedTask[], context: Context, onEnd: () => void): () => void {
  const following = new Map<WatchedTask, () => void>();
  const drop = (task: WatchedTask): void => {
    following.get(task)?.();
    following.delete(task);
    if (following.size === 0) onEnd();
  };
  const notify = (task: WatchedTask, params: Json): void => {
    context.notify({ method: TASK_CHANGED, params });
    if (isTaskFinished(params["status"])) drop(task);
  };
  for (const task of tasks) {
    const onChange = (state: Json): void => notify(task, state);
    following.set(
      task,
      task.follow(onChange, () => drop(task)),
    );
  }
  for (const task of tasks) notify(task, task.state);
  return () => {
    for (const stop of following.values()) stop();
  };
}
