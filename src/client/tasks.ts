// Tools that the end runs as tasks: a call that is driven to its end for who just wants the result, and handles for
// who wants to do something else meanwhile, or to come back later. There is one handle for each task, so that no
// question is put twice. Loaded when the first task is met.

import type { Context } from "../core/context.ts";
import type { Handler, Params, Request, Result } from "../core/handler.ts";
import { drive } from "../dialogue/calls/drive.ts";
import { taskToEnd } from "../dialogue/calls/task-drive.ts";
import { seedOf } from "../dialogue/calls/task-watch.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { declaringTasks, TASK_WANTED, type Wanting } from "../protocol/tasks.ts";
import type { CallOptions } from "./calls.ts";
import { outcomeFor, TaskHandle, type TaskWay } from "./task-handle.ts";

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
