// The tables of docs/reference/performance.md, which is the only place where figures are kept: writes them, and compares
// new figures with them. A table stands between `<!-- bench NAME -->` and `<!-- end -->`, and what it was measured on
// between `<!-- bench machine -->`, or `<!-- bench machine NAME -->` if it may be measured alone, and the same end.

import { BASELINE, BEYOND, OURS, type Figure } from "./measurement.ts";

/** How much worse than the page a ratio may be. */
const TOLERANCE = 1.15;

const BLOCK = /(<!-- bench ([\w ]+) -->\n)([^]*?)(<!-- end -->)/g;

/** Replaces the tables that have new figures, and the description of the machine on which they were measured. */
export function writeTables(page: string, figures: readonly Figure[], machine: string, isAll: boolean): string {
  const tables = new Set(figures.map(({ table }) => table));
  const written = page.replaceAll(BLOCK, (block, begin: string, table: string, _old: string, end: string) => {
    const own = figures.filter((figure) => figure.table === table);
    const [, place, of] = /^(machine)?(?: (.+))?$/.exec(table) ?? [];
    const isNew = place === undefined ? own.length > 0 : of === undefined ? isAll : tables.has(of);
    if (!isNew) return block;
    return `${begin}\n${place === undefined ? formatTable(own) : machine}\n\n${end}`;
  });
  const missing = figures.find(({ table }) => !page.includes(`<!-- bench ${table} -->`));
  if (missing !== undefined) throw new Error(`The page has no place for the table "${missing.table}"`);
  return written;
}

export function formatTable(figures: readonly Figure[]): string {
  const columns = [...new Set(figures.flatMap(({ results }) => Object.keys(results)))];
  const rows = figures.map((figure) => [figure.name, ...columns.map((who) => formatResult(who, figure))]);
  const head = ["", ...columns];
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function formatResult(who: string, { unit, results, maxExtra }: Figure): string {
  const result = results[who];
  if (result === undefined) return "-";
  const value = `${result.value < 10 ? result.value.toFixed(1) : result.value.toFixed(0)} ${unit}`;
  if (who !== BASELINE && maxExtra !== undefined)
    return `${result.extra < 0 ? "" : "+"}${result.extra.toFixed(2)} ${unit}`;
  return who === BASELINE ? value : `${result.ratio.toFixed(2)}x (${value})`;
}

/** Our ratios on the page, by table and name. */
function readRatios(page: string): Map<string, number> {
  const ratios = new Map<string, number>();
  for (const [, , table = "", content = ""] of page.matchAll(BLOCK)) {
    const [head = [], , ...rows] = content
      .split("\n")
      .filter((line) => line.startsWith("|"))
      .map((line) => line.split("|").map((cell) => cell.trim()));
    for (const row of rows) {
      const [, ratio] = /^([\d.]+)x/.exec(row[head.indexOf(OURS)] ?? "") ?? [];
      if (ratio !== undefined) ratios.set(`${table}: ${row[1]}`, Number(ratio));
    }
  }
  return ratios;
}

/**
 * A line for each figure over its limit. Without a limit, the ratio must be on the page, and not be worse by more than the
 * tolerance.
 */
export function findWorse(page: string, figures: readonly Figure[]): string[] {
  const ratios = readRatios(page);
  return figures.flatMap(({ table, name, unit, results, maxExtra }) => {
    const key = `${table}: ${name}`;
    const before = ratios.get(key);
    const { ratio = Number.NaN } = results[OURS] ?? {};
    if (maxExtra !== undefined) {
      const { extra = Number.NaN } = results[BEYOND] ?? results[OURS] ?? {};
      return extra <= maxExtra ? [] : [`${key} is over its limit of ${maxExtra} ${unit}: ${extra.toFixed(2)} ${unit}`];
    }
    if (before === undefined) return [`${key} is not on the page; add it with npm run bench -- --write`];
    // Also for NaN.
    if (!(ratio <= before * TOLERANCE)) {
      return [`${key} is worse: ${ratio.toFixed(2)}x, and ${before.toFixed(2)}x on the page`];
    }
    return [];
  });
}
