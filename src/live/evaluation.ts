// The result of an evaluation as a record. A reply of the guest is checked, since the user's code can write to the
// channel too. Programs get the part that the text for the language model does not say.

import { FAILED_EVALUATION, HINT, type FailedEvaluation } from "../protocol/failed-evaluation.ts";
import type { JsonSchema, TextContent } from "../protocol/model/index.ts";
import type { Step } from "./guest.ts";
import { withoutMemoryReport, type CapturedOutput } from "./output.ts";
import type { RunResult } from "./run.ts";
import {
  backtraceText,
  conditionText,
  handleText,
  hintIn,
  type Condition,
  type Definition,
  type GuestEvaluation,
  type GuestTests,
  type Timing,
} from "./runtime.ts";
import { fits, type Schema } from "./tool.ts";

/** A text that was too long for the result. */
export interface CutText {
  /** How many characters it has. */
  readonly chars: number;
  /** The resource in which it can be read. */
  readonly uri: string;
}

/** The structured content of the tool that evaluates code: what its text does not say, or not so that a program can rely on it. */
export interface Evaluation {
  /** The name of the session. */
  readonly session: string;
  /** How the evaluation ended. */
  readonly status: "ok" | "error" | "timeout" | "interrupted" | "lost";
  /** Whether the definitions of the session are still there. */
  readonly state: "kept" | "lost";
  /** How the evaluation was stopped, if it was. */
  readonly step?: Step;
  /** The error that ended it, if one did: its type, and the names of its restarts. */
  readonly condition?: { readonly type: string; readonly restarts: readonly (string | null)[]; readonly open: boolean };
  /** For each value, the handle with which it can be inspected, or null if it was printed whole. */
  readonly handles?: readonly (number | null)[];
  /** What it has defined. */
  readonly defined?: readonly Definition[];
  /** The package in which the next evaluation begins, if the language has packages. */
  readonly package?: string;
  /** The texts that were cut, and where the whole of each can be read. */
  readonly truncated?: { readonly stdout?: CutText; readonly stderr?: CutText; readonly values?: readonly CutText[] };
  /** How long it took. */
  readonly timing: Timing;
}

/** An evaluation with all of its text. */
export interface EvaluationRecord {
  readonly session: string;
  readonly status: Evaluation["status"];
  /** The printed values of the last form or statement. */
  readonly values: readonly string[];
  readonly stdout: string;
  readonly stderr: string;
  readonly warnings: readonly { readonly type: string; readonly message: string }[];
  readonly condition?: Condition;
  readonly package?: string;
  readonly note?: string;
  /** For each stream: false if all output was kept, otherwise the number of characters printed. */
  readonly truncated: { readonly stdout: number | false; readonly stderr: number | false };
  readonly timing: Timing;
  readonly state: "kept" | "lost";
  readonly step?: Step;
  readonly handles?: readonly (number | null)[];
  readonly defined?: readonly Definition[];
  /** State that was lost, in this evaluation or before it. */
  readonly notice?: string;
  /** What was printed between the previous evaluation and this one. */
  readonly background?: string;
}

const string = { type: "string" } as const;
const integer = { type: "integer" } as const;
const number = { type: "number" } as const;
/** Lisp has one value for false and nothing. */
const boolean = { type: ["boolean", "null"] } as const;
const nullableString = { type: ["string", "null"] } as const;
const nullableInteger = { type: ["integer", "null"] } as const;
const handles = { type: "array", items: nullableInteger } as const;
const definitions = { type: "array", items: { type: "object", properties: { type: string, name: string } } } as const;
const timing = {
  type: "object",
  properties: { realMs: number, runMs: number, gcMs: number, bytes: number },
  required: ["realMs"],
} as const;
const local = { type: "object", properties: { name: string, value: string, handle: nullableInteger } } as const;

