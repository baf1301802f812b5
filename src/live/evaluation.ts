// The result of an evaluation: a record for programs, and a text for the language model. The text has the form that
// CL-MCP-Server uses: output, `[stderr]`, `[Warning]`, `=> value`, `[ERROR]` with its backtrace, `[TIMEOUT]`. Also runs
// one evaluation in a session of its own, for the command line.

import type { Readable } from "node:stream";
import { within } from "../core/async.ts";
import { defined } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import type { OutputListener } from "./guest.ts";
import type { CapturedOutput } from "./output.ts";
import {
  backtraceText,
  conditionText,
  DEFAULT_LIMITS,
  type Condition,
  type GuestCommand,
  type GuestEvaluation,
  type Limits,
  type Runtime,
  type Timing,
} from "./runtime.ts";
import { Session, type RunResult, type Step } from "./session.ts";
import { fits, type Schema } from "./tool.ts";

/** The result of one evaluation: the structured content of the tool that evaluates code. */
export interface Evaluation {
  /** The name of the session. */
  readonly session: string;
  /** How the evaluation ended. */
  readonly status: "ok" | "error" | "timeout" | "interrupted" | "lost";
  /** The printed values of the last form or statement. */
  readonly values: readonly string[];
  /** What it printed to stdout. */
  readonly stdout: string;
  /** What it printed to stderr. */
  readonly stderr: string;
  /** Warnings of the compiler or the program. */
  readonly warnings: readonly { readonly type: string; readonly message: string }[];
  /** The error that ended it, if one did. */
  readonly condition?: Condition;
  /** The package in which the next evaluation begins, if the language has packages. */
  readonly package?: string;
  /** For each stream: false if all output was kept, otherwise the number of characters printed. */
  readonly truncated: { readonly stdout: number | false; readonly stderr: number | false };
  /** How long it took. */
  readonly timing: Timing;
  /** Whether the definitions of the session are still there. */
  readonly state: "kept" | "lost";
  /** How the evaluation was stopped, if it was. */
  readonly step?: Step;
  /** State that was lost, in this evaluation or before it. */
  readonly notice?: string;
  /** What was printed between the previous evaluation and this one. */
  readonly background?: string;
}

const string = { type: "string" } as const;
const strings = { type: "array", items: string } as const;
const number = { type: "number" } as const;
const countOrFalse = { anyOf: [{ type: "integer" }, { const: false }] } as const;

/** The fields of an evaluation that the guest sends. */
const GUEST_FIELDS = {
  values: { ...strings, description: "The printed values of the last form or statement" },
  warnings: {
    type: "array",
    items: { type: "object", properties: { type: string, message: string }, required: ["type", "message"] },
  },
  condition: {
    type: "object",
    properties: {
      type: string,
      message: string,
      restarts: {
        type: "array",
        items: { type: "object", properties: { name: { type: ["string", "null"] }, description: string } },
      },
      frames: { type: "array", items: { type: "object", properties: { number: { type: "integer" }, text: string } } },
    },
    required: ["type", "message", "restarts", "frames"],
  },
  package: { ...string, description: "The package in which the next evaluation begins" },
  timing: {
    type: "object",
    properties: { realMs: number, runMs: number, gcMs: number, bytes: number },
    required: ["realMs"],
  },
} as const;

const GUEST_EVALUATION: Schema = {
  type: "object",
  properties: {
    ...GUEST_FIELDS,
    status: { enum: ["ok", "error", "interrupted"] },
    dropped: { type: "object", properties: { stdout: number, stderr: number } },
  },
  required: ["status", "values", "warnings", "timing"],
};

