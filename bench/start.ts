// The time to start: `import "catenary"` in a Node process, and the first answer of a server over stdio.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { LineCaller } from "./callers.ts";
import { BASELINE, createFigure, OURS, programPath, takeTurns, type Measurement } from "./measurement.ts";
import { PEERS_FOLDER } from "./peers.ts";

const ROUNDS = 20;
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
  return [createFigure("start", "Import", "ms", await takeTurns(subjects, rounds))];
};

/** Milliseconds from the start of a server to the result of its first call. */
async function answerFirst(program: string): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [programPath(program), "stdio"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const caller = new LineCaller(child);
  await caller.initialize();
  await caller.makeCalls(1, 1);
  const ms = performance.now() - startedAt;
  child.kill("SIGKILL");
  await exited;
  return ms;
}

export const measureFirstAnswer: Measurement = async ({ onProgress, peers, divisor }) => {
  const rounds = ROUNDS / divisor;
  onProgress(`first answer over stdio: ${rounds} starts of each`);
  const others = peers
    .filter(({ modes }) => modes.includes("stdio"))
    .map(({ name, program }) => [name, () => answerFirst(program)] as const);
  const subjects = {
    [BASELINE]: () => answerFirst("bare-stdio.js"),
    [OURS]: () => answerFirst("catenary-stdio.js"),
    ...Object.fromEntries(others),
  };
  return [createFigure("start", "First answer over stdio", "ms", await takeTurns(subjects, rounds))];
};
