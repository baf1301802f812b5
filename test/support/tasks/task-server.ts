// A handler with the tasks extension, for tests of its clients. The test moves its tasks from state to state, and chooses
// whether subscriptions are granted. Every request is recorded.

import type { Context, Handler, Request, Result } from "../../../src/core/handler.ts";
import { invalidParams, methodNotFound } from "../../../src/protocol/errors.ts";
import { hasTasks, isTaskFinished, TASKS_EXTENSION, tasksNotDeclared } from "../../../src/protocol/tasks.ts";

type State = { readonly [key: string]: unknown };

export interface TaskServer {
  readonly handler: Handler;
  /** Every request, in order, and whether its caller declared tasks. */
  readonly requests: { readonly request: Request; readonly declared: boolean }[];
  /** The number of requests with this method. */
  count(method: string): number;
  /** Changes a task and notifies its subscribers. */
  move(taskId: string, state: State): void;
  /** Deletes a task without a notification. */
  forget(taskId: string): void;
}

export interface TaskServerOptions {
  readonly grantsSubscriptions?: boolean;
  readonly pollIntervalMs?: number;
  /** The result of a call; by default a new task with the status "working". */
  readonly call?: (request: Request, context: Context) => Result | Promise<Result>;
  readonly update?: (taskId: string, responses: State) => void;
}

export function taskServer(options: TaskServerOptions = {}): TaskServer {
  const { grantsSubscriptions = true, pollIntervalMs = 100 } = options;
  const tasks = new Map<string, State>();
  const listeners = new Map<string, Set<Context>>();
  const requests: TaskServer["requests"] = [];
  const at = "2026-01-01T00:00:00Z";

  const make = (): Result => {
    const taskId = `task-${tasks.size + 1}`;
    const task = { taskId, status: "working", createdAt: at, lastUpdatedAt: at, ttlMs: 60_000, pollIntervalMs };
    tasks.set(taskId, task);
    return { resultType: "task", ...task };
  };
  const find = ({ params }: Request): State & { readonly taskId: string } => {
    const found = tasks.get(params["taskId"] as string);
    if (found === undefined) throw invalidParams("Task not found");
    return found as State & { readonly taskId: string };
  };
  const move = (taskId: string, state: State): void => {
    const { inputRequests: _asked, ...task } = tasks.get(taskId) ?? { taskId };
    const next = { ...task, ...state };
    tasks.set(taskId, next);
    for (const listener of listeners.get(taskId) ?? [])
      listener.notify({ method: "notifications/tasks", params: next });
  };
  const listen = async ({ params }: Request, context: Context): Promise<Result> => {
    const [taskId = ""] = (params["notifications"] as { taskIds?: string[] }).taskIds ?? [];
    const granted = grantsSubscriptions && taskId !== "" ? { taskIds: [taskId] } : {};
    context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: granted } });
    if (!grantsSubscriptions || taskId === "") return { resultType: "complete" };
    const all = listeners.get(taskId) ?? new Set();
    listeners.set(taskId, all.add(context));
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
    all.delete(context);
    return { resultType: "complete" };
  };

  const handler: Handler = async (request, context) => {
    const declared = hasTasks(context.caller.capabilities);
    requests.push({ request, declared });
    const { method, params } = request;
    if (method.startsWith("tasks/") && !declared) throw tasksNotDeclared(method);
    switch (method) {
      case "server/discover":
        return { resultType: "complete", capabilities: { tools: {}, extensions: { [TASKS_EXTENSION]: {} } } };
      case "tools/list":
        return { resultType: "complete", tools: [{ name: "job", inputSchema: { type: "object" } }] };
      case "tools/call":
        return (await options.call?.(request, context)) ?? make();
      case "subscriptions/listen":
        return listen(request, context);
      case "tasks/get":
        return { resultType: "complete", ...find(request) };
      case "tasks/update":
        options.update?.(find(request).taskId, params["inputResponses"] as State);
        return { resultType: "complete" };
      case "tasks/cancel":
        if (!isTaskFinished(find(request)["status"])) move(params["taskId"] as string, { status: "cancelled" });
        return { resultType: "complete" };
      default:
        throw methodNotFound(method);
    }
  };
  return {
    handler,
    requests,
    count: (method) => requests.filter(({ request }) => request.method === method).length,
    move,
    forget: (taskId) => tasks.delete(taskId),
  };
}
