// What `import "catenary"` adds to the start of a bare Node process.

import { spawnSync } from "node:child_process";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";

const ROUNDS = 15;

function run(code: string): number {
  const begin = performance.now();
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return performance.now() - begin;
}

export async function importCosts(tell: (text: string) => void): Promise<Figure[]> {
  tell(`import: ${ROUNDS} starts of each`);
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
}
