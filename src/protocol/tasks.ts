// What clients and servers both need to know about tasks: the extension's name, who has declared it, and when a task is
// finished. In the revision before the newest, a tool states its task support, a caller can request a task and send
// params for it, and tasks can be listed. The newest revision has no fields for these, so within a process they travel
// under symbols, which are never sent.

import type { Caller, Context } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { McpError } from "./errors.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** Whether a tool may, must or must not run as a task. */
export type TaskSupport = "optional" | "required" | "forbidden";

/** On a listed tool: its task support, if its server states it. */
export const TASK_SUPPORT: unique symbol = Symbol("catenary.taskSupport");
/** On the params of `tools/call`: the caller requests a task, always or only if the tool supports it. */
export const TASK_REQUESTED: unique symbol = Symbol("catenary.taskRequested");
/** On the params of `tools/call`: the field `task`, as the caller's revision defines it. */
export const TASK_PARAMS: unique symbol = Symbol("catenary.taskParams");
/** On the params of `tasks/list`: the revision of the caller has this method. */
export const LISTS_TASKS: unique symbol = Symbol("catenary.listsTasks");

export type WithTaskSupport = { readonly [TASK_SUPPORT]?: TaskSupport };
export type WithTaskRequest = {
  readonly [TASK_REQUESTED]?: true | "if-supported";
  readonly [TASK_PARAMS]?: { readonly [key: string]: unknown };
};
export type WithTaskListing = { readonly [LISTS_TASKS]?: true };

/** Whether the capabilities of a client or a server declare the extension. */
export function hasTasks(capabilities: unknown): boolean {
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  return isObject(extensions) && Object.hasOwn(extensions, TASKS_EXTENSION);
}

/** A copy of the context whose caller has declared the extension. */
export function withTasksExtension(context: Context): Context {
  const { capabilities } = context.caller;
  const extensions = isObject(capabilities["extensions"]) ? capabilities["extensions"] : {};
  const caller: Caller = {
    ...context.caller,
    capabilities: { ...capabilities, extensions: { ...extensions, [TASKS_EXTENSION]: {} } },
  };
  return { ...context, caller };
}

/** The error for a caller that needs the extension and has not declared it. */
export function tasksNotDeclared(what: string): McpError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const message = `${what} needs the extension ${TASKS_EXTENSION}, which the caller has not declared`;
  return McpError.of("missing_capability", message, { requiredCapabilities });
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
