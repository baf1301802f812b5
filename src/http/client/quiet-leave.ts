// Requests that their caller may leave while the end is not told: one that makes a task is cancelled by another request,
// once the task has a name. So its answer is read on for a while; but what was not sent yet stays unsent.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { QuietLeave } from "../../transport/transport.ts";

/** Stops the request when its time has come. Both signals belong to this request alone. */
export function stopQuietly(quiet: QuietLeave | undefined, stop: AbortController, isSent: () => boolean): void {
  if (quiet === undefined) return;
  const end = (): void => stop.abort(new ConnectionError("cancelled", "Cancelled"));
  onAbort(quiet.left, () => (isSent() ? undefined : end()));
  onAbort(quiet.over, end);
}
