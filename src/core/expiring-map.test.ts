// What an ExpiringMap keeps, and for how long.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ExpiringMap } from "./expiring-map.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("an expiring map drops the entry that was used least recently when it has too many", () => {
  const map = new ExpiringMap<string, number>({ maxEntries: 2 });
  map.set("a", 1);
  map.set("b", 2);
  expect([map.get("b"), map.get("a"), map.has("b")]).toEqual([2, 1, true]);
  map.set("c", 3);
  expect([map.keys(), map.values(), map.size]).toEqual([["a", "c"], [1, 3], 2]);
  map.set("a", 4);
  map.set("d", 5);
  expect(map.entries()).toEqual([
    ["a", 4],
    ["d", 5],
  ]);
});

it("an expiring map drops entries until the rest is small enough, even the one that was just added", () => {
  const map = new ExpiringMap<string, string>({ maxSize: 10 });
  for (const key of ["a", "b", "c"]) map.set(key, key, undefined, 3);
  map.set("a", "longer", undefined, 4);
  expect([map.keys(), map.totalSize]).toEqual([["b", "c", "a"], 10]);
  map.set("d", "long", undefined, 6);
  expect([map.keys(), map.totalSize]).toEqual([["a", "d"], 10]);
  expect([map.delete("a"), map.delete("a"), map.totalSize]).toEqual([true, false, 6]);
  map.set("e", "too long", undefined, 11);
  expect([map.keys(), map.totalSize]).toEqual([[], 0]);
});

it("an expired entry is not found, although the timer has not fired", () => {
  const onExpired = vi.fn<(value: number, key: string) => void>();
  const map = new ExpiringMap<string, number>({ ttlMs: 100, onExpired });
  map.set("a", 1);
  map.set("b", 2, 50);
  expect([map.leftMs("a"), map.leftMs("b"), map.leftMs("c")]).toEqual([100, 50, 0]);
  vi.advanceTimersByTime(99);
  expect([map.get("a"), map.get("b"), map.has("b"), map.size]).toEqual([1, undefined, false, 1]);
  expect(onExpired.mock.calls).toEqual([[2, "b"]]);
  map.set("a", 3);
  vi.advanceTimersByTime(99);
  expect(map.entries()).toEqual([["a", 3]]);
});

it("one timer removes entries, at most once a second", () => {
  const gone: string[] = [];
  const map = new ExpiringMap<string, number>({ onExpired: (_value, key) => void gone.push(key) });
  map.set("never", 0);
  expect(vi.getTimerCount()).toBe(0);
  for (const ms of [500, 10, 5_000, 900, 1_500]) map.set(String(ms), ms, ms);
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(1_000);
  expect(gone).toEqual(["500", "10", "900"]);
  vi.advanceTimersByTime(1_000);
  expect(gone).toEqual(["500", "10", "900", "1500"]);
  vi.advanceTimersByTime(3_000);
  expect([gone.length, map.keys(), vi.getTimerCount()]).toEqual([5, ["never"], 0]);
});

it("a steady arrival of short-lived entries does not postpone the timer", () => {
  const map = new ExpiringMap<number, number>({ ttlMs: 10_000 });
  for (let count = 0; count < 30; count += 1) {
    map.set(count, count, 700);
    vi.advanceTimersByTime(600);
    expect(map.size).toBeLessThan(4);
  }
});

it("onExpired can keep an entry longer, and may look for it or remove it", () => {
  let isIdle = false;
  const map = new ExpiringMap<string, string>({
    ttlMs: 100,
    onExpired: (value, key) => {
      expect(map.get(key)).toBe(value);
      if (!isIdle) return 50;
      return void map.delete(key);
    },
  });
  map.set("a", "session");
  vi.advanceTimersByTime(120);
  expect([map.size, map.leftMs("a")]).toEqual([1, 30]);
  vi.advanceTimersByTime(10_000);
  expect(map.size).toBe(1);
  isIdle = true;
  vi.advanceTimersByTime(1_000);
  expect([map.size, vi.getTimerCount()]).toEqual([0, 0]);
});

it("an entry that onExpired replaces stays", () => {
  const onExpired = (value: number, key: string): void => map.set(key, value + 1);
  const map = new ExpiringMap<string, number>({ ttlMs: 100, onExpired });
  map.set("a", 1);
  vi.advanceTimersByTime(100);
  expect(map.get("a")).toBe(2);
});

it("clear removes the timer with the entries", () => {
  const map = new ExpiringMap<string, number>({ ttlMs: 100, maxSize: 10 });
  map.set("a", 1, undefined, 10);
  map.clear();
  expect([map.size, map.totalSize, map.get("a"), vi.getTimerCount()]).toEqual([0, 0, undefined, 0]);
  map.set("b", 1, undefined, 10);
  expect([map.get("b"), vi.getTimerCount()]).toEqual([1, 1]);
});

it("a time longer than a timer can wait is no problem", () => {
  const map = new ExpiringMap<string, number>({ ttlMs: 2 ** 32 });
  map.set("a", 1);
  vi.advanceTimersByTime(2 ** 31);
  expect(map.get("a")).toBe(1);
  vi.advanceTimersByTime(2 ** 31 + 1_000);
  expect([map.size, vi.getTimerCount()]).toEqual([0, 0]);
});