export const EVALUATION_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    session: string,
    status: { enum: ["ok", "error", "timeout", "interrupted", "lost"] },
    values: GUEST_FIELDS.values,
    stdout: string,
    stderr: string,
    warnings: GUEST_FIELDS.warnings,
    condition: GUEST_FIELDS.condition,
    package: GUEST_FIELDS.package,
    truncated: {
      type: "object",
      description: "For each stream, the number of characters printed if not all were kept, or false",
      properties: { stdout: countOrFalse, stderr: countOrFalse },
      required: ["stdout", "stderr"],
    },
    timing: GUEST_FIELDS.timing,
    state: { enum: ["kept", "lost"], description: "Whether earlier definitions still exist" },
    step: { enum: ["interrupt", "renew", "restart"], description: "How the evaluation was stopped, if it was" },
    notice: { ...string, description: "State that was lost" },
    background: { ...string, description: "What was printed since the previous evaluation" },
  },
  required: ["session", "status", "values", "stdout", "stderr", "warnings", "truncated", "timing", "state"],
};

const INVALID = "The session's process sent an invalid evaluation result; did the code write to file descriptor 3?";

/** Throws if the guest's reply is not an evaluation: the user's code can write to the channel too. */
export function toEvaluation(session: string, result: RunResult, realMs: number): Evaluation {
  const reply = result.reply as Partial<GuestEvaluation>;
  if ((result.outcome === "answered" || reply.status !== undefined) && !fits(reply, GUEST_EVALUATION))
    throw new Error(INVALID);
  const stdout = result.capture.captured("stdout", reply.dropped?.stdout);
  const stderr = result.capture.captured("stderr", reply.dropped?.stderr);
  const evaluation: { -readonly [Key in keyof Evaluation]: Evaluation[Key] } = {
    session,
    status: statusOf(result, reply.status),
    values: reply.values ?? [],
    stdout: stdout.text,
    stderr: stderr.text,
    warnings: reply.warnings ?? [],
    truncated: { stdout: truncatedTotal(stdout), stderr: truncatedTotal(stderr) },
    timing: reply.timing ?? { realMs },
    state: result.state,
  };
  // Set one by one instead of spread, for speed: every evaluation comes through here.
  if (reply.condition !== undefined) evaluation.condition = reply.condition;
  if (reply.package !== undefined) evaluation.package = reply.package;
  if (result.step !== undefined) evaluation.step = result.step;
  if (result.background !== "") evaluation.background = result.background;
  const notice = noticeOf(result);
  if (notice !== "") evaluation.notice = notice;
  return evaluation;
}

function noticeOf({ notice = "", state, reason = "" }: RunResult): string {
  return state === "kept" || reason === "" ? notice : notice === "" ? reason : `${notice}\n${reason}`;
}

function statusOf({ outcome }: RunResult, status: GuestEvaluation["status"] | undefined): Evaluation["status"] {
  if (outcome === "answered") return status === "ok" ? "ok" : "error";
  return outcome === "interrupted" || outcome === "timeout" ? outcome : "lost";
}

function truncatedTotal({ text, total }: CapturedOutput): number | false {
  return total > text.length ? total : false;
}

const STEP_TEXTS: Readonly<Record<Step, string>> = {
  interrupt: "It was interrupted; the session keeps its state.",
  renew: "It ignored the interrupt, so its evaluator was replaced; the session keeps its state.",
  restart: "It could not be interrupted, so its process was ended; the next evaluation starts a new one.",
};

export interface EvaluationTextOptions {
  readonly withTiming: boolean;
  readonly timeoutMs: number;
}

/** The text for the language model. */
export function evaluationText(evaluation: Evaluation, { withTiming, timeoutMs }: EvaluationTextOptions): string {
  const { status, values, warnings, condition, timing } = evaluation;
  const parts = notices(evaluation.notice, evaluation.background);
  if (evaluation.stdout !== "") parts.push(outputText(evaluation.stdout, evaluation.truncated.stdout));
  if (evaluation.stderr !== "") parts.push(`[stderr] ${outputText(evaluation.stderr, evaluation.truncated.stderr)}`);
  // The compiler repeats a warning for each use of a name; once is enough.
  for (const line of new Set(warnings.map(({ type, message }) => `[Warning] ${type}: ${message}`))) parts.push(line);
  if (status === "ok")
    parts.push(values.length === 0 ? "; No values" : values.map((value) => `=> ${value}`).join("\n"));
  if (status === "ok" && withTiming) parts.push(`\n${timingText(timing)}`);
  if (condition !== undefined && status === "error") parts.push(conditionText(condition));
  if (status === "timeout") parts.push(timeoutText(timeoutMs, evaluation), backtraceText(condition?.frames));
  if (status === "interrupted")
    parts.push(`[INTERRUPTED] ${STEP_TEXTS[evaluation.step ?? "interrupt"]}`, backtraceText(condition?.frames));
  if (status === "lost") parts.push("[LOST] The evaluation ended with its process.");
  return parts.filter((part) => part !== "").join("\n");
}

