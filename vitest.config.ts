import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    testTimeout: 30_000,
    // Two cores are the smallest machine we promise to test on; more workers only make child processes late.
    maxWorkers: 2,
  },
});
