// Presents the tasks of a session-style server in the form of the newest revision: decides which calls become a task,
// and answers requests about tasks. A caller that does not support tasks waits for the outcome. A task belongs to the
// principal that created it. The creator of a task that is older than this connection is unknown, so authenticated
// callers are refused. Callers without an identity may ask for it, since they are not told apart anyway.

import type {
  Caller,
  Context,
  Notification,
  Params,
  Request,
  Result,
  Handler,
  AskOptions,
} from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INVALID_PARAMS, invalidParams, McpError, METHOD_NOT_FOUND, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import type { TaskSubscription } from "../../protocol/subscribers.ts";
import { withTasksExtension, hasTasks, isTaskFinished, type TaskSupport } from "../../protocol/tasks.ts";
import { taskOutcome, completeTask } from "../../tasks/completion.ts";
import { answerTaskRequest, subscribeToTasks, taskOwner, type TaskStore, type WatchedTask } from "../../tasks/store.ts";
import { checkTaskScopes, hasIdentity, initialTaskState, TaskTable, TaskWatch } from "../../tasks/watch.ts";
import { afterEvents, within } from "../../core/async.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { checkClientRequest } from "../../protocol/client-requests.ts";
import { PendingInputs } from "../../tasks/pending-inputs.ts";
import { ConnectionError } from "../../core/errors.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import type { Abandonment } from "../calls/peer.ts";

/** The TTL to request if the caller names none. The server may choose another. */
const DEFAULT_TTL_MS = 3_600_000;
const MAX_TASKS = 1_000;
const MAX_EARLY_STATUSES = 100;

/** How to send a request to the server. */
export interface TaskRequestOptions {
  /** Extra params that only the server's revision has. */
  readonly extraParams?: Json;
  /** Called with the JSON-RPC id. */
  readonly onSent?: (id: number) => void;
  readonly abandonment?: Abandonment;
}

/** What `back.ts` provides, the side of a session that faces the server. */
export interface ServerTasksHost {
  /** The context for requests outside any call. */
  readonly defaultContext: Context;
  /** The server, in the form of the newest revision. */
  readonly handler: Handler;
  revision(): Revision;
  /** The server's capabilities, in the shape of the newest revision. */
  capabilities(): Json;
  /** The capabilities as the server sent them. */
  rawCapabilities(): Json;
  /** Whether the server supports tasks in the form of its revision. */
  supportsTasks(): boolean;
  /** Sends a request that has nothing to do with tasks. */
  plain(request: Request, context: Context): Promise<Result>;
  /** Returns the answer in the server's revision; errors are in the newest. */
  send(request: Request, context: Context, options?: TaskRequestOptions): Promise<Result>;
  /** Marks work of this caller as running on the server; returns a function to call when it has ended. */
  attribute(caller: Caller): () => void;
}

export class ServerTasks implements TaskStore {
  readonly #host: ServerTasksHost;
  readonly #tasks = new TaskTable<ServerTask>(MAX_TASKS, (task) => this.#dropped(task));
  /** By progress token, which is the id of the call that created the task. */
  readonly #byToken = new Map<unknown, ServerTask>();
  /** Calls that create tasks. */
  readonly #creating = new Set<Promise<unknown>>();
  /** How many statuses wait for the answers of such calls. */
  #earlyStatuses = 0;

  constructor(host: ServerTasksHost) {
    this.#host = host;
  }

