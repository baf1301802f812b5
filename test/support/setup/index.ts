// Runs before and after all tests: installs what they need where that is allowed, and removes the cache folder.

import { rmSync } from "node:fs";
import { installSuite } from "../../conformance/install-suite.ts";
import { compilePrograms } from "../programs.ts";
import { installSbcl } from "./sbcl.ts";

export async function setup(): Promise<void> {
  if (!installSbcl()) {
    console.error("Skipped: tests of Common Lisp. SBCL is missing and could not be installed (apt-get install sbcl).");
  }
  await compilePrograms();
  // In the background, because only some tests need it. They wait for it, and report if it failed.
  void installSuite().catch(() => undefined);
}

export function teardown(): void {
  const cache = process.env["CATENARY_TEST_CACHE"];
  if (cache !== undefined) rmSync(cache, { recursive: true, force: true });
}
