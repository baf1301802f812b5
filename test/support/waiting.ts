// How long tests wait for what should happen. The times are far longer than anything takes, since a machine that runs
// many tests at once may stall for most of a minute. They match the defaults in vitest.config.ts.

import { vi } from "vitest";

/** For one event: a line that a program prints, a message, a process that ends. */
export const WAIT_MS = 60_000;

/** For a program that does its work and exits. Shorter than the timeout of a test, which then shows what it printed. */
export const PROGRAM_MS = 150_000;

/** Calls `check` until it no longer throws, and returns its result. */
export function eventually<T>(check: () => T | Promise<T>, intervalMs = 50): Promise<T> {
  return vi.waitFor(check, { timeout: WAIT_MS, interval: intervalMs });
}
