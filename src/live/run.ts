// The run of one request in a session: what the caller gives to it, and what it has given. The session runs it.

import type { Context } from "../core/handler.ts";
import type { ProgressListener } from "../core/text.ts";
import type { GuestParams, GuestReply, OutputListener, Step } from "./guest.ts";
import { OutputCapture } from "./output.ts";
import type { CallableTool } from "./runtime.ts";

/** The key of `_meta` of progress that reports no output: whether the evaluation still waits for another one. */
export const WAITS = "catenary/waits";

export interface RunOptions {
  /** Aborting its signal interrupts the run. */
  readonly context: Pick<Context, "signal">;
  /** Overrides the session's timeout; 0 means no limit. */
  readonly timeoutMs?: number | undefined;
  /** Receives the output at a limited rate, with the number of characters so far. */
  readonly onProgress?: ProgressListener | undefined;
  /** Receives all output immediately. */
  readonly onOutput?: OutputListener | undefined;
  /** Called if the run must wait for another one. */
  readonly onWait?: (() => void) | undefined;
  /** Called every few seconds while nothing is printed, with the seconds since the run began. */
  readonly onSilence?: ((seconds: number) => void) | undefined;
  /** Whether the guest replies with an evaluation, which has the output, the notices and the definitions. */
  readonly isEvaluation?: boolean;
  /** Whether it only reads what is there, in a moment: the session is shown as idle meanwhile. */
  readonly isRead?: true;
  /** Serves the tools that the code can call. */
  readonly peer?: RunPeer | undefined;
}

/** The host's side of one evaluation that can call tools. */
export interface RunPeer {
  readonly tools: readonly CallableTool[];
  /** Gets each message of the guest about the evaluation. The user's code can send any. */
  receive(message: GuestReply, channel: RunChannel): void;
  /** Ends what the evaluation has begun, since it is being stopped or has ended. May be called twice. */
  end(): void;
}

/** What a `RunPeer` can do in its session. */
export interface RunChannel {
  /** Answers a call, unless the answer is longer than `maxBytes`. Returns its length in bytes. */
  answer(params: GuestParams, maxBytes?: number): number;
  /** Holds the deadline of the evaluation until the returned function is called. */
  holdDeadline(): () => void;
}

export interface RunResult {
  /** "interrupted": by another call, or by the caller's signal. */
  readonly outcome: "answered" | "refused" | "timeout" | "interrupted" | "lost";
  /** The guest's reply; empty if there was none. */
  readonly reply: GuestReply;
  /** The step that stopped the run, if it was stopped. */
  readonly step: Step | undefined;
  readonly state: "kept" | "lost";
  /** Why the run was refused, or its state lost. */
  readonly reason: string | undefined;
  /** Describes state that was lost before the run began. */
  readonly notice: string | undefined;
  /** What was printed between the previous run and this one. */
  readonly background: string;
  readonly timeoutMs: number;
  readonly capture: OutputCapture;
}

/** The result of a run that was interrupted while its process was starting. */
export function interruptedBeforeStart(timeoutMs: number): RunResult {
  const common = { reason: undefined, notice: undefined, background: "", timeoutMs, capture: new OutputCapture(0) };
  return { ...common, outcome: "interrupted", reply: {}, step: "interrupt", state: "kept" };
}
