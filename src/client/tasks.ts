// Tools that the end runs as tasks: a call that is driven to its end for who just wants the result, and handles for
// who wants to do something else meanwhile, or to come back later. There is one handle for each task, so that no
// question is put twice. Loaded when the first task is met.

import type { Context, AskOptions } from "../core/handler.ts";
import type { Handler, Params, Request, Result } from "../core/handler.ts";
import { drive } from "../dialogue/calls/input-required.ts";
import { taskToEnd, outcomeOf, TaskQuestions, untilOver } from "../dialogue/calls/task-completion.ts";
import { seedOf, TaskWatch } from "../dialogue/calls/task-watch.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { declaringTasks, TASK_WANTED, type Wanting, isOver } from "../protocol/tasks.ts";
import type { CallOptions, Calls } from "./calls.ts";
import { onAbort } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { CallToolResult, DetailedTask, TaskStatus } from "../protocol/model/index.ts";
import { tell } from "./contexts.ts";

const MOST_HANDLES = 1_000;
const INVALID_PARAMS = -32602;

export class Tasks {
  readonly #way: TaskWay;
  /** Those that were not over when last heard of. */
  readonly #handles = new Map<string, TaskHandle>();

  constructor(way: TaskWay) {
    this.#way = { ...way, home: declaringTasks(way.home) };
  }

  async start(name: string, args: Json, options: CallOptions = {}): Promise<TaskHandle> {
    const { handler, calls } = this.#way;
    const params: Params & Wanting = { name, arguments: args, [TASK_WANTED]: "if-it-can" };
    const request = calls.asking("tools/call", params, options);
    const made = await calls.work(request.method, options, (context) =>
      drive(handler, request, declaringTasks(context)),
    );
    if (made.resultType !== "task") return new TaskHandle(this.#way, atOnce(made), name);
    return this.#keep(new TaskHandle(this.#way, seedOf(made), name));
  }

  async find(taskId: string, options: CallOptions = {}): Promise<TaskHandle> {
    const known = this.#handles.get(taskId);
    if (known !== undefined) {
      await known.refresh(options);
      return known;
    }
    const { handler, calls } = this.#way;
    const request: Request = { method: "tasks/get", params: { taskId } };
    const state = await calls.work(request.method, options, (context) =>
      handler(request, declaringTasks(context)).catch((error: unknown) => {
        throw unknownTask(taskId, error);
      }),
    );
    const { resultType: _complete, ...fields } = state;
    return this.#handles.get(taskId) ?? this.#keep(new TaskHandle(this.#way, fields, "the tool"));
  }

  #keep(handle: TaskHandle): TaskHandle {
    for (const [id, { isOver }] of this.#handles) if (isOver) this.#handles.delete(id);
    const [oldest] = this.#handles.keys();
    if (this.#handles.size >= MOST_HANDLES && oldest !== undefined) this.#handles.delete(oldest);
    this.#handles.set(handle.id, handle);
    return handle;
  }
}

/** From the handle that a call was answered with to what came of it. */
export async function toEnd(handler: Handler, made: Result, request: Request, context: Context): Promise<Result> {
  return outcomeFor(await taskToEnd(handler, made, request, context));
}

/** Answered at once, there is no task to come back to. */
function atOnce(result: Result): Json {
  const now = new Date().toISOString();
  return { taskId: "", status: "completed", createdAt: now, lastUpdatedAt: now, ttlMs: null, result };
}

function unknownTask(taskId: string, error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
  const text = `The end knows no task ${taskId}: it has expired, or there never was one (${error.message})`;
  return McpError.of("invalid_params", text, { taskId }, { cause: error });
}

// The handle of one task: how it stands, what came of it, and how to give it up. Waiting for the result answers what
// the task asks; looking on does not. While anybody does either, the end is listened to, or asked no faster than it
// wants. Losing interest leaves the task alone: it is cancelled only by who says so.


/** How the end is reached. */
export interface TaskWay {
  readonly handler: Handler;
  readonly calls: Calls;
  /** Of the connection: for what no call stands behind. */
  readonly home: Context;
}

/** Changes that an iteration has not taken yet. */
const MOST_KEPT = 100;

export class TaskHandle implements AsyncIterable<DetailedTask> {
  readonly #way: TaskWay;
  readonly #watch: TaskWatch;
  /** The name of the tool, for the text of errors. */
  readonly #tool: string;
  readonly #questions = new TaskQuestions();
  #attending = 0;

  /** `startTool` and `task` of a client make handles. */
  constructor(way: TaskWay, state: Json, tool: string) {
    this.#way = way;
    this.#watch = new TaskWatch(way.handler, way.home, state);
    this.#tool = tool;
  }

  /** Under which the end knows it; empty where the end answered at once, and there is nothing to come back to. */
  get id(): string {
    return this.#watch.id;
  }

  /** As it was last heard of. */
  get state(): DetailedTask {
    return this.#watch.state as unknown as DetailedTask;
  }

  get status(): TaskStatus {
    return this.state.status;
  }

  get isOver(): boolean {
    return this.#watch.isOver;
  }

  /** Asks the end how it stands. */
  async refresh(options: CallOptions = {}): Promise<DetailedTask> {
    await this.#way.calls.work(`Asking about the task ${this.id}`, options, (context) =>
      this.#watch.refresh(declaringTasks(context)),
    );
    return this.state;
  }

  /**
   * Waits for what the tool gives, and answers what the task asks meanwhile; throws the error that ended it. Giving up
   * the wait, by a signal or a time limit, does not touch the task.
   */
  async result(options: CallOptions = {}): Promise<CallToolResult> {
    const { handler, calls } = this.#way;
    const leave = this.#attend();
    try {
      const state = await calls.work(`Waiting for the task ${this.id}`, options, (context) => {
        const ask = (question: Request, how: AskOptions): Promise<Result> => context.ask(question, how);
        const waiter = { handler, context: declaringTasks(context), tool: this.#tool, isPatient: true, ask };
        return untilOver(this.#watch, this.#questions, waiter);
      });
      return outcomeFor(state) as CallToolResult;
    } finally {
      leave();
    }
  }

  /** Resolves when the end has taken note. A task that is over stays as it is. */
  async cancel(options: CallOptions = {}): Promise<void> {
    if (this.isOver) return;
    await this.#way.calls.work(`Cancelling the task ${this.id}`, options, async (context) => {
      const declared = declaringTasks(context);
      await this.#way.handler({ method: "tasks/cancel", params: { taskId: this.id } }, declared);
      await this.#watch.refresh(declared).catch(() => undefined);
    });
    // The end may take its time, or never heed it; here it is cancelled from now on.
    const { inputRequests: _asked, ...state } = this.#watch.state;
    const statusMessage = "The task was cancelled by request";
    this.#watch.take({ ...state, status: "cancelled", statusMessage, lastUpdatedAt: new Date().toISOString() });
  }

  /** Hears of changes until it is over; returns how to stop that. */
  onStatus(listener: (state: DetailedTask) => void): () => void {
    return this.#follow(
      (state) => tell(listener, state),
      () => undefined,
    );
  }