const GUEST_EVALUATION: Schema = {
  type: "object",
  properties: {
    status: { enum: ["ok", "error", "interrupted"] },
    values: { type: "array", items: string },
    warnings: {
      type: "array",
      items: { type: "object", properties: { type: string, message: string }, required: ["type", "message"] },
    },
    condition: {
      type: "object",
      properties: {
        type: string,
        message: string,
        hint: string,
        restarts: {
          type: "array",
          items: { type: "object", properties: { name: nullableString, description: string, takesValue: boolean } },
        },
        frames: {
          type: "array",
          items: {
            type: "object",
            properties: {
              number: integer,
              text: string,
              locals: { type: "array", items: { ...local, required: ["name", "value"] } },
            },
          },
        },
        open: boolean,
      },
      required: ["type", "message", "restarts", "frames"],
    },
    package: string,
    note: string,
    timing,
    dropped: { type: "object", properties: { stdout: number, stderr: number } },
    handles,
    loaded: { type: "array", items: string },
  },
  required: ["status", "values", "warnings", "timing"],
};

/** Short, since every client reads it with the list of tools. The type `Evaluation` says more. */
export const EVALUATION_SCHEMA: JsonSchema = {
  type: "object",
  properties: {
    session: string,
    status: { enum: ["ok", "error", "timeout", "interrupted", "lost"] },
    state: { enum: ["kept", "lost"] },
  },
  required: ["session", "status", "state"],
};

const INVALID = "The session's process sent an invalid evaluation result; did the code write to file descriptor 3?";

/** The times with two decimals: more say nothing, and every reader pays for them. */
function rounded({ realMs, runMs, gcMs, bytes }: Timing): Timing {
  const timing: { -readonly [Key in keyof Timing]: Timing[Key] } = { realMs: hundredths(realMs) };
  if (runMs !== undefined) timing.runMs = hundredths(runMs);
  if (gcMs !== undefined) timing.gcMs = hundredths(gcMs);
  if (bytes !== undefined) timing.bytes = bytes;
  return timing;
}

function hundredths(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Throws if the guest's reply is not an evaluation. */
export function toEvaluation(session: string, result: RunResult, realMs: number): EvaluationRecord {
  const reply = result.reply as Partial<GuestEvaluation>;
  if ((result.outcome === "answered" || reply.status !== undefined) && !fits(reply, GUEST_EVALUATION))
    throw new Error(INVALID);
  const stdout = result.capture.captured("stdout", reply.dropped?.stdout);
  const stderr = result.capture.captured("stderr", reply.dropped?.stderr);
  const evaluation: { -readonly [Key in keyof EvaluationRecord]: EvaluationRecord[Key] } = {
    session,
    status: statusOf(result, reply.status),
    values: reply.values ?? [],
    stdout: stdout.text,
    stderr: result.outcome === "lost" ? withoutMemoryReport(stderr.text) : stderr.text,
    warnings: reply.warnings ?? [],
    truncated: { stdout: truncatedTotal(stdout), stderr: truncatedTotal(stderr) },
    timing: rounded(reply.timing ?? { realMs }),
    state: result.state,
  };
  // Set one by one instead of spread, for speed: every evaluation comes through here.
  if (reply.condition !== undefined) evaluation.condition = reply.condition;
  if (reply.package !== undefined) evaluation.package = reply.package;
  if (reply.note !== undefined) evaluation.note = reply.note;
  if (reply.handles !== undefined) evaluation.handles = reply.handles;
  if (fits(reply.defined, definitions) && reply.defined !== undefined && reply.defined.length > 0)
    evaluation.defined = reply.defined;
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

/** `truncated` says what was cut out of the text. */
export function summaryOf(evaluation: EvaluationRecord, truncated?: Evaluation["truncated"]): Evaluation {
  const { session, status, state, step, condition, handles, defined, timing } = evaluation;
  const summary: { -readonly [Key in keyof Evaluation]: Evaluation[Key] } = { session, status, state, timing };
  if (step !== undefined) summary.step = step;
  if (condition !== undefined) {
    const { type, restarts, open } = condition;
    summary.condition = { type, restarts: restarts.map(({ name }) => name), open: open === true };
  }
  if (handles !== undefined && handles.some((handle) => handle !== null)) summary.handles = handles;
  if (defined !== undefined) summary.defined = defined;
  if (evaluation.package !== undefined) summary.package = evaluation.package;
  if (truncated !== undefined) summary.truncated = truncated;
  return summary;
}

// The texts that the language model gets. They have the form that CL-MCP-Server uses: output, `[stderr]`, `[Warning]`,
// `=> value`, `[ERROR]` with its backtrace and restarts, `[TIMEOUT]`.

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
