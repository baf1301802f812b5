// Evaluations as records and as text: each section in its place, and none that is empty.

import { describe, expect, it } from "vitest";
import { Capture } from "./output.ts";
import { evaluationOf, evaluationText, stopText } from "./evaluation.ts";
import type { GuestEvaluation } from "./runtime.ts";
import type { Ran } from "./session.ts";

const TIMING = { realMs: 12.4, runMs: 3, gcMs: 0, bytes: 65_536 };
const OK: GuestEvaluation = { status: "ok", values: [], warnings: [], timing: TIMING, defined: [] };
const CONDITION = {
  type: "DIVISION-BY-ZERO",
  message: "arithmetic error",
  restarts: [{ name: "ABORT", description: "Give up" }],
  frames: [{ number: 0, text: "(/ 1 0)" }],
};

function ran(reply: object, more: Partial<Ran> = {}): Ran {
  return {
    end: "answered",
    reply: { ...reply },
    step: undefined,
    state: "kept",
    why: undefined,
    notice: undefined,
    background: "",
    timeoutMs: 2_000,
    capture: new Capture(10),
    ...more,
  };
}

function text(one: Ran, withTiming = false): string {
  return evaluationText(evaluationOf("main", one, 1), { withTiming, timeoutMs: one.timeoutMs });
}

describe("the text of an evaluation", () => {
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
  ])("%j", (expected, reply) => {
    expect(text(ran(reply))).toBe(expected);
  });

  it("shows what was printed before all else, and how much of it there was", () => {
    const capture = new Capture(10);
    capture.hear("hello\n", "stdout");
    capture.hear("err", "stderr");
    expect(text(ran({ ...OK, values: [":R"] }, { capture }))).toBe("hello\n[stderr] err\n=> :R");
    capture.hear("x".repeat(1_000), "stdout");
    const one = ran({ ...OK, dropped: { stdout: 500 } }, { capture });
    expect(text(one)).toBe("hello\nxxxx\n\n[Output truncated at 10 of 1,506 characters]\n[stderr] err\n; No values");
    expect(evaluationOf("main", one, 1).truncated).toEqual({ stdout: 1_506, stderr: false });
  });

  it("shows times where they are asked for", () => {
    expect(text(ran({ ...OK, values: ["25"] }), true)).toBe(
      "=> 25\n\n; Timing: 12ms real, 3ms run, 0ms GC, 65,536 bytes consed",
    );
  });

  it("says how it was stopped, and what became of the state", () => {
    const kept = text(ran({ status: "interrupted" }, { end: "timeout", step: "renew" }));
    expect(kept).toMatch(/^\[TIMEOUT\] Evaluation exceeded 2 seconds\n\n.*evaluator was replaced; .*kept/);
    const why = "The state of the session main is lost; defined were: sq";
    const lost = ran({}, { end: "lost", state: "lost", step: "restart", why, notice: "Earlier" });
    expect(text(lost)).toMatch(/^\[Notice\] Earlier\n.*defined were: sq\n\[LOST\]/);
    expect(evaluationOf("main", lost, 7)).toMatchObject({ status: "lost", state: "lost", timing: { realMs: 7 } });
    expect(text(ran({}, { end: "stopped", step: "interrupt" }))).toMatch(/^\[INTERRUPTED\]/);
    expect(stopText(lost)).toMatch(/^\[Notice\] Earlier\n.*defined were: sq\n\[LOST\]/);
  });
});
