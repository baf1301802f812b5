// Calls that become tasks, and what callers ask of tasks. A tool that says it can be one is run here: in the call
// where the caller knows no tasks, in a task otherwise, from the beginning or from the moment at which the tool lets
// go of the call. Loaded when such a tool is called for the first time. Which tasks are kept is for the store.

import { onAbort } from "../core/async.ts";
import type { Context } from "../core/context.ts";
import type { Request, Result } from "../core/handler.ts";
import { checkAsk } from "../protocol/asks.ts";
import { invalidParams, McpError, methodNotFound } from "../protocol/errors.ts";
import type { DetailedTask, InputResponse } from "../protocol/model/index.ts";
import { revisionNamed } from "../protocol/revisions/index.ts";
import { hasTasks, isOver, type Listing, TASKS_LISTED, tasksUndeclared } from "../protocol/tasks.ts";
import type { Brought } from "./call-context.ts";
import type { Frame } from "./frame.ts";
import { InputRequired, type Rounds } from "./input-required.ts";
import { demandScopes, permits } from "../auth/bearer/scopes.ts";
import type { Extra } from "./subscriptions.ts";
import type { Task } from "./task.ts";
import type { TaskLimits, TaskOptions } from "./task-options.ts";
import { type Held, TaskStore } from "./task-store.ts";

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
