// What an evaluation prints: which text goes to which stream, in which order.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { EvaluationRecord } from "../../live/evaluation.ts";
import { EvaluationPrinter } from "./eval.ts";

const DONE: EvaluationRecord = {
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

it("an evaluation prints output as it comes, then its values, one per line", () => {
  const printer = new EvaluationPrinter();
  printer.write("half a ", "stdout");
  expect(seen.stdout).toBe("half a ");
  printer.write("line", "stdout");
  printer.write("", "stdout");
  printer.write("beside\n", "stderr");
  printer.finish({ ...DONE, values: ["3", "2"], warnings: [{ type: "STYLE-WARNING", message: "unused" }] }, 30_000);
  expect(seen).toEqual({ stdout: "half a line\n3\n2\n", stderr: "beside\nWarning: STYLE-WARNING: unused\n" });
});

it("an evaluation prints nothing for undefined", () => {
  new EvaluationPrinter().finish({ ...DONE, values: ["undefined"] }, 30_000);
  expect(seen).toEqual({ stdout: "", stderr: "" });
});

it("an evaluation prints values after an arrow on a terminal", () => {
  vi.stubEnv("NO_COLOR", "1");
  const { isTTY } = process.stdout;
  process.stdout.isTTY = true;
  try {
    new EvaluationPrinter().finish(DONE, 30_000);
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
const locals = [{ name: "X", value: "0" }];

it.each<[Partial<EvaluationRecord>, string]>([
  [{ status: "error", condition }, "DIVISION-BY-ZERO: by zero\n  0: (/ 1 0)\n"],
  [
    { status: "error", condition: { ...condition, frames: [{ number: 0, text: "(F 0)", locals }] } },
    "DIVISION-BY-ZERO: by zero\n  0: (F 0)\n       X = 0\n",
  ],
  [
    { status: "timeout", step: "interrupt", condition },
    "catenary: Timed out after 30 s and was interrupted; use --timeout to allow more\n  0: (/ 1 0)\n",
  ],
  [
    { status: "timeout", step: "restart" },
    "catenary: Timed out after 30 s and could not be interrupted, so its process was killed; use --timeout to allow more\n",
  ],
  [{ status: "interrupted", step: "interrupt" }, "catenary: Interrupted after 1.2 s\n"],
  [{ status: "lost" }, "catenary: The process of the session ended during the evaluation\n"],
  [{ status: "lost", notice: "The process ended (SIGKILL)" }, "catenary: The process ended (SIGKILL)\n"],
])("an evaluation that failed is reported on stderr only: %j", (outcome, stderr) => {
  new EvaluationPrinter().finish({ ...DONE, values: [], ...outcome }, 30_000);
  expect(seen).toEqual({ stdout: "", stderr });
});
