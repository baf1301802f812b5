// The texts that the language model gets. They have the form that CL-MCP-Server uses: output, `[stderr]`, `[Warning]`,
// `=> value`, `[ERROR]` with its backtrace and restarts, `[TIMEOUT]`.

import { FAILED_EVALUATION, HINT, type FailedEvaluation } from "../protocol/failed-evaluation.ts";
import type { TextContent } from "../protocol/model/index.ts";
import type { Step } from "./guest.ts";
import type { RunResult } from "./run.ts";
import { backtraceText, conditionText, handleText, hintIn, type GuestTests, type Timing } from "./runtime.ts";
import { type EvaluationRecord, hundredths, noticeOf } from "./evaluation.ts";

const STEP_TEXTS: Readonly<Record<Step, string>> = {
  interrupt: "It was interrupted; the session keeps its state.",
  renew: "It ignored the interrupt, so its evaluator was replaced; the session keeps its state.",
  children: "It waited for programs that it had started; they were killed, and the session keeps its state.",
  restart: "It could not be interrupted, so its process was ended; the next evaluation starts a new one.",
};

interface EvaluationTextOptions {
  readonly withTiming: boolean;
  readonly timeoutMs: number;
  /** Whether the caller has only the tool that evaluates, as in code mode. */
  readonly isOnlyTool?: boolean;
  /** Whether the error of the code and advice are left out. */
  readonly isRest?: boolean;
}

/** The text block of an evaluation. */
export function evaluationBlock(evaluation: EvaluationRecord, options: EvaluationTextOptions): TextContent {
  const text = evaluationText(evaluation, options);
  if (evaluation.status === "ok") return { type: "text", text };
  const { condition } = evaluation;
  const { type, message = "", frames = [] } = condition ?? {};
  const isError = evaluation.status === "error" && type !== undefined;
  const hint = isError && condition ? hintIn(condition) : undefined;
  const failed: FailedEvaluation = {
    text,
    ...(isError && {
      error: { type, message, frames },
    }),
    rest: () => evaluationText(evaluation, { ...options, isRest: true }),
  };
  const block = { type: "text", text, [FAILED_EVALUATION]: failed } as const;
  return hint === undefined ? block : { ...block, _meta: { [HINT]: hint } };
}

/** The text of an evaluation. */
export function evaluationText(evaluation: EvaluationRecord, options: EvaluationTextOptions): string {
  const { withTiming, isRest = false } = options;
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
  if (condition !== undefined && status === "error" && !isRest) parts.push(conditionText(condition));
  if (status === "timeout") parts.push(timeoutText(evaluation, options), backtraceText(condition?.frames));
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
  if (outcome === "timeout") return withNotices(result, timeoutText({ step }, { timeoutMs }));
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

function timeoutText(
  { step = "interrupt" }: { readonly step?: Step },
  { timeoutMs, isOnlyTool = false, isRest = false }: Omit<EvaluationTextOptions, "withTiming">,
): string {
  const raise = isOnlyTool ? "raise the setting timeoutMs" : "raise the limit with configure-limits";
  const seconds = hundredths(timeoutMs / 1000);
  return [
    `[TIMEOUT] Evaluation exceeded ${seconds} ${seconds === 1 ? "second" : "seconds"}`,
    "",
    STEP_TEXTS[step],
    ...(isRest ? [] : [`If this is not an endless loop, pass a longer \`timeout\`, or ${raise}.`]),
  ].join("\n");
}

function timingText({ realMs, runMs = 0, gcMs = 0, bytes }: Timing): string {
  const consed = bytes === undefined ? "" : `, ${bytes.toLocaleString("en")} bytes consed`;
  return `; Timing: ${Math.round(realMs)}ms real, ${Math.round(runMs)}ms run, ${Math.round(gcMs)}ms GC${consed}`;
}

/** A call of a tool in the result of a run in code mode. */
export interface CallRecord {
  readonly tool: string;
  ms: number;
  bytes: number;
  isError?: true;
}

/** So many tools are named. */
const MAX_NAMED = 10;

/** One line with a sum for each tool: `calls: notes.search 3 times 36 ms 10.2 kB, notes.get 4 ms 0.1 kB`. */
export function callsText(calls: readonly CallRecord[]): string {
  const sums = new Map<string, CallSum>();
  for (const call of calls) sums.set(call.tool, plus(sums.get(call.tool), call));
  const named = [...sums].slice(0, MAX_NAMED).map(([tool, sum]) => callText(tool, sum));
  const others = [...sums.keys()].slice(MAX_NAMED);
  if (others.length > 0) {
    const rest = calls.filter(({ tool }) => others.includes(tool)).reduce(plus, undefined) as CallSum;
    named.push(callText(`${others.length} other ${others.length === 1 ? "tool" : "tools"}`, rest));
  }
  return `calls: ${named.join(", ")}`;
}

interface CallSum {
  readonly count: number;
  readonly failed: number;
  readonly ms: number;
  readonly bytes: number;
}

function plus(sum: CallSum | undefined, { ms, bytes, isError }: CallRecord): CallSum {
  const { count, failed, ms: sumMs, bytes: sumBytes } = sum ?? { count: 0, failed: 0, ms: 0, bytes: 0 };
  return { count: count + 1, failed: failed + (isError === true ? 1 : 0), ms: sumMs + ms, bytes: sumBytes + bytes };
}

function callText(what: string, { count, failed, ms, bytes }: CallSum): string {
  const times = count === 1 ? "" : ` ${count} times`;
  const note = failed === 0 ? "" : count === 1 ? " failed" : ` ${failed} failed`;
  return `${what}${times} ${Math.round(ms)} ms ${(bytes / 1000).toFixed(1)} kB${note}`;
}
