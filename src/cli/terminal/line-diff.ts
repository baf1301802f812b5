// The lines of a difference (core/line-diff.ts) in their colours on a terminal.

import { paint } from "./output.ts";

/** A line of a difference, in its colour on a terminal. */
export function paintDiff(line: string): string {
  const style = line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim";
  return paint(style, line, process.stdout);
}
