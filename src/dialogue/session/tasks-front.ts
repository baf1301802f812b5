// Recognizes requests of a session-style client that concern tasks. Also handles calls that do not request a task, but
// whose tool must run as one. The rest (client-tasks.ts) is loaded on first use, since most sessions never need it.

import type { Context, Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import { hasTasks, isTasksNotDeclared } from "../../protocol/tasks.ts";
import type { ClientTasks, ClientTasksHost } from "./client-tasks.ts";

export class TasksFront {
  readonly #host: ClientTasksHost;
  /** Whether both the client's revision and the server support tasks. */
  #isSupported = false;
  #tasks: ClientTasks | undefined;
  #isClosed = false;

  constructor(host: ClientTasksHost) {
    this.#host = host;
  }

  /** Called when the server's capabilities are known. */
  open(capabilities: Json): void {
    this.#isSupported = this.#host.revision().requests.has("tasks/result") && hasTasks(capabilities);
  }

  handles({ method, params }: Request): boolean {
    if (!this.#isSupported) return false;
    if (method === "tools/call") return params["task"] !== undefined;
    return method === "tools/list" || method.startsWith("tasks/");
  }

  /** Returns the result in the client's revision. `gone` is aborted when the request's reply can no longer be sent. */
  async answer(request: Request, context: Context, gone: AbortSignal): Promise<Result> {
    return (this.#tasks ?? (await this.#load())).answer(request, context, gone);
  }

  async #load(): Promise<ClientTasks> {
    const { ClientTasks } = await import("./client-tasks.ts");
    const tasks = (this.#tasks ??= new ClientTasks(this.#host));
    if (this.#isClosed) tasks.close();
    return tasks;
  }

  /**
   * Recovers from the error of a tool that must run as a task: runs it as one and waits for the outcome. If the client
   * can see this requirement in the list of tools, it must request the task itself, so an error is thrown. Rethrows any
   * other error.
   */
  async recover(error: unknown, request: Request, context: Context): Promise<Result> {
    if (request.method !== "tools/call" || !isTasksNotDeclared(error)) throw error;
    const { name } = request.params;
    if (this.#isSupported && (await this.#isListedAsRequired(name, context))) {
      throw McpError.of("method_not_found", `Tool ${String(name)} must be called as a task`);
    }
    const { callAndWait } = await import("../calls/task-completion.ts");
    return callAndWait(this.#host.handler, request, context);
  }

  /**
   * Whether the list of tools declares that this tool must run as a task. Remote stateless servers cannot declare this:
   * we list their tools as if tasks were optional.
   */
  async #isListedAsRequired(name: unknown, context: Context): Promise<boolean> {
    const { ToolFacts } = await import("../../protocol/tool-facts.ts");
    return (await new ToolFacts().find(name, this.#host.handler, context))?.taskSupport === "required";
  }

  close(): void {
    this.#isClosed = true;
    this.#tasks?.close();
  }
}
