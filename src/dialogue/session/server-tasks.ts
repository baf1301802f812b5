// Tasks of a session-style end, toward a caller that speaks of them in the newest form: which calls are made into one,
// and what is asked of them afterwards. A caller that knows no tasks and calls a tool that is always one waits for its
// end. A task is known to the principal that made it and to nobody else. One that was made before our time is known to
// the end alone: it is let be asked for only by callers of whom nothing is proved, for whose it was nobody can say.

import type { Caller, Context, Notification, Params, Request, Result, Handler, AskOptions } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { invalidParams, McpError, methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import { declaringTasks, hasTasks, isOver, type Listing, TASK_TERMS, TASK_WANTED, TASKS_LISTED, tasksUndeclared, type TaskSupport, type Wanting } from "../../protocol/tasks.ts";
import type { Besides } from "./subscriptions-back.ts";
import type { Asker, TaskBackHost } from "./tasks-back.ts";
import { outcomeOf, taskToEnd } from "../calls/task-completion.ts";
import { checkAllowed, isProved, seedOf, TaskWatch } from "../calls/task-watch.ts";
import { within, onAbort } from "../../core/async.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { checkAsk } from "../../protocol/asks.ts";
import { OpenQuestions } from "../../protocol/open-questions.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Leaving } from "../calls/peer.ts";

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

// One task of a session-style end, as the newest form has it: with what it asks and what came of it inside. The end
// gives the one as requests of its own and the other by a request that waits, so both are fetched when the status says
// that there is something to fetch. A tool that failed is a completed task here, and only an error is a failed one.
// Who may ask about it, and how long it is kept, is for the table.


/** How long a look waits for the question that the end says it has. */
const QUESTION_MS = 500;
/** How long a result may take that is asked for already; some ends look only now and then whether there is one. */
const RESULT_MS = 50;
const MOST_QUESTIONS = 100;
/** What an end answers that has nothing to cancel any more, or cannot. */
const UNCANCELLED: ReadonlySet<number> = new Set([-32602, -32601]);
const FOR_EVER = { idleMs: 0, totalMs: 0 };

type Outcome =
  | { readonly status: "completed"; readonly result: Result }
  | { readonly status: "failed"; readonly error: ErrorBody };

export class ServerTask {
  readonly watch: TaskWatch;
  readonly caller: Caller;
  /** Takes progress under the token of its call, for as long as it lives. */
  readonly progress: ((notification: Notification) => void) | undefined;
  readonly #host: TaskBackHost;
  readonly #context: Context;
  /** Ends the request that waits. */
  readonly #stop = new AbortController();
  readonly #questions = new OpenQuestions(() => this.#retell());
  readonly #leave: () => void;
  /** What the end said of it last. */
  #fields: Json;
  /** The request that waits for the result, and in whose stream the end may ask. */
  #waiting: Promise<void> | undefined;
  #fetching: Promise<Outcome> | undefined;
  #outcome: Outcome | undefined;
  #asked = (): void => undefined;
  #isReleased = false;

  constructor(host: TaskBackHost, caller: Caller, said: Json, progress?: (notification: Notification) => void) {
    this.#host = host;
    this.#fields = seedOf(fieldsOf(host, said));
    this.caller = caller;
    this.progress = progress;
    this.#leave = host.enter(caller);
    this.#context = {
      ...host.home,
      caller,
      ask: (question, options) => this.ask(question, options),
    };
    // Who listens to it is told by us; where the end says nothing, somebody has to look.
    const handler: Handler = async ({ method }) => {
      if (method !== "tasks/get") throw methodNotFound(method);
      return this.#look();
    };
    // Whose it is the table knows: nobody is proved here.
    const nobody: Context = { ...host.home, caller: { capabilities: {} } };
    this.watch = new TaskWatch(handler, nobody, this.#fields, ({ status }) => {
      if (isOver(status)) this.release();
    });
  }

  /** The end has said how it stands; resolves with that in the newest shape. */
  async take(said: Json): Promise<Json> {
    const state = await this.#detailed(fieldsOf(this.#host, said));
    this.watch.take(state);
    return this.watch.state;
  }

  /** A question of the end, on behalf of this task. */
  async ask({ method, params }: Request, { signal }: AskOptions = {}): Promise<Result> {
    if (this.#isReleased) throw new Error("The task is over: nobody can be asked on its behalf any more");
    if (this.#questions.size >= MOST_QUESTIONS) {
      throw McpError.of("rate_limited", `The task waits for ${MOST_QUESTIONS} answers already`);
    }
    const request: Request = { method, params: unrelated(params) };
    checkAsk(request, this.caller.capabilities);
    const answer = await this.#questions.ask(request, signal === undefined ? {} : { signal });
    return { ...answer, _meta: { ...answer._meta, [META.relatedTask]: { taskId: this.watch.id } } };
  }

  update(responses: Json): void {
    this.#questions.answer(responses);
  }

  /** Nothing is owed but the acknowledgement: it may be over, or the end unable to cancel it. */
  async cancel(context: Context): Promise<void> {
    if (this.watch.isOver) return;
    if (!canCancel(this.#host)) {
      this.#giveUp();
      return;
    }
    try {
      const said = await this.#host.send({ method: "tasks/cancel", params: { taskId: this.watch.id } }, context);
      if (said["status"] === "cancelled") await this.take(said);
    } catch (error) {
      if (!(error instanceof McpError) || !UNCANCELLED.has(error.code)) throw error;
    }
  }

  /** Nothing more is asked or waited for on its behalf. */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    const reason = new Error("The task is over");
    this.watch.close();
    this.#questions.drop(reason);
    this.#stop.abort(reason);
    this.#leave();
  }

  /** The end has not said that it can be told so: it is over for us alone. */
  #giveUp(): void {
    const statusMessage = "Cancelled by request; the end cannot cancel tasks, and may still be at work on it";
    this.#fields = { ...this.#fields, status: "cancelled", statusMessage, lastUpdatedAt: new Date().toISOString() };
    this.watch.take(this.#fields);
  }

  async #look(): Promise<Json> {
    const request: Request = { method: "tasks/get", params: { taskId: this.watch.id } };
    return this.#detailed(fieldsOf(this.#host, await this.#host.send(request, this.#context)));
  }

  /** With what belongs to its status, which is fetched first. */
  async #detailed(fields: Json): Promise<Json> {
    // Of what comes while something is fetched, the last is the newest; but nothing comes after the end.
    if (!isOver(this.#fields["status"])) this.#fields = fields;
    const { status } = this.#fields;
    if (status === "completed" || status === "failed") return { ...this.#fields, ...(await this.#fetched()) };
    if (status === "cancelled") return this.#fields;
    // What was answered before the end was no outcome.
    this.#outcome = undefined;
    if (status === "input_required") await this.#letAsk();
    // While we waited it may have come to its end: whoever heard that goes on from there.
    return isOver(this.#fields["status"]) ? this.watch.state : this.#shown();
  }

  /** Before the end: what counts is whether something is asked, not whether the end says so. */
  #shown(): Json {
    const inputRequests = this.#questions.requests;
    if (inputRequests === undefined) return { ...this.#fields, status: "working" };
    return { ...this.#fields, status: "input_required", inputRequests };
  }

  #retell(): void {
    if (!isOver(this.#fields["status"])) this.watch.take(this.#shown());
    this.#asked();
  }

  /** Opens the way by which the end asks, and lets the question come. */
  async #letAsk(): Promise<void> {
    if (this.#waiting !== undefined || this.#isReleased) return;
    const asked = new Promise<void>((resolve) => {
      this.#asked = resolve;
    });
    const waiting = this.#wait();
    this.#waiting = waiting;
    void waiting.then(async () => {
      // Over, most likely: who listens to it hears so at once. If not, it is for the next look to open it anew.
      if (!this.#isReleased) await this.watch.refresh().catch(() => this.watch.wake());
      this.#waiting = undefined;
    });
    if (this.#questions.size === 0) await within(QUESTION_MS, Promise.race([asked, waiting]));
  }

  /** Never throws: where the way fails, the next look opens it anew. */
  async #wait(): Promise<void> {
    try {
      this.#outcome = await this.#result({ ...this.#context, signal: this.#stop.signal, timeouts: FOR_EVER });
    } catch {
      // Whoever looks hears why, if it is of any importance.
    }
  }

  async #fetched(): Promise<Outcome> {
    if (this.#waiting !== undefined) await within(RESULT_MS, this.#waiting);
    if (this.#outcome !== undefined) return this.#outcome;
    this.#fetching ??= this.#result(this.#context).finally(() => (this.#fetching = undefined));
    this.#outcome = await this.#fetching;
    return this.#outcome;
  }

  async #result(context: Context): Promise<Outcome> {
    const request: Request = { method: "tasks/result", params: { taskId: this.watch.id } };
    try {
      const answer = this.#host.revision().lift.result("tools/call", await this.#host.send(request, context));
      return { status: "completed", result: unrelated(answer) };
    } catch (error) {
      if (!(error instanceof McpError)) throw error;
      return { status: "failed", error: error.toBody() };
    }
  }
}

/** What an end says of a task, in the words of the newest form. */
export function fieldsOf(host: TaskBackHost, said: Json): Json {
  const { resultType: _complete, ...fields } = host.revision().lift.result("tasks/get", said);
  return fields;
}

/** Without the name of the task, which is the end's own. */
function unrelated<T extends Params | Result>(fields: T): T {
  const { _meta, ...rest } = fields;
  if (_meta?.[META.relatedTask] === undefined) return fields;
  const { [META.relatedTask]: _task, ...meta } = _meta;
  return (Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta }) as T;
}

// A task whose caller left before the end had named it. A request that makes a task must not be cancelled by
// `notifications/cancelled` (specification of the last session-style revision, basic/utilities/cancellation), and
// `tasks/cancel` needs the name: so nothing is said until the end has answered, and nobody waits for that but we.


/** How long the name of a task is waited for that nobody wants any more. */
const LATE_MS = 60_000;

/** What becomes of a call that makes a task, where its caller leaves it. */
export function leavingUnheard(host: TaskBackHost, { caller }: Context): Leaving {
  const left = new AbortController();
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  onAbort(left.signal, () => {
    timer = setTimeout(() => over.abort(), LATE_MS);
    // Nothing is kept running for it.
    timer.unref();
  });
  const ask = (): Promise<never> => Promise.reject(new ConnectionError("cancelled", "The caller has left the call"));
  return {
    left,
    over: over.signal,
    context: { ...host.home, caller, notify: () => undefined, ask },
    late: (answer) => {
      clearTimeout(timer);
      cancelUnheard(host, caller, answer["task"]);
    },
  };
}

/** Nobody hears what comes of it. */
export function cancelUnheard(host: TaskBackHost, caller: Caller, said: unknown): void {
  if (!isObject(said) || !canCancel(host)) return;
  const params = { taskId: said["taskId"] };
  host.send({ method: "tasks/cancel", params }, { ...host.home, caller }).catch(() => undefined);
}

/** Whether the end has said that tasks can be cancelled: what it has not said must not be asked of it. */
export function canCancel(host: TaskBackHost): boolean {
  const { tasks } = host.offered();
  return isObject(tasks) && Boolean(tasks["cancel"]);
}
