// A deadline that is set again and again, with one timer.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Deadline } from "./session-queue.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

it("comes when the last that was set is over, however often it was set", () => {
  const act = vi.fn();
  const deadline = new Deadline(act);
  for (let time = 0; time < 5; time += 1) {
    deadline.set(100);
    vi.advanceTimersByTime(60);
    expect(vi.getTimerCount()).toBe(1);
  }
  expect(act).not.toHaveBeenCalled();
  vi.advanceTimersByTime(40);
  expect(act).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

it("may come sooner than one that was set before, or not at all", () => {
  const act = vi.fn();
  const deadline = new Deadline(act);
  deadline.set(1_000);
  deadline.set(10);
  vi.advanceTimersByTime(10);
  expect(act).toHaveBeenCalledTimes(1);
  deadline.set(10);
  deadline.clear();
  vi.advanceTimersByTime(5_000);
  deadline.set(10);
  deadline.close();
  vi.advanceTimersByTime(5_000);
  expect(act).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});
