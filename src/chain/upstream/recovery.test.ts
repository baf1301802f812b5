// When an upstream may be restarted: the pauses and the limit, with given times.

import { expect, it } from "vitest";
import { RestartPolicy } from "./recovery.ts";

it("a restart comes after pauses that grow by 1.6, give or take a fifth", () => {
  const policy = new RestartPolicy({ maxFailures: 100, windowMs: 1e9 });
  expect(policy.waitMs(0)).toBe(0);
  for (const plain of [1_000, 1_600, 2_560, 4_096]) {
    policy.failed(0);
    expect(policy.waitMs(0)).toBeGreaterThanOrEqual(plain * 0.8);
    expect(policy.waitMs(0)).toBeLessThanOrEqual(plain * 1.2);
    expect(policy.waitMs(plain * 1.2)).toBe(0);
  }
  for (let more = 0; more < 20; more += 1) policy.failed(0);
  expect(policy.waitMs(0)).toBeLessThanOrEqual(72_000);
  expect(policy.count).toBe(24);
});

it("a restart is not allowed after five failures in three minutes, until the first of them is older", () => {
  const policy = new RestartPolicy();
  for (const at of [0, 10_000, 20_000, 30_000]) policy.failed(at);
  expect(policy.isExhausted(30_000)).toBe(false);
  policy.failed(40_000);
  expect(policy.isExhausted(40_000)).toBe(true);
  expect(policy.exhaustedMs(40_000)).toBe(140_000);
  expect(policy.isExhausted(179_999)).toBe(true);
  expect(policy.isExhausted(180_001)).toBe(false);
  expect(policy.limit).toBe("5 times in 3 minutes");
});

it("a restart stays allowed if failures are rare", () => {
  const policy = new RestartPolicy();
  for (let at = 0; at < 100; at += 1) {
    policy.failed(at * 60_000);
    expect(policy.isExhausted(at * 60_000)).toBe(false);
  }
});

it("a restart follows the options", () => {
  const policy = new RestartPolicy({ maxFailures: 2, windowMs: 1_500, firstMs: 10, maxMs: 12 });
  policy.failed(0);
  expect(policy.waitMs(0)).toBeLessThanOrEqual(12);
  policy.failed(1);
  expect(policy.waitMs(1)).toBeLessThanOrEqual(12 * 1.2);
  expect(policy.isExhausted(1)).toBe(true);
  expect(policy.limit).toBe("2 times in 1.5 seconds");
  expect(new RestartPolicy({ windowMs: 60_000, maxFailures: 2 }).limit).toBe("2 times in 60 seconds");
});
