// Installs SBCL, FiveAM and bubblewrap with apt-get, if the tests run as root. If one cannot be installed, the tests that
// need it are skipped with a message.

import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";

const INSTALL_MS = 240_000;

export function hasSbcl(): boolean {
  return spawnSync("sbcl", ["--version"], { stdio: "ignore" }).status === 0;
}

/** FiveAM, a test framework, as a Debian package: its sources are where ASDF looks. */
export function hasFiveam(): boolean {
  return existsSync("/usr/share/common-lisp/source/fiveam/fiveam.asd");
}

/** Returns whether SBCL is installed afterwards. */
export function installSbcl(): boolean {
  return hasSbcl() || (install("sbcl") && hasSbcl());
}

/** Returns whether FiveAM is installed afterwards. */
export function installFiveam(): boolean {
  return hasFiveam() || (install("cl-fiveam") && hasFiveam());
}

/** Installs bubblewrap if it is missing. Whether it works here is another question, which the tests ask. */
export function installBubblewrap(): void {
  if (!existsSync("/usr/bin/bwrap")) install("bubblewrap");
}

function install(name: string): boolean {
  if (process.getuid?.() !== 0 || !existsSync("/usr/bin/apt-get")) return false;
  const apt = (...args: readonly string[]): boolean => {
    try {
      const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
      execFileSync("apt-get", ["-q", "-y", ...args], { stdio: "ignore", env, timeout: INSTALL_MS });
      return true;
    } catch {
      return false;
    }
  };
  const installIt = (): boolean => apt("install", "--no-install-recommends", name);
  return installIt() || (apt("update") && installIt());
}
