// Functions of users that throw or reject, and what becomes of their errors.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { callListener } from "./listeners.ts";

const print = vi.spyOn(console, "error");
beforeEach(() => void print.mockReset().mockImplementation(() => undefined));
afterEach(() => void print.mockReset());

const printed = (): unknown[] => print.mock.calls.flat();

test("a listener gets its arguments, and a missing one is not called", () => {
  const listener = vi.fn();
  callListener("onState", listener, [1, "two"]);
  callListener("onState", undefined, []);
  expect(listener.mock.calls).toEqual([[1, "two"]]);
  expect(printed()).toEqual([]);
});

test("what a listener throws or rejects with goes to onError, or to stderr", async () => {
  const onError = vi.fn();
  const thrown = new Error("thrown");
  callListener("onLog", () => Promise.reject(thrown), [], onError);
  callListener("onLog", () => Promise.reject(thrown), []);
  await vi.waitFor(() => expect(print).toHaveBeenCalledTimes(1));
  expect(onError.mock.calls).toEqual([[thrown, "onLog"]]);
  expect(printed()).toEqual(["catenary: onLog failed: thrown"]);
});

test("an onError that fails is printed after the error that it got", async () => {
  const fail = (): never => {
    throw new Error("first");
  };
  callListener("onLog", fail, [], () => {
    throw new Error("second");
  });
  callListener("onLog", fail, [], vi.fn().mockRejectedValue(new Error("third")));
  await vi.waitFor(() => expect(print).toHaveBeenCalledTimes(3));
  expect(printed()).toEqual([
    "catenary: onLog failed: first",
    "catenary: onError failed: second",
    "catenary: onError failed: third",
  ]);
});
