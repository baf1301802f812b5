// Answers `input_required` results for callers that can be asked during a call. Each input request is sent to the
// caller. Then the original request is repeated with the answers and the server's `requestState`, until the result is
// complete or the maximum number of rounds is reached.

import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { McpError, toMcpError } from "../../protocol/errors.ts";
import { pause } from "../../core/async.ts";

const MAX_ROUNDS = 10;
/** Pause before repeating a request whose `input_required` result had no input requests, times the round's number. */
const EMPTY_ROUND_PAUSE_MS = 100;

/** Runs a request and provides the input that it requires. */
export async function callWithInput(handler: Handler, request: Request, context: Context): Promise<Result> {
  return answerInputRequired(await handler(request, context), handler, request, context);
}

/** Continues from a first result; returns it unchanged if it is not `input_required`. */
export async function answerInputRequired(
  first: Result,
  handler: Handler,
  request: Request,
  context: Context,
): Promise<Result> {
  let result = first;
  for (let round = 1; result.resultType === "input_required"; round += 1) {
    if (round > MAX_ROUNDS) {
      throw McpError.of("internal_error", `${request.method} still asks for input after ${MAX_ROUNDS} rounds`);
    }
    const inputRequests = Object.entries((result["inputRequests"] as Record<string, Request> | undefined) ?? {});
    if (inputRequests.length === 0) await pause(EMPTY_ROUND_PAUSE_MS * round, context.signal);
    const answers = await collect(inputRequests, context);
    if ("failed" in answers) {
      if (request.method !== "tools/call") throw answers.failed;
      return unansweredResult(request.params["name"], answers.failed);
    }
    const { inputResponses: _answered, requestState: _spent, ...params } = request.params;
    const state = result["requestState"];
    result = await handler(
      {
        method: request.method,
        params: {
          ...params,
          inputResponses: answers.given,
          ...(state === undefined ? undefined : { requestState: state }),
        },
      },
      context,
    );
  }
  return result;
}

/** Returns all answers, or only the first failure: `inputResponses` cannot tell the server that a request failed. */
async function collect(
  inputRequests: readonly (readonly [string, Request])[],
  context: Context,
): Promise<{ given: Record<string, Result> } | { failed: McpError }> {
  const settled = await Promise.allSettled(
    inputRequests.map(async ([key, request]): Promise<[string, Result]> => {
      try {
        // `roots/list` may come without params.
        return [key, await context.ask({ method: request.method, params: request.params ?? {} }, { key })];
      } catch (error) {
        // Only elicitation has an answer that means "no answer", which is `cancel`.
        if (request.method === "elicitation/create" && !context.signal.aborted) return [key, { action: "cancel" }];
        throw error;
      }
    }),
  );
  const given: [string, Result][] = [];
  for (const outcome of settled) {
    if (outcome.status === "rejected") {
      if (context.signal.aborted) throw outcome.reason;
      return { failed: toMcpError(outcome.reason) };
    }
    given.push(outcome.value);
  }
  return { given: Object.fromEntries(given) };
}

/** The result of a tool call whose caller failed to provide input. */
export function unansweredResult(tool: unknown, error: McpError): Result {
  const text = `The client gave no input to ${String(tool)}: ${error.message}`;
  return { resultType: "complete", content: [{ type: "text", text }], isError: true };
}
