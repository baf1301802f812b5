// One call of the operator: a request to the gateway in memory, as that of a client which can be asked. It passes the
// whole chain, and so is in the log and the audit under the principal of the operator.

import { OPERATOR } from "../core/authentication.ts";
import { packageVersion } from "../core/files.ts";
import type { Caller, Context, Handler, Notification, Request, Result } from "../core/handler.ts";
import { abortable } from "../core/async.ts";
import { ClientRequests, type ClientRequestHandlers } from "../client/client-requests.ts";
import { resultOfTask } from "../client/calls.ts";
import { callWithInput } from "../dialogue/calls/input-required.ts";
import { newCaller } from "../protocol/caller.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { isTasksNotDeclared, withTasksExtension } from "../protocol/tasks.ts";

/** What the operator answers: forms, and URLs to open. */
export type Elicit = NonNullable<Exclude<ClientRequestHandlers["elicit"], (...args: never[]) => unknown>>;

const INFO = { name: "catenary-console", version: packageVersion() };
const UNASKED = new ClientRequests({
  elicit: { form: () => ({ action: "cancel" }), url: () => ({ action: "cancel" }) },
});
/** All calls are of one client. */
const CALLER: Caller = { ...newCaller(NEWEST.style, UNASKED.capabilities, INFO), principal: OPERATOR };

export interface OperatorContextOptions {
  /** The principal whose sessions with upstreams are used. */
  readonly owner: string | undefined;
  readonly signal: AbortSignal;
  /** The id of the call. Default: "", for what the pages read by themselves, which is not in Traffic. */
  readonly call?: string | undefined;
  readonly elicit?: Elicit | undefined;
  readonly notify?: ((notification: Notification) => void) | undefined;
}

/** The context of a request of the operator. Without `elicit`, questions are cancelled. */
export function operatorContext({ owner, signal, call = "", elicit, notify }: OperatorContextOptions): Context {
  const requests = elicit === undefined ? UNASKED : new ClientRequests({ elicit, onError: () => undefined });
  return {
    revision: NEWEST.name,
    caller: { ...CALLER, operatorCall: call, actsFor: owner ?? "" },
    signal,
    // A person waits for as long as it takes, and can cancel.
    timeouts: { idleMs: 0, totalMs: 0 },
    logLevel: "info",
    notify: notify ?? ((): void => undefined),
    ask: (request, options) => {
      const both = options?.signal === undefined ? signal : AbortSignal.any([signal, options.signal]);
      return abortable(both, requests.answer(request, both));
    },
  };
}

/** Sends the request, answers its questions, and waits for its task if it becomes one. Ends when the signal aborts. */
export function callAsOperator(gateway: Handler, request: Request, context: Context): Promise<Result> {
  return abortable(context.signal, run(gateway, request, context));
}

async function run(gateway: Handler, request: Request, context: Context): Promise<Result> {
  let declared = context;
  let first: Result;
  try {
    first = await callWithInput(gateway, request, context);
  } catch (error) {
    // Tasks report neither progress nor logs, so they are declared only for a tool that requires them.
    if (!isTasksNotDeclared(error)) throw error;
    declared = withTasksExtension(context);
    first = await callWithInput(gateway, request, declared);
  }
  if (first.resultType !== "task") return first;
  const { completeTask } = await import("../tasks/completion.ts");
  return resultOfTask(await completeTask(gateway, first, request, declared));
}
