// Runs a program and blocks until it has ended. No timeout of a test can end such a run, so it has a limit of its own, and
// tests start no program in another blocking way (.oxlintrc.json).

import { spawnSync, type SpawnSyncOptions, type SpawnSyncReturns } from "node:child_process";
import { PROGRAM_MS } from "./waiting.ts";

/** How a program has ended. Throws if it could not be started or took too long. */
export function endOf(
  program: string,
  args: readonly string[],
  options: SpawnSyncOptions = {},
): SpawnSyncReturns<string> {
  const end = spawnSync(program, args, { timeout: PROGRAM_MS, killSignal: "SIGKILL", ...options, encoding: "utf8" });
  if (end.error !== undefined) throw end.error;
  return end;
}

/** What a program prints. Throws if it fails, with what it printed. */
export function outputOf(program: string, args: readonly string[], options: SpawnSyncOptions = {}): string {
  const { status, signal, stdout, stderr } = endOf(program, args, options);
  if (status === 0) return stdout;
  throw Object.assign(new Error(`${program} ended with ${status ?? signal}\n${stderr ?? ""}`), { stdout, stderr });
}

/** Whether a program is there and succeeds. */
export function succeeds(program: string, args: readonly string[], options: SpawnSyncOptions = {}): boolean {
  try {
    return endOf(program, args, { stdio: "ignore", ...options }).status === 0;
  } catch {
    return false;
  }
}

/** What npm prints. A registry may stall, so a run that takes too long is tried once more. */
export function npm(args: readonly string[], options: SpawnSyncOptions = {}): string {
  const run = (): string => outputOf("npm", args, { stdio: ["ignore", "pipe", "pipe"], ...options });
  try {
    return run();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ETIMEDOUT") throw error;
    return run();
  }
}
