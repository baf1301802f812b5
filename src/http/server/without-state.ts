// `stateless: true`: nothing is kept in memory between HTTP requests, so that any process can answer any request: behind
// a load balancer without sticky sessions, in serverless functions, in Workers. This file takes away from a handler what
// needs the memory of one process: questions during a call, tasks, and changes announced to sessions.

import { ignoreRejection } from "../../core/async.ts";
import type { Caller, Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { LIST_CAPABILITIES } from "../../protocol/lists.ts";
import { isTasksNotDeclared, TASKS_EXTENSION } from "../../protocol/tasks.ts";

type Capabilities = Caller["capabilities"];

const WHY = "This server keeps nothing between requests (`stateless: true`)";

/** Wraps a handler. Results, progress and logs of a call pass; `inputRequired` works for stateless callers. */
export function withoutState(handler: Handler): Handler {
  return async (request, context) => {
    const { caller } = context;
    const isSession = caller.style === "session";
    if (isSession && request.method === "subscriptions/listen") {
      throw refusal(`${WHY}, so it cannot announce changes to clients of revision ${context.revision}`);
    }
    const statelessContext: Context = {
      ...context,
      // A session-style caller gets the outcome of a task in the same request, so there it needs no later one.
      caller: isSession ? caller : { ...caller, capabilities: withoutTasks(caller.capabilities) },
      ask: (input) => ignoreRejection(refuseToAsk(input)),
    };
    try {
      const result = await handler(request, statelessContext);
      return request.method === "server/discover" ? withoutPromises(result, isSession) : result;
    } catch (error) {
      if (isTasksNotDeclared(error)) throw isSession ? error : refusal(`${WHY}, so it has no tasks`);
      // The handshake, which has the client's capabilities, was another request.
      if (!isSession || !(error instanceof McpError) || error.kind !== "missing_capability") throw error;
      throw refusal(`${WHY}, so it cannot ask a client of revision ${context.revision}: ${error.message}`);
    }
  };
}

async function refuseToAsk({ method }: Request): Promise<never> {
  throw refusal(
    `${WHY}, so a call cannot wait for the answer to ${method}: return inputRequired(...) from the handler, or serve ` +
      "without `stateless`, with all requests of a client in one process",
  );
}

function refusal(message: string): McpError {
  return McpError.of("invalid_request", message);
}

/** Does not promise tasks, nor, to callers with sessions, changes: those would need a stream outside of any request. */
function withoutPromises(discovered: Result, isSession: boolean): Result {
  const declared = discovered["capabilities"];
  if (!isObject(declared)) return discovered;
  const capabilities = withoutTasks(declared);
  if (!isSession) return { ...discovered, capabilities };
  const silent = Object.entries(capabilities).map(([name, capability]): [string, unknown] => {
    if (!LIST_CAPABILITIES.some((list) => list === name) || !isObject(capability)) return [name, capability];
    const { listChanged: _changes, subscribe: _updates, ...rest } = capability;
    return [name, rest];
  });
  return { ...discovered, capabilities: Object.fromEntries(silent) };
}

function withoutTasks(capabilities: Capabilities): Capabilities {
  const { extensions, ...rest } = capabilities;
  if (!isObject(extensions) || !Object.hasOwn(extensions, TASKS_EXTENSION)) return capabilities;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return { ...rest, extensions: others };
}
