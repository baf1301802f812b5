// Tasks as the last session-style revision has them, toward a caller of that revision: it asks for a task by a field
// of its call, gets the result by a request of its own that waits, and can list its tasks. All of it is said to the
// handler in the newest form, so it works for any handler that knows the extension. What is kept for a session are
// the tasks that it has heard of; whose a task is, who may see it, and how long it lives, the handler knows.

import type { Context, Caller } from "../../core/handler.ts";
import type { Handler, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { invalidParams, methodNotFound, McpError } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import { page, type PageItem } from "../../protocol/pages.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { declaringTasks, type Supporting, TASK_SUPPORT, TASK_TERMS, TASK_WANTED, type Wanting, type Listing, TASKS_LISTED } from "../../protocol/tasks.ts";
import { drive } from "../calls/input-required.ts";
import { progressUnder } from "../calls/in-flight.ts";
import { outcomeOf, untilOver, type Waiter, TaskQuestions } from "../calls/task-completion.ts";
import { checkAllowed, seedOf, TaskWatch, isProved } from "../calls/task-watch.ts";
import { kindOf } from "../calls/errors.ts";

const PAGE_SIZE = 100;
/** How long the result of a call is kept that was answered at once. */
const LOCAL_TTL_MS = 600_000;

/** What the session lends. */
export interface TasksHost {
  readonly handler: Handler;
  revision(): Revision;
  /** The context of what no call of the caller stands behind. */
  quiet(): Context;
  /** To the caller, outside any call. */
  deliver(notification: Notification): void;
}

export class SessionTasks {
  readonly #host: TasksHost;
  readonly #table = new TaskTable();

  constructor(host: TasksHost) {
    this.#host = host;
  }

  /** The answer in the caller's revision. `gone` says when the way of the request is gone. */
  async answer(request: Request, context: Context, gone: AbortSignal): Promise<Result> {
    const declared = declaringTasks(context);
    const { method, params } = request;
    switch (method) {
      case "tools/list":
        return this.#tools(request, context);
      case "tools/call":
        return this.#create(request, context);
      case "tasks/list":
        return this.#list(params, declared);
    }
    const entry = await this.#entry(params["taskId"] as string, declared);
    switch (method) {
      case "tasks/get":
        return this.#shown(await entry.watch.refresh(declared));
      case "tasks/result":
        return this.#result(entry, declared, gone);
      case "tasks/cancel":
        return this.#cancel(entry, declared);
      default:
        throw methodNotFound(method);
    }
  }

  close(): void {
    this.#table.close();
  }

  /** Where the handler cannot say which tools may be tasks, its extension says that any may. */
  async #tools(request: Request, context: Context): Promise<Result> {
    const result = await this.#host.handler(request, context);
    const lowered = this.#host.revision().lower.result(request.method, result);
    const said = result["tools"] as readonly (Supporting | undefined)[];
    if (!Array.isArray(lowered["tools"])) return lowered;
    const tools = lowered["tools"].map((tool: unknown, index) => {
      const taskSupport = said[index]?.[TASK_SUPPORT] ?? "optional";
      const isSaid = !isObject(tool) || tool["execution"] !== undefined || taskSupport === "forbidden";
      return isSaid ? tool : { ...tool, execution: { taskSupport } };
    });
    return { ...lowered, tools };
  }

  async #create({ method, params: given }: Request, context: Context): Promise<Result> {
    const { task, ...params } = given;
    const ttl = isObject(task) ? task["ttl"] : null;
    if (ttl !== undefined && !Number.isInteger(ttl)) {
      throw invalidParams("Invalid params for tools/call: `task` must be an object whose `ttl` is a whole number");
    }
    const tool = params["name"];
    const call = this.#callContext(params, context);
    const terms = isObject(task) ? { [TASK_TERMS]: task } : undefined;
    const wanting: Params & Wanting = { ...params, [TASK_WANTED]: true, ...terms };
    const result = await drive(this.#host.handler, { method, params: wanting }, call.context);
    const watch =
      result.resultType === "task" ? this.#watch(seedOf(result), call.context) : this.#finished(result, context);
    call.made(watch);
    this.#table.add(watch, tool, context.caller);
    // Listened to when its caller has heard of it.
    setImmediate(() => watch.listen());
    // Every task begins so, in this revision, however soon it is over.
    const { _meta, ...fields } = this.#shown({ ...watch.state, status: "working" });
    return _meta === undefined ? { task: fields } : { task: fields, _meta };
  }

  /** The call's own way ends with the handle; what comes later goes outside of it, and says to which task it belongs. */
  #callContext(params: Params, context: Context): { context: Context; made(task: TaskWatch): void } {
    const progress = progressUnder(params._meta?.[META.progressToken]);
    let task: TaskWatch | undefined;
    const notify = (notification: Notification): void => {
      // Of a task that is over there is nothing more to say, whatever its tool still does.
      if (task?.isOver === true) return;
      const event = notification.method === "notifications/progress" ? progress(notification) : notification;
      if (event === undefined) return;
      if (task === undefined) context.notify(event);
      else this.#host.deliver({ method: event.method, params: related(event.params, task.id) });
    };
    return {
      context: { ...declaringTasks(context), notify },
      made: (watch) => {
        task = watch;
      },
    };
  }

  /** A call that was answered at once, as a task that is over: it has a handler of its own, since no other knows it. */
  #finished(result: Result, context: Context): TaskWatch {
    const now = new Date().toISOString();
    const taskId = crypto.randomUUID();
    const times = { createdAt: now, lastUpdatedAt: now, ttlMs: LOCAL_TTL_MS };
    const state = { taskId, status: "completed", ...times, result };
    return this.#watch(state, context, async (_request, { caller }) => {
      checkAllowed(caller, context.caller);
      return state;
    });
  }

  #watch(state: Json, { caller }: Context, handler: Handler = this.#host.handler): TaskWatch {
    let last: unknown = "working";
    return new TaskWatch(handler, { ...this.#host.quiet(), caller }, state, (now) => {
      if (now["status"] === last) return;
      last = now["status"];
      this.#host.deliver({ method: "notifications/tasks/status", params: this.#shown(now) });
    });
  }

  /** One that this session has not heard of may be its caller's all the same: the handler knows. */
  async #entry(id: string, context: Context): Promise<TaskEntry> {
    const known = this.#table.find(id, context.caller);
    if (known !== undefined) return known;
    const state = await this.#host.handler({ method: "tasks/get", params: { taskId: id } }, context);
    const meanwhile = this.#table.find(id, context.caller);
    if (meanwhile !== undefined) return meanwhile;
    const watch = this.#watch(state, context);
    const entry = this.#table.add(watch, "the tool", context.caller);
    watch.listen();
    return entry;
  }

  async #list({ cursor }: Params, context: Context): Promise<Result> {
    const all = await allTasks(this.#host.handler, this.#table, context);
    const { items, nextCursor } = page("tasks/list", all, cursor, PAGE_SIZE);
    const states = await Promise.all(items.map((item) => item.state()));
    const tasks = states.flatMap((state) => (state === undefined ? [] : this.#shown(state)));
    return nextCursor === undefined ? { tasks } : { tasks, nextCursor };
  }

  async #result({ watch, questions, tool }: TaskEntry, context: Context, gone: AbortSignal): Promise<Result> {
    const { handler } = this.#host;
    const ask: Waiter["ask"] = ({ method, params }, options) =>
      context.ask({ method, params: related(params, watch.id) }, options);
    const state = await untilOver(watch, questions, { handler, context, tool, gone, ask });
    return related(this.#host.revision().lower.result("tools/call", outcomeOf(state)), watch.id);
  }

  async #cancel({ watch }: TaskEntry, context: Context): Promise<Result> {
    await watch.refresh(context);
    if (!watch.isOver) {
      await this.#host.handler({ method: "tasks/cancel", params: { taskId: watch.id } }, context);
      // The end may take its time, or never heed it; here it is cancelled from now on.
      const message = "The task was cancelled by request";
      const cancelled = { status: "cancelled", statusMessage: message, lastUpdatedAt: new Date().toISOString() };
      const { inputRequests: _asked, ...state } = watch.state;
      watch.take({ ...state, ...cancelled });
      if (watch.state["status"] === "cancelled") return this.#shown(watch.state);
    }
    const status = String(watch.state["status"]);
    throw invalidParams(`Cannot cancel the task: it is ${status} already`, { taskId: watch.id, status });
  }

  #shown(state: Json): Result {
    return this.#host.revision().lower.result("tasks/get", { ...state, resultType: "complete" });
  }
}

