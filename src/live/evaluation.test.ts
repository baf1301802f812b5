// Evaluations as records and as text: every section in its place, and none empty.

import { expect, it } from "vitest";
import { FAILED_EVALUATION, type FailedEvaluation, HINT } from "../protocol/failed-evaluation.ts";
import { summaryOf, toEvaluation } from "./evaluation.ts";
import { evaluationBlock, evaluationText, stoppedText, testsText } from "./evaluation-text.ts";
import { OutputCapture } from "./output.ts";
import type { RunResult } from "./run.ts";
import type { GuestEvaluation } from "./runtime.ts";

const TIMING = { realMs: 12.4, runMs: 3, gcMs: 0, bytes: 65_536 };
const OK: GuestEvaluation = { status: "ok", values: [], warnings: [], timing: TIMING, defined: [] };
const CONDITION = {
  type: "DIVISION-BY-ZERO",
  message: "arithmetic error",
  restarts: [{ name: "ABORT", description: "Give up" }],
  frames: [{ number: 0, text: "(/ 1 0)" }],
};

function runResult(reply: object, more: Partial<RunResult> = {}): RunResult {
  return {
    outcome: "answered",
    reply: { ...reply },
    step: undefined,
    state: "kept",
    reason: undefined,
    notice: undefined,
    background: "",
    timeoutMs: 2_000,
    capture: new OutputCapture(10),
    ...more,
  };
}

function text(result: RunResult, withTiming = false): string {
  return evaluationText(toEvaluation("main", result, 1), { withTiming, timeoutMs: result.timeoutMs });
}

const blockOf = (result: RunResult): { readonly [FAILED_EVALUATION]?: FailedEvaluation; readonly _meta?: unknown } =>
  evaluationBlock(toEvaluation("main", result, 1), { withTiming: false, timeoutMs: result.timeoutMs });

it("the text block of a failed evaluation has the error without its hint, and the rest of the text", () => {
  const capture = new OutputCapture(10);
  capture.write("hello\n", "stdout");
  const condition = { ...CONDITION, message: "Too early.\nIn form 2.", hint: "Use x.", open: true };
  const block = blockOf(runResult({ ...OK, status: "error", condition }, { capture }));
  const { error, rest } = block[FAILED_EVALUATION] ?? {};
  expect(error).toEqual({ type: CONDITION.type, message: "Too early.\nIn form 2.", frames: CONDITION.frames });
  expect(rest?.()).toBe("hello");
  expect(block._meta).toEqual({ [HINT]: "Use x." });
});

it("the text block of a failed evaluation has no advice in the rest of a timeout, and is never sent", () => {
  const result = runResult(OK, { outcome: "timeout", step: "interrupt" });
  const block = blockOf(result);
  expect(block[FAILED_EVALUATION]?.error).toBeUndefined();
  expect(`${block[FAILED_EVALUATION]?.rest()}\n`).toBe(text(result).replace(/If this .*/, ""));
  expect(JSON.parse(JSON.stringify(block))).toEqual({ type: "text", text: text(result) });
});

it("the text block of a failed evaluation has nothing of this if the evaluation succeeded", () => {
  expect(blockOf(runResult(OK))).toStrictEqual({ type: "text", text: "; No values" });
});

it.each([
  ["=> 3\n=> 2", { ...OK, values: ["3", "2"] }],
  ["; No values", OK],
  [
    "[Warning] SIMPLE-WARNING: careful\n=> 1",
    { ...OK, values: ["1"], warnings: [{ type: "SIMPLE-WARNING", message: "careful" }] },
  ],
  [
    "[ERROR] DIVISION-BY-ZERO\narithmetic error\n\n[Backtrace]\n0: (/ 1 0)",
    { ...OK, status: "error", condition: CONDITION },
  ],
])("the text of an evaluation: %j", (expected, reply) => {
  expect(text(runResult(reply))).toBe(expected);
});

it("the text of an evaluation shows output first, and knows how much of it was not kept", () => {
  const capture = new OutputCapture(10);
  capture.write("hello\n", "stdout");
  capture.write("err", "stderr");
  expect(text(runResult({ ...OK, values: [":R"] }, { capture }))).toBe("hello\n[stderr] err\n=> :R");
  capture.write("x".repeat(1_000), "stdout");
  const result = runResult({ ...OK, dropped: { stdout: 500 } }, { capture });
  expect(toEvaluation("main", result, 1).truncated).toEqual({ stdout: 1_506, stderr: false });
});

it("the text of an evaluation shows the timing on request", () => {
  expect(text(runResult({ ...OK, values: ["25"] }), true)).toBe(
    "=> 25\n\n; Timing: 12ms real, 3ms run, 0ms GC, 65,536 bytes consed",
  );
});

it("the text of an evaluation has times with at most two decimals", () => {
  const timing = { realMs: 0.123_456, runMs: 1.005_9, gcMs: 0, bytes: 7 };
  const record = toEvaluation("main", runResult({ ...OK, timing }), 1);
  expect(record.timing).toEqual({ realMs: 0.12, runMs: 1.01, gcMs: 0, bytes: 7 });
  expect(toEvaluation("main", runResult({}, { outcome: "lost" }), 2.345_6).timing).toEqual({ realMs: 2.35 });
});

