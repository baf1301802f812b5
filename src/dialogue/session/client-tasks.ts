// Tasks for clients of the last session-style revision. Such a client requests a task with a field of its call, waits
// for the result with a blocking `tasks/result`, and can list its tasks. The handler gets requests of the newest
// revision, so this works for any handler with the tasks extension. A session remembers only the tasks that it has
// seen. The handler decides who owns a task, who may see it, and how long it is kept.

import { afterEvents } from "../../core/async.ts";
import type { Context, Caller, Handler, Notification, Params, Request, Result, TaskWish } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INVALID_PARAMS, invalidParams, McpError, methodNotFound, errorKind } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import { page, type PageItem } from "../../protocol/pages.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { withTasksExtension, type ToolExecution } from "../../protocol/tasks.ts";
import type { Carrier } from "../../transport/carrier.ts";
import { callWithInput } from "../calls/input-required.ts";
import { IncreasingProgress } from "../calls/progress.ts";
import { taskOutcome, waitForTask, type TaskWaiter, TaskInputRequests } from "../../tasks/completion.ts";
import {
  checkTaskScopes,
  hasIdentity,
  initialTaskState,
  TaskTable,
  TaskWatch,
  type KnownTask,
} from "../../tasks/watch.ts";

const PAGE_SIZE = 100;
/** How long the result of a call that was answered without a task is kept. */
const LOCAL_TTL_MS = 600_000;
const MAX_TASKS = 1_000;
const MAX_LOCAL_TASKS = 100;
const OPTIONAL: ToolExecution = { taskSupport: "optional" };

/** The functions of the session that ClientTasks uses. */
export interface ClientTasksHost {
  readonly handler: Handler;
  readonly revision: Revision;
  /** The context for work outside any call. */
  defaultContext(): Context;
  /** Sends a notification to the client outside any call. */
  deliver(notification: Notification): void;
}

interface ClientTask extends KnownTask {
  readonly inputRequests: TaskInputRequests;
  /** The name of the tool, for error messages. */
  readonly tool: unknown;
}

export class ClientTasks {
  readonly #host: ClientTasksHost;
  readonly #tasks = new TaskTable<ClientTask>(MAX_TASKS);
  /** Tasks that were finished when they became known. Perhaps only this session has their results. */
  readonly #local = new TaskTable<ClientTask>(MAX_LOCAL_TASKS);

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
        return this.#lower(await task.watch.refresh(declared));
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

  async #create({ method, params: given }: Request, context: Context): Promise<Result> {
    const { task, ...params } = given;
    const ttl = isObject(task) ? task["ttl"] : null;
    if (ttl !== undefined && !Number.isInteger(ttl)) {
      throw invalidParams("Invalid params for tools/call: `task` must be an object whose `ttl` is an integer");
    }
    const progress = new IncreasingProgress(params._meta?.[META.progressToken]);
    const created: { watch?: TaskWatch } = {};
    // Once the call is answered, its notifications are sent outside the call, with the id of the task.
    const notify = (notification: Notification): void => {
      const { watch } = created;
      // The tool may still run after its task is finished.
      if (watch?.isFinished === true) return;
      const event = notification.method === "notifications/progress" ? progress.next(notification) : notification;
      if (event === undefined) return;
      if (watch === undefined) context.notify(event);
      else this.#host.deliver({ method: event.method, params: withRelatedTask(event.params, watch.id) });
    };
    const wish: TaskWish = { mode: "required", ...(isObject(task) && { params: task }) };
    const call: Context = { ...withTasksExtension(context), notify, task: wish };
    const result = await callWithInput(this.#host.handler, { method, params }, call);
    const isTask = result.resultType === "task";
    const watch = isTask ? this.#watch(initialTaskState(result), call) : this.#finished(result, context);
    created.watch = watch;
    this.#add(watch, params["name"], context.caller);
    // Subscribe later, so that the client gets the task before the task's first notification.
    afterEvents(() => watch.subscribe());
    // This revision requires every task to begin as "working", even if it is already finished.
    const { _meta, ...fields } = this.#lower({ ...watch.state, status: "working" });
    return _meta === undefined ? { task: fields } : { task: fields, _meta };
  }

