// Tasks of a session-style end, toward a caller that speaks of them in the newest form: which calls are made into one,
// and what is asked of them afterwards. A caller that knows no tasks and calls a tool that is always one waits for its
// end. A task is known to the principal that made it and to nobody else. One that was made before our time is known to
// the end alone: it is let be asked for only by callers of whom nothing is proved, for whose it was nobody can say.

import type { Caller, Context } from "../../core/context.ts";
import type { Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { invalidParams, McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import {
  declaringTasks,
  hasTasks,
  isOver,
  type Listing,
  TASK_TERMS,
  TASK_WANTED,
  TASKS_LISTED,
  tasksUndeclared,
  type TaskSupport,
  type Wanting,
} from "../../protocol/tasks.ts";
import { ServerTask, fieldsOf } from "./end-task.ts";
import type { Besides } from "./session-changes.ts";
import type { Asker, TaskBackHost } from "./task-back-door.ts";
import { outcomeOf, taskToEnd } from "../calls/task-drive.ts";
import { checkAllowed, isProved } from "./task-rights.ts";
import { cancelUnheard, leavingUnheard } from "./unheard-task.ts";

/** How long the end is asked to keep a task of a caller that does not say so; it may decide otherwise. */
const TTL_MS = 3_600_000;
const MOST_TASKS = 1_000;
const MOST_EARLY = 100;

interface Kept {
  readonly task: ServerTask;
  readonly token: number | undefined;
  readonly expires: number;
}

export class SessionTaskBack {
  readonly #host: TaskBackHost;
  /** In the order in which they were heard of. */
  readonly #kept = new Map<string, Kept>();
  /** By the ids of the calls that made them. */
  readonly #tokens = new Map<unknown, ServerTask>();
  readonly #making = new Set<Promise<unknown>>();
  /** What was said last of tasks that may be among those, by their ids. */
  readonly #early = new Map<string, Params>();

  constructor(host: TaskBackHost) {
    this.#host = host;
  }

  /** A call of a tool. Its caller gets no task that the tool cannot be, however it insists. */
  async call(request: Request, context: Context, support: TaskSupport): Promise<Result> {
    if (support === "forbidden") throw neverTask(request.params["name"]);
    const declared = hasTasks(context.caller.capabilities);
    const wanted = (request.params as Wanting)[TASK_WANTED];
    const isWanted = declared && (wanted === true || (wanted !== undefined && support === "optional"));
    if (support !== "required" && !isWanted) return this.#host.plain(request, context);
    const making = this.#make(request, context, !declared);
    this.#making.add(making);
    const made = await making.finally(() => this.#made(making));
    if (declared || made.resultType !== "task") return made;
    return outcomeOf(await taskToEnd(this.#host.handler, made, request, declaringTasks(context)));
  }

  async answer(request: Request, context: Context): Promise<Result> {
    const { method, params } = request;
    checkDeclared(method, context);
    if (method === "tasks/list") return this.#list(request, context);
    if (!ANSWERED.has(method)) throw methodNotFound(method);
    const task = await this.#find(params["taskId"] as string, context);
    switch (method) {
      case "tasks/update":
        task.update(params["inputResponses"] as Json);
        return { resultType: "complete" };
      case "tasks/cancel":
        await task.cancel(context);
        return { resultType: "complete" };
      default:
        return { ...(await task.watch.refresh()), resultType: "complete" };
    }
  }

  async listening(ids: readonly string[], context: Context): Promise<Besides | undefined> {
    checkDeclared("A listen on tasks", context);
    const found = await Promise.all([...new Set(ids)].map((id) => this.#find(id, context).catch(() => undefined)));
    const tasks = found.filter((task) => task !== undefined);
    if (tasks.length === 0) return undefined;
    return {
      granted: { taskIds: tasks.map(({ watch }) => watch.id) },
      begin: (end) => tell(tasks, context, end),
    };
  }

  /** Who answers a question about this task. Its name may be heard before the answer to the call that made it. */
  async asker(id: string): Promise<Asker | undefined> {
    if (!this.#kept.has(id)) await Promise.allSettled(this.#making);
    return this.#kept.get(id)?.task;
  }

  /** The end says how a task stands. */
  hear(said: Params): void {
    const id = String(said["taskId"]);
    const task = this.#kept.get(id)?.task;
    if (task !== undefined) told(task, said);
    else if (this.#making.size > 0 && this.#early.size < MOST_EARLY) this.#early.set(id, said);
  }

  /** Whether the token is that of a task. */
  progress(params: Params): boolean {
    const task = this.#tokens.get(params[META.progressToken]);
    if (task === undefined) return false;
    if (!task.watch.isOver) task.progress?.({ method: "notifications/progress", params });
    return true;
  }

  async #make(request: Request, context: Context, waits: boolean): Promise<Result> {
    let token: number | undefined;
    const sent = (id: number): void => {
      if (request.params._meta?.[META.progressToken] !== undefined) token = id;
    };
    const leaving = leavingUnheard(this.#host, context);
    const more = { task: (request.params as Wanting)[TASK_TERMS] ?? { ttl: TTL_MS } };
    const answer = await this.#host.send(request, context, { more, sent, leaving });
    const said = answer["task"];
    if (context.signal.aborted) cancelUnheard(this.#host, context.caller, said);
    context.signal.throwIfAborted();
    // It may have thought better of it.
    if (!isObject(said)) return this.#host.revision().lift.result(request.method, answer);
    // An exchange is over with its answer: no later message can belong to it.
    const canHear = waits || revisionNamed(context.revision)?.style === "session";
    const notify = (notification: Notification): void => context.notify(notification);
    const task = new ServerTask(this.#host, context.caller, said, canHear ? notify : undefined);
    this.#keep(task, token);
    const early = this.#early.get(task.watch.id);
    if (early !== undefined) told(task, early);
    const { _meta } = answer;
    return { ...fieldsOf(this.#host, said), resultType: "task", ...(_meta === undefined ? undefined : { _meta }) };
  }

  #made(making: Promise<unknown>): void {
    this.#making.delete(making);
    if (this.#making.size === 0) this.#early.clear();
  }

  async #find(id: string, context: Context): Promise<ServerTask> {
    this.#sweep();
    const { caller } = context;
    const kept = this.#kept.get(id)?.task;
    if (kept === undefined ? isProved(caller) : kept.caller.principal !== caller.principal) throw unknownTask(id);
    if (kept !== undefined) {
      checkAllowed(caller, kept.caller);
      return kept;
    }
    const said = await this.#host.send({ method: "tasks/get", params: { taskId: id } }, context);
    const meanwhile = this.#kept.get(id)?.task;
    if (meanwhile !== undefined) return meanwhile;
    const task = new ServerTask(this.#host, caller, said);
    this.#keep(task, undefined);
    await task.take(said);
    return task;
  }

  /** For a front, because the newest form has no such list. */
  async #list({ method, params }: Request, { caller }: Context): Promise<Result> {
    if ((params as Listing)[TASKS_LISTED] !== true) throw methodNotFound(method);
    this.#sweep();
    const own = [...this.#kept.values()].filter(({ task }) => task.caller.principal === caller.principal);
    const states = await Promise.all(own.map(({ task }) => task.watch.refresh().catch(() => undefined)));
    return { resultType: "complete", tasks: states.filter((state) => state !== undefined) };
  }

  #keep(task: ServerTask, token: number | undefined): void {
    this.#sweep();
    if (this.#kept.size >= MOST_TASKS) this.#makeRoom();
    const { ttlMs } = task.watch.state as { readonly ttlMs?: unknown };
    const expires = typeof ttlMs === "number" && ttlMs > 0 ? performance.now() + ttlMs : Infinity;
    this.#kept.set(task.watch.id, { task, token, expires });
    if (token !== undefined) this.#tokens.set(token, task);
  }

  /** The oldest goes; one that is over, if there is one. */
  #makeRoom(): void {
    const all = [...this.#kept.values()];
    const oldest = all.find(({ task }) => task.watch.isOver) ?? all[0];
    if (oldest !== undefined) this.#drop(oldest);
  }

  #sweep(): void {
    const now = performance.now();
    for (const kept of this.#kept.values()) if (kept.expires <= now) this.#drop(kept);
  }

  #drop({ task, token }: Kept): void {
    task.release();
    this.#kept.delete(task.watch.id);
    this.#tokens.delete(token);
  }
}

const ANSWERED: ReadonlySet<string> = new Set(["tasks/get", "tasks/update", "tasks/cancel"]);

function checkDeclared(what: string, { caller }: { readonly caller: Caller }): void {
  if (!hasTasks(caller.capabilities)) throw tasksUndeclared(what);
}

function neverTask(toolName: unknown): McpError {
  return McpError.of("method_not_found", `Tool ${String(toolName)} cannot be run as a task`, { toolName });
}

/** The end has said how it stands. */
function told(task: ServerTask, said: Params): void {
  // Who waits looks for itself where this fails, and hears why.
  if (!task.watch.isOver) task.take(said).catch(() => task.watch.wake());
}

function unknownTask(taskId: string): Error {
  return invalidParams("Unknown task: there is none with this id, or none any more", { taskId });
}

/** Begins with how each stands now, so that nothing that happened before the listen is missed. */
function tell(tasks: readonly ServerTask[], context: Context, end: () => void): () => void {
  const following = new Map<ServerTask, () => void>();
  const drop = (task: ServerTask): void => {
    following.get(task)?.();
    following.delete(task);
    if (following.size === 0) end();
  };
  const say = (task: ServerTask, state: Json): void => {
    const { resultType: _kind, ...params } = state;
    context.notify({ method: "notifications/tasks", params });
    if (isOver(state["status"])) drop(task);
  };
  for (const task of tasks) {
    const follow = task.watch.follow(
      (state) => say(task, state),
      () => drop(task),
    );
    following.set(task, follow);
  }
  for (const task of tasks) say(task, task.watch.state);
  return () => {
    for (const stop of following.values()) stop();
  };
}
