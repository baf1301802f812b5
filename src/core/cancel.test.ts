// Cancellation of a context, with and without its signal.

import { expect, it, vi } from "vitest";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { CANCEL_TOKEN, type CancellableContext, CancelToken, copyContext, isCancelled, onCancel } from "./cancel.ts";

function contextWith(token: CancelToken): { context: CancellableContext; signalReads: () => number } {
  const reads = vi.spyOn(token, "signal", "get");
  const context = token.attachTo({
    [CANCEL_TOKEN]: token,
    revision: "",
    caller: fakeCaller(),
    notify: () => undefined,
    ask: () => Promise.reject(new Error("cannot ask")),
  });
  return { context, signalReads: () => reads.mock.calls.length };
}

it("calls each listener once, without creating a signal", () => {
  const token = new CancelToken();
  const { context, signalReads } = contextWith(token);
  const called: string[] = [];
  onCancel(context, () => called.push("kept"));
  onCancel(context, () => called.push("removed"))();
  expect(isCancelled(context)).toBe(false);
  token.abort(new Error("enough"));
  token.abort(new Error("again"));
  expect(isCancelled(context)).toBe(true);
  expect(called).toEqual(["kept"]);
  expect(signalReads()).toBe(0);
  expect(context.signal.reason).toEqual(new Error("enough"));
});

it("uses the signal of a copy, which may be another", () => {
  const token = new CancelToken();
  const { context } = contextWith(token);
  const own = new AbortController();
  const copy = { ...context, signal: own.signal };
  const called: string[] = [];
  onCancel(copy, () => called.push("copy"));
  onCancel({ ...context }, () => called.push("same signal"));
  own.abort();
  expect(isCancelled(copy)).toBe(true);
  expect(isCancelled(context)).toBe(false);
  expect(called).toEqual(["copy"]);
  token.abort(undefined);
  expect(called).toEqual(["copy", "same signal"]);
});

it("copies a context with other fields, without creating a signal", () => {
  const token = new CancelToken();
  const { context, signalReads } = contextWith(token);
  const notify = vi.fn();
  const copy = copyContext(context, { notify, headers: { "x-a": "1" } });
  const second = copyContext(copy, { headersChecked: true });
  expect(second.headers).toEqual({ "x-a": "1" });
  const called: string[] = [];
  onCancel(second, () => called.push("copy of the copy"));
  expect(second).toMatchObject({ revision: "", caller: context.caller, notify, ask: context.ask });
  expect(context.notify).not.toBe(notify);
  expect(signalReads()).toBe(0);
  token.abort(new Error("enough"));
  expect(isCancelled(second)).toBe(true);
  expect(called).toEqual(["copy of the copy"]);
  expect(second.signal).toBe(context.signal);
  token.detach();
  expect(isCancelled(second)).toBe(true);
});

it("copies a context with a signal of its own, and fields that it does not know", () => {
  const { context } = contextWith(new CancelToken());
  const own = { ...context, signal: AbortSignal.abort(), tenant: "a" };
  const copy = copyContext(own, { headersChecked: true });
  expect(copy).toMatchObject({ signal: own.signal, tenant: "a", headersChecked: true });
  expect(isCancelled(copy)).toBe(true);
});
