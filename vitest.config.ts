// How the tests are run. The type alone is imported, so that tools which read this file need not load vitest.

import type { ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = {
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 30_000,
    // Two cores are the smallest machine we promise to test on; more workers only make child processes late.
    maxWorkers: 2,
  },
};

export default config;
