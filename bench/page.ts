// The tables of docs/reference/performance.md, which is the only place where figures are kept: writes them, and reads back
// what the chart shows. A table stands between `<!-- bench NAME -->` and `<!-- end -->`, and what it was measured on
// between `<!-- bench machine -->` and the same end.

import type { ChartRow } from "./chart.ts";
import { BASELINE, formatBound, formatExtra, formatRatio, type Figure } from "./figures.ts";

const BLOCK = /(<!-- bench ([\w ]+) -->\n)([^]*?)(<!-- end -->)/g;

/** Replaces the tables and the description of the machine on which they were measured. */
export function writeTables(page: string, figures: readonly Figure[], machine: string): string {
  const missing = figures.find(({ table }) => !page.includes(`<!-- bench ${table} -->`));
  if (missing !== undefined) throw new Error(`The page has no place for the table "${missing.table}"`);
  return page.replaceAll(BLOCK, (_block, begin: string, name: string, _old: string, end: string) => {
    const rows = figures.filter(({ table }) => table === name);
    const content = name === "machine" ? machine : rows.length > 0 ? formatTable(rows) : "Not measured.";
    return `${begin}\n${content}\n\n${end}`;
  });
}

export function formatTable(figures: readonly Figure[]): string {
  const columns = [...new Set(figures.flatMap(({ results }) => Object.keys(results)))];
  const hasBounds = figures.some(({ bound }) => bound !== undefined);
  const rows = figures.map((figure) => [
    figure.name,
    ...columns.map((who) => formatResult(who, figure)),
    ...(hasBounds ? [figure.bound === undefined ? "-" : formatBound(figure.bound, figure.unit)] : []),
  ]);
  const head = ["", ...columns, ...(hasBounds ? ["Bound"] : [])];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function formatResult(who: string, { unit, results, bound }: Figure): string {
  const result = results[who];
  if (result === undefined) return "-";
  const value = `${result.value < 10 ? result.value.toFixed(1) : result.value.toFixed(0)} ${unit}`;
  if (who === BASELINE) return value;
  return bound !== undefined && "extra" in bound
    ? formatExtra(result.extra, unit)
    : `${formatRatio(result.ratio)} (${value})`;
}

/** The rows of a table on the page, with the ratio of each implementation that was measured. */
export function readRatios(page: string, name: string): ChartRow[] {
  const [, , , content = ""] = [...page.matchAll(BLOCK)].find(([, , table]) => table === name) ?? [];
  const [head = [], , ...rows] = content
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  return rows.map((cells) => ({
    name: cells[1] ?? "",
    ratios: Object.fromEntries(
      cells.flatMap((cell, column) => {
        const [, ratio] = /^([\d.]+)x \(/.exec(cell) ?? [];
        return ratio === undefined ? [] : [[head[column] ?? "", Number(ratio)]];
      }),
    ),
  }));
}
