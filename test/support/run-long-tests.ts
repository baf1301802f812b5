// `npm run test:long`: every test in full, then the unit tests on newer versions of Node.

import { spawnSync } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { installNode, OTHER_NODES } from "./nodes.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

/** Runs a program with our output; returns whether it succeeded. */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): boolean {
  return spawnSync(command, args, { cwd: ROOT, stdio: "inherit", env }).status === 0;
}

function unitTestsOn(version: string): boolean {
  console.log(`\nUnit tests on Node ${version}`);
  const node = installNode(version);
  if (node === undefined) {
    console.error(`Skipped: unit tests on Node ${version}, which could not be installed from npm`);
    // In CI, a failed installation is a failure.
    return process.env["CI"] !== "true";
  }
  const path = [dirname(node), process.env["PATH"]].join(delimiter);
  return run(node, [VITEST, "run", "src/"], { ...process.env, PATH: path });
}

// Stops at the first part that fails, so that its failures are the last thing printed.
const passed =
  run(process.execPath, [VITEST, "run"], { ...process.env, CATENARY_LONG: "1" }) && OTHER_NODES.every(unitTestsOn);
process.exitCode = passed ? 0 : 1;
