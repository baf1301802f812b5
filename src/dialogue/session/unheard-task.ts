// A task whose caller left before the end had named it. A request that makes a task must not be cancelled by
// `notifications/cancelled` (specification of the last session-style revision, basic/utilities/cancellation), and
// `tasks/cancel` needs the name: so nothing is said until the end has answered, and nobody waits for that but we.

import { onAbort } from "../../core/async.ts";
import type { Caller, Context } from "../../core/context.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/objects.ts";
import type { TaskBackHost } from "./task-back-door.ts";
import type { Leaving } from "../calls/wire.ts";

/** How long the name of a task is waited for that nobody wants any more. */
const LATE_MS = 60_000;

/** What becomes of a call that makes a task, where its caller leaves it. */
export function leavingUnheard(host: TaskBackHost, { caller }: Context): Leaving {
  const left = new AbortController();
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  onAbort(left.signal, () => {
    timer = setTimeout(() => over.abort(), LATE_MS);
    // Nothing is kept running for it.
    timer.unref();
  });
  const ask = (): Promise<never> => Promise.reject(new ConnectionError("cancelled", "The caller has left the call"));
  return {
    left,
    over: over.signal,
    context: { ...host.home, caller, notify: () => undefined, ask },
    late: (answer) => {
      clearTimeout(timer);
      cancelUnheard(host, caller, answer["task"]);
    },
  };
}

/** Nobody hears what comes of it. */
export function cancelUnheard(host: TaskBackHost, caller: Caller, said: unknown): void {
  if (!isObject(said) || !canCancel(host)) return;
  const params = { taskId: said["taskId"] };
  host.send({ method: "tasks/cancel", params }, { ...host.home, caller }).catch(() => undefined);
}

/** Whether the end has said that tasks can be cancelled: what it has not said must not be asked of it. */
export function canCancel(host: TaskBackHost): boolean {
  const { tasks } = host.offered();
  return isObject(tasks) && Boolean(tasks["cancel"]);
}
