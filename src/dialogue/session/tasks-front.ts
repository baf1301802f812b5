// How tasks come into a session: what of a caller's requests is about them, and what becomes of a tool that is always
// a task and was called as if it were none. The rest is loaded when it is needed, because most sessions never do.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import { hasTasks, saysTasksUndeclared } from "../../protocol/tasks.ts";
import type { SessionTasks, TasksHost } from "./client-tasks.ts";

export class TaskDoor {
  readonly #host: TasksHost;
  /** Whether both sides know tasks, each in its own form. */
  #isOpen = false;
  #tasks: SessionTasks | undefined;
  #isClosed = false;

  constructor(host: TasksHost) {
    this.#host = host;
  }

  /** What the end can do is known now. */
  open(capabilities: Json): void {
    this.#isOpen = this.#host.revision().requests.has("tasks/result") && hasTasks(capabilities);
  }

  /** Whether the request is one to be answered here. */
  takes({ method, params }: Request): boolean {
    if (!this.#isOpen) return false;
    if (method === "tools/call") return params["task"] !== undefined;
    return method === "tools/list" || method.startsWith("tasks/");
  }

  /** In the caller's revision. `gone` says when the way of the request is gone. */
  async answer(request: Request, context: Context, gone: AbortSignal): Promise<Result> {
    return (this.#tasks ?? (await this.#load())).answer(request, context, gone);
  }

  async #load(): Promise<SessionTasks> {
    const { SessionTasks } = await import("./client-tasks.ts");
    const tasks = (this.#tasks ??= new SessionTasks(this.#host));
    if (this.#isClosed) tasks.close();
    return tasks;
  }

  /**
   * What comes instead of an error, in the newest shape; throws what is none of our business. A caller that was told
   * of a tool that it is always a task must ask for one; for all others such a tool is waited for.
   */
  async instead(error: unknown, request: Request, context: Context): Promise<Result> {
    if (request.method !== "tools/call" || !saysTasksUndeclared(error)) throw error;
    const { name } = request.params;
    if (this.#isOpen && (await this.#isToldRequired(name, context))) {
      throw McpError.of("method_not_found", `Tool ${String(name)} must be called as a task`);
    }
    const { callToEnd } = await import("../calls/task-completion.ts");
    return callToEnd(this.#host.handler, request, context);
  }

  /** A handler behind a wire cannot say it: its tools are shown as if they might be called either way. */
  async #isToldRequired(name: unknown, context: Context): Promise<boolean> {
    const { TaskSupports } = await import("./tool-task-support.ts");
    const list = (cursor?: string): Promise<Result> =>
      this.#host.handler({ method: "tools/list", params: cursor === undefined ? {} : { cursor } }, context);
    return (await new TaskSupports().of(name, list)) === "required";
  }

  close(): void {
    this.#isClosed = true;
    this.#tasks?.close();
  }
}
