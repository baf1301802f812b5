// Recognizes requests to a session-style server, and notifications from it, that concern tasks. Also finds out which of
// its tools can run as a task. The rest (server-tasks.ts) is loaded on first use, since most servers have no tasks.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/base.ts";
import type { TaskSubscription } from "../../protocol/subscribers.ts";
import type { ToolExecution } from "../../protocol/tasks.ts";
import { ToolFacts } from "../../tools/facts.ts";
import type { ServerTasks, ServerTasksHost } from "./server-tasks.ts";

export class TasksBack {
  readonly #host: ServerTasksHost;
  readonly #tools = new ToolFacts();
  #loading: Promise<ServerTasks> | undefined;
  #tasks: ServerTasks | undefined;

  constructor(host: ServerTasksHost) {
    this.#host = host;
  }

  async answer(given: Request, context: Context): Promise<Result> {
    const { method } = given;
    // `task` is a field of the server's revision. In a request of the newest revision it has no meaning.
    const { task: _task, ...params } = given.params;
    const request: Request = { method, params };
    if (method === "tools/call") {
      const list = (page: Request): Promise<Result> =>
        this.#host.send(page, { ...this.#host.defaultContext, caller: context.caller });
      const support = (await this.#tools.find(params["name"], list, context))?.taskSupport;
      // A call of an unlisted tool is sent unchanged, so that the server reports what is wrong with it.
      const isPlain = support === undefined || (support === "forbidden" && context.task?.mode !== "required");
      return isPlain ? this.#host.plain(request, context) : (await this.#load()).call(request, context, support);
    }
    if (!this.#host.supportsTasks()) throw methodNotFound(method);
    return (await this.#load()).answer(request, context);
  }

  /** Records the task support of listed tools, and adds it where it is left out. Throws if a call was answered with an unrequested task. */
  inspect(method: string, result: Result): Result {
    if (method === "tools/call" && isObject(result["task"]) && result["content"] === undefined) {
      throw new ConnectionError("protocol", "The server answered tools/call with a task, though none was requested");
    }
    if (method !== "tools/list" || !this.#host.supportsTasks()) return result;
    this.#tools.learn(result);
    return withExecution(result);
  }

  /** Whether a `subscriptions/listen` names tasks. */
  isSubscription({ params }: Request): boolean {
    const filter = params["notifications"];
    return isObject(filter) && Array.isArray(filter["taskIds"]) && this.#host.supportsTasks();
  }

  /** The subscription to the tasks that a `subscriptions/listen` names; undefined if none of them is granted. */
  async subscribe({ params }: Request, context: Context): Promise<TaskSubscription | undefined> {
    const { taskIds } = params["notifications"] as { readonly taskIds: readonly string[] };
    return (await this.#load()).subscribe(taskIds, context);
  }

  /**
   * Finds the caller that must answer a request which the server sent while running a task. Undefined if the request is
   * not related to a task.
   */
  askTarget(params: Params): Promise<Pick<Context, "ask" | "caller"> | undefined> | undefined {
    const related = params._meta?.[META.relatedTask];
    const id = isObject(related) ? related["taskId"] : undefined;
    return typeof id === "string" ? this.#tasks?.named(id) : undefined;
  }

  /** Called when the session has been renewed: the server's tools may have changed. */
  sessionRenewed(): void {
    this.#tools.forget();
  }

  /** Progress under a token that belongs to no call and no known task. */
  onLateProgress(params: Params): void {
    this.#tasks?.onLateProgress(params);
  }

  /** Returns whether the notification was about a task and needs no further handling. */
  handleNotification({ method, params }: Notification): boolean {
    switch (method) {
      case "notifications/tools/list_changed":
        this.#tools.forget();
        return false;
      case "notifications/tasks/status":
        void this.#tasks?.onStatus(params ?? {});
        return true;
      case "notifications/progress":
        return this.#tasks?.onProgress(params ?? {}) === true;
      default:
        return false;
    }
  }

  async #load(): Promise<ServerTasks> {
    this.#loading ??= import("./server-tasks.ts").then(
      ({ ServerTasks }) => (this.#tasks = new ServerTasks(this.#host)),
    );
    return this.#loading;
  }
}

const NO_TASKS: ToolExecution = {};

/**
 * In this revision a tool without `execution` cannot run as a task. The empty object records that, because elsewhere a
 * missing field means unknown.
 */
function withExecution(page: Result): Result {
  if (!Array.isArray(page["tools"])) return page;
  const tools = page["tools"].map((tool: unknown) =>
    isObject(tool) && tool["execution"] === undefined ? { ...tool, execution: NO_TASKS } : tool,
  );
  return { ...page, tools };
}
