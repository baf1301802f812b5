// Waits for the task that a server returned for a tool call. Separate from the task handles in tasks.ts, because plain
// calls need only this part. Loaded when the first task is created.

import { ConnectionError } from "../core/errors.ts";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import { completeTask, taskOutcome } from "../dialogue/calls/task-completion.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";

export async function waitForResult(
  handler: Handler,
  created: Result,
  request: Request,
  context: Context,
): Promise<Result> {
  return resultOf(await completeTask(handler, created, request, context));
}

/** Returns the result of a finished task. Throws the error that ended it, with the status message of the task. */
export function resultOf(state: Json): Result {
  const { status, taskId, statusMessage } = state;
  const message = typeof statusMessage === "string" ? statusMessage : "";
  if (status === "cancelled") {
    const reason = message === "" ? "" : `: ${message}`;
    throw new ConnectionError("cancelled", `The task ${String(taskId)} was cancelled${reason}`);
  }
  try {
    return taskOutcome(state);
  } catch (error) {
    if (!(error instanceof McpError) || error.message.includes(message)) throw error;
    throw new McpError(error.code, `${error.message} (${message})`, error.data, { cause: error });
  }
}
