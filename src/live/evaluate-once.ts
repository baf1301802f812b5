// Runs one evaluation in a session of its own, for the command line. The caller gets all output as it is printed.

import { within } from "../core/async.ts";
import { toEvaluation, type Evaluation } from "./evaluation.ts";
import type { OutputListener } from "./guest.ts";
import { DEFAULT_LIMITS, type GuestCommand, type Limits, type Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

export interface EvaluateOnceOptions {
  /** Aborting it interrupts the evaluation. */
  readonly signal: AbortSignal;
  readonly limits?: Partial<Limits>;
  readonly onOutput?: OutputListener;
  /** Called with the command before it is started. */
  readonly onStart?: (command: GuestCommand) => void;
}

/** How long to wait for the process to end. */
const CLOSE_TIMEOUT_MS = 3_000;

/** Rejects only if the session could not be started. The runtime stays open. */
export async function evaluateOnce(runtime: Runtime, code: string, options: EvaluateOnceOptions): Promise<Evaluation> {
  const { signal, onOutput, onStart } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const session = new Session({
    name: "main",
    runtime: onStart === undefined ? runtime : withStartHook(runtime, onStart),
    limits,
    mayStart: (start) => start(),
    onBusy: () => undefined,
  });
  const startedAt = performance.now();
  try {
    const result = await session.run("eval", { code }, { context: { signal }, ...(onOutput && { onOutput }) });
    if (result.outcome === "refused") throw new Error(result.reason);
    return withoutSession(toEvaluation(session.name, result, performance.now() - startedAt));
  } finally {
    await within(CLOSE_TIMEOUT_MS, session.close());
  }
}

function withStartHook(runtime: Runtime, onStart: (command: GuestCommand) => void): Runtime {
  return {
    language: runtime.language,
    stopSteps: runtime.stopSteps,
    ...(runtime.noise && { noise: runtime.noise }),
    async start(limits) {
      const command = await runtime.start(limits);
      onStart(command);
      return command;
    },
    encode: (request) => runtime.encode(request),
    startFailed: async (command, isCancelled) => (await runtime.startFailed?.(command, isCancelled)) ?? false,
    onReady: () => runtime.onReady?.(),
  };
}

/** Rewords the notice, since on the command line there is no session whose state could be lost. */
function withoutSession(evaluation: Evaluation): Evaluation {
  const [, reason] =
    /^The state of session \S+ was lost: (.*); (?:nothing was|lost definitions)/.exec(evaluation.notice ?? "") ?? [];
  if (reason === undefined) return evaluation;
  const notice = reason
    .replace(/^its process ended \(exit code/, "the code ended its process (exit code")
    .replace(/; configure-limits [^)]*/, "");
  return { ...evaluation, notice: notice.charAt(0).toUpperCase() + notice.slice(1) };
}
