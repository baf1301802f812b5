// The texts that the language model gets. They have the form that CL-MCP-Server uses: output, `[stderr]`, `[Warning]`,
// `=> value`, `[ERROR]` with its backtrace and restarts, `[TIMEOUT]`.

import { noticeOf, type EvaluationRecord } from "./evaluation.ts";
import { backtraceText, conditionText, handleText, type GuestTests, type Timing } from "./runtime.ts";
import type { RunResult, Step } from "./run-result.ts";

const STEP_TEXTS: Readonly<Record<Step, string>> = {
  interrupt: "It was interrupted; the session keeps its state.",
  renew: "It ignored the interrupt, so its evaluator was replaced; the session keeps its state.",
  children: "It waited for programs that it had started; they were killed, and the session keeps its state.",
  restart: "It could not be interrupted, so its process was ended; the next evaluation starts a new one.",
};

export interface EvaluationTextOptions {
  readonly withTiming: boolean;
  readonly timeoutMs: number;
}

/** The text of an evaluation. */
export function evaluationText(evaluation: EvaluationRecord, { withTiming, timeoutMs }: EvaluationTextOptions): string {
  const { status, values, warnings, condition, timing, handles } = evaluation;
  const parts = notices(evaluation.notice, evaluation.background);
  if (evaluation.stdout !== "") parts.push(withoutNewline(evaluation.stdout));
  if (evaluation.stderr !== "") parts.push(`[stderr] ${withoutNewline(evaluation.stderr)}`);
  // The compiler repeats a warning for each use of a name; once is enough.
  if (warnings.length > 0)
    for (const line of new Set(warnings.map(({ type, message }) => `[Warning] ${type}: ${message}`))) parts.push(line);
  if (status === "ok")
    parts.push(
      values.length === 0
        ? "; No values"
        : values.map((value, index) => `=> ${value}${handleText(handles?.[index])}`).join("\n"),
    );
  if (status === "ok" && withTiming) parts.push(`\n${timingText(timing)}`);
  if (condition !== undefined && status === "error") parts.push(conditionText(condition));
  if (status === "timeout") parts.push(timeoutText(timeoutMs, evaluation), backtraceText(condition?.frames));
  if (status === "interrupted")
    parts.push(`[INTERRUPTED] ${STEP_TEXTS[evaluation.step ?? "interrupt"]}`, backtraceText(condition?.frames));
  if (evaluation.note !== undefined) parts.push(`; ${evaluation.note}`);
  if (status === "lost") parts.push("[LOST] The evaluation ended with its process.");
  return parts.filter((part) => part !== "").join("\n");
}

/** The result of a test run: counts, then each failure with its reason. */
export function testsText({ tests, output = "" }: GuestTests): string {
  const { passed, failed, skipped = 0, failures } = tests;
  const total = passed + failed + skipped;
  const counts = [`${passed} passed`, `${failed} failed`, ...(skipped > 0 ? [`${skipped} skipped`] : [])];
  const summary = total === 0 ? "No tests ran" : `${total} ${total === 1 ? "test" : "tests"}: ${counts.join(", ")}`;
  const lines = failures.map(({ name, reason }) => `\n[FAILED] ${name}\n${reason}`);
  return [summary, ...lines, ...(output === "" ? [] : [`\n[Output]\n${withoutNewline(output)}`])].join("\n");
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
