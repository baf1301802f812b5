// All tasks that a session-style caller can list. A handler in this process may be able to say which tasks the caller's
// principal has, whichever session began them, though the newest revision has no request for that; then those are
// listed, and what only this session has. Otherwise, and where nobody knows who calls, it is what the session has heard
// of: to show the tasks of one stranger to another would be worse than to leave them out.

import type { Context } from "../../core/context.ts";
import type { Handler, Params } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { PageItem } from "../../protocol/pages.ts";
import type { Json } from "../../protocol/revision.ts";
import { type Listing, TASKS_LISTED } from "../../protocol/tasks.ts";
import { kindOf } from "../calls/faults.ts";
import { isProved } from "./task-rights.ts";
import type { TaskEntry, TaskTable } from "./task-table.ts";

const INVALID_PARAMS = -32602;

interface Listed extends PageItem {
  /** How it stands, in the newest shape; undefined where it is gone, or not for this caller. */
  state(): Promise<Json | undefined>;
}

export async function allTasks(handler: Handler, table: TaskTable, context: Context): Promise<readonly Listed[]> {
  const { caller } = context;
  const known = caller.principal === undefined ? undefined : await told(handler, context);
  const entries = table.all(caller);
  const remembered = (entry: TaskEntry, order: number): Listed => {
    return { order, key: entry.key, state: () => stateOf(entry, table, context) };
  };
  if (known === undefined) return entries.map((entry) => remembered(entry, entry.order));
  const listed = known.map((state): Listed => {
    const watch = table.find(state.taskId, caller)?.watch;
    // What the caller has cancelled here is over, even if the handler takes its time.
    return {
      order: begun(state),
      key: state.taskId,
      state: async () => (watch?.isOver === true ? watch.state : state),
    };
  });
  const ids = new Set(known.map(({ taskId }) => taskId));
  const own = entries.filter(({ isLocal, key }) => isLocal && !ids.has(key));
  const all = [...listed, ...own.map((entry) => remembered(entry, begun(entry.watch.state)))];
  return all.toSorted((a, b) => a.order - b.order);
}

type Known = Json & { readonly taskId: string };

/** What the handler has for this principal; undefined where it has no such list. */
async function told(handler: Handler, context: Context): Promise<readonly Known[] | undefined> {
  const params: Params & Listing = { [TASKS_LISTED]: true };
  try {
    const { tasks } = await handler({ method: "tasks/list", params }, context);
    const isKnown = (task: unknown): task is Known => isObject(task) && typeof task["taskId"] === "string";
    return Array.isArray(tasks) ? tasks.filter(isKnown) : undefined;
  } catch (error) {
    if (kindOf(error) === "method_not_found") return undefined;
    throw error;
  }
}

async function stateOf(entry: TaskEntry, table: TaskTable, context: Context): Promise<Json | undefined> {
  const { watch } = entry;
  try {
    return watch.isHeard && !isProved(context.caller) ? watch.state : await watch.refresh(context);
  } catch (error) {
    if (kindOf(error) === "access_denied") return undefined;
    if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) throw error;
    // The handler no longer has it.
    table.drop(entry);
    return undefined;
  }
}

/** The session's own and the handler's have nothing else that puts them into one order. */
function begun({ createdAt }: Json): number {
  return Date.parse(String(createdAt)) || 0;
}