function related(fields: Params | undefined, taskId: string): Params {
  return { ...fields, _meta: { ...fields?._meta, [META.relatedTask]: { taskId } } };
}

// The tasks that a session has heard of, in the order in which it did: what it can list, and what it need not ask the
// handler for again. It is bounded; a task that had to make room can still be asked for by its id, but for one that
// was over when we heard of it, whose result nobody else has.


const MOST_TASKS = 1_000;
const MOST_LOCAL = 100;

export interface TaskEntry extends PageItem {
  readonly watch: TaskWatch;
  readonly questions: TaskQuestions;
  /** The name of the tool, for the text of errors. */
  readonly tool: unknown;
  readonly principal: string | undefined;
  /** Over when we heard of it. */
  readonly isLocal: boolean;
  readonly expires: number;
}

export class TaskTable {
  readonly #entries = new Map<string, TaskEntry>();
  #count = 0;
  #isClosed = false;

  add(watch: TaskWatch, tool: unknown, { principal }: Caller): TaskEntry {
    const { ttlMs } = watch.state as { ttlMs?: unknown };
    const expires = typeof ttlMs === "number" ? performance.now() + ttlMs : Infinity;
    const isLocal = watch.isOver;
    this.#sweep();
    this.#makeRoom(isLocal);
    const order = (this.#count += 1);
    const questions = new TaskQuestions();
    const entry: TaskEntry = { order, key: watch.id, watch, questions, tool, principal, isLocal, expires };
    if (this.#isClosed) watch.close();
    else this.#entries.set(watch.id, entry);
    return entry;
  }

  /** Who speaks in a session is proved anew with each message. */
  find(id: string, { principal }: Caller): TaskEntry | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.principal !== principal) return undefined;
    if (entry.expires > performance.now()) return entry;
    this.drop(entry);
    return undefined;
  }

