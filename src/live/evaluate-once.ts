// One evaluation in a session of its own, which ends with it: what a command line wants. It is told of all that is
// printed as it comes, and not only of what a caller of tools could read.

import { within } from "../core/async.ts";
import { evaluationOf, type Evaluation } from "./evaluation.ts";
import type { Hear } from "./guest.ts";
import { DEFAULT_LIMITS, type GuestCommand, type Limits, type Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

export interface OnceOptions {
  /** Aborted, it interrupts the evaluation. */
  readonly signal: AbortSignal;
  readonly limits?: Partial<Limits>;
  readonly hear?: Hear;
  /** Called with what is about to be started. */
  readonly onStart?: (command: GuestCommand) => void;
}

/** How long the end of the process is waited for. */
const CLOSE_MS = 3_000;

/** Rejects only where the session could not be started. The runtime is left open. */
export async function evaluateOnce(runtime: Runtime, code: string, options: OnceOptions): Promise<Evaluation> {
  const { signal, hear, onStart } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const session = new Session({
    name: "main",
    runtime: onStart === undefined ? runtime : watched(runtime, onStart),
    limits,
    mayStart: (start) => start(),
    onBusy: () => undefined,
  });
  const begun = performance.now();
  try {
    const ran = await session.run("eval", { code }, { context: { signal }, ...(hear && { hear }) });
    if (ran.end === "refused") throw new Error(ran.why);
    return withoutSession(evaluationOf(session.name, ran, performance.now() - begun));
  } finally {
    await within(CLOSE_MS, session.close());
  }
}

function watched(runtime: Runtime, onStart: (command: GuestCommand) => void): Runtime {
  return {
    language: runtime.language,
    ladder: runtime.ladder,
    ...(runtime.noise && { noise: runtime.noise }),
    async start(limits) {
      const command = await runtime.start(limits);
      onStart(command);
      return command;
    },
    encode: (request) => runtime.encode(request),
    failed: async (command, isGivenUp) => (await runtime.failed?.(command, isGivenUp)) ?? false,
    settled: () => runtime.settled?.(),
  };
}

/** Nobody knows of a session here, and what was defined in it was to be gone anyway: what is left is how it ended. */
function withoutSession(evaluation: Evaluation): Evaluation {
  const [, how] =
    /^The state of the session \S+ is lost: (.*); (?:nothing was|defined were)/.exec(evaluation.notice ?? "") ?? [];
  if (how === undefined) return evaluation;
  const notice = how
    .replace(/^its process ended \(exit code/, "the code ended its process (exit code")
    .replace(/; configure-limits [^)]*/, "");
  return { ...evaluation, notice: notice.charAt(0).toUpperCase() + notice.slice(1) };
}
