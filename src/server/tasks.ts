// Calls that become tasks, and what callers ask of tasks. A tool that says it can be one is run here: in the call
// where the caller knows no tasks, in a task otherwise, from the beginning or from the moment at which the tool lets
// go of the call. Loaded when such a tool is called for the first time. Which tasks are kept is for the store.

import { onAbort, unref } from "../core/async.ts";
import type { Context, Caller, AskOptions, Request, Result } from "../core/handler.ts";
import { checkAsk } from "../protocol/asks.ts";
import { invalidParams, McpError, methodNotFound } from "../protocol/errors.ts";
import type { DetailedTask, InputResponse, Task as TaskFields, TaskStatus } from "../protocol/model/index.ts";
import { revisionNamed } from "../protocol/revisions/index.ts";
import { hasTasks, isOver, type Listing, TASKS_LISTED, tasksUndeclared } from "../protocol/tasks.ts";
import type { Brought } from "./call-context.ts";
import type { Frame } from "./result-builder.ts";
import { InputRequired, type Rounds } from "./input-required.ts";
import { demandScopes, permits } from "../auth/bearer/scopes.ts";
import type { Extra } from "./subscriptions.ts";
import type { TaskLimits, TaskOptions } from "./options.ts";
import { errorMessage } from "../core/text.ts";
import { OpenQuestions } from "../protocol/open-questions.ts";

/** A tool that asks again whatever it is answered does not do so for ever. */
const MOST_ROUNDS = 100;

/** A call of a tool that can be a task. */
export interface TaskCall {
  readonly name: string;
  readonly scopes: readonly string[] | undefined;
  readonly options: TaskOptions;
  readonly request: Request;
  readonly context: Context;
  readonly brought: Brought;
  /** Runs the tool once. Failures of the tool are results; what is thrown is an error of the protocol. */
  run(context: Context, brought: Brought, detach: () => void): Promise<Result | InputRequired>;
}

export class Tasks {
  readonly #frame: Frame;
  readonly #rounds: Rounds;
  readonly #store: TaskStore;

  constructor(frame: Frame, rounds: Rounds, limits: TaskLimits) {
    this.#frame = frame;
    this.#rounds = rounds;
    this.#store = new TaskStore(limits);
  }

