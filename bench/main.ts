// `npm run bench`: measures costs as ratios to bare Node in the same run, beside other implementations. Figures go to
// stdout, progress to stderr. `npm run bench -- --help` lists the measurements and options.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { drawChart } from "./chart.ts";
import { measureClient } from "./client.ts";
import { measureCode } from "./code.ts";
import { measureCompletion } from "./completion.ts";
import { measureEndlessLine } from "./endless-line.ts";
import { measureLiveLisp } from "./live-lisp.ts";
import { findOverBound, type Figure } from "./figures.ts";
import type { Measurement } from "./measurement.ts";
import { measureMiddleware } from "./middleware.ts";
import { formatTable, readRatios, writeTables } from "./page.ts";
import { installPeers, PEERS, peerVersion, type Peer } from "./peers.ts";
import { measureGateway, measureGrowth, measureHttp, measureStdio, measureVariants } from "./servers.ts";
import { measureFirstAnswer, measureImport } from "./start.ts";

const PAGE = fileURLToPath(new URL("../docs/reference/performance.md", import.meta.url));
const CHART = fileURLToPath(new URL("../docs/speed.svg", import.meta.url));
const OXFMT = fileURLToPath(new URL("../node_modules/.bin/oxfmt", import.meta.url));

const MEASUREMENTS: Readonly<Record<string, Measurement>> = {
  http: measureHttp,
  stdio: measureStdio,
  gateway: measureGateway,
  variants: measureVariants,
  client: measureClient,
  middleware: measureMiddleware,
  import: measureImport,
  start: measureFirstAnswer,
  growth: measureGrowth,
  framing: measureEndlessLine,
  live: measureLiveLisp,
  code: measureCode,
  completion: measureCompletion,
};

const HELP = `Measures costs as ratios to bare Node, beside other implementations.

Usage: npm run bench -- [MEASUREMENT...] [options]

Measurements: ${Object.keys(MEASUREMENTS).join(", ")}. Default: all.

  --quick   Gives a rough idea.
  --json    Prints the figures as JSON.
  --check   Measures only Catenary, and fails where a figure is over its bound.
  --write   Measures everything, and writes docs/reference/performance.md and docs/speed.svg.
  --only    Some middleware: npm run bench -- middleware --only log,trace
  --help    Prints this.
`;

/** Ends the process with what is wrong and the usage, without a stack trace. */
function fail(problem: string): never {
  process.stderr.write(`${problem}\n\n${HELP}`);
  process.exit(1);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        write: { type: "boolean" },
        check: { type: "boolean" },
        quick: { type: "boolean" },
        only: { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    return fail((error as Error).message);
  }
}

const { values: flags, positionals: names } = readArguments();
if (flags.help === true) {
  process.stdout.write(HELP);
  process.exit(0);
}
const unknown = names.find((name) => !Object.hasOwn(MEASUREMENTS, name));
if (unknown !== undefined) fail(`Unknown measurement: ${unknown}`);
if (flags.write === true && (names.length > 0 || flags.check === true)) {
  fail("--write measures everything: leave out the names and --check");
}
if (flags.only !== undefined && names.join() !== "middleware") fail("--only is for `npm run bench -- middleware`");
if (flags.quick === true && (flags.write === true || flags.check === true)) {
  fail("--write and --check measure in full: leave out --quick");
}

const onProgress = (line: string): void => void process.stderr.write(`${line}\n`);

/** A check needs only our own figures. */
async function findPeers(): Promise<readonly Peer[]> {
  if (flags.check === true) return [];
  const peers = await installPeers();
  if (typeof peers !== "string") return peers;
  onProgress(`left out ${PEERS.map(({ name }) => name).join(", ")}: ${peers}`);
  return [];
}

const peers = await findPeers();
const figures: Figure[] = [];
for (const [name, measure] of Object.entries(MEASUREMENTS)) {
  if (names.length > 0 && !names.includes(name)) continue;
  const divisor = flags.quick === true ? 10 : 1;
  figures.push(...(await measure({ onProgress, peers, divisor, only: flags.only?.split(",") })));
}

if (flags.json === true) process.stdout.write(`${JSON.stringify(figures, undefined, 2)}\n`);
else {
  for (const table of new Set(figures.map((figure) => figure.table))) {
    process.stdout.write(`${table}\n${formatTable(figures.filter((figure) => figure.table === table))}\n\n`);
  }
}
if (flags.write === true) {
  const versions = peers.map((peer) => `${peer.package} ${peerVersion(peer)}`).join(", ");
  const machine = `${cpus()[0]?.model.trim() ?? process.arch}, ${cpus().length} cores, Node ${process.versions.node}`;
  const date = new Date().toISOString().slice(0, 10);
  const description = `Measured on ${date}: ${machine}, ${process.platform}. Beside ${versions || "no others"}.`;
  const page = writeTables(readFileSync(PAGE, "utf8"), figures, description);
  writeFileSync(PAGE, page);
  writeFileSync(CHART, drawChart(readRatios(page, "calls")));
  execFileSync(process.execPath, [OXFMT, PAGE]);
}
if (flags.check === true) {
  const over = findOverBound(figures);
  for (const line of over) process.stdout.write(`FAIL ${line}\n`);
  if (over.length > 0) process.exitCode = 1;
}
