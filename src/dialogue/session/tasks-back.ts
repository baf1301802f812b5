// Recognizes requests to a session-style server, and notifications from it, that concern tasks. Also finds out which of
// its tools can run as a task. The rest (server-tasks.ts) is loaded on first use, since most servers have no tasks.

import { walkPages } from "../../protocol/pages.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Notification, Params, Request, Result } from "../../core/handler.ts";
import { abortable } from "../../core/async.ts";
import { isObject } from "../../core/values.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import { META } from "../../protocol/model/index.ts";
import { hasTasks, type TaskSupport, type ToolExecution } from "../../protocol/tasks.ts";
import type { TaskSubscription } from "./subscriptions-back.ts";
import type { AskTarget, ServerTasks, ServerTasksHost } from "./server-tasks.ts";

export class TasksBack {
  readonly #host: ServerTasksHost;
  readonly #toolSupport = new ToolTaskSupport();
  #loading: Promise<ServerTasks> | undefined;
  #tasks: ServerTasks | undefined;

  constructor(host: ServerTasksHost) {
    this.#host = host;
  }

  /** Whether the server supports tasks in the form of its session-style revision. */
  get #isSupported(): boolean {
    return hasTasks(this.#host.capabilities()) && this.#host.revision().requests.has("tasks/result");
  }

  handles(method: string): boolean {
    return method.startsWith("tasks/") || (method === "tools/call" && this.#isSupported);
  }

  async answer(given: Request, context: Context): Promise<Result> {
    const { method } = given;
    // `task` is a field of the server's revision. In a request of the newest revision it has no meaning.
    const { task: _task, ...params } = given.params;
    const request: Request = { method, params };
    if (method === "tools/call") {
      const list = (cursor?: string): Promise<Result> => this.#list(cursor, context);
      const support = await abortable(context.signal, this.#toolSupport.of(request.params["name"], list));
      // A call of an unlisted tool is sent unchanged, so that the server reports what is wrong with it.
      const isPlain = support === undefined || (support === "forbidden" && context.session?.task !== "required");
      return isPlain ? this.#host.plain(request, context) : (await this.#load()).call(request, context, support);
    }
    if (!this.#isSupported) throw methodNotFound(method);
    return (await this.#load()).answer(request, context);
  }

  /** Records the task support of listed tools, and adds it where it is left out. Throws if a call was answered with an unrequested task. */
  inspect(method: string, result: Result): Result {
    if (method === "tools/call" && isObject(result["task"]) && result["content"] === undefined) {
      throw new ConnectionError("protocol", "The server answered tools/call with a task, though none was requested");
    }
    return method === "tools/list" && this.#isSupported ? this.#toolSupport.record(result) : result;
  }

  /** Whether a `subscriptions/listen` names tasks. */
  isSubscription({ params }: Request): boolean {
    const filter = params["notifications"];
    return isObject(filter) && Array.isArray(filter["taskIds"]) && this.#isSupported;
  }

  /** The subscription to the tasks that a `subscriptions/listen` names; undefined if none of them is granted. */
  async subscribe({ params }: Request, context: Context): Promise<TaskSubscription | undefined> {
    const { taskIds } = params["notifications"] as { readonly taskIds: readonly string[] };
    return (await this.#load()).subscribe(taskIds, context);
  }

  /** Finds the task that answers a request of the server. Undefined if the request is not related to a task. */
  askTarget(params: Params): Promise<AskTarget | undefined> | undefined {
    const related = params._meta?.[META.relatedTask];
    const id = isObject(related) ? related["taskId"] : undefined;
    return typeof id === "string" ? this.#tasks?.askTarget(id) : undefined;
  }

  /** Called when the session has been renewed: the server's tools may have changed. */
  sessionRenewed(): void {
    this.#toolSupport.clear();
  }

  /** Returns whether the notification was about a task and needs no further handling. */
  /** Progress of a task whose creation was answered in the same chunk of input, and is not known yet. */
  onEarlyProgress(params: Params): void {
    this.#tasks?.onEarlyProgress(params);
  }

  handleNotification({ method, params }: Notification): boolean {
    switch (method) {
      case "notifications/tools/list_changed":
        this.#toolSupport.clear();
        return false;
      case "notifications/tasks/status":
        this.#tasks?.onStatus(params ?? {});
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

  /** Does not use the caller's signal, since other calls may wait for the same list. */
  #list(cursor: string | undefined, { caller }: Context): Promise<Result> {
    const params = cursor === undefined ? {} : { cursor };
    return this.#host.send({ method: "tools/list", params }, { ...this.#host.defaultContext, caller });
  }
}

const MAX_TOOLS = 10_000;

/** Reads one page of the list of tools. */
type ListPage = (cursor: string | undefined) => Promise<Result>;

/**
 * Remembers which tools can or must run as a task. The list of tools declares this, in the field `execution`. Each page
 * of the list that a client requests is recorded. For an unknown tool the whole list is read once, and again only after
 * it has changed.
 */
export class ToolTaskSupport {
  readonly #known = new Map<string, TaskSupport>();
  /** Whether the whole list has been read, so that a missing tool does not exist. */
  #isComplete = false;
  /** How often the list has changed. */
  #changes = 0;
  #reading: Promise<void> | undefined;

  /**
   * Records a page. Returns it with an empty `execution` for tools that have none: unlike the tools of other servers,
   * they are known not to support tasks.
   */
  record(page: Result): Result {
    const { tools } = page;
    if (!Array.isArray(tools)) return page;
    const stated = tools.map((tool: unknown) => {
      if (!isObject(tool)) return tool;
      if (typeof tool["name"] === "string" && this.#known.size < MAX_TOOLS) {
        this.#known.set(tool["name"], supportOf(tool));
      }
      return tool["execution"] === undefined ? { ...tool, execution: NO_TASKS } : tool;
    });
    return { ...page, tools: stated };
  }

  /** Forgets everything, since the list has changed. */
  clear(): void {
    this.#known.clear();
    this.#isComplete = false;
    this.#changes += 1;
  }

  /** Undefined if the tool is not listed, or the list cannot be read. */
  async of(name: unknown, list: ListPage): Promise<TaskSupport | undefined> {
    if (typeof name !== "string") return undefined;
    if (!this.#known.has(name) && !this.#isComplete) {
      // If the list cannot be read, the call is sent unchanged, so that the server reports what is wrong with it.
      await (this.#reading ??= this.#readAll(list).finally(() => (this.#reading = undefined))).catch(() => undefined);
    }
    return this.#known.get(name);
  }

  async #readAll(list: ListPage): Promise<void> {
    const changes = this.#changes;
    for await (const { page } of walkPages("tools", list)) this.record(page);
    if (changes === this.#changes) this.#isComplete = true;
  }
}

const NO_TASKS: ToolExecution = {};

/** A tool that declares nothing about tasks cannot run as one. */
function supportOf({ execution }: { readonly execution?: unknown }): TaskSupport {
  const support = isObject(execution) ? execution["taskSupport"] : undefined;
  return support === "required" || support === "optional" ? support : "forbidden";
}
