// Presents the tasks of a session-style server in the form of the newest revision: decides which calls become a task,
// and answers requests about tasks. A caller that does not support tasks waits for the outcome. A task belongs to the
// principal that created it. The creator of a task that is older than this connection is unknown, so authenticated
// callers are refused. Callers without an identity may ask for it, since they are not told apart anyway.

import { afterEvents } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Caller, Context, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json } from "../../protocol/revision.ts";
import { cannotBeTask, hasTasks, type TaskSupport, withTasksExtension } from "../../protocol/tasks.ts";
import { completeTask, taskOutcome } from "../../tasks/completion.ts";
import { TaskStore, TaskTable, type WatchedTask } from "../../tasks/store.ts";
import { checkTaskScopes, hasIdentity, taskRequest } from "../../tasks/watch.ts";
import type { Abandonment } from "../calls/peer.ts";
import { canCancel, liftTask, ServerTask, type ServerTasksHost } from "./server-task.ts";

/** The TTL to request if the caller names none. The server may choose another. */
const DEFAULT_TTL_MS = 3_600_000;
const MAX_TASKS = 1_000;
const MAX_EARLY_STATUSES = 100;

export class ServerTasks extends TaskStore {
  readonly #host: ServerTasksHost;
  readonly #tasks = new TaskTable<ServerTask>((task) => this.#dropped(task), MAX_TASKS);
  /** By progress token, which is the id of the call that created the task. */
  readonly #byToken = new Map<unknown, ServerTask>();
  /** Calls that create tasks. */
  readonly #creating = new Set<Promise<unknown>>();
  /** By task: the last status that came before the answer of such a call. */
  readonly #early = new ExpiringMap<string, Params>({ maxEntries: MAX_EARLY_STATUSES });

  constructor(host: ServerTasksHost) {
    super();
    this.#host = host;
  }

