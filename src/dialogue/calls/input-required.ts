// The other direction of the rounds: an end answered `input_required`, and the caller is one that can be
// asked in mid-call. Each question goes to the caller, the request is repeated with the answers and the
// end's own `requestState`, byte for byte, until the end is content or the rounds are used up.

import type { Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { toMcpError } from "./errors.ts";

const MAX_ROUNDS = 10;
/** Pause before a round that asks nothing, times the round's number. */
const PACE_MS = 100;

export async function drive(handler: Handler, request: Request, context: Context): Promise<Result> {
  return goOn(await handler(request, context), handler, request, context);
}

/** The same from a first result on; what asks for nothing is the end of it. */
export async function goOn(first: Result, handler: Handler, request: Request, context: Context): Promise<Result> {
  let result = first;
  for (let round = 1; result.resultType === "input_required"; round += 1) {
    if (round > MAX_ROUNDS) {
      throw McpError.of("internal_error", `${request.method} still asks for input after ${MAX_ROUNDS} rounds`);
    }
    const questions = Object.entries((result["inputRequests"] as Record<string, Request> | undefined) ?? {});
    if (questions.length === 0) await pause(PACE_MS * round, context.signal);
    const answers = await collect(questions, context);
    if ("failed" in answers) {
      if (request.method !== "tools/call") throw answers.failed;
      return unanswered(request.params["name"], answers.failed);
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

/** All answers, or the first failure: an exchange has no way to tell the end that a question failed. */
async function collect(
  questions: readonly (readonly [string, Request])[],
  context: Context,
): Promise<{ given: Record<string, Result> } | { failed: McpError }> {
  const settled = await Promise.allSettled(
    questions.map(async ([key, question]): Promise<[string, Result]> => {
      try {
        // `roots/list` may come without params.
        return [key, await context.ask({ method: question.method, params: question.params ?? {} }, { key })];
      } catch (error) {
        // Elicitation alone has a word for it.
        if (question.method === "elicitation/create" && !context.signal.aborted) return [key, { action: "cancel" }];
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

/** The result of a tool whose caller failed to answer it. */
export function unanswered(tool: unknown, error: McpError): Result {
  const text = `The caller could not answer what ${String(tool)} asked: ${error.message}`;
  return { resultType: "complete", content: [{ type: "text", text }], isError: true };
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", stop, { once: true });
  });
}
