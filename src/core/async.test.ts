// Signals with many listeners, and waits that a signal ends.

import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { onAbort, abortable } from "./async.ts";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

it("calls every listener once, and none that was removed", () => {
  const stop = new AbortController();
  const called: number[] = [];
  const forget = [1, 2, 3].map((n) => onAbort(stop.signal, () => called.push(n)));
  expect(listeners(stop.signal)).toBe(1);
  forget[1]?.();
  stop.abort();
  stop.abort();
  expect(called).toEqual([1, 3]);
});

it("leaves no event listener behind, and can be used again", () => {
  const stop = new AbortController();
  for (let n = 0; n < 20; n += 1) onAbort(stop.signal, () => undefined)();
  expect(listeners(stop.signal)).toBe(0);
  let isCalled = false;
  const forget = onAbort(stop.signal, () => (isCalled = true));
  onAbort(undefined, () => undefined)();
  expect(listeners(stop.signal)).toBe(1);
  stop.abort();
  forget();
  expect(isCalled).toBe(true);
});

it("passes on the value or the error of the promise", async () => {
  const { signal } = new AbortController();
  expect(await abortable(signal, Promise.resolve(1))).toBe(1);
  await expect(abortable(signal, Promise.reject(new Error("no")))).rejects.toThrow("no");
});

it("rejects as soon as the signal is aborted", async () => {
  const stop = new AbortController();
  const waiting = abortable(stop.signal, new Promise(() => undefined));
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(abortable(stop.signal, Promise.resolve(1))).rejects.toThrow("enough");
});
