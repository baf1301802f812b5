// `npm run bench`: measures costs as ratios to bare Node in the same run. Figures go to stdout (as JSON with `--json`),
// progress to stderr. `npm run bench -- http` runs one measurement. Exits with 1 where a figure is over its bound.

import { measureEndlessLine } from "./endless-line.ts";
import { measureHttpClient } from "./http-client.ts";
import { measureGateway, measureHttpServer } from "./http-server.ts";
import { measureImport } from "./import-time.ts";
import { measureLiveLisp } from "./live-lisp.ts";
import type { Figure, Measurement } from "./measurement.ts";
import { measureStdioServer } from "./stdio-server.ts";

/** Also true for NaN. */
const isOver = ({ value, bound = Infinity }: Figure): boolean => !(value <= bound);

const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  import: measureImport,
  framing: measureEndlessLine,
  echo: measureStdioServer,
  http: measureHttpServer,
  client: measureHttpClient,
  chain: measureGateway,
  live: measureLiveLisp,
};

const names = process.argv.slice(2).filter((argument) => argument !== "--json");
const unknown = names.find((name) => !Object.hasOwn(MEASUREMENTS, name));
if (unknown !== undefined) {
  throw new Error(`Unknown measurement: ${unknown}. Expected one of ${Object.keys(MEASUREMENTS).join(", ")}`);
}

const figures: Figure[] = [];
for (const [name, measure] of Object.entries(MEASUREMENTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  for (const figure of await measure((line) => process.stderr.write(`${line}\n`))) figures.push(figure);
}
if (process.argv.includes("--json")) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
else {
  for (const figure of figures) {
    const { name, value, unit, bound, detail } = figure;
    const mark = isOver(figure) ? "OVER" : "ok  ";
    const limit = bound === undefined ? "" : ` (bound ${bound})`;
    process.stdout.write(`${mark} ${name}: ${value.toFixed(2)} ${unit}${limit} ${detail}\n`);
  }
}
if (figures.some(isOver)) process.exitCode = 1;
