// What the run of one request has given: the guest's reply, how it ended, and what was printed. Separate from the session,
// which keeps records that are made of it.

import type { GuestReply } from "./guest.ts";
import type { OutputCapture } from "./output.ts";
import type { StopStep } from "./runtime.ts";

/** How an evaluation was stopped. "children" kills the programs that it waits for; "restart" ends the process, and its state is lost. */
export type Step = StopStep | "children" | "restart";

/** Tells a caller that wants progress why nothing happens yet. */
export const WAITING = "Waiting for another evaluation in this session";

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
