// Work that is given up after its time, with its signal, or not at all.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { bounded } from "./backoff.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  const left = vi.getTimerCount();
  vi.useRealTimers();
  expect(left).toBe(0);
});

const never = new AbortController().signal;

test("work that is done in time gives what it gives", async () => {
  expect(await bounded(10, never, async () => "done")).toBe("done");
  await expect(bounded(10, never, () => Promise.reject(new Error("own")))).rejects.toThrow("own");
});

test("work that takes too long is told so, and is not waited for", async () => {
  let told: AbortSignal | undefined;
  const outcome = bounded(10, never, (signal) => {
    told = signal;
    return new Promise(() => undefined);
  }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10);
  expect(await outcome).toMatchObject({ kind: "timeout" });
  expect(told?.aborted).toBe(true);
});

test("work goes with the signal, and is not begun after it", async () => {
  const stop = new AbortController();
  const outcome = bounded(10, stop.signal, () => new Promise(() => undefined)).catch((error: unknown) => error);
  const reason = new Error("enough");
  stop.abort(reason);
  expect(await outcome).toBe(reason);
  const work = vi.fn<() => Promise<void>>();
  await expect(bounded(10, stop.signal, work)).rejects.toBe(reason);
  expect(work).not.toHaveBeenCalled();
});
