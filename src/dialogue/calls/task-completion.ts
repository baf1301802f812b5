// A task driven to its end for a caller that can be asked in mid-call: what the task asks is put to the caller as it
// comes up, each question once, and the answers go back by `tasks/update`. For requests that wait for the end of a
// task; a task that nobody waits for is left alone.

import { onAbort, attempt } from "../../core/async.ts";
import type { AskOptions, Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import { declaringTasks } from "../../protocol/tasks.ts";
import { drive, unanswered } from "./input-required.ts";
import { toMcpError } from "./errors.ts";
import { seedOf, TaskWatch } from "./task-watch.ts";

/** A request that waits for the end of a task. */
export interface Waiter {
  readonly handler: Handler;
  /** Of a caller that has declared tasks. */
  readonly context: Context;
  /** The name of the tool, for the text of errors. */
  readonly tool: unknown;
  /** It need not be asked how the task stands before the end wants to be: its caller may surely see it. */
  readonly isPatient?: boolean;
  /** Aborted when the way is gone on which questions go out. */
  readonly gone?: AbortSignal;
  readonly ask: (request: Request, options: AskOptions) => Promise<Result>;
}

/** Why waiting is over before the task is: the caller could not answer, or its answer was not taken. */
type Trouble = { readonly unanswered: McpError } | { readonly untaken: unknown };

interface Asked {
  readonly waiter: Waiter;
  readonly stop: AbortController;
}

/** The questions of one task that have been put to its caller, by whichever of its requests. */
export class TaskQuestions {
  readonly #asked = new Map<string, Asked>();
  /** What was answered may be shown as open for a while. */
  readonly #answered = new Set<string>();

  /** Puts what has not been put yet. */
  put(watch: TaskWatch, waiter: Waiter, trouble: (trouble: Trouble) => void): void {
    // On a way that is gone nothing is put: others may have one.
    if (waiter.gone?.aborted === true) return;
    const open = watch.state["inputRequests"];
    for (const [key, question] of Object.entries(isObject(open) ? open : {})) {
      if (this.#isNew(key)) void this.#put(key, question, watch, waiter, trouble);
    }
  }

  /** Takes back what nobody has answered; with a waiter, what was put on its way: others may put it on theirs. */
  drop(reason: string, by?: Waiter): void {
    for (const { stop, waiter } of this.#asked.values()) {
      if (by === undefined || waiter === by) stop.abort(new Error(reason));
    }
  }

  /** One that went out on a way that is gone is put again on another. */
  #isNew(key: string): boolean {
    const asked = this.#asked.get(key);
    if (asked === undefined) return !this.#answered.has(key);
    if (asked.waiter.gone?.aborted !== true) return false;
    asked.stop.abort(new Error("The question is put again"));
    return true;
  }

  async #put(
    key: string,
    question: unknown,
    watch: TaskWatch,
    waiter: Waiter,
    trouble: (trouble: Trouble) => void,
  ): Promise<void> {
    const asked: Asked = { waiter, stop: new AbortController() };
    this.#asked.set(key, asked);
    const { signal } = asked.stop;
    const { handler, context } = waiter;
    let answer: Result | undefined;
    try {
      answer = await answerTo(question, { key, signal }, waiter);
      const params = { taskId: watch.id, inputResponses: { [key]: answer } };
      await handler({ method: "tasks/update", params }, context);
      this.#answered.add(key);
    } catch (error) {
      // Taken back by us, or by the request that waited: then there is no trouble.
      if (signal.aborted || context.signal.aborted) return;
      trouble(answer === undefined ? { unanswered: toMcpError(error) } : { untaken: error });
    } finally {
      if (this.#asked.get(key) === asked) this.#asked.delete(key);
      // Others who wait may have to put it now.
      watch.wake();
    }
  }
}

async function answerTo(question: unknown, options: AskOptions, { ask, context }: Waiter): Promise<Result> {
  const { method, params } = (isObject(question) ? question : {}) as Partial<Request>;
  try {
    return await ask({ method: String(method), params: params ?? {} }, options);
  } catch (error) {
    // Elicitation alone has a word for it.
    const isOurs = options.signal?.aborted === true || context.signal.aborted;
    if (method !== "elicitation/create" || isOurs) throw error;
    return { action: "cancel" };
  }
}

/** Waits until the task is over, and asks what it asks. */
export async function untilOver(watch: TaskWatch, questions: TaskQuestions, waiter: Waiter): Promise<Json> {
  const { signal } = waiter.context;
  const troubles: Trouble[] = [];
  try {
    if (waiter.isPatient !== true || !watch.isFresh) await watch.poll(waiter.context);
    while (!watch.isOver) {
      if (watch.state["status"] === "input_required") questions.put(watch, waiter, (met) => troubles.push(met));
      await watch.changed(signal);
      const [trouble] = troubles;
      if (trouble === undefined || watch.isOver) continue;
      if ("untaken" in trouble) throw trouble.untaken;
      await giveUp(watch, waiter, trouble.unanswered);
    }
  } finally {
    if (watch.isOver) questions.drop("The task is over");
    else questions.drop("The request that waited is over", waiter);
  }
  return watch.state;
}

/** What came of a task that is over: the tool's own result, or its error. */
export function outcomeOf({ status, statusMessage, result, error }: Json): Result {
  if (status === "completed" && isObject(result)) return result;
  if (status === "failed" && isObject(error)) throw McpError.fromBody(error as unknown as ErrorBody);
  const text = typeof statusMessage === "string" ? statusMessage : `The task is ${String(status)}`;
  throw McpError.of("internal_error", text);
}

/** A call for a caller that knows no tasks, of a tool that is always one: it waits for the end. */
export async function callToEnd(handler: Handler, request: Request, context: Context): Promise<Result> {
  const declared = declaringTasks(context);
  const first = await drive(handler, request, declared);
  if (first.resultType !== "task") return first;
  return outcomeOf(await taskToEnd(handler, first, request, declared));
}

/** From the handle that a call was answered with to the end of its task, which is cancelled with the call. */
export async function taskToEnd(handler: Handler, made: Result, request: Request, context: Context): Promise<Json> {
  const watch = new TaskWatch(handler, context, seedOf(made));
  const ask: Waiter["ask"] = (question, options) => context.ask(question, options);
  const waiter: Waiter = { handler, context, tool: request.params["name"], isPatient: true, ask };
  const { signal } = context;
  // At once: who no longer wants the task may be about to close the way to it.
  const cancel = (): void => void cancelTask(watch, waiter);
  const forget = onAbort(signal, cancel);
  if (signal.aborted) cancel();
  watch.listen();
  try {
    return await untilOver(watch, new TaskQuestions(), waiter);
  } catch (error) {
    if (!watch.isOver && !signal.aborted) cancel();
    throw error;
  } finally {
    forget();
    watch.close();
  }
}

/** With a signal of its own: whoever wanted the task may be gone. */
async function cancelTask(watch: TaskWatch, { handler, context }: Waiter): Promise<void> {
  const { signal } = new AbortController();
  const request: Request = { method: "tasks/cancel", params: { taskId: watch.id } };
  await attempt(() => handler(request, { ...context, signal })).catch(() => undefined);
}

/** An end cannot be told that a question failed: its task is cancelled, and over for us. */
async function giveUp(watch: TaskWatch, waiter: Waiter, error: McpError): Promise<void> {
  const now = new Date().toISOString();
  watch.take({ ...watch.state, status: "completed", lastUpdatedAt: now, result: unanswered(waiter.tool, error) });
  await cancelTask(watch, waiter);
}
