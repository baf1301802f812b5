// `npm run faults`: kill -9 of upstreams at 1,000 random moments under load. `npm run faults -- COUNT SEED` sets the count
// and repeats the moments of a seed. Prints what it measured, and exits with 1 where it found a fault.

import { randomInt } from "node:crypto";
import { runTrial, type TrialReport, TRIALS } from "./kill-trial.ts";

const [count = "1000", given = String(randomInt(2 ** 31))] = process.argv.slice(2);
const kills = Number(count);
const seed = Number(given);
if (!Number.isInteger(kills) || kills < TRIALS.length || !Number.isInteger(seed)) {
  process.stderr.write(`usage: npm run faults -- [COUNT (at least ${TRIALS.length})] [SEED]\n`);
  process.exit(1);
}

/** The longest time from a kill to the error of a call. Not checked in a test, where other tests use the machine too. */
const MAX_ERROR_DELAY_MS = 1_000;

const quantile = (sorted: readonly number[], part: number): string =>
  (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(0);
const spread = (sorted: readonly number[]): string =>
  `p50 ${quantile(sorted, 0.5)} ms, p99 ${quantile(sorted, 0.99)} ms, longest ${quantile(sorted, 1)} ms`;
const print = (text: string): void => void process.stdout.write(`${text}\n`);

function printReport(report: TrialReport): void {
  const { title, kills: killed, hits, results, errors, errorDelays, resumedDelays, faults, seconds } = report;
  print(`${faults.length === 0 ? "ok  " : "FAIL"} ${title}: ${killed} kills in ${seconds.toFixed(0)} s`);
  print(`     ${results + errors} calls: ${results} results, ${errors} errors; ${hits} kills hit a call`);
  print(`     from the kill to the error: ${spread(errorDelays)}`);
  print(
    `     from the kill to the answer of ${resumedDelays.length} calls of the next process: ${spread(resumedDelays)}`,
  );
  for (const fault of faults.slice(0, 20)) print(`     ${fault}`);
  if (faults.length > 20) print(`     and ${faults.length - 20} more`);
}

print(`     ${kills} kills, seed ${seed}`);
const reports: TrialReport[] = [];
for (const [index, trial] of TRIALS.entries()) {
  const share = Math.floor(((index + 1) * kills) / TRIALS.length) - Math.floor((index * kills) / TRIALS.length);
  const report = await runTrial(trial, share, seed + index);
  reports.push(report);
  printReport(report);
}
const errorDelays = reports.flatMap((report) => report.errorDelays).toSorted((a, b) => a - b);
const late = errorDelays.filter((ms) => ms > MAX_ERROR_DELAY_MS).length;
print(`     in all ${errorDelays.length} calls were hit: ${spread(errorDelays)}`);
if (late > 0) print(`FAIL ${late} calls were answered later than a second after a kill`);
process.exitCode = late > 0 || reports.some(({ faults }) => faults.length > 0) ? 1 : 0;