  /** The tool's result, or the handle of a task, as the tool and the caller allow. */
  async call(call: TaskCall): Promise<Result> {
    const { context, options, name } = call;
    const required = options.support === "required";
    if (!hasTasks(context.caller.capabilities)) {
      if (required) throw tasksUndeclared(`Tool ${name} is always run as a task, which`);
      return this.#work(call, context, () => undefined);
    }
    // Where there is no room, a tool that need not be a task is an ordinary call.
    if (required && !this.#store.hasRoom(context.caller)) {
      throw McpError.of("rate_limited", "Too many tasks are kept; more can begin when some of them have expired");
    }
    return new Promise<Result>((resolve, reject) => this.#begin(call, resolve, reject));
  }

  get(request: Request, context: Context): Result {
    return this.#frame.complete(this.#find(request, context).detailed());
  }

  update(request: Request, context: Context): Result {
    this.#find(request, context).update(request.params["inputResponses"] as Record<string, unknown>);
    return this.#frame.complete({});
  }

  /** A task that is over stays as it is. */
  cancel(request: Request, context: Context): Result {
    this.#find(request, context).cancel("The task was cancelled by request");
    return this.#frame.complete({});
  }

  /** All that this caller may ask about: for a front, because the newest revision has no such list. */
  list({ method, params }: Request, context: Context): Result {
    if ((params as Listing)[TASKS_LISTED] !== true) throw methodNotFound(method);
    checkDeclared(method, context);
    const { caller } = context;
    const held = this.#store.all(caller).filter(({ scopes }) => permits(scopes, caller));
    return this.#frame.complete({ tasks: held.map(({ task }) => task.detailed()) });
  }

  /** What a listen on tasks is granted; undefined: nothing. */
  watch(ids: readonly string[], context: Context): Extra | undefined {
    checkDeclared("A listen on tasks", context);
    const held = [...new Set(ids)].flatMap((id) => this.#store.find(id, context.caller) ?? []);
    if (held.length === 0) return undefined;
    const tasks = held.map(({ task }) => task);
    return {
      granted: { taskIds: tasks.map(({ id }) => id) },
      scopes: held.flatMap(({ scopes = [] }) => scopes),
      begin: (end) => tell(tasks, context, end),
    };
  }

  close(): void {
    this.#store.close();
  }

  #begin(call: TaskCall, resolve: (result: Result) => void, reject: (error: unknown) => void): void {
    const { context, options, scopes } = call;
    const stop = new AbortController();
    let over = false;
    let held: Held | undefined;
    const forget = onAbort(context.signal, () => stop.abort(context.signal.reason));
    if (context.signal.aborted) stop.abort(context.signal.reason);
    const detach = (): void => {
      if (held !== undefined || over || stop.signal.aborted) return;
      held = this.#store.add(stop, options, context.caller, scopes);
      if (held === undefined) return;
      // From now on the caller's request is answered, and whatever becomes of it does not touch the task.
      forget();
      resolve({ resultType: "task", ...held.task.fields(), _meta: this.#frame.meta });
    };
    if (options.when !== "when-detached") detach();
    const end = (settle: (task: Task) => void, answer: () => void): void => {
      over = true;
      forget();
      if (held === undefined) answer();
      else {
        this.#store.ended(held);
        settle(held.task);
      }
    };
    const own = workContext(context, stop.signal, () => held?.task);
    this.#work(call, own, detach, () => held?.task).then(
      (result) =>
        end(
          (task) => task.complete(result),
          () => resolve(result),
        ),
      (error: unknown) =>
        end(
          (task) => task.fail(error),
          () => reject(error),
        ),
    );
  }

  /** Runs the tool until it is content. What it wants answered before is asked of the caller, or by the task. */
  async #work(call: TaskCall, context: Context, detach: () => void, task?: () => Task | undefined): Promise<Result> {
    let { brought } = call;
    for (let round = 1; round <= MOST_ROUNDS; round += 1) {
      const value = await call.run(context, brought, detach);
      if (!(value instanceof InputRequired)) return value;
      const asking = task?.();
      if (asking === undefined) return this.#rounds.result(value, call.request, call.context);
      brought = { answers: await answersTo(asking, value, context), state: value.state };
    }
    throw McpError.of("rate_limited", `Tool ${call.name} has asked for ${MOST_ROUNDS} rounds`);
  }

  /** Throws the same for a task of somebody else as for one that never was; its principal is told what it lacks. */
  #find({ method, params }: Request, context: Context): Task {
    checkDeclared(method, context);
    const { taskId } = params;
    const held = this.#store.find(taskId, context.caller);
    if (held === undefined) {
      throw invalidParams("Unknown task: there is none with this id, or none any more", { taskId });
    }
    demandScopes(held.scopes, context.caller, `The task ${held.task.id}`);
    return held.task;
  }
}

function checkDeclared(what: string, { caller }: Context): void {
  if (!hasTasks(caller.capabilities)) throw tasksUndeclared(what);
}

/** What the tool works in: as the caller's, until there is a task to speak through. */
function workContext(context: Context, signal: AbortSignal, task: () => Task | undefined): Context {
  const { revision, caller, logLevel, timeouts } = context;
  // An exchange is over with its answer: no later message can belong to it.
  const isSession = revisionNamed(revision)?.style === "session";
  return {
    revision,
    caller,
    signal,
    ...(logLevel === undefined ? undefined : { logLevel }),
    ...(timeouts === undefined ? undefined : { timeouts }),
    notify: (notification) => {
      if (task()?.isOver === true) return;
      const message = notification.method === "notifications/progress" ? notification.params?.["message"] : undefined;
      if (typeof message === "string") task()?.say(message);
      if (isSession || task() === undefined) context.notify(notification);
    },
    ask: (request, options) => (task() ?? context).ask(request, options),
    hangUp: (retryMs) => context.hangUp?.(retryMs),
  };
}

/** All answers, by the keys that the tool chose; what the caller sees may be called otherwise. */
async function answersTo(task: Task, { requests }: InputRequired, { caller }: Context): Promise<Brought["answers"]> {
  const asked = Object.entries(requests).map(([key, { method, params }]) => {
    const request: Request = { method, params: params ?? {} };
    checkAsk(request, caller.capabilities);
    return { key, request };
  });
  const given = await Promise.all(
    asked.map(async ({ key, request }) => {
      const answer = await task.ask(request, { key });
      return [key, answer as unknown as InputResponse] as const;
    }),
  );
  return Object.fromEntries(given);
}

