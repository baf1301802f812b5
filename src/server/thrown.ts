// What a handler throws. A tool's failure is a result that a model reads; a resource or a prompt has no such
// result, so there it becomes an error of the protocol. Neither ever shows a stack.

import type { Context } from "../core/context.ts";
import { McpError } from "../protocol/errors.ts";

/** The text of whatever was thrown. */
export function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message === "" ? error.name : error.message;
}

/** Whether it must go on as it is: it is an error of the protocol, or nobody wants the result any more. */
export function passesOn(error: unknown, context: Context): boolean {
  return error instanceof McpError || context.signal.aborted;
}

export async function orError<Value>(context: Context, work: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    if (passesOn(error, context)) throw error;
    throw McpError.of("internal_error", textOf(error), {}, { cause: error });
  }
}