  /** Calls a tool, as a task if the caller requests one or the tool requires it. */
  async call(request: Request, context: Context, support: TaskSupport): Promise<Result> {
    if (support === "forbidden") {
      const toolName = request.params["name"];
      throw McpError.of("method_not_found", `Tool ${String(toolName)} cannot be run as a task`, { toolName });
    }
    const declared = hasTasks(context.caller.capabilities);
    const requested = context.task?.mode;
    const isRequested = declared && (requested === "required" || (requested !== undefined && support === "optional"));
    if (support !== "required" && !isRequested) return this.#host.plain(request, context);
    const creating = this.#create(request, context, !declared);
    this.#creating.add(creating);
    const created = await creating.finally(() => this.#creating.delete(creating));
    if (declared || created.resultType !== "task") return created;
    return taskOutcome(await completeTask(this.#host.handler, created, request, withTasksExtension(context)));
  }

  /** Answers `tasks/*`. */
  async answer(request: Request, context: Context): Promise<Result> {
    return { ...(await answerTaskRequest(this, request, context)), resultType: "complete" };
  }

  subscribe(ids: readonly string[], context: Context): Promise<TaskSubscription | undefined> {
    return subscribeToTasks(this, ids, context);
  }

  async get(id: string, context: Context): Promise<Json> {
    return (await this.#find(id, context)).watch.refresh();
  }

  async update(id: string, responses: Json, context: Context): Promise<void> {
    (await this.#find(id, context)).answerInputs(responses);
  }

  async cancel(id: string, context: Context): Promise<void> {
    await (await this.#find(id, context)).cancel(context);
  }

  async list({ caller }: Context): Promise<readonly Json[]> {
    const owned = this.#tasks.all().filter((task) => taskOwner(task.caller) === taskOwner(caller));
    const states = await Promise.all(owned.map(({ watch }) => watch.refresh().catch(() => undefined)));
    return states.filter((state) => state !== undefined);
  }

  async watch(ids: readonly string[], context: Context): Promise<readonly WatchedTask[]> {
    const tasks = await Promise.all(ids.map((id) => this.#find(id, context).catch(() => undefined)));
    return tasks.flatMap((task) => task?.watch ?? []);
  }

  /** Finds the task that a message names. The message may come before the answer that creates the task. */
  async named(id: string): Promise<ServerTask | undefined> {
    if (this.#tasks.get(id) === undefined) await Promise.allSettled(this.#creating);
    return this.#tasks.get(id);
  }

  async onStatus(params: Params): Promise<void> {
    const id = String(params["taskId"]);
    const isEarly = this.#tasks.get(id) === undefined;
    if (isEarly && (this.#creating.size === 0 || this.#earlyStatuses >= MAX_EARLY_STATUSES)) return;
    if (isEarly) this.#earlyStatuses += 1;
    const task = await this.named(id);
    if (isEarly) this.#earlyStatuses -= 1;
    // If this fails, waiters poll and get the error themselves.
    if (task?.watch.isFinished === false) await task.update(params).catch(() => task.watch.wake());
  }

  /** Returns whether the progress token belongs to a task. */
  onProgress(params: Params): boolean {
    const task = this.#byToken.get(params[META.progressToken]);
    if (task === undefined) return false;
    if (!task.watch.isFinished) task.onProgress?.({ method: "notifications/progress", params });
    return true;
  }

  /** Progress of a call that was just answered. The answer may create a task, which is known in the next turn. */
  onLateProgress(params: Params): void {
    if (this.#creating.size > 0) afterEvents(() => this.onProgress(params));
  }

  async #create(request: Request, context: Context, waits: boolean): Promise<Result> {
    let token: number | undefined;
    const onSent = (id: number): void => {
      if (request.params._meta?.[META.progressToken] !== undefined) token = id;
    };
    const abandonment = abandonUnnamedTask(this.#host, context);
    const extraParams = { task: context.task?.params ?? { ttl: DEFAULT_TTL_MS } };
    const answer = await this.#host.send(request, context, { extraParams, onSent, abandonment });
    const raw = answer["task"];
    if (context.signal.aborted) cancelAbandonedTask(this.#host, context.caller, raw);
    context.signal.throwIfAborted();
    // The server may answer without a task after all.
    if (!isObject(raw)) return this.#host.revision().lift.result(request.method, answer);
    // A stateless call ends with its answer, so no later progress can be delivered in it.
    const canNotify = waits || context.caller.style === "session";
    const notify = (notification: Notification): void => context.notify(notification);
    this.#add(new ServerTask(this.#host, context.caller, raw, token, canNotify ? notify : undefined));
    const { _meta } = answer;
    return { ...liftTask(this.#host, raw), resultType: "task", ...(_meta === undefined ? undefined : { _meta }) };
  }

  #add(task: ServerTask): ServerTask {
    if (task.token !== undefined) this.#byToken.set(task.token, task);
    return this.#tasks.add(task);
  }

  #dropped(task: ServerTask): void {
    task.release();
    this.#byToken.delete(task.token);
  }

  async #find(id: string, context: Context): Promise<ServerTask> {
    const { caller } = context;
    const known = this.#tasks.get(id);
    if (known === undefined ? hasIdentity(caller) : taskOwner(known.caller) !== taskOwner(caller))
      throw invalidParams("Unknown task: it does not exist, or no longer exists", { taskId: id });
    if (known !== undefined) {
      checkTaskScopes(caller, known.caller);
      return known;
    }
    const raw = await this.#host.send({ method: "tasks/get", params: { taskId: id } }, context);
    const meanwhile = this.#tasks.get(id);
    if (meanwhile !== undefined) return meanwhile;
    const task = this.#add(new ServerTask(this.#host, caller, raw));
    await task.update(raw);
    return task;
  }
}

/** How long to wait for the input request of a task whose status is `input_required`. */
const INPUT_WAIT_MS = 500;
/** If a pending `tasks/result` is not answered in this time, another is sent: some servers answer the first late. */
const RESULT_WAIT_MS = 50;
const MAX_INPUT_REQUESTS = 100;
/** Error codes of a server that cannot cancel the task, or has nothing left to cancel. */
const CANCEL_REFUSALS: ReadonlySet<number> = new Set([INVALID_PARAMS, METHOD_NOT_FOUND]);
const NO_TIMEOUT = { idleMs: 0, totalMs: 0 };

type TaskOutcome =
  | { readonly status: "completed"; readonly result: Result }
  | { readonly status: "failed"; readonly error: ErrorBody };

/**
 * One task of the server. The newest revision puts input requests and the outcome into the task itself. A session-style
 * server sends an input request as a JSON-RPC request, and the outcome as the answer to a blocking `tasks/result`. Both
 * are fetched when the status says that they exist. If the tool returned `isError`, the task is completed; only a
 * protocol error makes it failed.
 */
class ServerTask {
  readonly watch: TaskWatch;
  readonly caller: Caller;
  /** The progress token: the id of the call that created the task, if that call has one. */
  readonly token: number | undefined;
  /** Receives progress under the token. */
  readonly onProgress: ((notification: Notification) => void) | undefined;
  readonly #host: ServerTasksHost;
  readonly #context: Context;
  /** Aborts the pending `tasks/result`. */
  readonly #stop = new AbortController();
  readonly #inputs = new PendingInputs(() => this.#inputsChanged());
  readonly #ended: () => void;
  /** The last fields from the server. */
  #fields: Json;
  /** The pending `tasks/result`, on whose stream the server may send input requests. */
  #waiting: Promise<void> | undefined;
  #fetching: Promise<TaskOutcome> | undefined;
  #outcome: TaskOutcome | undefined;
  #onInput = (): void => undefined;
  #isReleased = false;

  constructor(
    host: ServerTasksHost,
    caller: Caller,
    raw: Json,
    token?: number,
    onProgress?: (notification: Notification) => void,
  ) {
    this.#host = host;
    this.#fields = initialTaskState(liftTask(host, raw));
    this.caller = caller;
    this.token = token;
    this.onProgress = onProgress;
    this.#ended = host.attribute(caller);
    this.#context = {
      ...host.defaultContext,
      caller,
      ask: (request, options) => this.ask(request, options),
    };
    // Only `tasks/get` is forwarded. Subscriptions are refused, so the watch polls if the server sends no status.
    const handler: Handler = async ({ method }) => {
      if (method !== "tasks/get") throw methodNotFound(method);
      return this.#fetch();
    };
    // The watch needs no identity, since ServerTasks has already checked whose task it is.
    const anonymous: Context = { ...host.defaultContext, caller: INTERNAL_CALLER };
    this.watch = new TaskWatch(handler, anonymous, this.#fields, ({ status }) => {
      if (isTaskFinished(status)) this.release();
    });
  }

  /** Takes a status from the server; resolves to the state in the shape of the newest revision. */
  async update(raw: Json): Promise<Json> {
    const state = await this.#detailed(liftTask(this.#host, raw));
    this.watch.update(state);
    return this.watch.state;
  }

  /** Handles an input request that the server sends on behalf of this task. */
  async ask({ method, params }: Request, { signal }: AskOptions = {}): Promise<Result> {
    if (this.#isReleased) throw new Error("The task is finished; it can no longer send requests to the client");
    if (this.#inputs.size >= MAX_INPUT_REQUESTS) {
      throw McpError.of("rate_limited", `The task already waits for ${MAX_INPUT_REQUESTS} answers`);
    }
    const request: Request = { method, params: withoutRelatedTask(params) };
    checkClientRequest(request, this.caller.capabilities);
    const answer = await this.#inputs.ask(request, signal === undefined ? {} : { signal });
    return { ...answer, _meta: { ...answer._meta, [META.relatedTask]: { taskId: this.watch.id } } };
  }

  answerInputs(responses: Json): void {
    this.#inputs.answer(responses);
  }

  /** Succeeds even if the task is finished or cannot be cancelled: `tasks/cancel` promises only an acknowledgement. */
  async cancel(context: Context): Promise<void> {
    if (this.watch.isFinished) return;
    if (!canCancel(this.#host)) {
      this.#cancelLocally();
      return;
    }
    try {
      const raw = await this.#host.send({ method: "tasks/cancel", params: { taskId: this.watch.id } }, context);
      if (raw["status"] === "cancelled") await this.update(raw);
    } catch (error) {
      if (!(error instanceof McpError) || !CANCEL_REFUSALS.has(error.code)) throw error;
    }
  }

  /** Stops everything that runs on behalf of the task. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const reason = new Error("The task is finished");
    this.watch.close();
    this.#inputs.drop(reason);
    this.#stop.abort(reason);
    this.#ended();
  }

  /** For a server that cannot cancel tasks: the task ends only for the client. */
  #cancelLocally(): void {
    const statusMessage = "Cancelled by request; the server cannot cancel tasks and may still be working on it";
    this.#fields = { ...this.#fields, status: "cancelled", statusMessage, lastUpdatedAt: new Date().toISOString() };
    this.watch.update(this.#fields);
  }

  async #fetch(): Promise<Json> {
    // A finished task does not change any more; only its outcome may be missing.
    if (isTaskFinished(this.#fields["status"])) return this.#detailed(this.#fields);
    const request: Request = { method: "tasks/get", params: { taskId: this.watch.id } };
    return this.#detailed(liftTask(this.#host, await this.#host.send(request, this.#context)));
  }

  /** Fetches the fields that belong to the status, and adds them. */
  async #detailed(fields: Json): Promise<Json> {
    // The last status to arrive is the newest, but a finished task does not change any more.
    if (!isTaskFinished(this.#fields["status"])) this.#fields = fields;
    const { status } = this.#fields;
    if (status === "completed" || status === "failed") return { ...this.#fields, ...(await this.#fetchOutcome()) };
    if (status === "cancelled") return this.#fields;
    // An answer to `tasks/result` before the task is finished is not its outcome.
    this.#outcome = undefined;
    if (status === "input_required") await this.#waitForInput();
    // The task may have finished meanwhile. The update with the final status fetches the outcome.
    return isTaskFinished(this.#fields["status"]) ? this.watch.state : this.#unfinished();
  }

  /** The state of an unfinished task, which is `input_required` only while an input request is actually pending. */
  #unfinished(): Json {
    const inputRequests = this.#inputs.requests;
    if (inputRequests === undefined) return { ...this.#fields, status: "working" };
    return { ...this.#fields, status: "input_required", inputRequests };
  }

  #inputsChanged(): void {
    if (!isTaskFinished(this.#fields["status"])) this.watch.update(this.#unfinished());
    this.#onInput();
  }

  /** Sends `tasks/result`, so that the server can send its input request, and waits a moment for that request. */
  async #waitForInput(): Promise<void> {
    if (this.#waiting !== undefined || this.#isReleased) return;
    const arrived = new Promise<void>((resolve) => {
      this.#onInput = resolve;
    });
    const waiting = this.#waitForResult();
    this.#waiting = waiting;
    void waiting.then(async () => {
      // The task is most likely finished, so notify subscribers now. If not, the next poll sends `tasks/result` again.
      if (!this.#isReleased) await this.watch.refresh().catch(() => this.watch.wake());
      this.#waiting = undefined;
    });
    if (this.#inputs.size === 0) await within(INPUT_WAIT_MS, Promise.race([arrived, waiting]));
  }

  /** Never throws: after a failure the next poll sends `tasks/result` again. */
  async #waitForResult(): Promise<void> {
    try {
      this.#outcome = await this.#result({ ...this.#context, signal: this.#stop.signal, timeouts: NO_TIMEOUT });
    } catch {
      // If the problem persists, the next poll reports it.
    }
  }

  async #fetchOutcome(): Promise<TaskOutcome> {
    if (this.#waiting !== undefined) await within(RESULT_WAIT_MS, this.#waiting);
    if (this.#outcome !== undefined) return this.#outcome;
    this.#fetching ??= this.#result(this.#context).finally(() => (this.#fetching = undefined));
    this.#outcome = await this.#fetching;
    return this.#outcome;
  }

  async #result(context: Context): Promise<TaskOutcome> {
    const request: Request = { method: "tasks/result", params: { taskId: this.watch.id } };
    try {
      const answer = this.#host.revision().lift.result("tools/call", await this.#host.send(request, context));
      return { status: "completed", result: withoutRelatedTask(answer) };
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      return { status: "failed", error: error.toBody() };
    }
  }
}

/** The fields of a task in the shape of the newest revision. */
function liftTask(host: ServerTasksHost, raw: Json): Json {
  const { resultType: _complete, ...fields } = host.revision().lift.result("tasks/get", raw);
  return fields;
}

/** Removes the related-task id from `_meta`. It has a meaning only in the server's revision. */
function withoutRelatedTask<T extends Params | Result>(fields: T): T {
  const { _meta, ...rest } = fields;
  if (_meta?.[META.relatedTask] === undefined) return fields;
  const { [META.relatedTask]: _task, ...meta } = _meta;
  return (Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }) as T;
}

/**
 * What to do if the caller leaves before the server has sent the id of the task: the task is cancelled when the answer
 * arrives, since `tasks/cancel` needs an id.
 */
function abandonUnnamedTask(host: ServerTasksHost, { caller }: Context): Abandonment {
  const ask = (): Promise<never> => Promise.reject(new ConnectionError("cancelled", "The caller has left the call"));
  return {
    context: { ...host.defaultContext, caller, notify: () => undefined, ask },
    onLateAnswer: (answer) => cancelAbandonedTask(host, caller, answer["task"]),
  };
}

/** Failures are ignored, since no caller is left to report them to. */
function cancelAbandonedTask(host: ServerTasksHost, caller: Caller, raw: unknown): void {
  if (!isObject(raw) || !canCancel(host)) return;
  const params = { taskId: raw["taskId"] };
  host.send({ method: "tasks/cancel", params }, { ...host.defaultContext, caller }).catch(() => undefined);
}

/** Whether the server has declared that it can cancel tasks. */
function canCancel(host: ServerTasksHost): boolean {
  const { tasks } = host.rawCapabilities();
  return isObject(tasks) && Boolean(tasks["cancel"]);
}
