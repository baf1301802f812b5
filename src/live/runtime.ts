// The interface between the host and the guest of one language: limits, how a guest is started and stopped, and the
// shape of its requests and replies. No language is named here.

import type { Readable } from "node:stream";
import type { LivePart } from "../core/live-server.ts";
import type { InheritEnv } from "../process/program.ts";

/** Limits of one session; see the options of a live server. */
export type Limits = Readonly<Record<keyof typeof LIMIT_BOUNDS, number>>;

export const DEFAULT_LIMITS = {
  timeoutMs: 30_000,
  memoryMb: 512,
  outputChars: 10_000,
  valueChars: 4_000,
  printLength: 100,
  printDepth: 4,
  errorHoldMs: 300_000,
} as const satisfies Limits;

/** Memory that a process may use beyond its heap limit: for the program, stacks and native buffers. */
const OVERHEAD_MB = 512;

/** What a session and the programs that it starts may use. */
export function memoryLimitMb({ memoryMb }: Pick<Limits, "memoryMb">): number {
  return memoryMb + OVERHEAD_MB;
}

export const LIMIT_BOUNDS = {
  timeoutMs: [0, 24 * 3_600_000],
  memoryMb: [64, 16_384],
  outputChars: [1, 1_000_000],
  valueChars: [1, 1_000_000],
  printLength: [1, 100_000],
  printDepth: [1, 1_000],
  errorHoldMs: [0, 24 * 3_600_000],
} as const satisfies Readonly<Record<string, readonly [min: number, max: number]>>;

/** The characters of output that are kept, for stdout and stderr each, so that more than a result shows can be read. */
export const KEPT_CHARS = 1_000_000;

export interface GuestCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Default: all but the secrets of Catenary. */
  readonly inheritEnv?: InheritEnv;
  /** It inherits no variables at all. */
  readonly inheritsNothing?: true;
  readonly cwd?: string;
  /** The files and folders that the program itself reads. A sandbox shows them to it. */
  readonly reads?: readonly string[];
  /** The command as the runtime returned it, if this one runs it in a sandbox. */
  readonly inner?: GuestCommand;
  /** Called when the process has exited: what it used too much of, if the kernel has ended it for that. */
  readonly usedTooMuch?: () => string | undefined;
  /** Called when the process and its descendants have ended. */
  readonly onEnd?: () => void;
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
  /**
   * Rejects with a ConnectionError that says what to install if the program is missing. In a sandbox, the guest can
   * write to no folder of ours.
   */
  start(limits: Limits, isSandboxed?: boolean): Promise<GuestCommand>;
  /**
   * Adds the arguments of the user's program to the command. Without it, the request `eval` carries them as `arguments`.
   */
  withArguments?(command: GuestCommand, args: readonly string[]): GuestCommand;
  /** Matches lines that the language's runtime prints to stderr about itself; they are removed. Needs the g flag. */
  readonly noise?: RegExp;
  /** Adds to a request what the guest cannot find out by itself, before it is sent. */
  prepare?(request: GuestRequest): GuestRequest;
  /** Called if a guest ended before it was ready. Resolves to true if another start may succeed. */
  startFailed?(command: GuestCommand, isCancelled: boolean): Promise<boolean>;
  /** Called when a guest is ready. The runtime can then prepare a faster next start. */
  onReady?(): void;
  /** Resolves when that preparation is done. */
  saved?(): Promise<unknown>;
  close?(): Promise<void>;
  /**
   * For a language whose whole state can be saved as an image: the guest implements `save-session`, and this returns the
   * command that starts a guest from the file. For other languages the host replays the code of the session.
   */
  readonly checkpoint?: { start(limits: Limits, file: string): Promise<GuestCommand> };
  /** Why a sandbox around the guest would not hold the user's code, if it would not. */
  readonly noSandbox?: string;
  /** The folder in which the guest saves files for the host, if it sees other files than the host does. */
  readonly ownFolder?: string;
}

export interface Restart {
  readonly name: string | null;
  readonly description: string;
  /** Whether it can be given a value. */
  readonly takesValue?: boolean | null;
}

/** A variable in a frame. */
export interface Local {
  readonly name: string;
  readonly value: string;
  readonly handle?: number | null;
}

export interface Frame {
  readonly number: number;
  readonly text: string;
  readonly locals?: readonly Local[];
}

