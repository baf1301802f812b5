// `npm run bench`: what things cost, each as a ratio to bare Node in the same run. Figures go to stdout
// (`--json` for machines); progress to stderr. Nothing here is a test: tests assert bounds of work.

import { echoCosts } from "./echo.ts";
import { framingCosts } from "./framing.ts";
import { importCosts } from "./import.ts";

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The most that it may be, by the project's own promise. */
  readonly bound: number;
  readonly detail: string;
}

/** What is no number keeps no promise. */
const isOver = ({ value, bound }: Figure): boolean => !(value <= bound);

const figures: Figure[] = [];
for (const measure of [importCosts, framingCosts, echoCosts]) {
  for (const figure of await measure((text) => process.stderr.write(`${text}\n`))) figures.push(figure);
}
if (process.argv.includes("--json")) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
else {
  for (const figure of figures) {
    const { name, value, unit, bound, detail } = figure;
    const mark = isOver(figure) ? "OVER" : "ok  ";
    process.stdout.write(`${mark} ${name}: ${value.toFixed(2)} ${unit} (bound ${bound}) ${detail}\n`);
  }
}
if (figures.some(isOver)) process.exitCode = 1;
