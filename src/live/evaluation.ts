// The result of an evaluation as a record. A reply of the guest is checked, since the user's code can write to the
// channel too. Programs get the part that the text for the language model does not say.

import type { JsonSchema } from "../protocol/model/index.ts";
import type { Step } from "./guest.ts";
import { withoutMemoryReport, type CapturedOutput } from "./output.ts";
import type { RunResult } from "./run.ts";
import type { Condition, Definition, GuestEvaluation, Timing } from "./runtime.ts";
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

export function hundredths(value: number): number {
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

export function noticeOf({ notice = "", state, reason = "" }: RunResult): string {
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