  /** Calls a tool, as a task if the caller requests one or the tool requires it. */
  async call(request: Request, context: Context, support: TaskSupport): Promise<Result> {
    if (support === "forbidden") throw cannotBeTask(request.params["name"]);
    const declared = hasTasks(context.caller.capabilities);
    const requested = context.task?.mode;
    const isRequested = declared && (requested === "required" || (requested !== undefined && support === "optional"));
    if (support !== "required" && !isRequested) return this.#host.plain(request, context);
    const creating = this.#create(request, context, !declared);
    this.#creating.add(creating);
    const created = await creating.finally(() => {
      this.#creating.delete(creating);
      if (this.#creating.size === 0) this.#early.clear();
    });
    if (declared || created.resultType !== "task") return created;
    return taskOutcome(await completeTask(this.#host.handler, created, request, withTasksExtension(context)));
  }

  async get(id: string, context: Context): Promise<Json> {
    return (await this.#find(id, context)).refresh();
  }

  async update(id: string, responses: Json, context: Context): Promise<void> {
    (await this.#find(id, context)).inputs.answer(responses);
  }

  async cancel(id: string, context: Context): Promise<void> {
    await (await this.#find(id, context)).cancel(context);
  }

  async list({ caller }: Context): Promise<readonly Json[]> {
    const owned = this.#tasks.values().filter((task) => task.caller.principal === caller.principal);
    const states = await Promise.all(owned.map((task) => task.refresh().catch(() => undefined)));
    return states.filter((state) => state !== undefined);
  }

  async watch(ids: readonly string[], context: Context): Promise<readonly WatchedTask[]> {
    const tasks = await Promise.all(ids.map((id) => this.#find(id, context).catch(() => undefined)));
    return tasks.filter((task) => task !== undefined);
  }

  /** Finds the task that a request of the server names. It may come before the answer that creates the task. */
  async named(id: string): Promise<ServerTask | undefined> {
    if (!this.#tasks.has(id)) await Promise.allSettled(this.#creating);
    return this.#tasks.get(id);
  }

  onStatus(params: Params): void {
    const id = String(params["taskId"]);
    const task = this.#tasks.get(id);
    if (task !== undefined) takeStatus(task, params);
    else if (this.#creating.size > 0) this.#early.set(id, params);
  }

  /** Progress under a token of no call in flight. The answer that creates its task may be known only in the next turn. */
  onProgress(params: Params): void {
    const token = params[META.progressToken];
    if (this.#byToken.has(token)) this.#byToken.get(token)?.passProgress(params);
    else if (this.#creating.size > 0) afterEvents(() => this.#byToken.get(token)?.passProgress(params));
  }

  async #create(request: Request, context: Context, waits: boolean): Promise<Result> {
    const { caller } = context;
    const hasToken = request.params._meta?.[META.progressToken] !== undefined;
    let token: number | undefined;
    const answer = await this.#host.send(request, context, {
      extraParams: { task: context.task?.params ?? { ttl: DEFAULT_TTL_MS } },
      onSent: (id) => (token = hasToken ? id : undefined),
      abandonment: this.#abandonUnnamed(caller),
    });
    const raw = answer["task"];
    if (context.signal.aborted) this.#cancelAbandoned(caller, raw);
    context.signal.throwIfAborted();
    // The server may answer without a task after all.
    if (!isObject(raw)) return this.#host.terms.revision.lift.result(request.method, answer);
    // A stateless call ends with its answer, so no later progress can be delivered in it.
    const canNotify = waits || caller.style === "session";
    const onProgress = (notification: Notification): void => context.notify(notification);
    const task = this.#tasks.add(new ServerTask(this.#host, caller, raw, token, canNotify ? onProgress : undefined));
    if (token !== undefined) this.#byToken.set(token, task);
    const early = this.#early.get(task.id);
    if (early !== undefined) takeStatus(task, early);
    const { _meta } = answer;
    const created: Result = { ...liftTask(this.#host, raw), resultType: "task" };
    return _meta === undefined ? created : { ...created, _meta };
  }

  #dropped(task: ServerTask): void {
    task.close();
    this.#byToken.delete(task.token);
  }

  async #find(id: string, context: Context): Promise<ServerTask> {
    const { caller } = context;
    const known = this.#tasks.get(id);
    if (known === undefined ? hasIdentity(caller) : known.caller.principal !== caller.principal)
      throw invalidParams("Unknown task: it does not exist, or no longer exists", { taskId: id });
    if (known !== undefined) {
      checkTaskScopes(caller, known.caller);
      return known;
    }
    const raw = await this.#host.send(taskRequest("tasks/get", id), context);
    const meanwhile = this.#tasks.get(id);
    if (meanwhile !== undefined) return meanwhile;
    const task = this.#tasks.add(new ServerTask(this.#host, caller, raw));
    await task.take(raw);
    return task;
  }

  /**
   * What to do if the caller leaves before the server has sent the id of the task: the task is cancelled when the answer
   * arrives, since `tasks/cancel` needs an id.
   */
  #abandonUnnamed(caller: Caller): Abandonment {
    const ask = (): Promise<never> => Promise.reject(new ConnectionError("cancelled", "The caller has left the call"));
    return {
      context: { ...this.#host.defaultContext, caller, notify: () => undefined, ask },
      onLateAnswer: (answer) => this.#cancelAbandoned(caller, answer["task"]),
    };
  }

  /** Failures are ignored, since no caller is left to report them to. */
  #cancelAbandoned(caller: Caller, raw: unknown): void {
    if (!isObject(raw) || !canCancel(this.#host)) return;
    const request = taskRequest("tasks/cancel", String(raw["taskId"]));
    this.#host.send(request, { ...this.#host.defaultContext, caller }).catch(() => undefined);
  }
}

/** If this fails, waiters poll and get the error themselves. */
function takeStatus(task: ServerTask, params: Params): void {
  task.take(params).catch(() => task.wake());
}
