// Debian's packages that tests need, installed with apt-get if the tests run as root. Where they may not be installed, the
// tests that need them say by name what they leave out.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";

const run = promisify(execFile);

const INSTALL_MS = 300_000;
/** Several test files may install at the same time: apt-get then waits for the others in place of failing. */
const LOCK_OPTION = `DPkg::Lock::Timeout=${INSTALL_MS / 1_000}`;

export function mayInstallDebianPackages(): boolean {
  return process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
}

/** Throws if it fails. */
export async function aptGet(args: readonly string[], cwd?: string): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  // Without a limit on the output, at which apt-get would be killed in the middle of its work.
  const options = { env, cwd, timeout: 2 * INSTALL_MS, maxBuffer: Infinity };
  await run("apt-get", ["-q", "-y", "-o", LOCK_OPTION, ...args], options);
}

/** Returns whether the packages could be installed. False if they may not be. */
export async function installDebianPackages(...names: readonly string[]): Promise<boolean> {
  if (!mayInstallDebianPackages()) return false;
  const install = (): Promise<void> => aptGet(["install", "--no-install-recommends", ...names]);
  try {
    await install().catch(async () => {
      await aptGet(["update"]);
      await install();
    });
    return true;
  } catch {
    return false;
  }
}
