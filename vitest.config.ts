// How the tests are run: most files of one worker share their modules (`shared`), a few have their own (`isolated`).
// Files named *.long.test.ts, and full matrices and properties, run only with CATENARY_LONG=1 (npm run test:long). Only
// the type is imported, so that tools which read this file need not load vitest.

import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ViteUserConfig } from "vitest/config";
import { StallReporter } from "./test/support/stall-reporter.ts";

const isLong = process.env["CATENARY_LONG"] === "1";
const exclude = ["**/node_modules/**", ...(isLong ? [] : ["**/*.long.test.ts"])];
const cache = join(tmpdir(), `catenary-test-cache-${process.pid}`);
process.env["CATENARY_TEST_CACHE"] = cache;

/**
 * Tests that count the timers or the pooled connections of the whole process or advance to its next timer, that replace a
 * module, or that load Amber, which adds methods to all objects. The others share their modules, which saves a third of
 * the time.
 */
export const ISOLATED = [
  "src/chain/middleware/retry.test.ts",
  "src/chain/transforms/shape.test.ts",
  "src/chain/middleware/timeout.test.ts",
  "src/chain/router/subscription-retry.test.ts",
  "src/chain/router/subscriptions.test.ts",
  "src/chain/router/upstream-view.test.ts",
  "src/chain/upstream/hanging-transport.test.ts",
  "src/cli/terminal/progress-line.test.ts",
  "src/client/calls.test.ts",
  "src/client/subscriptions.test.ts",
  "src/config/live.test.ts",
  "src/core/backoff.test.ts",
  "src/core/expiring-map.test.ts",
  "src/dialogue/session/client-tasks.test.ts",
  "src/dialogue/session/renewal.test.ts",
  "src/dialogue/session/server-task.test.ts",
  "src/dialogue/stateless/parked-calls.test.ts",
  "src/http/client/connection-pool.test.ts",
  "src/http/client/node-requester.test.ts",
  "src/http/client/resubscribe.test.ts",
  "src/http/client/retry.test.ts",
  "src/http/server/node-request-body.test.ts",
  "src/http/server/shared-timer.test.ts",
  "src/live/js/main-thread.test.ts",
  "src/live/smalltalk/amber-guest.test.ts",
  "src/server/task-limits.test.ts",
  "src/tasks/watch.test.ts",
  "test/contract/http-client/clean-exit.long.test.ts",
];

const config: ViteUserConfig = {
  test: {
    globalSetup: ["test/support/setup/index.ts"],
    reporters: ["default", new StallReporter()],
    // Does nothing unless RECORD_WIRE is set.
    setupFiles: ["test/support/wire/setup.ts"],
    // For two cores, the smallest machine that we test on: many tests wait for child processes and timers.
    maxWorkers: 4,
    // Where each test of a file waits for its timeout, the run would take hours.
    bail: process.env["CI"] === "true" ? 10 : 0,
    // Longer than a machine that runs many tests at once stalls. test/support/waiting.ts has the times for programs.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    // Servers print the errors of their handlers, and many tests have handlers that fail.
    onConsoleLog: (text) => !text.startsWith("catenary: "),
    // Keeps what the tests write out of the folders of the person who runs them.
    env: { CATENARY_CACHE: cache, XDG_STATE_HOME: join(cache, "state") },
    projects: [
      {
        extends: true,
        test: {
          name: "shared",
          include: ["{src,test,web}/**/*.test.ts"],
          exclude: [...exclude, ...ISOLATED],
          isolate: false,
        },
      },
      { extends: true, test: { name: "isolated", include: ISOLATED, exclude } },
    ],
  },
};

export default config;
