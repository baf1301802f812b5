// `npm run bench`: what things cost, each as a ratio to bare Node in the same run. Figures go to stdout
// (`--json` for machines); progress to stderr. `npm run bench -- http` measures that alone. Nothing here is a test:
// tests assert bounds of work.

import { chainCosts } from "./chain.ts";
import { clientCosts } from "./client.ts";
import { echoCosts } from "./echo.ts";
import { framingCosts } from "./framing.ts";
import { httpCosts } from "./http.ts";
import { importCosts } from "./import.ts";
import { liveCosts } from "./live.ts";

export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The most that it may be, by the project's own promise; absent where nothing is promised. */
  readonly bound?: number;
  readonly detail: string;
}

/** What is no number keeps no promise. */
const isOver = ({ value, bound = Infinity }: Figure): boolean => !(value <= bound);

const MEASURES = {
  import: importCosts,
  framing: framingCosts,
  echo: echoCosts,
  http: httpCosts,
  client: clientCosts,
  chain: chainCosts,
  live: liveCosts,
};

const words = process.argv.slice(2).filter((word) => word !== "--json");
const stranger = words.find((word) => !Object.hasOwn(MEASURES, word));
if (stranger !== undefined) throw new Error(`${stranger} is none of ${Object.keys(MEASURES).join(", ")}`);

const figures: Figure[] = [];
for (const [name, measure] of Object.entries(MEASURES)) {
  if (words.length > 0 && !words.includes(name)) continue;
  for (const figure of await measure((text) => process.stderr.write(`${text}\n`))) figures.push(figure);
}
if (process.argv.includes("--json")) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
else {
  for (const figure of figures) {
    const { name, value, unit, bound, detail } = figure;
    const mark = isOver(figure) ? "OVER" : "ok  ";
    const promise = bound === undefined ? "" : ` (bound ${bound})`;
    process.stdout.write(`${mark} ${name}: ${value.toFixed(2)} ${unit}${promise} ${detail}\n`);
  }
}
if (figures.some(isOver)) process.exitCode = 1;