  /** How it stands now, and every change until it is over. Throws where that cannot be known any more. */
  async *[Symbol.asyncIterator](): AsyncGenerator<DetailedTask, void, undefined> {
    const kept: DetailedTask[] = [this.state];
    let wake = (): void => undefined;
    let lost: { readonly error: unknown } | undefined;
    const stop = this.#follow(
      (state) => {
        kept.push(state);
        if (kept.length > MOST_KEPT) kept.shift();
        wake();
      },
      (error) => {
        lost = { error };
        wake();
      },
    );
    try {
      for (;;) {
        const state = kept.shift();
        if (state === undefined) {
          if (lost !== undefined) throw lost.error;
          await new Promise<void>((resolve) => (wake = resolve));
        } else {
          yield state;
          if (isOver(state.status)) return;
        }
      }
    } finally {
      stop();
    }
  }

  #follow(changed: (state: DetailedTask) => void, lost: (error: unknown) => void): () => void {
    const { signal } = this.#way.home;
    const leave = this.#attend();
    let last = this.state;
    const unfollow = this.#watch.follow(() => {
      const { state } = this;
      if (looks(state) === looks(last)) return;
      last = state;
      changed(state);
    }, lost);
    const forget = onAbort(signal, () => {
      stop();
      lost(signal.reason);
    });
    let isStopped = false;
    const stop = (): void => {
      if (isStopped) return;
      isStopped = true;
      unfollow();
      forget();
      leave();
    };
    return stop;
  }

  /** Somebody wants to hear of changes; returns how to say that this is over. */
  #attend(): () => void {
    this.#attending += 1;
    if (this.#attending === 1) this.#watch.listen();
    return () => {
      this.#attending -= 1;
      if (this.#attending === 0) this.#watch.unlisten();
    };
  }
}

/** What came of a task that is over. Throws the error that ended it, with what the end says of that beside it. */
export function outcomeFor(state: Json): Result {
  const { status, taskId, statusMessage } = state;
  const said = typeof statusMessage === "string" ? statusMessage : "";
  if (status === "cancelled") {
    throw new ConnectionError("cancelled", `The task ${String(taskId)} was cancelled${said === "" ? "" : `: ${said}`}`);
  }
  try {
    return outcomeOf(state);
  } catch (error) {
    if (!(error instanceof McpError) || error.message.includes(said)) throw error;
    throw new McpError(error.code, `${error.message} (${said})`, error.data, { cause: error });
  }
}

/** What of a state is a change worth telling of. */
function looks(state: DetailedTask): string {
  const asked = state.status === "input_required" ? Object.keys(state.inputRequests) : [];
  return JSON.stringify([state.status, state.statusMessage, asked]);
}
