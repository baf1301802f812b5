// Requests that failed on their way, sent again where that can do no harm: those that only read, calls of tools that
// say of themselves that a second call does no more than the first, and whatever the end has surely not begun with.
// Anything else may have run, and to run it twice is worse than to say so.

import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Request } from "../../core/handler.ts";
import { SessionLost } from "../../transport/transport.ts";
import { pause } from "../../dialogue/calls/backoff.ts";
import type { ToolFacts } from "./tool-facts.ts";

/** Before each further try. */
const PAUSES_MS: readonly number[] = [200, 1_000];

export const READ_ONLY_METHODS: ReadonlySet<string> = new Set([
  "server/discover",
  "ping",
  "tools/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
  "completion/complete",
  "logging/setLevel",
  "tasks/get",
  "tasks/result",
  "tasks/list",
  // Answers that the end has already it passes over, and what is cancelled stays so.
  "tasks/update",
  "tasks/cancel",
]);

export function retrying(handler: Handler, tools: ToolFacts): Handler {
  return async (request, context) => {
    let mayHaveRun = false;
    for (let count = 0; ; count += 1) {
      try {
        return await handler(request, context);
      } catch (error) {
        const ms = PAUSES_MS[count];
        const again = ms !== undefined && !context.signal.aborted && isPassing(error);
        if (!again || !mayRepeat(request, error, tools)) throw mayHaveRun ? admitting(error) : error;
        mayHaveRun ||= error.mayHaveRun;
        await pause(ms, context.signal);
      }
    }
  };
}

/** What failed at last was perhaps never sent, but one of the tries before it was. */
function admitting(error: unknown): unknown {
  if (!(error instanceof ConnectionError) || error.mayHaveRun) return error;
  const { kind, message, status } = error;
  return new ConnectionError(kind, message, { cause: error, ...(status === undefined ? undefined : { status }) });
}

function mayRepeat({ method, params }: Request, error: ConnectionError, tools: ToolFacts): boolean {
  if (!error.mayHaveRun || READ_ONLY_METHODS.has(method)) return true;
  return method === "tools/call" && tools.isSafe(params["name"]);
}

/** Trouble that may be over in a moment: a connection that broke or was not made, a gateway without its server. */
function isPassing(error: unknown): error is ConnectionError {
  // A session that was lost has been begun anew already, once.
  if (!(error instanceof ConnectionError) || error instanceof SessionLost) return false;
  const { kind, status } = error;
  if (kind === "http") return status === 502 || status === 503 || status === 504;
  return kind === "closed" || (kind === "refused" && status === undefined);
}
