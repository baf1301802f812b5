// Code mode with real servers: it saves what docs/how-to/code-mode.md says, and its tasks run as the page shows them.

import { expect, it } from "vitest";
import { format, measure, readReport } from "./code-mode-report.ts";

/** How far sizes may be from the page: they contain paths and dates, which differ between machines. */
const TOLERANCE = 0.2;
const SIZE = /([\d.]+) kB/g;
const UPDATE = "run node --import tsx test/interop/code-mode-report.ts --write";

const report = await measure();
if (typeof report === "string" && process.env["CI"] === "true") throw new Error(report);

const measured = report as Exclude<typeof report, string>;

it.skipIf(typeof report === "string")(
  "code mode with real servers shrinks the definitions by more than 90 % of their tokens",
  () => {
    expect(measured.servers.length).toBeGreaterThanOrEqual(8);
    for (const { name, tools } of measured.servers) expect(tools, name).toBeGreaterThan(0);
    expect(measured.servers.reduce((sum, { tools }) => sum + tools, 0)).toBe(measured.full.tools);
    expect(measured.savedPercent).toBeGreaterThanOrEqual(90);
  },
);

it.skipIf(typeof report === "string")(
  "code mode with real servers does each task in one run, with a fraction of the bytes",
  () => {
    expect(measured.tasks.map(({ calls }) => calls)).toEqual([45, 24, 51]);
    for (const { title, directBytes, codeBytes } of measured.tasks) {
      expect(codeBytes * 3, title).toBeLessThan(directBytes);
    }
  },
);

it.skipIf(typeof report === "string")("code mode with real servers is shown on the page as it was measured", () => {
  const [ours, page] = [format(measured), readReport()].map(normalized);
  expect(ours?.replaceAll(SIZE, "SIZE"), UPDATE).toBe(page?.replaceAll(SIZE, "SIZE"));
  const [sizes = [], shown = []] = [ours, page].map((text = "") =>
    [...text.matchAll(SIZE)].map(([, size]) => Number(size)),
  );
  expect(sizes).toHaveLength(6);
  for (const [at, size] of sizes.entries()) {
    expect(Math.abs(size / (shown[at] ?? 0) - 1), `${size} kB instead of ${shown[at]} kB; ${UPDATE}`).toBeLessThan(
      TOLERANCE,
    );
  }
});

/** Without the spaces and dashes by which a formatter aligns tables. */
function normalized(text: string): string {
  return text.replaceAll(/^\|.*$/gm, (row) => row.replaceAll(/ +/g, " ").replaceAll(/-{3,}/g, "---"));
}
