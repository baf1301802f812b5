// What is wrong with a config, as a person reads it: the place, the sentence, the line as it stands there with a mark
// below it, and what to do. What is wrong is found elsewhere; nothing is read here but the text that was looked at.

import type { Problem } from "../../config/index.ts";
import { excerpt } from "../target/excerpt.ts";
import { fitFor, isTerminal } from "../terminal/harmless.ts";
import { paint } from "../terminal/output.ts";

type Screen = Pick<NodeJS.WriteStream, "isTTY" | "columns">;

/** How much of a line is shown where there is no screen that has a width. */
const WIDTH = 120;

/** The lines about all of them, for a stream that may be a terminal. */
export function problemLines(file: string, text: string, problems: readonly Problem[], stream: Screen): string[] {
  // A byte order mark counts for nothing in a column.
  const source = text.replace(/^\uFEFF/, "").split(/\r\n|\n|\r/);
  return problems.flatMap((problem) => [
    ...sentence(file, problem, stream),
    ...place(source[problem.line - 1], problem, stream),
    ...(problem.hint === undefined ? [] : [`  ${fitFor(stream, problem.hint)}`]),
  ]);
}

function sentence(file: string, { line, column, severity, message }: Problem, stream: Screen): string[] {
  const where = paint("bold", fitFor(stream, `${file}:${line}:${column}:`), stream);
  const what = paint(severity === "error" ? ["bold", "red"] : ["bold", "yellow"], `${severity}:`, stream);
  return [`${where} ${what} ${fitFor(stream, message)}`];
}

/** The end of a file may be a line that is empty; there is nothing to see. */
function place(source: string | undefined, { line, column }: Problem, stream: Screen): string[] {
  if (source === undefined || source.trim() === "") return [];
  const number = String(line);
  const width = isTerminal(stream) && stream.columns > 0 ? stream.columns : WIDTH;
  const { text, before } = excerpt(source, column, Math.max(width - number.length - 5, 20));
  const bar = paint("dim", "|", stream);
  return [
    `  ${paint("dim", number, stream)} ${bar} ${text}`.trimEnd(),
    `  ${" ".repeat(number.length)} ${bar} ${" ".repeat(before)}${paint(["bold", "green"], "^", stream)}`,
  ];
}

/** "2 errors, 1 warning". */
export function tally(problems: readonly Problem[]): string {
  const of = (severity: Problem["severity"]): string[] => {
    const count = problems.filter((problem) => problem.severity === severity).length;
    return count === 0 ? [] : [counted(count, severity)];
  };
  return [...of("error"), ...of("warning")].join(", ");
}

export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
