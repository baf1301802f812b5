// What a handler throws. A tool's failure is a result that a model reads; a resource or a prompt has no such
// result, so there it becomes an error of the protocol. Neither ever shows a stack. What is thrown is a user's
// own: nothing here trusts it to be an error, or to bear being looked at.

import type { Context } from "../core/handler.ts";
import { errorMessage } from "../core/text.ts";
import { McpError } from "../protocol/errors.ts";

/** The text of whatever was thrown; its name where it has no text. */
export function messageOf(error: unknown): string {
  return errorMessage(error) || errorMessage(nameOf(error));
}

function nameOf(error: unknown): unknown {
  try {
    return error instanceof Error && error.name !== "" ? error.name : "Error";
  } catch {
    return "Error";
  }
}

/** Whether it must go on as it is: it is an error of the protocol, or nobody wants the result any more. */
export function passesOn(error: unknown, context: Context): boolean {
  return isMcpError(error) || context.signal.aborted;
}

function isMcpError(error: unknown): boolean {
  try {
    return error instanceof McpError;
  } catch {
    return false;
  }
}

export async function orError<Value>(context: Context, work: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (passesOn(error, context)) throw error;
    throw McpError.of("internal_error", messageOf(error), {}, { cause: error });
  }
}
