// One listener a signal, however many wait for it.

import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { onAbort } from "./abort.ts";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

it("tells all who wait, once, and nobody who left", () => {
  const stop = new AbortController();
  const told: number[] = [];
  const forget = [1, 2, 3].map((n) => onAbort(stop.signal, () => told.push(n)));
  expect(listeners(stop.signal)).toBe(1);
  forget[1]?.();
  stop.abort();
  stop.abort();
  expect(told).toEqual([1, 3]);
});

it("leaves no listener behind when nobody waits, and begins anew", () => {
  const stop = new AbortController();
  for (let n = 0; n < 20; n += 1) onAbort(stop.signal, () => undefined)();
  expect(listeners(stop.signal)).toBe(0);
  let told = false;
  const forget = onAbort(stop.signal, () => (told = true));
  onAbort(undefined, () => undefined)();
  expect(listeners(stop.signal)).toBe(1);
  stop.abort();
  forget();
  expect(told).toBe(true);
});
