// What becomes of an evaluation: one record, for programs, and from it the text that a model reads, in the form of
// CL-MCP-Server: what was printed, `[stderr]`, `[Warning]`, `=> value`, `[ERROR]` with its backtrace, `[TIMEOUT]`.

import type { JsonSchema } from "../protocol/model/index.ts";
import type { Captured } from "./output.ts";
import type { Step, Ran } from "./session.ts";
import type { Condition, GuestEvaluation, Timing } from "./runtime.ts";

export interface Evaluation {
  readonly session: string;
  readonly status: "ok" | "error" | "timeout" | "interrupted" | "lost";
  /** As they are printed. */
  readonly values: readonly string[];
  readonly stdout: string;
  readonly stderr: string;
  readonly warnings: readonly { readonly type: string; readonly message: string }[];
  readonly condition?: Condition;
  /** The package that the next evaluation begins in, where the language has packages. */
  readonly package?: string;
  /** Whether a stream had more than was kept, and how many characters there were. */
  readonly truncated: { readonly stdout: number | false; readonly stderr: number | false };
  readonly timing: Timing;
  readonly state: "kept" | "lost";
  /** How it was stopped, where it was. */
  readonly step?: Step;
  /** What was lost, in this evaluation or before it. */
  readonly notice?: string;
  /** What was printed between the evaluation before and this one. */
  readonly background?: string;
}

const text = { type: "string" } as const;
const texts = { type: "array", items: text } as const;
const count = { anyOf: [{ type: "integer" }, { const: false }] } as const;

export const EVALUATION_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    session: text,
    status: { enum: ["ok", "error", "timeout", "interrupted", "lost"] },
    values: { ...texts, description: "The values of the last form, as they are printed" },
    stdout: text,
    stderr: text,
    warnings: {
      type: "array",
      items: { type: "object", properties: { type: text, message: text }, required: ["type", "message"] },
    },
    condition: {
      type: "object",
      properties: {
        type: text,
        message: text,
        restarts: {
          type: "array",
          items: { type: "object", properties: { name: { type: ["string", "null"] }, description: text } },
        },
        frames: { type: "array", items: { type: "object", properties: { number: { type: "integer" }, text } } },
      },
      required: ["type", "message", "restarts", "frames"],
    },
    package: { ...text, description: "The package that the next evaluation begins in" },
    truncated: {
      type: "object",
      description: "For each stream, how many characters there were where not all were kept, or else false",
      properties: { stdout: count, stderr: count },
      required: ["stdout", "stderr"],
    },
    timing: {
      type: "object",
      properties: {
        realMs: { type: "number" },
        runMs: { type: "number" },
        gcMs: { type: "number" },
        bytes: { type: "number" },
      },
      required: ["realMs"],
    },
    state: { enum: ["kept", "lost"], description: "Whether what was defined before is still there" },
    step: { enum: ["interrupt", "renew", "restart"], description: "How the evaluation was stopped" },
    notice: { ...text, description: "What was lost" },
    background: { ...text, description: "What was printed since the evaluation before" },
  },
  required: ["session", "status", "values", "stdout", "stderr", "warnings", "truncated", "timing", "state"],
};

export function evaluationOf(session: string, ran: Ran, realMs: number): Evaluation {
  const said = ran.reply as Partial<GuestEvaluation>;
  const stdout = ran.capture.of("stdout", said.dropped?.stdout);
  const stderr = ran.capture.of("stderr", said.dropped?.stderr);
  const evaluation: { -readonly [Key in keyof Evaluation]: Evaluation[Key] } = {
    session,
    status: statusOf(ran, said.status),
    values: said.values ?? [],
    stdout: stdout.text,
    stderr: stderr.text,
    warnings: said.warnings ?? [],
    truncated: { stdout: excess(stdout), stderr: excess(stderr) },
    timing: said.timing ?? { realMs },
    state: ran.state,
  };
  // Set one by one, not spread from parts: this is the path of every evaluation.
  if (said.condition !== undefined) evaluation.condition = said.condition;
  if (said.package !== undefined) evaluation.package = said.package;
  if (ran.step !== undefined) evaluation.step = ran.step;
  if (ran.background !== "") evaluation.background = ran.background;
  const notice = noticeOf(ran);
  if (notice !== "") evaluation.notice = notice;
  return evaluation;
}

function noticeOf({ notice = "", state, why = "" }: Ran): string {
  return state === "kept" || why === "" ? notice : notice === "" ? why : `${notice}\n${why}`;
}

function statusOf({ end }: Ran, said: GuestEvaluation["status"] | undefined): Evaluation["status"] {
  if (end === "answered") return said === "ok" ? "ok" : "error";
  return end === "stopped" ? "interrupted" : end === "timeout" ? "timeout" : "lost";
}

