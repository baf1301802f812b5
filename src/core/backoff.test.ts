// withTimeout: work that times out, is aborted, or finishes.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { withTimeout } from "./async.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  const left = vi.getTimerCount();
  vi.useRealTimers();
  expect(left).toBe(0);
});

const never = new AbortController().signal;

test("work that finishes in time returns its result", async () => {
  expect(await withTimeout(10, never, async () => "done")).toBe("done");
  await expect(withTimeout(10, never, () => Promise.reject(new Error("own")))).rejects.toThrow("own");
});

test("work that takes too long is aborted and not awaited", async () => {
  let given: AbortSignal | undefined;
  const outcome = withTimeout(10, never, (signal) => {
    given = signal;
    return new Promise(() => undefined);
  }).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10);
  expect(await outcome).toMatchObject({ kind: "timeout" });
  expect(given?.aborted).toBe(true);
});

test("work is aborted with the signal, and not begun after it", async () => {
  const stop = new AbortController();
  const outcome = withTimeout(10, stop.signal, () => new Promise(() => undefined)).catch((error: unknown) => error);
  const reason = new Error("enough");
  stop.abort(reason);
  expect(await outcome).toBe(reason);
  const work = vi.fn<() => Promise<void>>();
  await expect(withTimeout(10, stop.signal, work)).rejects.toBe(reason);
  expect(work).not.toHaveBeenCalled();
});
