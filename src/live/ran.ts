// What is wanted of a run in a session, and what became of it: the two sides between whoever calls and the session.

import type { Context } from "../core/context.ts";
import { Capture } from "./capture.ts";
import type { Hear, Reply } from "./guest.ts";
import type { Step } from "./ladder.ts";

export interface Wish {
  /** Whose signal stops it. */
  readonly context: Pick<Context, "signal">;
  /** In the place of the session's own limit; 0: none. */
  readonly timeoutMs?: number | undefined;
  /** Told of what is printed, and of how many characters there have been. */
  readonly tell?: ((text: string, total: number) => void) | undefined;
  /** Told of all that is printed, at once and as it is. */
  readonly hear?: Hear | undefined;
}

/** How a run ended, and what it printed. */
export interface Ran {
  /** "stopped": somebody else has interrupted it. */
  readonly end: "answered" | "refused" | "timeout" | "stopped" | "lost";
  /** What the guest said; empty where it said nothing. */
  readonly reply: Reply;
  /** By which step it was stopped. */
  readonly step: Step | undefined;
  readonly state: "kept" | "lost";
  /** Why it was refused, or lost. */
  readonly why: string | undefined;
  /** What was lost before it began. */
  readonly notice: string | undefined;
  /** What was printed between the run before and this one. */
  readonly background: string;
  readonly timeoutMs: number;
  readonly capture: Capture;
}

/** Of what was stopped before its process was there. */
export function unbegun(timeoutMs: number): Ran {
  const common = { why: undefined, notice: undefined, background: "", timeoutMs, capture: new Capture(0) };
  return { ...common, end: "stopped", reply: {}, step: "interrupt", state: "kept" };
}
