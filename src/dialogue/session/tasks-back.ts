// Recognizes requests to a session-style server, and notifications from it, that concern tasks. Also finds out which of
// its tools can run as a task. The rest (server-tasks.ts) is loaded on first use, since most servers have no tasks.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { TaskSubscription } from "../../protocol/subscribers.ts";
import { filterOf } from "../../protocol/subscription.ts";
import type { ToolExecution } from "../../protocol/tasks.ts";
import { ToolFacts } from "../../tools/facts.ts";
import type { ServerTasksHost } from "./server-task.ts";
import type { ServerTasks } from "./server-tasks.ts";

const NO_TASKS: ToolExecution = {};

export class TasksBack {
  readonly #host: ServerTasksHost;
  readonly #tools = new ToolFacts();
  #loading: Promise<ServerTasks> | undefined;
  #tasks: ServerTasks | undefined;

  constructor(host: ServerTasksHost) {
    this.#host = host;
  }

  async answer(original: Request, context: Context): Promise<Result> {
    const { method } = original;
    // `task` is a field of the server's revision. In a request of the newest revision it has no meaning.
    const { task: _task, ...params } = original.params;
    const request: Request = { method, params };
    if (method === "tools/call") {
      const list = (page: Request): Promise<Result> =>
        this.#host.send(page, { ...this.#host.defaultContext, caller: context.caller });
      const support = (await this.#tools.find(params["name"], list, context))?.taskSupport;
      // A call of an unlisted tool is sent unchanged, so that the server reports what is wrong with it.
      const isPlain = support === undefined || (support === "forbidden" && context.task?.mode !== "required");
      return isPlain ? this.#host.plain(request, context) : (await this.#load()).call(request, context, support);
    }
    if (!this.#host.terms.supportsTasks) throw methodNotFound(method);
    return { ...(await (await this.#load()).answer(request, context)), resultType: "complete" };
  }

  /**
   * Records the task support of listed tools, and adds it where it is left out: in this revision such a tool cannot run
   * as a task, but elsewhere a missing field means unknown. Throws if a call was answered with an unrequested task.
   */
  inspect(method: string, result: Result): Result {
    if (method === "tools/call" && isObject(result["task"]) && result["content"] === undefined) {
      throw new ConnectionError("protocol", "The server answered tools/call with a task, though none was requested");
    }
    if (method !== "tools/list" || !this.#host.terms.supportsTasks || !Array.isArray(result["tools"])) return result;
    this.#tools.learn(result);
    const tools = result["tools"].map((tool: unknown) =>
      isObject(tool) && tool["execution"] === undefined ? { ...tool, execution: NO_TASKS } : tool,
    );
    return { ...result, tools };
  }

  /** The subscription to the tasks that a `subscriptions/listen` names; undefined if it names none, or none is granted. */
  async subscribe(request: Request, context: Context): Promise<TaskSubscription | undefined> {
    const { taskIds } = filterOf(request);
    if (!Array.isArray(taskIds) || !this.#host.terms.supportsTasks) return undefined;
    return (await this.#load()).subscribe(taskIds, context);
  }

  /** Finds the task that the server runs while it sends this request; undefined if the request is about no task. */
  askTarget(params: Params): ReturnType<ServerTasks["named"]> | undefined {
    const related = params._meta?.[META.relatedTask];
    const id = isObject(related) ? related["taskId"] : undefined;
    return typeof id === "string" ? this.#tasks?.named(id) : undefined;
  }

  forgetTools(): void {
    this.#tools.forget();
  }

  /** Progress under a token of no call in flight. */
  onProgress(params: Params): void {
    this.#tasks?.onProgress(params);
  }

  /** Returns whether the notification was about a task and needs no further handling. */
  handleNotification({ method, params = {} }: Notification): boolean {
    if (method === "notifications/tools/list_changed") this.forgetTools();
    if (method !== "notifications/tasks/status") return false;
    this.#tasks?.onStatus(params);
    return true;
  }

  #load(): Promise<ServerTasks> {
    this.#loading ??= import("./server-tasks.ts").then(
      ({ ServerTasks }) => (this.#tasks = new ServerTasks(this.#host)),
    );
    return this.#loading;
  }
}
