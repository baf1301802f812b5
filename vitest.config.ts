// How the tests are run: `unit` beside the sources, `whole` for everything under test/. Files named *.long.test.ts, and
// full matrices and properties, run only with CATENARY_LONG=1 (npm run test:long). Only the type is imported, so that
// tools which read this file need not load vitest.

import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ViteUserConfig } from "vitest/config";

const isLong = process.env["CATENARY_LONG"] === "1";
const cache = join(tmpdir(), `catenary-test-cache-${process.pid}`);
process.env["CATENARY_TEST_CACHE"] = cache;

const config: ViteUserConfig = {
  test: {
    globalSetup: ["test/support/setup/index.ts"],
    // Two cores are the smallest machine that we test on; more workers only delay the child processes.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "unit", include: ["src/**/*.test.ts"] } },
      { extends: true, test: { name: "whole", include: ["test/**/*.test.ts"] } },
    ],
    exclude: ["**/node_modules/**", ...(isLong ? [] : ["**/*.long.test.ts"])],
    testTimeout: 30_000,
    // Keeps what the tests cache out of the cache of the person who runs them.
    env: { CATENARY_CACHE: cache },
  },
};

export default config;
