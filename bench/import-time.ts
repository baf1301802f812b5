// The time that `import "catenary"` adds to the start of a bare Node process.

import { spawnSync } from "node:child_process";
import { median, type Measurement } from "./measurement.ts";

const ROUNDS = 15;

function run(code: string): number {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return performance.now() - startedAt;
}

export const measureImport: Measurement = async (onProgress) => {
  onProgress(`import: ${ROUNDS} starts of each`);
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    bare.push(run(""));
    ours.push(run('import "catenary"'));
  }
  const value = median(ours) - median(bare);
  return [
    {
      name: "import over bare Node",
      value,
      unit: "ms",
      bound: 40,
      detail: `bare ${median(bare).toFixed(1)} ms, median of ${ROUNDS}`,
    },
  ];
};