  /** Presents a call that was answered without a task as a finished task, served by a handler of its own. */
  #finished(result: Result, context: Context): TaskWatch {
    const now = new Date().toISOString();
    const taskId = crypto.randomUUID();
    const times = { createdAt: now, lastUpdatedAt: now, ttlMs: LOCAL_TTL_MS };
    const state = { taskId, status: "completed", ...times, result };
    return this.#watch(state, context, async (_request, { caller }) => {
      checkTaskScopes(caller, context.caller);
      return state;
    });
  }

  #watch(state: Json, { caller }: Context, handler: Handler = this.#host.handler): TaskWatch {
    let last: unknown = "working";
    return new TaskWatch(handler, { ...this.#host.defaultContext(), caller }, state, (now) => {
      if (now["status"] === last) return;
      last = now["status"];
      this.#host.deliver({ method: "notifications/tasks/status", params: this.#lower(now) });
    });
  }

  #add(watch: TaskWatch, tool: unknown, caller: Caller): ClientTask {
    const table = watch.isFinished ? this.#local : this.#tasks;
    return table.add({ watch, tool, caller, inputRequests: new TaskInputRequests() });
  }

  /** Compares the principal, since each message of a session is authenticated separately. */
  #known(id: string, { principal }: Caller): ClientTask | undefined {
    const task = this.#tasks.get(id) ?? this.#local.get(id);
    return task?.caller.principal === principal ? task : undefined;
  }

  /** Asks the handler about a task that this session has not seen, since the task may still belong to the client. */
  async #find(id: string, context: Context): Promise<ClientTask> {
    const known = this.#known(id, context.caller);
    if (known !== undefined) return known;
    const state = await this.#host.handler({ method: "tasks/get", params: { taskId: id } }, context);
    const meanwhile = this.#known(id, context.caller);
    if (meanwhile !== undefined) return meanwhile;
    const watch = this.#watch(state, context);
    const task = this.#add(watch, "the tool", context.caller);
    watch.subscribe();
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
    const ids = new Set(listed?.map(({ taskId }) => taskId));
    const own = [...(listed === undefined ? this.#tasks.all() : []), ...this.#local.all()].filter(
      (task) => task.caller.principal === caller.principal && !ids.has(task.watch.id),
    );
    const fromHandler = (listed ?? []).map((state) => {
      const watch = this.#known(state.taskId, caller)?.watch;
      // A task that the client cancelled in this session is finished, even if the handler still runs it.
      return listItem(state, async () => (watch?.isFinished === true ? watch.state : state));
    });
    const all = [...fromHandler, ...own.map((task) => listItem(task.watch.state, () => this.#stateOf(task, context)))];
    const sorted = all.toSorted((a, b) => a.order - b.order);
    const { items, nextCursor } = page("tasks/list", sorted, cursor, PAGE_SIZE);
    const states = await Promise.all(items.map(({ state }) => state()));
    const tasks = states.flatMap((state) => (state === undefined ? [] : this.#lower(state)));
    return nextCursor === undefined ? { tasks } : { tasks, nextCursor };
  }

  /** The tasks of the caller's principal; undefined if the handler cannot list tasks. */
  async #listFromHandler(context: Context): Promise<readonly TaskState[] | undefined> {
    try {
      const { tasks } = await this.#host.handler({ method: "tasks/list", params: {} }, context);
      const isTask = (task: unknown): task is TaskState => isObject(task) && typeof task["taskId"] === "string";
      return Array.isArray(tasks) ? tasks.filter(isTask) : undefined;
    } catch (error) {
      if (errorKind(error) === "method_not_found") return undefined;
      throw error;
    }
  }

  /** Undefined if the task is gone, or the caller may not see it. */
  async #stateOf(task: ClientTask, context: Context): Promise<Json | undefined> {
    const { watch } = task;
    try {
      return watch.isSubscribed && !hasIdentity(context.caller) ? watch.state : await watch.refresh(context);
    } catch (error) {
      if (errorKind(error) === "access_denied") return undefined;
      if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) throw error;
      // The handler no longer has the task.
      this.#tasks.drop(task);
      this.#local.drop(task);
      return undefined;
    }
  }

  async #result({ watch, inputRequests, tool }: ClientTask, context: Context, carrier: Carrier): Promise<Result> {
    const { handler } = this.#host;
    const ask: TaskWaiter["ask"] = ({ method, params }, options) =>
      context.ask({ method, params: withRelatedTask(params, watch.id) }, options);
    const state = await waitForTask(watch, inputRequests, { handler, context, tool, carrier, ask });
    return withRelatedTask(this.#host.revision.lower.result("tools/call", taskOutcome(state)), watch.id);
  }

  async #cancel({ watch }: ClientTask, context: Context): Promise<Result> {
    await watch.refresh(context);
    if (!watch.isFinished) {
      await this.#host.handler({ method: "tasks/cancel", params: { taskId: watch.id } }, context);
      // The handler may stop late or never. For this client the task is cancelled now.
      const message = "The task was cancelled by request";
      const cancelled = { status: "cancelled", statusMessage: message, lastUpdatedAt: new Date().toISOString() };
      const { inputRequests: _asked, ...state } = watch.state;
      watch.update({ ...state, ...cancelled });
      if (watch.state["status"] === "cancelled") return this.#lower(watch.state);
    }
    const status = String(watch.state["status"]);
    throw invalidParams(`Cannot cancel the task: it is already ${status}`, { taskId: watch.id, status });
  }

  #lower(state: Json): Result {
    return this.#host.revision.lower.result("tasks/get", { ...state, resultType: "complete" });
  }
}

function withRelatedTask(fields: Params | undefined, taskId: string): Params {
  return { ...fields, _meta: { ...fields?._meta, [META.relatedTask]: { taskId } } };
}

type TaskState = Json & { readonly taskId: string };

interface ListedTask extends PageItem {
  /** The state in the shape of the newest revision. */
  readonly state: () => Promise<Json | undefined>;
}

function listItem({ taskId, createdAt }: Json, state: ListedTask["state"]): ListedTask {
  return { order: Date.parse(String(createdAt)) || 0, key: String(taskId), state };
}
