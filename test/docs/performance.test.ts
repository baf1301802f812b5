// The tables of docs/reference/performance.md: how they are written and read back, and what `npm run bench -- --check`
// finds.

import { describe, expect, it } from "vitest";
import { createFigure, takeTurns, type Figure } from "../../bench/measurement.ts";
import { findWorse, writeTables } from "../../bench/page.ts";
import { readPage } from "./page.ts";

const BLANK =
  "# A\n\n<!-- bench machine -->\n\nNone.\n\n<!-- end -->\n\n<!-- bench calls -->\n<!-- end -->\n\n<!-- bench first calls -->\n<!-- end -->\n";

/** A figure with one round: 10 for the baseline. */
function figure(table: string, name: string, ours: number): Figure {
  return createFigure(table, name, "µs", { Baseline: [10], Catenary: [ours] });
}

describe("a figure", () => {
  it("has the median of the ratios of each round, not the ratio of the medians", () => {
    const { results } = createFigure("calls", "a", "µs", { Baseline: [1, 10, 100], Catenary: [4, 20, 300] });
    expect(results).toEqual({
      Baseline: { value: 10, ratio: 1, extra: 0 },
      Catenary: { value: 20, ratio: 3, extra: 10 },
    });
  });

  it("comes from programs that take turns, every other time in reverse order", async () => {
    const order: string[] = [];
    const values = await takeTurns({ a: () => order.push("a"), b: async () => order.push("b") }, 3);
    expect(order.join("")).toBe("abbaab");
    expect(values).toEqual({ a: [1, 4, 5], b: [2, 3, 6] });
  });
});

describe("the page", () => {
  const page = writeTables(BLANK, [figure("calls", "HTTP", 15), figure("first calls", "HTTP", 20)], "A machine.", true);

  it("gets the tables that were measured and the machine, and keeps the rest", () => {
    expect(page).toContain("# A\n\n<!-- bench machine -->\n\nA machine.\n\n<!-- end -->");
    expect(page).toContain("| HTTP | 10 µs | 1.50x (15 µs) |");
    const again = writeTables(page, [figure("calls", "HTTP", 12)], "Another.", true);
    expect(again).toContain("| HTTP | 10 µs | 1.20x (12 µs) |");
    expect(again).toContain("| HTTP | 10 µs | 2.00x (20 µs) |");
    expect(again).not.toContain("A machine.");
  });

  it("keeps the machine of the other tables if one was measured alone", () => {
    const alone = `${page}<!-- bench machine calls -->\n<!-- end -->\n`;
    const again = writeTables(alone, [figure("calls", "HTTP", 12)], "Another.", false);
    expect(again).toContain("<!-- bench machine -->\n\nA machine.\n");
    expect(again).toContain("<!-- bench machine calls -->\n\nAnother.\n");
    expect(writeTables(again, [figure("first calls", "HTTP", 12)], "A third.", false)).not.toContain("A third.");
  });

  it("shows who was not measured", () => {
    const other = createFigure("calls", "stdio", "µs", { Baseline: [4], Catenary: [6], other: [8] });
    const both = writeTables(BLANK, [other, figure("calls", "HTTP", 15)], "", true);
    expect(both).toContain("| stdio | 4.0 µs | 1.50x (6.0 µs) | 2.00x (8.0 µs) |");
    expect(both).toContain("| HTTP | 10 µs | 1.50x (15 µs) | - |");
  });

  it("must have a place for every table", () => {
    expect(() => writeTables(BLANK, [figure("start", "Import", 15)], "", true)).toThrow(
      'no place for the table "start"',
    );
  });

  it("allows ratios up to 15 % above its own", () => {
    expect(findWorse(page, [figure("calls", "HTTP", 17.2), figure("first calls", "HTTP", 23)])).toEqual([]);
    expect(findWorse(page, [figure("calls", "HTTP", 17.3), figure("first calls", "HTTP", 19)])).toEqual([
      "calls: HTTP is worse: 1.73x, and 1.50x on the page",
    ]);
  });

  it("does not matter for a figure with a limit of its own", () => {
    const limited = { ...figure("middleware", "log", 11.5), maxExtra: 1 };
    expect(findWorse(page, [limited])).toEqual(["middleware: log is over its limit of 1 µs: 1.50 µs"]);
    expect(findWorse(page, [{ ...limited, maxExtra: 2 }])).toEqual([]);
    const rounds = { Baseline: [10], Catenary: [11.5], "Beyond own work": [10.9] };
    expect(findWorse(page, [{ ...createFigure("middleware", "log", "µs", rounds), maxExtra: 1 }])).toEqual([]);
    const block = "<!-- bench middleware -->\n<!-- end -->\n";
    expect(writeTables(block, [limited], "", false)).toContain("| log | 10 µs | +1.50 µs |");
  });

  it("is read in the form that the formatter gives it", () => {
    const aligned = page.replaceAll("| HTTP | 10 µs | 1.50x (15 µs) |", "|    HTTP    |   10 µs  | 1.50x (15 µs)   |");
    expect(findWorse(aligned, [figure("calls", "HTTP", 18)])).toHaveLength(1);
  });

  it("lacks a figure, and a figure that is not a number is worse", () => {
    expect(findWorse(page, [figure("calls", "gateway", 1), figure("calls", "HTTP", Number.NaN)])).toEqual([
      "calls: gateway is not on the page; add it with npm run bench -- --write",
      "calls: HTTP is worse: NaNx, and 1.50x on the page",
    ]);
  });
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
  ];
  const written = writeTables(
    page,
    tables.map((table) => figure(table, "A row", 15)),
    "A machine.",
    true,
  );
  expect(written.match(/\| A row +\|/g)).toHaveLength(tables.length);
  const [, groups = ""] = /const MEASUREMENTS[^]*?\{([^]*?)\n\}/.exec(readPage("bench/main.ts")) ?? [];
  const names = [...groups.matchAll(/^ {2}(\w+):/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(5);
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