/** Begins with how each stands now, so that nothing that happened before the listen is missed. */
function tell(tasks: readonly Task[], context: Context, end: () => void): () => void {
  const watching = new Map<string, () => void>();
  const watcher = (detailed: DetailedTask): void => {
    context.notify({ method: "notifications/tasks", params: { ...detailed } });
    if (!isOver(detailed.status)) return;
    watching.get(detailed.taskId)?.();
    watching.delete(detailed.taskId);
    if (watching.size === 0) end();
  };
  for (const task of tasks) watching.set(task.id, task.watch(watcher));
  for (const task of tasks) watcher(task.detailed());
  return () => {
    for (const forget of watching.values()) forget();
  };
}

// Which tasks a server keeps, whose each is, and for how long. A task is found only by the principal that made it;
// for everybody else it is unknown. The number of tasks is bounded, in all and for each principal, and so is their
// life; one sweeper serves all of them. What a task does is not known here.


const SWEEP_MS = 1_000;

export interface Held {
  readonly task: Task;
  readonly principal: string | undefined;
  /** What its tool needs, and so whoever asks about it. */
  readonly scopes: readonly string[] | undefined;
  readonly expires: number;
  /** A tool may ignore its signal: it takes up room until it has ended and its task is forgotten. */
  ended: boolean;
  forgotten: boolean;
}

