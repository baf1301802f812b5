// Runs before and after all tests: installs what they need where that is allowed, and removes the cache folder.

import { existsSync, rmSync } from "node:fs";
import { installSuite } from "../../conformance/install-suite.ts";
import { installChromium } from "../browser.ts";
import { installDebianPackages } from "../debian.ts";
import { compilePrograms } from "../programs.ts";
import { IS_LONG } from "../thoroughness.ts";
import { sandboxProblem } from "../../../src/live/sandbox.ts";
import { installFiveam, installSbcl } from "./sbcl.ts";
import { installGst, installSqueak } from "./smalltalk.ts";

export async function setup(): Promise<void> {
  if (!(await installSbcl())) {
    console.error("Skipped: tests of Common Lisp. SBCL is missing and could not be installed (apt-get install sbcl).");
  }
  if (!(await installGst()))
    console.error("Skipped: tests of GNU Smalltalk. gst is missing and could not be installed (Debian 11 has it).");
  // Whether it works here is another question, which the tests ask.
  if (!existsSync("/usr/bin/bwrap")) await installDebianPackages("bubblewrap");
  const problem = await sandboxProblem();
  if (problem !== undefined) console.error(`Skipped: tests of the sandbox of live sessions. ${problem.message}`);
  if (IS_LONG && !(await installFiveam()))
    console.error("Skipped: tests of run-tests with FiveAM, which could not be installed (apt-get install cl-fiveam).");
  if (IS_LONG && !(await installSqueak()))
    console.error("Skipped: tests of Squeak. squeak-vm and etoys are missing and could not be installed.");
  if (!(await installChromium()))
    console.error("Skipped: tests of the console in a browser. Chromium is missing and could not be installed.");
  await compilePrograms();
  // In the background, because only some tests need it. They wait for it, and report if it failed.
  void installSuite().catch(() => undefined);
}

export function teardown(): void {
  const cache = process.env["CATENARY_TEST_CACHE"];
  if (cache !== undefined) rmSync(cache, { recursive: true, force: true });
}
