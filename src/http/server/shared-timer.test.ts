// One timer for many members, and none without members.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SharedTimer } from "./shared-timer.ts";

describe("a shared timer", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("a shared timer calls each member once per tick, with a monotonic time", () => {
    const seen: [string, number][] = [];
    const pulse = new SharedTimer<string>(1_000, (member, now) => seen.push([member, now]));
    const start = performance.now();
    pulse.add("a");
    pulse.add("b");
    pulse.add("a");
    expect(pulse.size).toBe(2);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(2_000);
    expect(seen).toEqual([
      ["a", start + 1_000],
      ["b", start + 1_000],
      ["a", start + 2_000],
      ["b", start + 2_000],
    ]);
  });

  it("a shared timer stops one tick after its last member has left, and restarts with the next", () => {
    let calls = 0;
    const pulse = new SharedTimer<object>(1_000, () => {
      calls += 1;
    });
    const member = {};
    expect(vi.getTimerCount()).toBe(0);
    pulse.add(member);
    pulse.delete(member);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(1_000);
    expect(vi.getTimerCount()).toBe(0);
    expect(calls).toBe(0);
    pulse.add(member);
    vi.advanceTimersByTime(1_000);
    expect(calls).toBe(1);
  });

  it("a shared timer starts no timer per member", () => {
    const starts = vi.spyOn(globalThis, "setInterval");
    const pulse = new SharedTimer<number>(1_000, () => {});
    for (let member = 0; member < 1_000; member += 1) {
      pulse.add(member);
      pulse.delete(member);
    }
    expect(starts).toHaveBeenCalledTimes(1);
    starts.mockRestore();
  });

  it("a shared timer allows delete and clear during a tick", () => {
    const seen: number[] = [];
    const pulse = new SharedTimer<number>(1_000, (member) => {
      seen.push(member);
      pulse.delete(member + 1);
      if (member === 5) pulse.clear();
    });
    for (const member of [1, 2, 3, 5, 7]) pulse.add(member);
    vi.advanceTimersByTime(5_000);
    expect(seen).toEqual([1, 3, 5]);
    expect(pulse.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("a shared timer does not keep the process alive", () => {
    vi.useRealTimers();
    const spy = vi.spyOn(globalThis, "setInterval");
    const pulse = new SharedTimer<number>(1_000, () => {});
    pulse.add(1);
    const timer = spy.mock.results[0]?.value as NodeJS.Timeout;
    expect(timer.hasRef()).toBe(false);
    pulse.clear();
    expect(pulse.size).toBe(0);
    spy.mockRestore();
  });
});
