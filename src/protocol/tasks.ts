// What clients and servers both need to know about tasks: the extension's name, who has declared it, and when a task is
// finished. In the revision before the newest, a tool states its task support in the field `execution`, which
// protocol/model keeps for session-style callers. What such a caller says about a task is in `context.task`.

import { copyContext } from "../core/cancel.ts";
import type { Caller, Context } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { McpError } from "./errors.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** Whether a tool may, must or must not run as a task. */
export type TaskSupport = "optional" | "required" | "forbidden";

/** The field `execution` of a listed tool. Empty if its server says that the tool does not support tasks. */
export interface ToolExecution {
  readonly taskSupport?: TaskSupport;
}

/** Whether the capabilities of a client or a server declare the extension. */
export function hasTasks(capabilities: unknown): boolean {
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  return isObject(extensions) && Object.hasOwn(extensions, TASKS_EXTENSION);
}

/** A copy of the context whose caller has declared the extension. */
export function withTasksExtension(context: Context): Context {
  return copyContext(context, { caller: declaringTasks(context.caller) });
}

/** A copy of the caller that has declared the extension. */
export function declaringTasks(caller: Caller): Caller {
  const { capabilities } = caller;
  const extensions = isObject(capabilities["extensions"]) ? capabilities["extensions"] : {};
  return { ...caller, capabilities: { ...capabilities, extensions: { ...extensions, [TASKS_EXTENSION]: {} } } };
}

/** The error for a caller that needs the extension and has not declared it. */
export function tasksNotDeclared(what: string): McpError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const message = `${what} needs the extension ${TASKS_EXTENSION}, which the caller has not declared`;
  return McpError.of("missing_capability", message, { requiredCapabilities });
}

export function cannotBeTask(toolName: unknown): McpError {
  return McpError.of("method_not_found", `Tool ${String(toolName)} cannot be run as a task`, { toolName });
}

/** Whether an error, ours or another server's, reports that the extension was not declared. */
export function isTasksNotDeclared(error: unknown): boolean {
  try {
    return error instanceof McpError && isObject(error.data) && hasTasks(error.data["requiredCapabilities"]);
  } catch {
    // The error may come from user code, and its getters may throw.
    return false;
  }
}

export function isTaskFinished(status: unknown): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
