// What a person or a script sees of one evaluation: what the code prints as it is printed, on the stream on which it is
// printed; then its values on stdout, and on stderr whatever went wrong. To a pipe, values go as they are.

import type { Evaluation } from "../../live/evaluation.ts";
import { isTerminal } from "../terminal/harmless.ts";
import { paint, say } from "../terminal/output.ts";

type Stream = "stdout" | "stderr";

export class EvaluationReport {
  readonly #ends: Record<Stream, string> = { stdout: "", stderr: "" };

  /** The code is the person's own: what it prints is passed on as it is, with its colours. */
  readonly hear = (text: string, stream: Stream): void => {
    if (text === "") return;
    this.#ends[stream] = text.slice(-1);
    process[stream].write(text);
  };

  /** `timeoutMs` is what it was given. */
  tell(evaluation: Evaluation, timeoutMs: number): void {
    for (const stream of ["stdout", "stderr"] as const) this.#endLine(stream);
    if (evaluation.notice !== undefined) say(`catenary: ${evaluation.notice}`);
    for (const { type, message } of evaluation.warnings) say(`${paint("yellow", "Warning:")} ${type}: ${message}`);
    if (evaluation.status !== "ok") {
      for (const line of failureLines(evaluation, timeoutMs)) say(line);
      return;
    }
    const arrow = isTerminal(process.stdout) ? paint("dim", "=> ", process.stdout) : "";
    for (const value of evaluation.values.filter(isTold)) process.stdout.write(`${arrow}${value}\n`);
  }

  /** What comes next begins on a line of its own. */
  #endLine(stream: Stream): void {
    if (this.#ends[stream] !== "" && this.#ends[stream] !== "\n") process[stream].write("\n");
  }
}

/** What a statement leaves behind is no result. */
function isTold(value: string): boolean {
  return value !== "undefined";
}

function failureLines({ status, condition, step, timing, notice }: Evaluation, timeoutMs: number): string[] {
  const frames = condition?.frames.map(({ number, text }) => paint("dim", `  ${number}: ${text}`)) ?? [];
  if (status === "error" && condition !== undefined) {
    return [`${paint("red", `${condition.type}:`)} ${condition.message}`, ...frames];
  }
  const how = step === "restart" ? "and could not be interrupted: its process was ended" : "and was interrupted";
  switch (status) {
    case "timeout":
      return [`catenary: It took longer than ${timeoutMs / 1_000} s ${how}; --timeout gives it longer`, ...frames];
    case "interrupted":
      return [`catenary: Interrupted after ${(timing.realMs / 1_000).toFixed(1)} s`, ...frames];
    default:
      return notice === undefined ? ["catenary: The evaluation ended with the process of its session"] : [];
  }
}