export interface Condition {
  readonly type: string;
  readonly message: string;
  /** What to do about it, in words that name tools. */
  readonly hint?: string;
  readonly restarts: readonly Restart[];
  readonly frames: readonly Frame[];
  /** Whether the evaluation waits at the error, so that its frames and restarts can be used. */
  readonly open?: boolean | null;
}

export function handleText(handle: number | null | undefined): string {
  return handle === undefined || handle === null ? "" : ` [handle ${handle}]`;
}

/** The text of an error, with its backtrace, and with its restarts if they can be taken. */
export function conditionText(condition: Condition): string {
  const { type, message, hint = "", frames, restarts } = condition;
  const parts = [`[ERROR] ${type}`, message, hint, backtraceText(frames)];
  if (waitsForChoice(condition)) parts.push(restartsText(restarts));
  return parts.filter((part) => part !== "").join("\n");
}

export function backtraceText(frames: readonly Frame[] = []): string {
  if (frames.length === 0) return "";
  const lines = frames.flatMap(({ number, text, locals = [] }) => [`${number}: ${text}`, ...locals.map(localText)]);
  return `\n[Backtrace]\n${lines.join("\n")}`;
}

function localText({ name, value, handle }: Local): string {
  return `     ${name} = ${value}${handleText(handle)}`;
}

/** Every error can be given up; only other restarts are worth a choice. */
function waitsForChoice({ open, restarts }: Condition): boolean {
  return open === true && restarts.some(({ name }) => name !== "ABORT");
}

/** The line of the text of an error that names tools, if it has one. */
export function hintIn(condition: Condition): string | undefined {
  return condition.hint ?? (waitsForChoice(condition) ? GO_ON : undefined);
}

/** What an agent can do while an error is open. The last line of the error. */
const GO_ON: string =
  "The evaluation waits at the error: take-restart takes one of these, evaluate-in-frame evaluates code in a frame, " +
  "and the next evaluation gives up.";

function restartsText(restarts: readonly Restart[]): string {
  const lines = restarts.map(({ name, description, takesValue }, index) => {
    const text = name === null ? description : `[${name}] ${description}`;
    return `${index}: ${text}${takesValue === true ? " (takes a value)" : ""}`;
  });
  return `\n[Restarts]\n${lines.join("\n")}\n${GO_ON}`;
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
  /** A line for the text, such as that the current package has changed. */
  readonly note?: string;
  readonly timing: Timing;
  /** How many characters were over the output limit and were not sent. */
  readonly dropped?: { readonly stdout?: number; readonly stderr?: number };
  readonly defined: readonly Definition[];
  /** Whether the process may be corrupt and must be ended. */
  readonly damaged?: boolean;
  /** For each value that was not printed whole, the handle with which it can be inspected; otherwise null. */
  readonly handles?: readonly (number | null)[];
  /** The libraries with tools of their own that are loaded now; sent when that has changed. */
  readonly loaded?: readonly string[];
}

/** A guest's reply to any other tool. */
export interface GuestText {
  readonly text: string;
  readonly isError?: boolean;
  /** The end of the text that names tools, if one is named. */
  readonly hint?: string;
  readonly data?: { readonly [key: string]: unknown };
  /** Code with the same effect as the tool, for a session that is restored by running its code again. */
  readonly code?: string;
  /** What the tool has defined. */
  readonly defined?: readonly Definition[];
  /** Of a resource. */
  readonly mimeType?: string;
  /** Of `inspect`, if it was asked for them with `parts`: the parts of the value that the text shows, and how many it has. */
  readonly parts?: readonly LivePart[];
  readonly total?: number;
}

/** A tool that the code of a session can call. */
export interface CallableTool {
  /** Its place in the session, such as `notes.search`. */
  readonly path: string;
  /** Its name at the gateway. */
  readonly name: string;
  /** As the language of the session writes a call. */
  readonly signature: string;
  readonly summary: string;
}

/** A guest's reply to `complete`: what can stand from the character `start` on. */
export interface GuestCompletion {
  readonly start: number;
  readonly values: readonly string[];
}

/** A guest's reply to `run-tests`. */
export interface GuestTests {
  readonly tests: {
    readonly passed: number;
    readonly failed: number;
    readonly skipped?: number;
    readonly failures: readonly { readonly name: string; readonly reason: string }[];
  };
  /** What the tests printed. */
  readonly output?: string;
}
