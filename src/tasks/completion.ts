// Waits for a task to finish on behalf of a caller that can be asked during a call. Each input request of the task is
// sent to the caller once, and the answer is returned with `tasks/update`. While no request waits for a task, its input
// requests are not sent.

import { onAbort, attempt } from "../core/async.ts";
import type { AskOptions, Context, Handler, Request, Result } from "../core/handler.ts";
import type { ErrorBody } from "../jsonrpc/message.ts";
import { isObject } from "../core/values.ts";
import { CANCEL, isHandlerFailure, unansweredResult } from "../protocol/client-results.ts";
import { McpError, toMcpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { initialTaskState, TaskWatch } from "./watch.ts";

/** A request that waits for a task to finish. */
export interface TaskWaiter {
  readonly handler: Handler;
  /** The context of a caller that has declared tasks. */
  readonly context: Context;
  /** The name of the tool, for error messages. */
  readonly tool: unknown;
  /** Skips the first poll if the poll interval has not passed. Only for callers that are allowed to see the task. */
  readonly respectsPollInterval?: boolean;
  /** Requests to the client cannot be sent through this request when it is gone. */
  readonly carrier?: { readonly isGone: boolean };
  readonly ask: (request: Request, options: AskOptions) => Promise<Result>;
}

/** Why waiting ends before the task does: the caller could not answer, or the server did not accept the answer. */
type InputFailure = { readonly unanswered: McpError } | { readonly rejected: unknown };

interface SentRequest {
  readonly waiter: TaskWaiter;
  readonly stop: AbortController;
}

/** The input requests of one task that have been sent to its caller, by any of the requests that wait for it. */
export class TaskInputRequests {
  readonly #sent = new Map<string, SentRequest>();
  /** Keys of answered input requests, since the task may list them a little longer. */
  readonly #answered = new Set<string>();

  /** Sends the input requests that have not been sent yet. */
  send(watch: TaskWatch, waiter: TaskWaiter, onFailure: (failure: InputFailure) => void): void {
    // Another waiter may still be able to send.
    if (waiter.carrier?.isGone === true) return;
    const open = watch.state["inputRequests"];
    for (const [key, request] of Object.entries(isObject(open) ? open : {})) {
      if (this.#isNew(key)) void this.#send(key, request, watch, waiter, onFailure);
    }
  }

  /** Cancels unanswered input requests. With `by`, only those of that waiter; another waiter can send them again. */
  cancel(reason: string, by?: TaskWaiter): void {
    for (const { stop, waiter } of this.#sent.values()) {
      if (by === undefined || waiter === by) stop.abort(new Error(reason));
    }
  }

  /** Whether the input request must be sent: for the first time, or again because the waiter that sent it is gone. */
  #isNew(key: string): boolean {
    const sent = this.#sent.get(key);
    if (sent === undefined) return !this.#answered.has(key);
    if (sent.waiter.carrier?.isGone !== true) return false;
    sent.stop.abort(new Error("The request is sent again"));
    return true;
  }

  async #send(
    key: string,
    request: unknown,
    watch: TaskWatch,
    waiter: TaskWaiter,
    onFailure: (failure: InputFailure) => void,
  ): Promise<void> {
    const sent: SentRequest = { waiter, stop: new AbortController() };
    this.#sent.set(key, sent);
    const { signal } = sent.stop;
    const { handler, context } = waiter;
    let answer: Result | undefined;
    try {
      answer = await askCaller(request, { key, signal }, waiter);
      const params = { taskId: watch.id, inputResponses: { [key]: answer } };
      await handler({ method: "tasks/update", params }, context);
      this.#answered.add(key);
    } catch (error) {
      // It is not a failure if we cancelled the input request, or if the waiting request was cancelled.
      if (signal.aborted || context.signal.aborted) return;
      onFailure(answer === undefined ? { unanswered: toMcpError(error) } : { rejected: error });
    } finally {
      if (this.#sent.get(key) === sent) this.#sent.delete(key);
      // Another waiter may have to send the input request now.
      watch.wake();
    }
  }
}

async function askCaller(request: unknown, options: AskOptions, { ask, context }: TaskWaiter): Promise<Result> {
  const { method, params } = (isObject(request) ? request : {}) as Partial<Request>;
  try {
    return await ask({ method: String(method), params: params ?? {} }, options);
  } catch (error) {
    const isCancelled = options.signal?.aborted === true || context.signal.aborted;
    if (method !== "elicitation/create" || isCancelled || isHandlerFailure(error)) throw error;
    return CANCEL;
  }
}

/** Waits until the task is finished, and passes its input requests to the caller. */
export async function waitForTask(
  watch: TaskWatch,
  inputRequests: TaskInputRequests,
  waiter: TaskWaiter,
): Promise<Json> {
  const { signal } = waiter.context;
  const failures: InputFailure[] = [];
  try {
    if (waiter.respectsPollInterval !== true || !watch.isFresh) await watch.poll(waiter.context);
    while (!watch.isFinished) {
      if (watch.state["status"] === "input_required")
        inputRequests.send(watch, waiter, (failure) => failures.push(failure));
      await watch.changed(signal);
      const [failure] = failures;
      if (failure === undefined || watch.isFinished) continue;
      if ("rejected" in failure) throw failure.rejected;
      await finishUnanswered(watch, waiter, failure.unanswered);
    }
  } finally {
    if (watch.isFinished) inputRequests.cancel("The task is finished");
    else inputRequests.cancel("The request that waited for the task has ended", waiter);
  }
  return watch.state;
}

/** Returns the tool's result from a finished task, or throws its error. */
export function taskOutcome({ status, statusMessage, result, error }: Json): Result {
  if (status === "completed" && isObject(result)) return result;
  if (status === "failed" && isObject(error)) throw McpError.fromBody(error as unknown as ErrorBody);
  const text = typeof statusMessage === "string" ? statusMessage : `The task is ${String(status)}`;
  throw McpError.of("internal_error", text);
}

/** Waits for the task that a call was answered with. If the call is cancelled, so is the task. */
export async function completeTask(
  handler: Handler,
  created: Result,
  request: Request,
  context: Context,
): Promise<Json> {
  const watch = new TaskWatch(handler, context, initialTaskState(created));
  const ask: TaskWaiter["ask"] = (input, options) => context.ask(input, options);
  const waiter: TaskWaiter = { handler, context, tool: request.params["name"], respectsPollInterval: true, ask };
  const { signal } = context;
  // Cancel the task immediately, since the caller may be about to close the connection.
  const cancel = (): void => void cancelTask(watch, waiter);
  const forget = onAbort(signal, cancel);
  if (signal.aborted) cancel();
  watch.subscribe();
  try {
    return await waitForTask(watch, new TaskInputRequests(), waiter);
  } catch (error) {
    if (!watch.isFinished && !signal.aborted) cancel();
    throw error;
  } finally {
    forget();
    watch.close();
  }
}

/** Uses a signal of its own, since the caller's may be aborted already. */
async function cancelTask(watch: TaskWatch, { handler, context }: TaskWaiter): Promise<void> {
  const { signal } = new AbortController();
  const request: Request = { method: "tasks/cancel", params: { taskId: watch.id } };
  await attempt(() => handler(request, { ...context, signal })).catch(() => undefined);
}

/**
 * Ends a task whose input request failed, with an error result for this caller. The protocol cannot report the failure
 * to the server, so the task is cancelled there.
 */
async function finishUnanswered(watch: TaskWatch, waiter: TaskWaiter, error: McpError): Promise<void> {
  const now = new Date().toISOString();
  const result = unansweredResult(waiter.tool, error);
  watch.update({ ...watch.state, status: "completed", lastUpdatedAt: now, result });
  await cancelTask(watch, waiter);
}
