// Tasks for clients of the last session-style revision. Such a client requests a task with a field of its call, waits
// for the result with a blocking `tasks/result`, and can list its tasks. The handler gets requests of the newest
// revision, so this works for any handler with the tasks extension. A session remembers only the tasks that it has
// seen. The handler decides who owns a task, who may see it, and how long it is kept.

import { afterEvents } from "../../core/async.ts";
import type {
  AskOptions,
  Caller,
  Context,
  Handler,
  Notification,
  Params,
  Request,
  Result,
} from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INVALID_PARAMS, invalidParams, McpError, methodNotFound, errorKind } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import { page, type PageItem } from "../../protocol/pages.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { withTasksExtension, type ToolExecution } from "../../protocol/tasks.ts";
import { CallerTask, taskOutcome } from "../../tasks/completion.ts";
import { TaskTable } from "../../tasks/store.ts";
import { checkTaskScopes, hasIdentity, initialTaskState, taskRequest } from "../../tasks/watch.ts";
import type { Carrier } from "../../transport/carrier.ts";
import { callWithInput } from "../calls/input-required.ts";
import { IncreasingProgress } from "../calls/call-table.ts";

const PAGE_SIZE = 100;
/** How long the result of a call that was answered without a task is kept. */
const LOCAL_TTL_MS = 600_000;
const MAX_TASKS = 1_000;
const MAX_LOCAL_TASKS = 100;
const OPTIONAL: ToolExecution = { taskSupport: "optional" };

export interface ClientTasksHost {
  readonly handler: Handler;
  readonly revision: Revision;
  /** The context for work outside any call. */
  defaultContext(): Context;
  /** Sends a notification to the client outside any call. */
  deliver(notification: Notification): void;
}

export class ClientTasks {
  readonly #host: ClientTasksHost;
  readonly #tasks = new TaskTable<CallerTask>((task) => task.close(), MAX_TASKS);
  /** Tasks that were finished when they became known. Perhaps only this session has their results. */
  readonly #local = new TaskTable<CallerTask>((task) => task.close(), MAX_LOCAL_TASKS);

  constructor(host: ClientTasksHost) {
    this.#host = host;
  }

  /** Returns the result in the client's revision. `carrier` takes the reply to the client. */
  async answer(request: Request, context: Context, carrier: Carrier): Promise<Result> {
    const declared = withTasksExtension(context);
    const { method, params } = request;
    switch (method) {
      case "tools/list":
        return this.#listTools(request, context);
      case "tools/call":
        return this.#create(request, context);
      case "tasks/list":
        return this.#list(params, declared);
    }
    const task = await this.#find(params["taskId"] as string, declared);
    switch (method) {
      case "tasks/get":
        return this.#lower(await task.refresh(declared));
      case "tasks/result":
        return this.#result(task, declared, carrier);
      case "tasks/cancel":
        return this.#cancel(task, declared);
      default:
        throw methodNotFound(method);
    }
  }

  close(): void {
    this.#tasks.close();
    this.#local.close();
  }

