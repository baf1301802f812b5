// What both sides must know of tasks: the extension's name, who has declared it, and when a task is over. The newest
// revision has no field for how a tool stands to tasks, nor for a caller that insists on one and says how long to keep
// it, nor a list of tasks; the revision before had all of them. In one process they travel under symbols, which no wire shows.

import type { Caller, Context } from "../core/handler.ts";
import { isObject } from "../core/objects.ts";
import { McpError } from "./errors.ts";

export const TASKS = "io.modelcontextprotocol/tasks";

/** Whether a tool may, must or must not be run as a task. */
export type TaskSupport = "optional" | "required" | "forbidden";

/** On a tool in a list: how it stands to tasks, where its server says so. */
export const TASK_SUPPORT: unique symbol = Symbol("catenary.taskSupport");
/** On the params of a call: its caller wants a task and nothing else, or a task where the tool can be one. */
export const TASK_WANTED: unique symbol = Symbol("catenary.taskWanted");
/** On the params of such a call: what its caller said of the task in the words of its own revision, as it said it. */
export const TASK_TERMS: unique symbol = Symbol("catenary.taskTerms");
/** On the params of `tasks/list`: asked for by a front, whose caller's revision has such a list. */
export const TASKS_LISTED: unique symbol = Symbol("catenary.tasksListed");

export type Supporting = { readonly [TASK_SUPPORT]?: TaskSupport };
export type Wanting = {
  readonly [TASK_WANTED]?: true | "if-it-can";
  readonly [TASK_TERMS]?: { readonly [key: string]: unknown };
};
export type Listing = { readonly [TASKS_LISTED]?: true };

/** Whether capabilities, of a caller or of an end, name the extension. */
export function hasTasks(capabilities: unknown): boolean {
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  return isObject(extensions) && Object.hasOwn(extensions, TASKS);
}

/** The same context, of a caller that has declared the extension. */
export function declaringTasks(context: Context): Context {
  const { capabilities } = context.caller;
  const extensions = isObject(capabilities["extensions"]) ? capabilities["extensions"] : {};
  const caller: Caller = {
    ...context.caller,
    capabilities: { ...capabilities, extensions: { ...extensions, [TASKS]: {} } },
  };
  return { ...context, caller };
}

/** What a caller gets that has not declared the extension and asks for what needs it. */
export function tasksUndeclared(what: string): McpError {
  const requiredCapabilities = { extensions: { [TASKS]: {} } };
  return McpError.of("missing_capability", `${what} needs the extension ${TASKS}, which the caller has not declared`, {
    requiredCapabilities,
  });
}

/** Whether an error says just that, whoever wrote it. */
export function saysTasksUndeclared(error: unknown): boolean {
  try {
    return error instanceof McpError && isObject(error.data) && hasTasks(error.data["requiredCapabilities"]);
  } catch {
    // What was thrown is a user's own, and may bite.
    return false;
  }
}

export function isOver(status: unknown): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}
