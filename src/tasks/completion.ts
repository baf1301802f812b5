// Waits for a task to finish on behalf of callers that can be asked during a call. Each input request of the task is
// sent to the caller once, and the answer is returned with `tasks/update`. While no request waits for a task, its input
// requests are not sent.

import { attempt, onAbort } from "../core/async.ts";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { isErrorBody } from "../jsonrpc/message.ts";
import { askCaller, unansweredResult } from "../protocol/client-results.ts";
import { McpError, toMcpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { initialTaskState, taskRequest, TaskWatch } from "./watch.ts";

export interface WaitOptions {
  /** Skips the first poll if the poll interval has not passed. Only for callers that are allowed to see the task. */
  readonly respectsPollInterval?: boolean;
  /** Requests to the client cannot be sent through the waiting request when it is gone. */
  readonly carrier?: { readonly isGone: boolean };
}

interface Waiter {
  /** The context of a caller that has declared tasks. */
  readonly context: Context;
  readonly carrier: WaitOptions["carrier"];
  /** The caller could not answer, or if it did, the server did not accept its answer. */
  failure: { readonly error: unknown; readonly isAnswered: boolean } | undefined;
}

interface SentInput {
  readonly waiter: Waiter;
  readonly stop: AbortController;
}

/** A task whose input requests are sent to its caller, by any of the requests that wait for it. */
export class CallerTask extends TaskWatch {
  /** The name of the tool, for error messages. */
  readonly tool: unknown;
  /** The input requests that wait for an answer, by key. */
  readonly #sent = new Map<string, SentInput>();
  /** Keys of answered input requests, since the task may list them a little longer. */
  readonly #answered = new Set<string>();

  constructor(handler: Handler, context: Context, state: Json, tool: unknown, onChange?: (state: Json) => void) {
    super(handler, context, state, onChange);
    this.tool = tool;
  }

  /** Waits until the task is finished, and passes its input requests to the caller of `context`. */
  async complete(context: Context, { respectsPollInterval, carrier }: WaitOptions = {}): Promise<Json> {
    const waiter: Waiter = { context, carrier, failure: undefined };
    try {
      if (respectsPollInterval !== true || !this.isFresh) await this.poll(context);
      while (!this.isFinished) {
        if (this.state["status"] === "input_required") this.#sendInputs(waiter);
        await this.changed(context.signal);
        const { failure } = waiter;
        if (failure === undefined || this.isFinished) continue;
        if (failure.isAnswered) throw failure.error;
        await this.#finishUnanswered(toMcpError(failure.error), context);
      }
    } finally {
      const ended = this.isFinished ? "The task is finished" : "The request that waited for the task has ended";
      for (const { stop, waiter: sender } of this.#sent.values())
        if (this.isFinished || sender === waiter) stop.abort(new Error(ended));
    }
    return this.state;
  }

  /** Cancels the task, with a signal of its own, since the caller's may be aborted already. Ignores failures. */
  async abandon(context: Context): Promise<void> {
    const { signal } = new AbortController();
    const request = taskRequest("tasks/cancel", this.id);
    await attempt(() => this.handler(request, { ...context, signal })).catch(() => undefined);
  }

  /** Sends the input requests that have not been sent yet, or whose sender is gone. */
  #sendInputs(waiter: Waiter): void {
    // Another waiter may still be able to send.
    if (waiter.carrier?.isGone === true) return;
    const open = this.state["inputRequests"];
    for (const [key, request] of Object.entries(isObject(open) ? open : {})) {
      const sent = this.#sent.get(key);
      if (sent === undefined ? this.#answered.has(key) : sent.waiter.carrier?.isGone !== true) continue;
      sent?.stop.abort(new Error("The request is sent again"));
      void this.#send(key, request, waiter);
    }
  }

  async #send(key: string, request: unknown, waiter: Waiter): Promise<void> {
    const sent: SentInput = { waiter, stop: new AbortController() };
    this.#sent.set(key, sent);
    const { signal } = sent.stop;
    const { context } = waiter;
    let answer: Result | undefined;
    try {
      answer = await askCaller(isObject(request) ? request : {}, { key, signal }, context);
      await this.handler(taskRequest("tasks/update", this.id, { inputResponses: { [key]: answer } }), context);
      this.#answered.add(key);
    } catch (error) {
      // It is not a failure if we cancelled the input request, or if the waiting request was cancelled.
      if (signal.aborted || context.signal.aborted) return;
      waiter.failure ??= { error, isAnswered: answer !== undefined };
    } finally {
      if (this.#sent.get(key) === sent) this.#sent.delete(key);
      // Another waiter may have to send the input request now.
      this.wake();
    }
  }

  /**
   * Ends a task whose input request failed, with an error result for this caller. The protocol cannot report the failure
   * to the server, so the task is cancelled there.
   */
  async #finishUnanswered(error: McpError, context: Context): Promise<void> {
    const lastUpdatedAt = new Date().toISOString();
    this.update({ ...this.state, status: "completed", lastUpdatedAt, result: unansweredResult(this.tool, error) });
    await this.abandon(context);
  }
}

/** Returns the tool's result from a finished task, or throws its error. */
export function taskOutcome({ status, statusMessage, result, error }: Json): Result {
  if (status === "completed" && isObject(result)) return result;
  if (status === "failed" && isErrorBody(error)) throw McpError.fromBody(error);
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
  const task = new CallerTask(handler, context, initialTaskState(created), request.params["name"]);
  const { signal } = context;
  // Cancel the task immediately, since the caller may be about to close the connection.
  const cancel = (): void => void task.abandon(context);
  const forget = onAbort(signal, cancel);
  if (signal.aborted) cancel();
  task.subscribe();
  try {
    return await task.complete(context, { respectsPollInterval: true });
  } catch (error) {
    if (!task.isFinished && !signal.aborted) cancel();
    throw error;
  } finally {
    forget();
    task.close();
  }
}