export class TaskStore {
  readonly #limits: Required<TaskLimits>;
  readonly #held = new Map<string, Held>();
  /** How much room is taken up, in all and by each principal. */
  readonly #taken = new Map<string | undefined, number>();
  #all = 0;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(limits: TaskLimits) {
    this.#limits = {
      max: limits.max ?? 1_000,
      maxPerCaller: limits.maxPerCaller ?? 100,
      ttlMs: limits.ttlMs ?? 3_600_000,
      maxTtlMs: limits.maxTtlMs ?? 86_400_000,
      pollIntervalMs: limits.pollIntervalMs ?? 1_000,
    };
  }

  hasRoom({ principal }: Caller): boolean {
    return this.#all < this.#limits.max && (this.#taken.get(principal) ?? 0) < this.#limits.maxPerCaller;
  }

  /** A new task, whose tool hears `stop`; undefined where there is no room. */
  add(
    stop: AbortController,
    options: TaskOptions,
    caller: Caller,
    scopes: readonly string[] | undefined,
  ): Held | undefined {
    if (!this.hasRoom(caller)) return undefined;
    const { ttlMs, maxTtlMs, pollIntervalMs } = this.#limits;
    const task = new Task(stop, {
      ttlMs: Math.min(options.ttlMs ?? ttlMs, maxTtlMs),
      pollIntervalMs: options.pollIntervalMs ?? pollIntervalMs,
    });
    const { principal } = caller;
    const expires = performance.now() + task.ttlMs;
    const held: Held = { task, principal, scopes, expires, ended: false, forgotten: false };
    this.#held.set(task.id, held);
    this.#take(principal, 1);
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), SWEEP_MS));
    return held;
  }

  find(id: unknown, { principal }: Caller): Held | undefined {
    const held = this.#held.get(id as string);
    if (held === undefined || held.principal !== principal) return undefined;
    if (held.expires > performance.now()) return held;
    this.#expire(held);
    return undefined;
  }

  /** All of this principal, in the order in which they began. */
  all({ principal }: Caller): readonly Held[] {
    const now = performance.now();
    return [...this.#held.values()].filter((held) => held.principal === principal && held.expires > now);
  }

  /** The tool's work has ended, in whatever way. */
  ended(held: Held): void {
    held.ended = true;
    if (held.forgotten) this.#take(held.principal, -1);
  }

  close(): void {
    for (const held of this.#held.values()) {
      held.task.cancel("The server is closing");
      this.#forget(held);
    }
  }

  #take(principal: string | undefined, count: 1 | -1): void {
    this.#all += count;
    const taken = (this.#taken.get(principal) ?? 0) + count;
    if (taken === 0) this.#taken.delete(principal);
    else this.#taken.set(principal, taken);
  }

  #sweep(): void {
    const now = performance.now();
    for (const held of this.#held.values()) if (held.expires <= now) this.#expire(held);
  }

  #expire(held: Held): void {
    held.task.expire();
    this.#forget(held);
  }

  #forget(held: Held): void {
    if (!this.#held.delete(held.task.id)) return;
    held.forgotten = true;
    if (held.ended) this.#take(held.principal, -1);
    if (this.#held.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

// One task: a call of a tool that goes on after its caller was given a handle. It knows what it is doing, what it
// asks, how it ended, and who wants to hear of that. Its status moves between working and input_required until it
// is over, and then never again, whatever the tool does. Whose task it is and how long it is kept is for the store.


type Outcome = { readonly result: Result } | { readonly error: ReturnType<McpError["toBody"]> };

export type Watcher = (task: DetailedTask) => void;

export class Task {
  readonly id: string = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  readonly ttlMs: number;
  readonly #pollIntervalMs: number;
  /** Ends the tool's work. */
  readonly #stop: AbortController;
  readonly #questions = new OpenQuestions(() => this.#move(this.#questions.size === 0 ? "working" : "input_required"));
  readonly #watchers = new Set<Watcher>();
  readonly #createdAt = new Date().toISOString();
  #updatedAt = this.#createdAt;
  #status: TaskStatus = "working";
  #message: string | undefined;
  #outcome: Outcome | undefined;
  #telling = false;

  constructor(stop: AbortController, times: { readonly ttlMs: number; readonly pollIntervalMs: number }) {
    this.#stop = stop;
    this.ttlMs = times.ttlMs;
    this.#pollIntervalMs = times.pollIntervalMs;
  }

  get isOver(): boolean {
    return isOver(this.#status);
  }

  /** Without what belongs to its status. */
  fields(): TaskFields {
    return {
      taskId: this.id,
      status: this.#status,
      ...(this.#message === undefined ? undefined : { statusMessage: this.#message }),
      createdAt: this.#createdAt,
      lastUpdatedAt: this.#updatedAt,
      ttlMs: this.ttlMs,
      pollIntervalMs: this.#pollIntervalMs,
    };
  }

  detailed(): DetailedTask {
    const inputRequests = this.#questions.requests;
    return {
      ...this.fields(),
      ...(inputRequests === undefined ? undefined : { inputRequests }),
      ...this.#outcome,
    } as DetailedTask;
  }

  /** What it says of itself while it works; nobody is told, but whoever asks hears it. */
  say(message: string): void {
    if (this.isOver || message === this.#message) return;
    this.#message = message;
    this.#updatedAt = new Date().toISOString();
  }

  async ask(request: Request, options: AskOptions = {}): Promise<Result> {
    this.#stop.signal.throwIfAborted();
    if (this.isOver) throw new Error("The task is over: nobody can be asked on its behalf any more");
    return this.#questions.ask(request, options);
  }

  /** Answers, by the keys of the questions. Throws where one is none. */
  update(responses: { readonly [key: string]: unknown }): void {
    this.#questions.answer(responses);
  }

  /** What has no JSON could never be shown to anybody who asks. */
  complete(result: Result): void {
    try {
      JSON.stringify(result);
    } catch (error) {
      this.fail(McpError.of("internal_error", `The result has no JSON: ${errorMessage(error)}`));
      return;
    }
    this.#end("completed", { result });
  }

  /** Never throws: what was thrown is a tool's own, and may bite. */
  fail(error: unknown): void {
    let body: ReturnType<McpError["toBody"]>;
    try {
      body = (error instanceof McpError ? error : McpError.of("internal_error", errorMessage(error))).toBody();
      JSON.stringify(body);
    } catch {
      body = McpError.of("internal_error", "The tool threw something that cannot be read").toBody();
    }
    this.#end("failed", { error: body }, body.message);
  }

  cancel(reason: string): void {
    this.#end("cancelled", undefined, reason);
    this.#stop.abort(new Error(reason));
  }

  /** Its time is up; a tool that still runs hears it from its signal. */
  expire(): void {
    if (this.isOver) return;
    const error = McpError.of("timeout", `The task was not finished within its ${this.ttlMs} ms`);
    this.fail(error);
    this.#stop.abort(error);
  }

  /** Told of every change from now on; returns how to take that back. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #end(status: TaskStatus, outcome: Outcome | undefined, message?: string): void {
    if (this.isOver) return;
    this.#outcome = outcome;
    this.#message = message;
    this.#questions.drop(new Error("The task is over"));
    this.#move(status);
  }

  #move(status: TaskStatus): void {
    if (this.isOver) return;
    this.#status = status;
    this.#updatedAt = new Date().toISOString();
    // What changes in one breath is told once.
    if (this.#telling || this.#watchers.size === 0) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      const detailed = this.detailed();
      for (const watcher of [...this.#watchers]) watcher(detailed);
    });
  }
}