function excess({ text: kept, total }: Captured): number | false {
  return total > kept.length ? total : false;
}

/** How an evaluation was stopped, in words. */
const STEPS: Readonly<Record<Step, string>> = {
  interrupt: "It was interrupted; the state of the session is kept.",
  renew: "It did not heed an interrupt, so its evaluator was replaced; the state of the session is kept.",
  restart: "It could not be interrupted, so its process was ended; the next evaluation begins in a fresh one.",
};

export interface Shown {
  readonly withTiming: boolean;
  readonly timeoutMs: number;
}

/** As the model reads it. */
export function evaluationText(evaluation: Evaluation, { withTiming, timeoutMs }: Shown): string {
  const { status, values, warnings, condition, timing } = evaluation;
  const parts = before(evaluation.notice, evaluation.background);
  if (evaluation.stdout !== "") parts.push(printed(evaluation.stdout, evaluation.truncated.stdout));
  if (evaluation.stderr !== "") parts.push(`[stderr] ${printed(evaluation.stderr, evaluation.truncated.stderr)}`);
  // One for each use of a name in an expansion: saying it once is enough.
  for (const line of new Set(warnings.map(({ type, message }) => `[Warning] ${type}: ${message}`))) parts.push(line);
  if (status === "ok")
    parts.push(values.length === 0 ? "; No values" : values.map((value) => `=> ${value}`).join("\n"));
  if (status === "ok" && withTiming) parts.push(`\n${timingText(timing)}`);
  if (condition !== undefined && status === "error") parts.push(conditionText(condition));
  if (status === "timeout") parts.push(timeoutText(timeoutMs, evaluation), backtrace(condition));
  if (status === "interrupted")
    parts.push(`[INTERRUPTED] ${STEPS[evaluation.step ?? "interrupt"]}`, backtrace(condition));
  if (status === "lost") parts.push("[LOST] The evaluation ended with its process.");
  return parts.filter((part) => part !== "").join("\n");
}

/** What another tool says, or a guest that refused, behind what is said before. */
export function answerText(ran: Ran, said: string): string {
  return [...before(noticeOf(ran), ran.background), said].join("\n");
}

/** Of another tool, which was stopped or lost. */
export function stopText(ran: Ran): string {
  const { end, step = "interrupt", timeoutMs } = ran;
  if (end === "timeout") return answerText(ran, timeoutText(timeoutMs, { step }));
  if (end === "lost") return answerText(ran, "[LOST] The call ended with the session's process.");
  return answerText(ran, `[INTERRUPTED] ${STEPS[step]}`);
}

/** Whoever comes next is told of it, whatever becomes of the call. */
function before(notice = "", background = ""): string[] {
  const parts: string[] = [];
  if (notice !== "") parts.push(`[Notice] ${notice}`);
  if (background !== "") parts.push(`[background] ${trimmed(background)}`);
  return parts;
}

function printed(output: string, total: number | false): string {
  if (total === false) return trimmed(output);
  const [kept, all] = [output.length, total].map((number) => number.toLocaleString("en"));
  return `${output}\n\n[Output truncated at ${kept} of ${all} characters]`;
}

/** Without the newline that the next section brings. */
function trimmed(output: string): string {
  return output.endsWith("\n") ? output.slice(0, -1) : output;
}

function conditionText(condition: Condition): string {
  return [`[ERROR] ${condition.type}`, condition.message, backtrace(condition)]
    .filter((part) => part !== "")
    .join("\n");
}

function backtrace(condition: Condition | undefined): string {
  if (condition === undefined || condition.frames.length === 0) return "";
  return `\n[Backtrace]\n${condition.frames.map((frame) => `${frame.number}: ${frame.text}`).join("\n")}`;
}

function timeoutText(timeoutMs: number, { step = "interrupt" }: { readonly step?: Step }): string {
  const seconds = timeoutMs / 1000;
  return [
    `[TIMEOUT] Evaluation exceeded ${seconds} ${seconds === 1 ? "second" : "seconds"}`,
    "",
    STEPS[step],
    "If this is not an endless loop, give a longer `timeout`, or raise it with configure-limits.",
  ].join("\n");
}

function timingText({ realMs, runMs = 0, gcMs = 0, bytes }: Timing): string {
  const consed = bytes === undefined ? "" : `, ${bytes.toLocaleString("en")} bytes consed`;
  return `; Timing: ${Math.round(realMs)}ms real, ${Math.round(runMs)}ms run, ${Math.round(gcMs)}ms GC${consed}`;
}