it("the text of an evaluation says how it was stopped and whether the state was kept", () => {
  const kept = text(runResult({ ...OK, status: "interrupted" }, { outcome: "timeout", step: "renew" }));
  expect(kept).toMatch(/^\[TIMEOUT\] Evaluation exceeded 2 seconds\n\n.*evaluator was replaced; .*keeps its state/);
  const reason = "The state of session main was lost; lost definitions: sq";
  const lost = runResult({}, { outcome: "lost", state: "lost", step: "restart", reason, notice: "Earlier" });
  expect(text(lost)).toMatch(/^\[Notice\] Earlier\n.*lost definitions: sq\n\[LOST\]/);
  expect(toEvaluation("main", lost, 7)).toMatchObject({ status: "lost", state: "lost", timing: { realMs: 7 } });
  expect(text(runResult({}, { outcome: "interrupted", step: "interrupt" }))).toMatch(/^\[INTERRUPTED\]/);
  expect(stoppedText(lost)).toMatch(/^\[Notice\] Earlier\n.*lost definitions: sq\n\[LOST\]/);
});

const valid = {
  status: "error",
  values: ["1"],
  warnings: [{ type: "W", message: "m" }],
  condition: CONDITION,
  package: "P",
  timing: { realMs: 1, bytes: 2 },
  dropped: { stdout: 7 },
  defined: [],
};

it("the reply of a guest is accepted with and without optional fields", () => {
  expect(toEvaluation("main", runResult(valid), 1)).toMatchObject({ status: "error", package: "P" });
  const { condition: _condition, package: _package, dropped: _dropped, ...minimal } = valid;
  expect(toEvaluation("main", runResult(minimal), 1)).toMatchObject({ status: "error", values: ["1"] });
});

it.each([
  { status: "fine" },
  { values: { length: 0 } },
  { values: [1] },
  { warnings: [null] },
  { condition: 5 },
  { condition: { ...CONDITION, frames: [{ number: "0", text: "f" }] } },
  { package: {} },
  { timing: 5 },
  { timing: { realMs: Infinity } },
  { dropped: { stdout: "77" } },
])("the reply of a guest is refused with %j", (wrong) => {
  const wrongResult = runResult({ ...valid, ...wrong });
  expect(() => toEvaluation("main", wrongResult, 1)).toThrow("sent an invalid evaluation result");
});

const open = { ...CONDITION, open: true };
const frames = [
  { number: 0, text: "(INNER 6)", locals: [{ name: "Z", value: "6" }] },
  { number: 1, text: "(OUTER 3)", locals: [{ name: "TABLE", value: "#<HASH-TABLE>", handle: 2 }] },
];

it("an open error shows the variables of its frames, and nothing else if it can only be given up", () => {
  expect(text(runResult({ ...OK, status: "error", condition: { ...open, frames } }))).toBe(
    "[ERROR] DIVISION-BY-ZERO\narithmetic error\n\n[Backtrace]\n0: (INNER 6)\n     Z = 6\n" +
      "1: (OUTER 3)\n     TABLE = #<HASH-TABLE> [handle 2]",
  );
});

it("an open error shows its restarts and how to go on", () => {
  const restarts = [{ name: "USE-VALUE", description: "Use another", takesValue: true }, ...CONDITION.restarts];
  const result = runResult({ ...OK, status: "error", condition: { ...open, restarts } });
  expect(text(result)).toMatch(
    /0: \(\/ 1 0\)\n\n\[Restarts\]\n0: \[USE-VALUE\] Use another \(takes a value\)\n1: \[ABORT\] Give up\nThe evaluation waits .*take-restart/,
  );
  const summary = summaryOf(toEvaluation("main", result, 1));
  expect(summary.condition).toEqual({ type: "DIVISION-BY-ZERO", restarts: ["USE-VALUE", "ABORT"], open: true });
  expect(text(runResult({ ...OK, status: "error", condition: { ...CONDITION, restarts } }))).not.toContain(
    "[Restarts]",
  );
});

it("a value that was not printed whole has a handle, in the text and for programs", () => {
  const result = runResult({ ...OK, values: ["(1 ...)", "2"], handles: [4, null] });
  expect(text(result)).toBe("=> (1 ...) [handle 4]\n=> 2");
  expect(summaryOf(toEvaluation("main", result, 1)).handles).toEqual([4, null]);
  const whole = runResult({ ...OK, values: ["2"], handles: [null] });
  expect(summaryOf(toEvaluation("main", whole, 1))).toEqual({
    session: "main",
    status: "ok",
    state: "kept",
    timing: TIMING,
  });
});

it("the text of a test run has counts, and each failure with its reason", () => {
  const failures = [{ name: "adds", reason: "2 is not 3" }];
  expect(testsText({ tests: { passed: 10, failed: 1, skipped: 1, failures }, output: "log\n" })).toBe(
    "12 tests: 10 passed, 1 failed, 1 skipped\n\n[FAILED] adds\n2 is not 3\n\n[Output]\nlog",
  );
  expect(testsText({ tests: { passed: 0, failed: 0, failures: [] } })).toBe("No tests ran");
});
