// How a command that goes on running comes to its end: at the first signal it closes, and what is being worked on
// is given time; at the second, or when the time is over, the process ends at once.

import { say } from "../terminal/output.ts";
import { EXIT } from "../exit-codes.ts";

/** What is under way when the first signal comes may take so long. */
export const DRAIN_MS = 30_000;

const CODES = { SIGTERM: EXIT.ok, SIGINT: EXIT.interrupted } as const;

/** `close` resolves when all is done; it is called once. */
export function endAtSignal(close: () => Promise<void>): void {
  let closing = false;
  const stop = (signal: keyof typeof CODES): void => {
    const end = (): void => process.exit(CODES[signal]);
    if (closing) end();
    closing = true;
    say("catenary: closing; what is under way has 30 s, a second signal ends it at once");
    setTimeout(end, DRAIN_MS);
    void close().finally(end);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
}
