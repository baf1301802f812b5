// A deadline that is set again and again uses one timer.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Deadline } from "./session-queue.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

it("expires at the latest deadline, with one timer however often it is set", () => {
  const onExpire = vi.fn();
  const deadline = new Deadline(onExpire);
  for (let time = 0; time < 5; time += 1) {
    deadline.set(100);
    vi.advanceTimersByTime(60);
    expect(vi.getTimerCount()).toBe(1);
  }
  expect(onExpire).not.toHaveBeenCalled();
  vi.advanceTimersByTime(40);
  expect(onExpire).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});

it("can be shortened, cleared and closed", () => {
  const onExpire = vi.fn();
  const deadline = new Deadline(onExpire);
  deadline.set(1_000);
  deadline.set(10);
  vi.advanceTimersByTime(10);
  expect(onExpire).toHaveBeenCalledTimes(1);
  deadline.set(10);
  deadline.clear();
  vi.advanceTimersByTime(5_000);
  deadline.set(10);
  deadline.close();
  vi.advanceTimersByTime(5_000);
  expect(onExpire).toHaveBeenCalledTimes(1);
  expect(vi.getTimerCount()).toBe(0);
});
