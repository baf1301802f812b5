// Installs SBCL and FiveAM. If one cannot be installed, the tests that need it are skipped with a message.

import { existsSync } from "node:fs";
import { succeeds } from "../blocking-program.ts";
import { installDebianPackages } from "../debian.ts";

export function hasSbcl(): boolean {
  return succeeds("sbcl", ["--version"]);
}

/** FiveAM, a test framework, as a Debian package: its sources are where ASDF looks. */
export function hasFiveam(): boolean {
  return existsSync("/usr/share/common-lisp/source/fiveam/fiveam.asd");
}

/** Returns whether SBCL is installed afterwards. */
export async function installSbcl(): Promise<boolean> {
  return hasSbcl() || ((await installDebianPackages("sbcl")) && hasSbcl());
}

/** Returns whether FiveAM is installed afterwards. */
export async function installFiveam(): Promise<boolean> {
  return hasFiveam() || ((await installDebianPackages("cl-fiveam")) && hasFiveam());
}
