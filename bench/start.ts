// The time to start: `import "catenary"` in a Node process, and the first answer of a server or gateway.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { overHttp, overStdio } from "./callers.ts";
import { BASELINE, createFigure, OURS, takeTurns, type Bound, type Figure } from "./figures.ts";
import { programPath } from "./measured-server.ts";
import { peersWith, type Beside, type Measurement, type Start } from "./measurement.ts";
import { PEERS_FOLDER } from "./peers.ts";

const ROUNDS = 10;
const CONFIG = "catenary.json";
const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** Milliseconds of a Node process that runs the code. */
function runModule(code: string, cwd: string): number {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], {
    encoding: "utf8",
    cwd,
  });
  if (status !== 0) throw new Error(stderr);
  return performance.now() - startedAt;
}

export const measureImport: Measurement = async ({ onProgress, peers, divisor }) => {
  const rounds = ROUNDS / divisor;
  onProgress(`import: ${rounds} starts of each`);
  const others = peers.flatMap(({ name, imports }) =>
    imports === undefined ? [] : [[name, () => runModule(`import "${imports}"`, PEERS_FOLDER)] as const],
  );
  const subjects = {
    [BASELINE]: () => runModule("", ROOT),
    [OURS]: () => runModule('import "catenary"', ROOT),
    ...Object.fromEntries(others),
  };
  return [createFigure("start", "Import", "ms", await takeTurns(subjects, rounds), { extra: 30 })];
};

/** Milliseconds from the start of a server to the result of its first call. */
async function answerFirst(start: Start): Promise<number> {
  const startedAt = performance.now();
  const { server, makeCalls } = await start();
  await makeCalls(1);
  const ms = performance.now() - startedAt;
  await server.stop();
  return ms;
}

interface StartRow {
  readonly name: string;
  readonly baseline: Start;
  readonly ours: Start;
  readonly beside?: Beside;
  readonly bound: Bound;
}

const http = overHttp({ style: "session" });
const stdio = overStdio(1);
const upstream = [process.execPath, programPath("catenary-stdio.js")];

/** The folder has the config of `catenary serve`, and gets what it remembers. */
function startRows(folder: string): readonly StartRow[] {
  const serving = overStdio(1, { CATENARY_CACHE: folder, XDG_STATE_HOME: folder });
  return [
    {
      name: "First answer over HTTP",
      baseline: http("bare-http.js"),
      ours: http("catenary-http.js"),
      beside: peersWith("session", http),
      bound: { extra: 60 },
    },
    {
      name: "First answer over stdio",
      baseline: stdio("bare-stdio.js"),
      ours: stdio("catenary-stdio.js"),
      beside: peersWith("stdio", stdio),
      bound: { extra: 60 },
    },
    {
      name: "First answer of `catenary serve` with one upstream",
      // The upstream has to start in both.
      baseline: stdio("bare-relay.js", ...upstream),
      ours: serving("../../dist/cli/main.js", "serve", join(folder, CONFIG), "--stdio"),
      bound: { extra: 150 },
    },
  ];
}

export const measureFirstAnswer: Measurement = async ({ onProgress, peers, divisor }) => {
  const rounds = ROUNDS / divisor;
  const folder = mkdtempSync(join(tmpdir(), "catenary-bench-"));
  const [command, ...args] = upstream;
  writeFileSync(join(folder, CONFIG), JSON.stringify({ mcpServers: { echo: { command, args } } }));
  const figures: Figure[] = [];
  try {
    for (const { name, baseline, ours, beside, bound } of startRows(folder)) {
      onProgress(`${name}: ${rounds} starts of each`);
      const starts = Object.entries({ [BASELINE]: baseline, [OURS]: ours, ...beside?.(peers) });
      const subjects = Object.fromEntries(starts.map(([who, start]) => [who, () => answerFirst(start)]));
      figures.push(createFigure("start", name, "ms", await takeTurns(subjects, rounds), bound));
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return figures;
};
