// Before all tests and after them: what they need is installed where that may be done, and the folder that stands for
// the user's cache is taken away.

import { rmSync } from "node:fs";
import { installSbcl } from "./sbcl.ts";

export function setup(): void {
  if (!installSbcl())
    console.error("SBCL is not here and could not be installed (apt-get install sbcl): its tests are left out.");
}

export function teardown(): void {
  const cache = process.env["CATENARY_TEST_CACHE"];
  if (cache !== undefined) rmSync(cache, { recursive: true, force: true });
}
