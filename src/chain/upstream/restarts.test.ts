// When an end may be started again: the pauses, and the limit, reckoned with a clock of the test's own.

import { describe, expect, it } from "vitest";
import { Restarts } from "./restarts.ts";

describe("restarts", () => {
  it("begin at once before the first failure, and after pauses that grow by 1.6 with a fifth of chance", () => {
    const restarts = new Restarts({ most: 100, windowMs: 1e9 });
    expect(restarts.waitMs(0)).toBe(0);
    for (const plain of [1_000, 1_600, 2_560, 4_096]) {
      restarts.failed(0);
      expect(restarts.waitMs(0)).toBeGreaterThanOrEqual(plain * 0.8);
      expect(restarts.waitMs(0)).toBeLessThanOrEqual(plain * 1.2);
      expect(restarts.waitMs(plain * 1.2)).toBe(0);
    }
    for (let more = 0; more < 20; more += 1) restarts.failed(0);
    expect(restarts.waitMs(0)).toBeLessThanOrEqual(72_000);
    expect(restarts.count).toBe(24);
  });

  it("stop after five failures in three minutes, until the first of them is older than that", () => {
    const restarts = new Restarts();
    for (const at of [0, 10_000, 20_000, 30_000]) restarts.failed(at);
    expect(restarts.isStopped(30_000)).toBe(false);
    restarts.failed(40_000);
    expect(restarts.isStopped(40_000)).toBe(true);
    expect(restarts.stoppedMs(40_000)).toBe(140_000);
    expect(restarts.isStopped(179_999)).toBe(true);
    expect(restarts.isStopped(180_001)).toBe(false);
    expect(restarts.rule).toBe("5 times in 3 minutes");
  });

  it("do not stop where failures are rare", () => {
    const restarts = new Restarts();
    for (let at = 0; at < 100; at += 1) {
      restarts.failed(at * 60_000);
      expect(restarts.isStopped(at * 60_000)).toBe(false);
    }
  });

  it("may have rules of their own", () => {
    const restarts = new Restarts({ most: 2, windowMs: 1_500, firstMs: 10, maxMs: 12 });
    restarts.failed(0);
    expect(restarts.waitMs(0)).toBeLessThanOrEqual(12);
    restarts.failed(1);
    expect(restarts.waitMs(1)).toBeLessThanOrEqual(12 * 1.2);
    expect(restarts.isStopped(1)).toBe(true);
    expect(restarts.rule).toBe("2 times in 1.5 seconds");
  });
});
