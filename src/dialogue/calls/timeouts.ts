// How long a request of ours may take, and the error of one that takes longer.

import { ConnectionError } from "../../core/errors.ts";
import type { Context } from "../../core/handler.ts";

export interface Timeouts {
  /** A request fails after this long without an answer or progress. 0: never. */
  readonly idleMs: number;
  /** A request fails after this long, whatever progress it reports. 0: no limit. */
  readonly totalMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { idleMs: 60_000, totalMs: 3_600_000 };

/** `peerName` is the first words of the message, such as "The server". `isFinal`: the total timeout is over. */
export function timeoutError(peerName: string, method: string, idleMs: number, isFinal: boolean): ConnectionError {
  if (isFinal) {
    const message = `${peerName} did not finish ${method} within the total timeout`;
    return new ConnectionError("timeout", message, { hint: { text: "raise `maxTimeoutMs`", flags: "" } });
  }
  const message = `${peerName} did not answer ${method} in ${idleMs} ms and reported no progress`;
  const hint = { text: "raise `timeoutMs`", flags: "use --timeout to allow more" };
  return new ConnectionError("timeout", message, { hint });
}

/** No timeouts for a subscription, which has no end. Otherwise those of the context come first. */
export function timeoutsFor(method: string, { timeouts }: Pick<Context, "timeouts">, defaults: Timeouts): Timeouts {
  if (method === "subscriptions/listen") return NO_TIMEOUTS;
  return timeouts === undefined ? defaults : { ...defaults, ...timeouts };
}

const NO_TIMEOUTS: Timeouts = { idleMs: 0, totalMs: 0 };
