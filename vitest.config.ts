// How the tests are run. The type alone is imported, so that tools which read this file need not load vitest.

import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ViteUserConfig } from "vitest/config";

const cache = join(tmpdir(), `catenary-test-cache-${process.pid}`);
process.env["CATENARY_TEST_CACHE"] = cache;

const config: ViteUserConfig = {
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 30_000,
    // What ends offer is remembered in the cache: not in that of whoever runs the tests.
    env: { CATENARY_CACHE: cache },
    globalSetup: ["test/support/setup/index.ts"],
    // Two cores are the smallest machine we promise to test on; more workers only make child processes late.
    maxWorkers: 2,
  },
};

export default config;
