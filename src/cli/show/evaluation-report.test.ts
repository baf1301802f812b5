// What is seen of an evaluation: which words go to which stream, in which order, and where lines end.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Evaluation } from "../../live/evaluation.ts";
import { EvaluationReport } from "./evaluation-report.ts";

const DONE: Evaluation = {
  session: "main",
  status: "ok",
  values: ["6"],
  stdout: "",
  stderr: "",
  warnings: [],
  truncated: { stdout: false, stderr: false },
  timing: { realMs: 1234 },
  state: "kept",
};

const seen = { stdout: "", stderr: "" };
beforeEach(() => {
  for (const stream of ["stdout", "stderr"] as const) {
    seen[stream] = "";
    vi.spyOn(process[stream], "write").mockImplementation((text) => (seen[stream] += String(text)) !== "");
  }
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("an evaluation", () => {
  it("shows what is printed as it comes, then its values, each on a line of its own", () => {
    const report = new EvaluationReport();
    report.hear("half a ", "stdout");
    expect(seen.stdout).toBe("half a ");
    report.hear("line", "stdout");
    report.hear("", "stdout");
    report.hear("beside\n", "stderr");
    report.tell({ ...DONE, values: ["3", "2"], warnings: [{ type: "STYLE-WARNING", message: "unused" }] }, 30_000);
    expect(seen).toEqual({ stdout: "half a line\n3\n2\n", stderr: "beside\nWarning: STYLE-WARNING: unused\n" });
  });

  it("shows nothing where there is no value", () => {
    new EvaluationReport().tell({ ...DONE, values: ["undefined"] }, 30_000);
    expect(seen).toEqual({ stdout: "", stderr: "" });
  });

  it("shows values behind an arrow on a terminal", () => {
    vi.stubEnv("NO_COLOR", "1");
    const { isTTY } = process.stdout;
    process.stdout.isTTY = true;
    try {
      new EvaluationReport().tell(DONE, 30_000);
    } finally {
      process.stdout.isTTY = isTTY;
      vi.unstubAllEnvs();
    }
    expect(seen.stdout).toBe("=> 6\n");
  });

  const condition = {
    type: "DIVISION-BY-ZERO",
    message: "by zero",
    restarts: [],
    frames: [{ number: 0, text: "(/ 1 0)" }],
  };

  it.each<[Partial<Evaluation>, string]>([
    [{ status: "error", condition }, "DIVISION-BY-ZERO: by zero\n  0: (/ 1 0)\n"],
    [
      { status: "timeout", step: "interrupt", condition },
      "catenary: It took longer than 30 s and was interrupted; --timeout gives it longer\n  0: (/ 1 0)\n",
    ],
    [
      { status: "timeout", step: "restart" },
      "catenary: It took longer than 30 s and could not be interrupted: its process was ended; --timeout gives it longer\n",
    ],
    [{ status: "interrupted", step: "interrupt" }, "catenary: Interrupted after 1.2 s\n"],
    [{ status: "lost" }, "catenary: The evaluation ended with the process of its session\n"],
    [{ status: "lost", notice: "The process ended (SIGKILL)" }, "catenary: The process ended (SIGKILL)\n"],
  ])("that failed says so on stderr alone: %j", (how, said) => {
    new EvaluationReport().tell({ ...DONE, values: [], ...how }, 30_000);
    expect(seen).toEqual({ stdout: "", stderr: said });
  });
});
