// What counts for a deadline while it is held: the processor time, and a limit for all questions together.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Deadline, MAX_HELD_MS } from "./deadline.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("does not count the time in which it is held", () => {
  let fired = 0;
  const fire = (): number => (fired += 1);
  const deadline = new Deadline(100, () => 0, fire);
  vi.advanceTimersByTime(60);
  const [one, two] = [deadline.hold(), deadline.hold()];
  vi.advanceTimersByTime(1000);
  one();
  one();
  vi.advanceTimersByTime(1000);
  two();
  vi.advanceTimersByTime(39);
  expect(fired).toBe(0);
  vi.advanceTimersByTime(1);
  expect(fired).toBe(1);
  const stopped = new Deadline(100, () => 0, fire);
  const release = stopped.hold();
  stopped.stop();
  release();
  vi.advanceTimersByTime(1000);
  const endless = new Deadline(0, () => 1_000_000, fire);
  const releaseEndless = endless.hold();
  vi.advanceTimersByTime(2 * MAX_HELD_MS);
  releaseEndless();
  vi.advanceTimersByTime(1000);
  expect(fired).toBe(1);
});

it("counts the processor time that is used while it is held", () => {
  let cpuMs = 500;
  let fired = 0;
  const deadline = new Deadline(
    3_000,
    () => cpuMs,
    () => (fired += 1),
  );
  const release = deadline.hold();
  vi.advanceTimersByTime(60_000);
  expect(fired).toBe(0);
  for (let at = 0; at < 9; at += 1) {
    cpuMs += 250;
    vi.advanceTimersByTime(250);
  }
  expect(fired).toBe(0);
  release();
  vi.advanceTimersByTime(749);
  expect(fired).toBe(0);
  const again = deadline.hold();
  cpuMs += 250;
  vi.advanceTimersByTime(250);
  expect(fired).toBe(1);
  again();
  vi.advanceTimersByTime(MAX_HELD_MS);
  expect(fired).toBe(1);
});

it("is held for some minutes in all, also where the processor time is not known", () => {
  let fired = 0;
  const deadline = new Deadline(
    1_000,
    () => undefined,
    () => (fired += 1),
  );
  deadline.hold()();
  const release = deadline.hold();
  vi.advanceTimersByTime(MAX_HELD_MS - 1_000);
  release();
  deadline.hold();
  expect(fired).toBe(0);
  vi.advanceTimersByTime(2_000);
  expect(fired).toBe(1);
});
