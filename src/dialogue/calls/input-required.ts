// Answers `input_required` results for callers that can be asked during a call. Each input request is sent to the
// caller. Then the original request is repeated with the answers and the server's `requestState`, until the result is
// complete or the maximum number of rounds is reached.

import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { askCaller, CANCEL, isHandlerFailure, unansweredResult } from "../../protocol/client-results.ts";
import { McpError, toMcpError } from "../../protocol/errors.ts";
import { attempt, pause } from "../../core/async.ts";

const MAX_ROUNDS = 10;
/** Pause before repeating a request whose `input_required` result had no input requests, times the round's number. */
const EMPTY_ROUND_PAUSE_MS = 100;

export async function callWithInput(handler: Handler, request: Request, context: Context): Promise<Result> {
  const first = await handler(request, context);
  if (first.resultType !== "input_required") return first;
  return answerInputRequired(first, handler, request, context);
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
    const { answers, failed } = await collect(inputRequests, context);
    const { inputResponses: _answered, requestState: _spent, ...rest } = request.params;
    const state = result["requestState"];
    const params = {
      ...rest,
      inputResponses: Object.fromEntries(answers),
      ...(state === undefined ? undefined : { requestState: state }),
    };
    // What the server makes of `cancel` does not matter to a caller whose handler failed, but the server has its answer.
    const hasAll = answers.length === inputRequests.length;
    if (failed === undefined) result = await handler({ method: request.method, params }, context);
    else if (hasAll) await attempt(() => handler({ method: request.method, params }, context)).catch(() => undefined);
    if (failed === undefined) continue;
    if (request.method !== "tools/call" || isHandlerFailure(failed.error)) throw failed.error;
    return unansweredResult(request.params["name"], toMcpError(failed.error));
  }
  return result;
}

/** The answers, and the first failure that no answer can express. */
async function collect(
  inputRequests: readonly (readonly [string, Request])[],
  context: Context,
): Promise<{
  readonly answers: readonly (readonly [string, Result])[];
  readonly failed?: { readonly error: unknown };
}> {
  let failed: { readonly error: unknown } | undefined;
  const settled = await Promise.all(
    inputRequests.map(async ([key, request]): Promise<readonly (readonly [string, Result])[]> => {
      try {
        return [[key, await askCaller(request, { key }, context)]];
      } catch (error) {
        if (context.signal.aborted) throw error;
        failed ??= { error };
        return request.method === "elicitation/create" ? [[key, CANCEL]] : [];
      }
    }),
  );
  return { answers: settled.flat(), ...(failed && { failed }) };
}
