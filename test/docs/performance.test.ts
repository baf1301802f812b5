// The figures of `npm run bench`: their tables on docs/reference/performance.md, the chart, and what `--check` finds.

import { expect, it } from "vitest";
import { drawChart } from "../../bench/chart.ts";
import { createFigure, findOverBound, takeTurns, type Bound, type Figure } from "../../bench/figures.ts";
import { readRatios, writeTables } from "../../bench/page.ts";
import { readPage } from "./page.ts";

const BLANK =
  "# A\n\n<!-- bench machine -->\n\nNone.\n\n<!-- end -->\n\n<!-- bench calls -->\n<!-- end -->\n\n<!-- bench start -->\n<!-- end -->\n";

/** A figure with one round: 10 for the baseline. */
function figure(table: string, name: string, ours: number, bound?: Bound): Figure {
  return createFigure(table, name, "µs", { Baseline: [10], Catenary: [ours] }, bound);
}

it("a figure has the median of the ratios of each round, not the ratio of the medians", () => {
  const { results } = createFigure("calls", "a", "µs", { Baseline: [1, 10, 100], Catenary: [4, 20, 300] });
  expect(results).toEqual({
    Baseline: { value: 10, ratio: 1, extra: 0 },
    Catenary: { value: 20, ratio: 3, extra: 10 },
  });
});

it("programs take turns, every other time in reverse order", async () => {
  const order: string[] = [];
  const values = await takeTurns({ a: () => order.push("a"), b: async () => order.push("b") }, 3);
  expect(order.join("")).toBe("abbaab");
  expect(values).toEqual({ a: [1, 4, 5], b: [2, 3, 6] });
});

it("--write replaces the tables and the machine, and keeps the text between them", () => {
  const page = writeTables(BLANK, [figure("calls", "HTTP", 15), figure("start", "Import", 20)], "A machine.");
  expect(page).toContain("# A\n\n<!-- bench machine -->\n\nA machine.\n\n<!-- end -->");
  expect(page).toContain("| HTTP | 10 µs | 1.50x (15 µs) |");
  const again = writeTables(page, [figure("calls", "HTTP", 12)], "Another.");
  expect(again).toContain("Another.\n\n<!-- end -->\n\n<!-- bench calls -->\n");
  expect(again).toContain("| HTTP | 10 µs | 1.20x (12 µs) |");
  expect(again).toContain("<!-- bench start -->\n\nNot measured.\n");
  expect(again).not.toContain("A machine.");
});

it("--write shows who was not measured", () => {
  const other = createFigure("calls", "stdio", "µs", { Baseline: [4], Catenary: [6], other: [8] });
  const page = writeTables(BLANK, [other, figure("calls", "HTTP", 15)], "");
  expect(page).toContain("| stdio | 4.0 µs | 1.50x (6.0 µs) | 2.00x (8.0 µs) |");
  expect(page).toContain("| HTTP | 10 µs | 1.50x (15 µs) | - |");
});

it("--write shows the bound of each figure, and what is added to the baseline where the bound is for that", () => {
  const page = writeTables(
    BLANK,
    [
      figure("calls", "HTTP", 15, { ratio: 1.25 }),
      figure("calls", "stdio", 15),
      figure("start", "Import", 9.5, { extra: 60 }),
    ],
    "",
  );
  expect(page).toContain("|  | Baseline | Catenary | Bound |");
  expect(page).toContain("| HTTP | 10 µs | 1.50x (15 µs) | 1.25x |");
  expect(page).toContain("| stdio | 10 µs | 1.50x (15 µs) | - |");
  expect(page).toContain("| Import | 10 µs | -0.50 µs | +60 µs |");
});

it("--write needs a place on the page for every table", () => {
  expect(() => writeTables(BLANK, [figure("memory", "HTTP", 15)], "")).toThrow('no place for the table "memory"');
});

it("--check finds each figure over its bound, and those that are not a number", () => {
  const ratio = { ratio: 1.25 };
  expect(findOverBound([figure("calls", "HTTP", 12.5, ratio), figure("calls", "stdio", 99)])).toEqual([]);
  expect(findOverBound([figure("calls", "HTTP", 12.6, ratio), figure("calls", "stdio", Number.NaN, ratio)])).toEqual([
    "calls: HTTP: 1.26x, over its bound of 1.25x",
    "calls: stdio: NaNx, over its bound of 1.25x",
  ]);
  expect(findOverBound([figure("start", "HTTP", 70, { extra: 60 })])).toEqual([]);
  expect(findOverBound([figure("start", "HTTP", 71, { extra: 60 })])).toEqual([
    "start: HTTP: +61 µs, over its bound of +60 µs",
  ]);
});

it("--check holds what is beyond own work where there is own work", () => {
  const rounds = { Baseline: [10], Catenary: [11.5], "Beyond own work": [10.9] };
  expect(findOverBound([createFigure("middleware", "log", "µs", rounds, { extra: 1 })])).toEqual([]);
});

it("the ratios of a table are read back from the page, also in the form that the formatter gives it", () => {
  const other = createFigure("calls", "stdio", "µs", { Baseline: [4], Catenary: [6], other: [8] }, { ratio: 1.3 });
  const page = writeTables(BLANK, [figure("calls", "HTTP", 15), other], "");
  const rows = [
    { name: "HTTP", ratios: { Catenary: 1.5 } },
    { name: "stdio", ratios: { Catenary: 1.5, other: 2 } },
  ];
  expect(readRatios(page, "calls")).toEqual(rows);
  expect(readRatios(page.replaceAll("| HTTP | 10 µs |", "|    HTTP    |   10 µs  |"), "calls")).toEqual(rows);
});

it("docs/speed.svg shows the table of docs/reference/performance.md: if not, npm run docs", () => {
  const rows = readRatios(readPage("docs/reference/performance.md"), "calls");
  expect(rows.length).toBeGreaterThan(3);
  expect(drawChart(rows)).toBe(readPage("docs/speed.svg"));
});

it("docs/reference/performance.md has a place for each table, and names each group", () => {
  const page = readPage("docs/reference/performance.md");
  const tables = [
    "calls",
    "first calls",
    "memory",
    "variants",
    "start",
    "growth",
    "client",
    "middleware",
    "others",
    "live",
    "code",
    "completion",
  ];
  const written = writeTables(
    page,
    tables.map((table) => figure(table, "A row", 15)),
    "A machine.",
  );
  expect(written.match(/\| A row +\|/g)).toHaveLength(tables.length);
  const [, groups = ""] = /const MEASUREMENTS[^]*?\{([^]*?)\n\}/.exec(readPage("bench/main.ts")) ?? [];
  const names = [...groups.matchAll(/^ {2}(\w+):/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
