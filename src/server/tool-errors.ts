// Errors that a handler throws. A tool's error becomes a result for the model; resources and prompts have no such
// result, so theirs become protocol errors. Stacks are never sent. A thrown value can be anything, even a Proxy whose
// traps throw.

import type { Context } from "../core/handler.ts";
import { errorMessage } from "../core/text.ts";
import { McpError } from "../protocol/errors.ts";

/** The error's message, or its name if it has none. */
export function describeError(error: unknown): string {
  return errorMessage(error) || errorMessage(errorName(error));
}

function errorName(error: unknown): unknown {
  try {
    return error instanceof Error && error.name !== "" ? error.name : "Error";
  } catch {
    return "Error";
  }
}

/** Whether the error goes on unchanged: it is a protocol error, or the call was cancelled. */
export function shouldRethrow(error: unknown, context: Context): boolean {
  return isMcpError(error) || context.signal.aborted;
}

function isMcpError(error: unknown): boolean {
  try {
    return error instanceof McpError;
  } catch {
    return false;
  }
}

/** Runs a handler that has no error results: whatever it throws becomes an McpError. */
export async function runHandler<Value>(context: Context, run: () => Value | Promise<Value>): Promise<Value> {
  try {
    return await run();
  } catch (error) {
    if (shouldRethrow(error, context)) throw error;
    throw McpError.of("internal_error", describeError(error), {}, { cause: error });
  }
}
