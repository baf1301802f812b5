// The slots of a semaphore: given in the order of arrival, released once, and lost by those who keep them too long.

import { expect, it, vi } from "vitest";
import { Semaphore } from "./async.ts";

const forever = new AbortController().signal;

it("gives slots in the order of arrival, each released once", async () => {
  const semaphore = new Semaphore(1);
  const came: number[] = [];
  const release = await semaphore.take(forever);
  const second = semaphore.take(forever).then((one) => (came.push(2), one));
  const third = semaphore.take(forever).then((one) => (came.push(3), one));
  release();
  release();
  const next = await second;
  expect(came).toEqual([2]);
  next();
  (await third)();
  expect(came).toEqual([2, 3]);
});

it("frees a slot that is kept too long", async () => {
  vi.useFakeTimers();
  try {
    const semaphore = new Semaphore(1);
    const release = await semaphore.take(forever, 3_000);
    const second = semaphore.take(forever);
    await vi.advanceTimersByTimeAsync(3_000);
    const next = await second;
    // A lost slot is not released a second time.
    release();
    let isThird = false;
    const third = semaphore.take(forever).then((one) => ((isThird = true), one));
    await vi.advanceTimersByTimeAsync(0);
    expect(isThird).toBe(false);
    next();
    (await third)();
  } finally {
    vi.useRealTimers();
  }
});

it("skips waiters that were aborted", async () => {
  const semaphore = new Semaphore(1);
  const release = await semaphore.take(forever);
  const stop = new AbortController();
  const second = semaphore.take(stop.signal);
  stop.abort(new Error("over"));
  await expect(second).rejects.toThrow("over");
  release();
  (await semaphore.take(forever))();
  await expect(semaphore.take(stop.signal)).rejects.toThrow("over");
});
