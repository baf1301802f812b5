// `npm run faults`: ends killed by -9 at 1,000 random moments under load. `npm run faults -- COUNT SEED` for another
// count, or the same moments again. What it measured is written to stdout; it ends with 1 where a promise was broken.

import { randomInt } from "node:crypto";
import { tryOut, type Report, TRIALS } from "./kill-trial.ts";

const [count = "1000", given = String(randomInt(2 ** 31))] = process.argv.slice(2);
const kills = Number(count);
const seed = Number(given);
if (!Number.isInteger(kills) || kills < TRIALS.length || !Number.isInteger(seed)) {
  process.stderr.write(`usage: npm run faults -- [COUNT (at least ${TRIALS.length})] [SEED]\n`);
  process.exit(1);
}

/** What a call that was hit may have to wait for its error: measured here, and not in a test, where the machine is shared. */
const BOUND_MS = 1_000;

const at = (sorted: readonly number[], part: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(0);
const spread = (sorted: readonly number[]): string =>
  `p50 ${at(sorted, 0.5)} ms, p99 ${at(sorted, 0.99)} ms, longest ${at(sorted, 1)} ms`;
const say = (text: string): void => void process.stdout.write(`${text}\n`);

function show(report: Report): void {
  const { title, kills: killed, hits, results, errors, struck, carried, faults, seconds } = report;
  say(`${faults.length === 0 ? "ok  " : "FAIL"} ${title}: ${killed} kills in ${seconds.toFixed(0)} s`);
  say(`     ${results + errors} calls: ${results} results, ${errors} errors; ${hits} kills hit a call`);
  say(`     from the kill to the error: ${spread(struck)}`);
  say(
    `     from the kill to the answer of ${carried.length} calls that were left to the next process: ${spread(carried)}`,
  );
  for (const fault of faults.slice(0, 20)) say(`     ${fault}`);
  if (faults.length > 20) say(`     and ${faults.length - 20} more`);
}

say(`     ${kills} kills, seed ${seed}`);
const reports: Report[] = [];
for (const [index, trial] of TRIALS.entries()) {
  const share = Math.floor(((index + 1) * kills) / TRIALS.length) - Math.floor((index * kills) / TRIALS.length);
  const report = await tryOut(trial, share, seed + index);
  reports.push(report);
  show(report);
}
const struck = reports.flatMap((report) => report.struck).toSorted((a, b) => a - b);
const late = struck.filter((ms) => ms > BOUND_MS).length;
say(`     in all ${struck.length} calls were hit: ${spread(struck)}`);
if (late > 0) say(`FAIL ${late} calls were answered later than a second after a kill`);
process.exitCode = late > 0 || reports.some(({ faults }) => faults.length > 0) ? 1 : 0;
