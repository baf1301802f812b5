// A context's end, told with and without its signal.

import { expect, it, vi } from "vitest";
import { isCancelled, onCancel, CancelToken, CANCEL_TOKEN, type CancellableContext } from "./cancel.ts";

function lent(stop: CancelToken): { context: CancellableContext; looked: () => number } {
  const looks = vi.spyOn(stop, "signal", "get");
  const context = stop.lend({
    [CANCEL_TOKEN]: stop,
    revision: "",
    caller: { capabilities: {} },
    notify: () => undefined,
    ask: () => Promise.reject(new Error("nobody")),
  });
  return { context, looked: () => looks.mock.calls.length };
}

it("tells whoever watches, once, and makes no signal for that", () => {
  const stop = new CancelToken();
  const { context, looked } = lent(stop);
  const told: string[] = [];
  onCancel(context, () => told.push("kept"));
  onCancel(context, () => told.push("taken back"))();
  expect(isCancelled(context)).toBe(false);
  stop.abort(new Error("enough"));
  stop.abort(new Error("again"));
  expect(isCancelled(context)).toBe(true);
  expect(told).toEqual(["kept"]);
  expect(looked()).toBe(0);
  expect(context.signal.reason).toEqual(new Error("enough"));
});

it("goes by the signal of a copy, which may be another", () => {
  const stop = new CancelToken();
  const { context } = lent(stop);
  const own = new AbortController();
  const copy = { ...context, signal: own.signal };
  const told: string[] = [];
  onCancel(copy, () => told.push("copy"));
  onCancel({ ...context }, () => told.push("same signal"));
  own.abort();
  expect(isCancelled(copy)).toBe(true);
  expect(isCancelled(context)).toBe(false);
  expect(told).toEqual(["copy"]);
  stop.abort(undefined);
  expect(told).toEqual(["copy", "same signal"]);
});
