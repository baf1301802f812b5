// Requests about tasks, each brought to the end that its id names. A list of tasks, which only fronts of older
// revisions ask for, is that of all ends that have tasks.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import { hasTasks } from "../../protocol/tasks.ts";
import { ask } from "./calls.ts";
import { inCallersWords } from "./failures.ts";
import { type Offered, readAll, together } from "./lists.ts";
import { unknownTask } from "./task-ids.ts";
import type { View } from "./view.ts";

const LISTING: Offered = { method: "tasks/list", field: "tasks", key: "taskId", isOffered: hasTasks };

export async function aboutTask(request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const asked = params["taskId"] as string;
  const target = view.taskIds.target(asked);
  if (target === undefined) throw unknownTask(asked);
  const { end, shown } = view.at(target);
  try {
    const result = await ask(end, { method, params: { ...params, taskId: target.name } }, context);
    if (method === "tasks/result") return shown.toolResult(result);
    return "taskId" in result || "result" in result ? shown.task(result) : result;
  } catch (error) {
    throw inCallersWords(error, "taskId", target.name, asked);
  }
}

export async function listTasks(request: Request, context: Context, view: View, info: unknown): Promise<Result> {
  const reads = await readAll(view.members, LISTING, request, context);
  const isKnown = reads.some(({ walked, failure }) => walked !== undefined || failure !== undefined);
  if (!isKnown) throw methodNotFound(request.method);
  const tasks = reads.flatMap(({ end, walked }) => {
    const { shown } = view.at({ end: end.index });
    return (walked?.items ?? []).map((task) => shown.task(task));
  });
  const { rest, meta } = together(reads, info);
  return { ...rest, tasks, resultType: "complete", _meta: meta };
}
