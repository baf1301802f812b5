// Results of requests that a server sends to the client: their checks, and the results used if the client gives no answer.
// Separate from client-requests.ts, because a server loads it only when a handler asks.

import type { AskOptions, Context, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { INTERNAL_ERROR, invalidParams, type McpError, toMcpError } from "./errors.ts";

/** By method: returns the problem with a client's result, or undefined if there is none. */
const RESULT_CHECKS: Readonly<Record<string, (result: Result) => string | undefined>> = {
  "roots/list": ({ roots }) =>
    Array.isArray(roots) && roots.every((root) => isObject(root) && typeof root["uri"] === "string")
      ? undefined
      : "must have `roots`, an array of objects with a string `uri`",
  "elicitation/create": ({ action, content }) => {
    if (action !== "accept" && action !== "decline" && action !== "cancel") {
      return "must have an `action`: accept, decline or cancel";
    }
    // Some clients write null for an absent field.
    return content === undefined || content === null || isObject(content)
      ? undefined
      : "has a `content` that is not an object";
  },
  "sampling/createMessage": ({ role, model, content }) => {
    if (typeof role !== "string" || typeof model !== "string") return "must have a `role` and a `model`, both strings";
    return isObject(content) || Array.isArray(content) ? undefined : "must have a `content`, an object or an array";
  },
};

/** Throws an `invalid_params` error if the client's result does not have the fields that handlers rely on. */
export function checkClientResult(method: string, result: Result): void {
  const problem = Object.hasOwn(RESULT_CHECKS, method) ? RESULT_CHECKS[method]?.(result) : undefined;
  if (problem !== undefined) throw invalidParams(`The caller's answer to ${method} ${problem}`, { method });
}

/** The only answer that means "no answer". Only elicitation has it. */
export const CANCEL: Result = { action: "cancel" };

/** Whether the caller's handler failed. For an elicitation, any other error means that the user gave no answer. */
export function isHandlerFailure(error: unknown): boolean {
  return toMcpError(error).code === INTERNAL_ERROR;
}

/** Asks the caller what a server has put into a result. An elicitation without an answer counts as cancelled. */
export async function askCaller(
  { method, params }: Partial<Request>,
  options: AskOptions,
  context: Context,
): Promise<Result> {
  try {
    // `roots/list` may come without params.
    return await context.ask({ method: String(method), params: params ?? {} }, options);
  } catch (error) {
    const isCancelled = options.signal?.aborted === true || context.signal.aborted;
    if (method !== "elicitation/create" || isCancelled || isHandlerFailure(error)) throw error;
    return CANCEL;
  }
}

/** The result of a tool call whose caller failed to provide input. */
export function unansweredResult(tool: unknown, error: McpError): Result {
  const text = `The client gave no input to ${String(tool)}: ${error.message}`;
  return { resultType: "complete", content: [{ type: "text", text }], isError: true };
}
