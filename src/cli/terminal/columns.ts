// Rows of texts as aligned columns. The last column may be of any length; on a terminal it is cut to what fits, because
// a list is for looking over, and the whole is one command away.

import { cutTo, padTo, widthOf } from "./text-width.ts";

export interface ColumnOptions {
  readonly indent?: number;
  /** How wide a line may be; any width where it is left out. */
  readonly width?: number | undefined;
}

/** No column but the last is padded beyond this: one long name would push all others off the screen. */
const WIDEST = 32;

export function columns(rows: readonly (readonly string[])[], { indent = 0, width }: ColumnOptions = {}): string {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: Math.max(count - 1, 0) }, (_, column) =>
    Math.min(WIDEST, Math.max(...rows.map((row) => widthOf(row[column] ?? "")))),
  );
  return rows
    .map((row) => {
      const cells = row.map((cell, column) => padTo(widths[column] ?? 0, cell));
      const line = (" ".repeat(indent) + cells.join("  ")).trimEnd();
      return `${width === undefined ? line : cutTo(width, line)}\n`;
    })
    .join("");
}