  /**
   * Lists a tool as `optional` if the handler does not say whether it can run as a task. An empty `execution` says that
   * it cannot. Then the field is left out, which means the same in this revision.
   */
  async #listTools(request: Request, context: Context): Promise<Result> {
    const result = await this.#host.handler(request, context);
    const lowered = this.#host.revision.lower.result(request.method, result);
    if (!Array.isArray(lowered["tools"])) return lowered;
    const tools = lowered["tools"].map((tool: unknown) => {
      if (!isObject(tool)) return tool;
      const { execution, ...rest } = tool;
      if (execution === undefined) return { ...tool, execution: OPTIONAL };
      return isObject(execution) && Object.keys(execution).length === 0 ? rest : tool;
    });
    return { ...lowered, tools };
  }

  async #create({ method, params: taskParams }: Request, context: Context): Promise<Result> {
    const { task: taskWish, ...params } = taskParams;
    const ttl = isObject(taskWish) ? taskWish["ttl"] : null;
    if (ttl !== undefined && !Number.isInteger(ttl)) {
      throw invalidParams("Invalid params for tools/call: `task` must be an object whose `ttl` is an integer");
    }
    const progress = new IncreasingProgress(params._meta?.[META.progressToken]);
    const created: { task?: CallerTask } = {};
    // Once the call is answered, its notifications are sent outside the call, with the id of the task.
    const notify = (notification: Notification): void => {
      const { task } = created;
      // The tool may still run after its task is finished.
      if (task?.isFinished === true) return;
      const event = notification.method === "notifications/progress" ? progress.next(notification) : notification;
      if (event === undefined) return;
      if (task === undefined) context.notify(event);
      else this.#host.deliver({ method: event.method, params: withRelatedTask(event.params, task.id) });
    };
    const call: Context = {
      ...withTasksExtension(context),
      notify,
      task: { mode: "required", params: taskWish as Json },
    };
    const result = await callWithInput(this.#host.handler, { method, params }, call);
    const { caller } = context;
    const name = params["name"];
    const task =
      result.resultType === "task"
        ? this.#add(initialTaskState(result), name, call.caller)
        : this.#addFinished(result, name, caller);
    created.task = task;
    // Subscribe later, so that the client gets the task before the task's first notification.
    afterEvents(() => task.subscribe());
    // This revision requires every task to begin as "working", even if it is already finished.
    const { _meta, ...fields } = this.#lower({ ...task.state, status: "working" });
    return _meta === undefined ? { task: fields } : { task: fields, _meta };
  }

  /** Presents a call that was answered without a task as a finished task, served by a handler of its own. */
  #addFinished(result: Result, tool: unknown, creator: Caller): CallerTask {
    const now = new Date().toISOString();
    const times = { createdAt: now, lastUpdatedAt: now, ttlMs: LOCAL_TTL_MS };
    const state = { taskId: crypto.randomUUID(), status: "completed", ...times, result };
    return this.#add(state, tool, creator, async (_request, { caller }) => {
      checkTaskScopes(caller, creator);
      return state;
    });
  }

  #add(state: Json, tool: unknown, caller: Caller, handler: Handler = this.#host.handler): CallerTask {
    let last: unknown = "working";
    const task = new CallerTask(handler, { ...this.#host.defaultContext(), caller }, state, tool, (now) => {
      if (now["status"] === last) return;
      last = now["status"];
      this.#host.deliver({ method: "notifications/tasks/status", params: this.#lower(now) });
    });
    return (task.isFinished ? this.#local : this.#tasks).add(task);
  }

  /** Compares the principal, since each message of a session is authenticated separately. */
  #known(id: string, { principal }: Caller): CallerTask | undefined {
    const task = this.#tasks.get(id) ?? this.#local.get(id);
    return task?.caller.principal === principal ? task : undefined;
  }

  /** Asks the handler about a task that this session has not seen, since the task may still belong to the client. */
  async #find(id: string, context: Context): Promise<CallerTask> {
    const known = this.#known(id, context.caller);
    if (known !== undefined) return known;
    const state = await this.#host.handler(taskRequest("tasks/get", id), context);
    const meanwhile = this.#known(id, context.caller);
    if (meanwhile !== undefined) return meanwhile;
    const task = this.#add(state, "the tool", context.caller);
    task.subscribe();
    return task;
  }

  /**
   * If the client is authenticated and the handler can list tasks, lists the tasks of its principal in all sessions, and
   * those that only this session has. Otherwise lists what this session has seen, so that no client sees the tasks of
   * another.
   */
  async #list({ cursor }: Params, context: Context): Promise<Result> {
    const { caller } = context;
    const listed = caller.principal === undefined ? undefined : await this.#listFromHandler(context);
    const ids = new Set(listed?.map(({ taskId }) => String(taskId)));
    const seen = [...(listed === undefined ? this.#tasks.values() : []), ...this.#local.values()];
    const unlisted = seen.filter((task) => task.caller.principal === caller.principal && !ids.has(task.id));
    const all = [...(listed ?? []), ...unlisted.map(({ state }) => state)].map(listItem);
    const sorted = all.toSorted((a, b) => a.order - b.order);
    const { items, nextCursor } = page("tasks/list", sorted, cursor, PAGE_SIZE);
    const states = await Promise.all(items.map((item) => this.#current(item, ids.has(item.key), context)));
    const tasks = states.flatMap((state) => (state === undefined ? [] : this.#lower(state)));
    return nextCursor === undefined ? { tasks } : { tasks, nextCursor };
  }

  /** The tasks of the caller's principal; undefined if the handler cannot list tasks. */
  async #listFromHandler(context: Context): Promise<readonly Json[] | undefined> {
    try {
      const { tasks } = await this.#host.handler({ method: "tasks/list", params: {} }, context);
      if (!Array.isArray(tasks)) return undefined;
      return tasks.filter((task): task is Json => isObject(task) && typeof task["taskId"] === "string");
    } catch (error) {
      if (errorKind(error) === "method_not_found") return undefined;
      throw error;
    }
  }

  /** The current state of a listed task; undefined if the task is gone, or the caller may not see it. */
  async #current({ key, state }: ListedTask, isFromHandler: boolean, context: Context): Promise<Json | undefined> {
    const task = this.#known(key, context.caller);
    // A task that the client cancelled in this session is finished, even if the handler still runs it.
    if (isFromHandler || task === undefined) return task?.isFinished === true ? task.state : state;
    try {
      return task.isSubscribed && !hasIdentity(context.caller) ? task.state : await task.refresh(context);
    } catch (error) {
      if (errorKind(error) === "access_denied") return undefined;
      if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) throw error;
      // The handler no longer has the task.
      this.#tasks.drop(task);
      this.#local.drop(task);
      return undefined;
    }
  }

  async #result(task: CallerTask, context: Context, carrier: Carrier): Promise<Result> {
    const ask = ({ method, params }: Request, options?: AskOptions): Promise<Result> =>
      context.ask({ method, params: withRelatedTask(params, task.id) }, options);
    const state = await task.complete({ ...context, ask }, { carrier });
    return withRelatedTask(this.#host.revision.lower.result("tools/call", taskOutcome(state)), task.id);
  }

  async #cancel(task: CallerTask, context: Context): Promise<Result> {
    await task.refresh(context);
    if (!task.isFinished) {
      await this.#host.handler(taskRequest("tasks/cancel", task.id), context);
      task.setCancelled();
      if (task.state["status"] === "cancelled") return this.#lower(task.state);
    }
    const status = String(task.state["status"]);
    throw invalidParams(`Cannot cancel the task: it is already ${status}`, { taskId: task.id, status });
  }

  #lower(state: Json): Result {
    return this.#host.revision.lower.result("tasks/get", { ...state, resultType: "complete" });
  }
}

function withRelatedTask(fields: Params | undefined, taskId: string): Params {
  return { ...fields, _meta: { ...fields?._meta, [META.relatedTask]: { taskId } } };
}

interface ListedTask extends PageItem {
  /** The state in the shape of the newest revision. */
  readonly state: Json;
}

function listItem(state: Json): ListedTask {
  const { taskId, createdAt } = state;
  return { order: Date.parse(String(createdAt)) || 0, key: String(taskId), state };
}