/** Puts the notices before a text: that of any tool except evaluate, or that of a refused call. */
export function withNotices(result: RunResult, text: string): string {
  return [...notices(noticeOf(result), result.background), text].join("\n");
}

/** The text of a tool other than evaluate that was stopped or lost. */
export function stoppedText(result: RunResult): string {
  const { outcome, step = "interrupt", timeoutMs } = result;
  if (outcome === "timeout") return withNotices(result, timeoutText(timeoutMs, { step }));
  if (outcome === "lost") return withNotices(result, "[LOST] The call ended with the session's process.");
  return withNotices(result, `[INTERRUPTED] ${STEP_TEXTS[step]}`);
}

function notices(notice = "", background = ""): string[] {
  const parts: string[] = [];
  if (notice !== "") parts.push(`[Notice] ${notice}`);
  if (background !== "") parts.push(`[background] ${withoutNewline(background)}`);
  return parts;
}

function outputText(output: string, total: number | false): string {
  if (total === false) return withoutNewline(output);
  const [kept, all] = [output.length, total].map((number) => number.toLocaleString("en"));
  return `${output}\n\n[Output truncated at ${kept} of ${all} characters]`;
}

/** Removes a final newline, since the parts are joined by newlines. */
function withoutNewline(output: string): string {
  return output.endsWith("\n") ? output.slice(0, -1) : output;
}

function timeoutText(timeoutMs: number, { step = "interrupt" }: { readonly step?: Step }): string {
  const seconds = timeoutMs / 1000;
  return [
    `[TIMEOUT] Evaluation exceeded ${seconds} ${seconds === 1 ? "second" : "seconds"}`,
    "",
    STEP_TEXTS[step],
    "If this is not an endless loop, pass a longer `timeout`, or raise the limit with configure-limits.",
  ].join("\n");
}

function timingText({ realMs, runMs = 0, gcMs = 0, bytes }: Timing): string {
  const consed = bytes === undefined ? "" : `, ${bytes.toLocaleString("en")} bytes consed`;
  return `; Timing: ${Math.round(realMs)}ms real, ${Math.round(runMs)}ms run, ${Math.round(gcMs)}ms GC${consed}`;
}

export interface EvaluateOnceOptions {
  /** Aborting it interrupts the evaluation. */
  readonly signal: AbortSignal;
  readonly limits?: Partial<Limits>;
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
export async function evaluateOnce(runtime: Runtime, code: string, options: EvaluateOnceOptions): Promise<Evaluation> {
  const { signal, onOutput, onStart, args = [], input } = options;
  const start: Runtime["start"] = async (wanted) => {
    const command = await runtime.start(wanted);
    onStart?.(command);
    return { ...(runtime.withArguments?.(command, args) ?? command), ...defined({ input }) };
  };
  const params = { code, ...(args.length > 0 && runtime.withArguments === undefined && { arguments: args }) };
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const session = new Session({
    name: "main",
    runtime: { ...runtime, start },
    limits,
    mayStart: (work) => work(),
    onBusy: () => undefined,
  });
  const startedAt = performance.now();
  try {
    const result = await session.run("eval", params, { context: { signal }, ...(onOutput && { onOutput }) });
    if (result.outcome === "refused") throw new Error(result.reason);
    return withoutSession(toEvaluation(session.name, result, performance.now() - startedAt));
  } finally {
    await within(CLOSE_TIMEOUT_MS, session.close());
  }
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
