// Places for programs that start: given in the order of arrival, back once, and lost by those who take too long.

import { expect, it, vi } from "vitest";
import { StartSlots } from "./start-slots.ts";

const forever = new AbortController().signal;

it("gives places in the order of arrival, each back once", async () => {
  const slots = new StartSlots(1);
  const came: number[] = [];
  const give = await slots.take(forever);
  const second = slots.take(forever).then((one) => (came.push(2), one));
  const third = slots.take(forever).then((one) => (came.push(3), one));
  give();
  give();
  const next = await second;
  expect(came).toEqual([2]);
  next();
  (await third)();
  expect(came).toEqual([2, 3]);
});

it("lets others start when one takes too long", async () => {
  vi.useFakeTimers();
  try {
    const slots = new StartSlots(1, 3_000);
    const give = await slots.take(forever);
    const second = slots.take(forever);
    await vi.advanceTimersByTimeAsync(3_000);
    const next = await second;
    // What was lost is not given back a second time.
    give();
    let isThird = false;
    const third = slots.take(forever).then((one) => ((isThird = true), one));
    await vi.advanceTimersByTimeAsync(0);
    expect(isThird).toBe(false);
    next();
    (await third)();
  } finally {
    vi.useRealTimers();
  }
});

it("forgets who no longer waits", async () => {
  const slots = new StartSlots(1);
  const give = await slots.take(forever);
  const stop = new AbortController();
  const second = slots.take(stop.signal);
  stop.abort(new Error("over"));
  await expect(second).rejects.toThrow("over");
  give();
  (await slots.take(forever))();
  await expect(slots.take(stop.signal)).rejects.toThrow("over");
});
