// The interface between the host and the guest of one language: limits, how a guest is started and stopped, and the
// shape of its requests and replies. No language is named here.

import type { Readable } from "node:stream";
import type { InheritEnv } from "../process/environment.ts";

/** Limits of one session. */
export interface Limits {
  /** Milliseconds for one evaluation; 0 means no limit. */
  readonly timeoutMs: number;
  /** Megabytes of memory for the process of the session. */
  readonly memoryMb: number;
  /** The maximum number of characters of output that are kept, for stdout and stderr each. */
  readonly outputChars: number;
  /** The maximum number of elements of a collection that are printed. */
  readonly printLength: number;
  /** The maximum depth to which a value is printed. */
  readonly printDepth: number;
}

export const DEFAULT_LIMITS: Limits = {
  timeoutMs: 30_000,
  memoryMb: 512,
  outputChars: 100_000,
  printLength: 100,
  printDepth: 10,
};

export const LIMIT_BOUNDS: Readonly<Record<keyof Limits, readonly [min: number, max: number]>> = {
  timeoutMs: [0, 24 * 3_600_000],
  memoryMb: [64, 16_384],
  outputChars: [1, 1_000_000],
  printLength: [1, 100_000],
  printDepth: [1, 1_000],
};

export interface GuestCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Default: all but the secrets of Catenary. */
  readonly inheritEnv?: InheritEnv;
  readonly cwd?: string;
  /** The stdin of the process; empty by default. */
  readonly input?: Readable;
  /** Whether this start takes seconds, because something must be prepared first. */
  readonly isSlow?: true;
}

export interface GuestRequest {
  readonly id: number;
  readonly op: string;
  readonly [param: string]: unknown;
}

/** A way to stop an evaluation without losing the session's state: interrupt it, or replace the evaluator's thread. */
export type StopStep = "interrupt" | "renew";

/** A plain object of functions, so that a copy can replace one of them. */
export interface Runtime {
  /** The name of the language and of its folder, which has the text of get-usage-guide in guide.md. */
  readonly language: string;
  /** The steps that the guest supports, the gentlest first. */
  readonly stopSteps: readonly StopStep[];
  /** Rejects with a ConnectionError that says what to install if the program is missing. */
  start(limits: Limits): Promise<GuestCommand>;
  /**
   * Adds the arguments of the user's program to the command. Without it, the request `eval` carries them as `arguments`.
   */
  withArguments?(command: GuestCommand, args: readonly string[]): GuestCommand;
  /** Matches lines that the language's runtime prints to stderr about itself; they are removed. Needs the g flag. */
  readonly noise?: RegExp;
  /** Returns the request as text, which is sent in one frame (frames.ts). */
  encode(request: GuestRequest): string;
  /** Called if a guest ended before it was ready. Resolves to true if another start may succeed. */
  startFailed?(command: GuestCommand, isCancelled: boolean): Promise<boolean>;
  /** Called when a guest is ready. The runtime can then prepare a faster next start. */
  onReady?(): void;
  /** Resolves when that preparation is done. */
  saved?(): Promise<unknown>;
  close?(): Promise<void>;
}

export interface Restart {
  readonly name: string | null;
  readonly description: string;
}

export interface Frame {
  readonly number: number;
  readonly text: string;
}

export interface Condition {
  readonly type: string;
  readonly message: string;
  readonly restarts: readonly Restart[];
  readonly frames: readonly Frame[];
}

/** The text of an error, with its backtrace. */
export function conditionText({ type, message, frames }: Condition): string {
  return [`[ERROR] ${type}`, message, backtraceText(frames)].filter((part) => part !== "").join("\n");
}

export function backtraceText(frames: readonly Frame[] = []): string {
  if (frames.length === 0) return "";
  return `\n[Backtrace]\n${frames.map(({ number, text }) => `${number}: ${text}`).join("\n")}`;
}

export interface Timing {
  readonly realMs: number;
  readonly runMs?: number;
  readonly gcMs?: number;
  readonly bytes?: number;
}

export interface Definition {
  readonly type: string;
  readonly name: string;
}

/** A guest's reply to `eval`. */
export interface GuestEvaluation {
  readonly status: "ok" | "error" | "interrupted";
  readonly values: readonly string[];
  readonly warnings: readonly { readonly type: string; readonly message: string }[];
  readonly condition?: Condition;
  readonly package?: string;
  readonly timing: Timing;
  /** How many characters were over the output limit and were not sent. */
  readonly dropped?: { readonly stdout?: number; readonly stderr?: number };
  readonly defined: readonly Definition[];
  /** Whether the process may be corrupt and must be ended. */
  readonly damaged?: boolean;
}

/** A guest's reply to any other tool. */
export interface GuestText {
  readonly text: string;
  readonly isError?: boolean;
  readonly data?: { readonly [key: string]: unknown };
}