  all(caller: Caller): readonly TaskEntry[] {
    this.#sweep();
    return [...this.#entries.values()].filter(({ principal }) => principal === caller.principal);
  }

  drop(entry: TaskEntry): void {
    entry.watch.close();
    this.#entries.delete(entry.key);
  }

  /** What is added from now on is neither kept nor watched. */
  close(): void {
    this.#isClosed = true;
    for (const entry of this.#entries.values()) this.drop(entry);
  }

  #sweep(): void {
    const now = performance.now();
    for (const entry of this.#entries.values()) if (entry.expires <= now) this.drop(entry);
  }

  /** The oldest makes room; one that is over, if there is one. */
  #makeRoom(forLocal: boolean): void {
    const all = [...this.#entries.values()];
    const local = forLocal ? all.filter(({ isLocal }) => isLocal) : [];
    const full = local.length >= MOST_LOCAL ? local : all.length >= MOST_TASKS ? all : [];
    const oldest = full.find(({ watch }) => watch.isOver) ?? full[0];
    if (oldest !== undefined) this.drop(oldest);
  }
}

// All tasks that a session-style caller can list. A handler in this process may be able to say which tasks the caller's
// principal has, whichever session began them, though the newest revision has no request for that; then those are
// listed, and what only this session has. Otherwise, and where nobody knows who calls, it is what the session has heard
// of: to show the tasks of one stranger to another would be worse than to leave them out.


const INVALID_PARAMS = -32602;

interface Listed extends PageItem {
  /** How it stands, in the newest shape; undefined where it is gone, or not for this caller. */
  state(): Promise<Json | undefined>;
}

export async function allTasks(handler: Handler, table: TaskTable, context: Context): Promise<readonly Listed[]> {
  const { caller } = context;
  const known = caller.principal === undefined ? undefined : await told(handler, context);
  const entries = table.all(caller);
  const remembered = (entry: TaskEntry, order: number): Listed => {
    return { order, key: entry.key, state: () => stateOf(entry, table, context) };
  };
  if (known === undefined) return entries.map((entry) => remembered(entry, entry.order));
  const listed = known.map((state): Listed => {
    const watch = table.find(state.taskId, caller)?.watch;
    // What the caller has cancelled here is over, even if the handler takes its time.
    return {
      order: begun(state),
      key: state.taskId,
      state: async () => (watch?.isOver === true ? watch.state : state),
    };
  });
  const ids = new Set(known.map(({ taskId }) => taskId));
  const own = entries.filter(({ isLocal, key }) => isLocal && !ids.has(key));
  const all = [...listed, ...own.map((entry) => remembered(entry, begun(entry.watch.state)))];
  return all.toSorted((a, b) => a.order - b.order);
}

type Known = Json & { readonly taskId: string };

/** What the handler has for this principal; undefined where it has no such list. */
async function told(handler: Handler, context: Context): Promise<readonly Known[] | undefined> {
  const params: Params & Listing = { [TASKS_LISTED]: true };
  try {
    const { tasks } = await handler({ method: "tasks/list", params }, context);
    const isKnown = (task: unknown): task is Known => isObject(task) && typeof task["taskId"] === "string";
    return Array.isArray(tasks) ? tasks.filter(isKnown) : undefined;
  } catch (error) {
    if (kindOf(error) === "method_not_found") return undefined;
    throw error;
  }
}

async function stateOf(entry: TaskEntry, table: TaskTable, context: Context): Promise<Json | undefined> {
  const { watch } = entry;
  try {
    return watch.isHeard && !isProved(context.caller) ? watch.state : await watch.refresh(context);
  } catch (error) {
    if (kindOf(error) === "access_denied") return undefined;
    if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) throw error;
    // The handler no longer has it.
    table.drop(entry);
    return undefined;
  }
}

/** The session's own and the handler's have nothing else that puts them into one order. */
function begun({ createdAt }: Json): number {
  return Date.parse(String(createdAt)) || 0;
}
