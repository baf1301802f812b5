// Progress as a caller gets it: only where it asked for it, under its own token, and growing, also where a call was
// run again for its answers.

import type { Notification } from "../../core/handler.ts";

/** Undefined for what the caller does not get. */
export function progressUnder(token: unknown): (notification: Notification) => Notification | undefined {
  let reached = -Infinity;
  return ({ method, params }) => {
    const progress = params?.["progress"] as number;
    if (token === undefined || !(progress > reached)) return undefined;
    reached = progress;
    return { method, params: { ...params, progressToken: token } };
  };
}
