// One evaluation in a session of its own, which ends with it: what a command line wants. It is told of all that is
// printed as it comes, and not only of what a caller of tools could read.

import { within } from "../core/within.ts";
import { evaluationOf, type Evaluation } from "./evaluation.ts";
import type { Hear } from "./guest.ts";
import { DEFAULT_LIMITS, type Limits, type Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

export interface OnceOptions {
  /** Aborted, it interrupts the evaluation. */
  readonly signal: AbortSignal;
  readonly limits?: Partial<Limits>;
  readonly hear?: Hear;
}

/** How long the end of the process is waited for. */
const CLOSE_MS = 3_000;

/** Rejects only where the session could not be started. The runtime is left open. */
export async function evaluateOnce(runtime: Runtime, code: string, options: OnceOptions): Promise<Evaluation> {
  const { signal, hear } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const session = new Session({
    name: "main",
    runtime,
    limits,
    mayStart: (start) => start(),
    onBusy: () => undefined,
  });
  const begun = performance.now();
  try {
    const ran = await session.run("eval", { code }, { context: { signal }, ...(hear && { hear }) });
    if (ran.end === "refused") throw new Error(ran.why);
    return evaluationOf(session.name, ran, performance.now() - begun);
  } finally {
    await within(CLOSE_MS, session.close());
  }
}
