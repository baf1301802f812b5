// A context's end, told with and without its signal.

import { expect, it, vi } from "vitest";
import { isStopped, onStop, Stop, STOP, type Stoppable } from "./cancel.ts";

function lent(stop: Stop): { context: Stoppable; looked: () => number } {
  const looks = vi.spyOn(stop, "signal", "get");
  const context = stop.lend({
    [STOP]: stop,
    revision: "",
    caller: { capabilities: {} },
    notify: () => undefined,
    ask: () => Promise.reject(new Error("nobody")),
  });
  return { context, looked: () => looks.mock.calls.length };
}

it("tells whoever watches, once, and makes no signal for that", () => {
  const stop = new Stop();
  const { context, looked } = lent(stop);
  const told: string[] = [];
  onStop(context, () => told.push("kept"));
  onStop(context, () => told.push("taken back"))();
  expect(isStopped(context)).toBe(false);
  stop.abort(new Error("enough"));
  stop.abort(new Error("again"));
  expect(isStopped(context)).toBe(true);
  expect(told).toEqual(["kept"]);
  expect(looked()).toBe(0);
  expect(context.signal.reason).toEqual(new Error("enough"));
});

it("goes by the signal of a copy, which may be another", () => {
  const stop = new Stop();
  const { context } = lent(stop);
  const own = new AbortController();
  const copy = { ...context, signal: own.signal };
  const told: string[] = [];
  onStop(copy, () => told.push("copy"));
  onStop({ ...context }, () => told.push("same signal"));
  own.abort();
  expect(isStopped(copy)).toBe(true);
  expect(isStopped(context)).toBe(false);
  expect(told).toEqual(["copy"]);
  stop.abort(undefined);
  expect(told).toEqual(["copy", "same signal"]);
});
