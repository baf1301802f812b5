// Runs one evaluation in a session of its own, for the command line.

import type { Readable } from "node:stream";
import { within } from "../core/async.ts";
import { defined, type Optional } from "../core/values.ts";
import { type EvaluationRecord, toEvaluation } from "./evaluation.ts";
import type { OutputListener } from "./guest.ts";
import { DEFAULT_LIMITS, type GuestCommand, type Limits, type Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

export interface EvaluateOnceOptions {
  /** Aborting it interrupts the evaluation. */
  readonly signal: AbortSignal;
  readonly limits?: Optional<Limits> | undefined;
  readonly onOutput?: OutputListener;
  /** The arguments of the program, where the language has them: `process.argv`, `*posix-argv*`. */
  readonly args?: readonly string[];
  /** The stdin of the program; empty by default. */
  readonly input?: Readable;
  /** Called with the command before it is started. */
  readonly onStart?: (command: GuestCommand) => void;
}

/** How long to wait for the process to end. */
const CLOSE_TIMEOUT_MS = 3_000;

/** Rejects only if the session could not be started. The runtime stays open. */
export async function evaluateOnce(
  runtime: Runtime,
  code: string,
  options: EvaluateOnceOptions,
): Promise<EvaluationRecord> {
  const { signal, onOutput, onStart, args = [], input } = options;
  const start: Runtime["start"] = async (wanted) => {
    const command = await runtime.start(wanted);
    onStart?.(command);
    return { ...(runtime.withArguments?.(command, args) ?? command), ...defined({ input }) };
  };
  const params = { code, ...(args.length > 0 && runtime.withArguments === undefined && { arguments: args }) };
  // No later call could use an error that stays open.
  const limits = { ...DEFAULT_LIMITS, errorHoldMs: 0, ...defined(options.limits ?? {}) };
  const session = new Session({
    name: "main",
    runtime: { ...runtime, start },
    limits,
    mayStart: (work) => work(),
    onBusy: () => undefined,
    isOnce: true,
  });
  const startedAt = performance.now();
  try {
    const run = { isEvaluation: true, context: { signal }, ...(onOutput && { onOutput }) };
    const result = await session.run("eval", params, run);
    if (result.outcome === "refused") throw new Error(result.reason);
    return toEvaluation(session.name, result, performance.now() - startedAt);
  } finally {
    await within(CLOSE_TIMEOUT_MS, session.close());
  }
}
