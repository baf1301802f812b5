// Slots for programs that start: given in the order of arrival, released once, and lost by slow starts.

import { expect, it, vi } from "vitest";
import { StartLimiter } from "./supervisor.ts";

const forever = new AbortController().signal;

it("gives slots in the order of arrival, each released once", async () => {
  const limiter = new StartLimiter(1);
  const came: number[] = [];
  const release = await limiter.take(forever);
  const second = limiter.take(forever).then((one) => (came.push(2), one));
  const third = limiter.take(forever).then((one) => (came.push(3), one));
  release();
  release();
  const next = await second;
  expect(came).toEqual([2]);
  next();
  (await third)();
  expect(came).toEqual([2, 3]);
});

it("lets others start if one takes too long", async () => {
  vi.useFakeTimers();
  try {
    const limiter = new StartLimiter(1, 3_000);
    const release = await limiter.take(forever);
    const second = limiter.take(forever);
    await vi.advanceTimersByTimeAsync(3_000);
    const next = await second;
    // A lost slot is not released a second time.
    release();
    let isThird = false;
    const third = limiter.take(forever).then((one) => ((isThird = true), one));
    await vi.advanceTimersByTimeAsync(0);
    expect(isThird).toBe(false);
    next();
    (await third)();
  } finally {
    vi.useRealTimers();
  }
});

it("skips waiters that were aborted", async () => {
  const limiter = new StartLimiter(1);
  const release = await limiter.take(forever);
  const stop = new AbortController();
  const second = limiter.take(stop.signal);
  stop.abort(new Error("over"));
  await expect(second).rejects.toThrow("over");
  release();
  (await limiter.take(forever))();
  await expect(limiter.take(stop.signal)).rejects.toThrow("over");
});
