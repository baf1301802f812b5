// Timeouts: in all, without progress, paused while the caller is asked, and never for subscriptions. With fake timers.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { chain } from "../chain.ts";
import { timeout } from "./timeout.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** A call through the middleware to an upstream that answers when the test says so. */
function start(
  options: Parameters<typeof timeout>[0],
  request: Request = callRequest("a"),
  answer?: () => Promise<Result>,
) {
  let context: Context | undefined;
  let finish: (result: Result) => void = () => undefined;
  const upstream: Handler = (_request, own) => {
    context = own;
    return new Promise((resolve) => {
      finish = resolve;
    });
  };
  const caller = fakeContext(answer === undefined ? {} : { answer });
  const outcome = chain(timeout(options))
    .to(upstream)(request, caller.context)
    .catch((error: unknown) => error);
  return { caller, outcome, inner: () => context!, finish: (result: Result) => finish(result) };
}

it("passes a result that comes in time, and leaves no timer", async () => {
  const { outcome, finish } = start(1_000);
  await vi.advanceTimersByTimeAsync(999);
  finish(textResult("done"));
  expect(await outcome).toEqual(textResult("done"));
  expect(vi.getTimerCount()).toBe(0);
});

it("aborts a call that takes longer, and names the middleware", async () => {
  const { outcome, inner } = start(1_000);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await outcome).toMatchObject({
    kind: "timeout",
    mayHaveRun: true,
    message: "In the middleware timeout: tools/call did not finish within 1000 ms; raise `totalMs` to allow more",
  });
  expect(inner().signal.aborted).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

it("gives the same error if the upstream obeys the abort", async () => {
  const gateway = chain(timeout(1_000)).to(
    (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  const outcome = gateway(callRequest("a"), fakeContext().context).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await outcome).toMatchObject({
    kind: "timeout",
    message: expect.stringContaining("In the middleware timeout") as string,
  });
});

it("counts idleMs from the last progress", async () => {
  const { outcome, inner, caller } = start({ idleMs: 100, totalMs: 1_000 });
  const progress = { method: "notifications/progress", params: { progressToken: 1, progress: 1 } };
  for (let count = 0; count < 5; count += 1) {
    await vi.advanceTimersByTimeAsync(90);
    inner().notify(progress);
    // A log message is not progress.
    await vi.advanceTimersByTimeAsync(5);
    inner().notify({ method: "notifications/message", params: { level: "info", data: "still here" } });
  }
  expect(caller.notifications).toHaveLength(10);
  await vi.advanceTimersByTimeAsync(95);
  expect(await outcome).toMatchObject({ kind: "timeout", message: expect.stringContaining("for 100 ms") as string });
});

it("applies totalMs despite progress", async () => {
  const { outcome, inner } = start({ idleMs: 100, totalMs: 250 });
  for (let count = 0; count < 3; count += 1) {
    await vi.advanceTimersByTimeAsync(80);
    inner().notify({ method: "notifications/progress", params: { progress: count } });
  }
  await vi.advanceTimersByTimeAsync(10);
  expect(await outcome).toMatchObject({ kind: "timeout", message: expect.stringContaining("within 250 ms") as string });
});

it("pauses while the caller is asked, also by several requests at once", async () => {
  const answers: ((answer: Result) => void)[] = [];
  const { outcome, inner, finish } = start(
    { totalMs: 100, idleMs: 80 },
    callRequest("a"),
    () => new Promise((resolve) => answers.push(resolve)),
  );
  await vi.advanceTimersByTimeAsync(50);
  const question = { method: "roots/list", params: {} };
  const asked = [inner().ask(question), inner().ask(question)];
  await vi.advanceTimersByTimeAsync(10_000);
  answers[0]?.({ roots: [] });
  await vi.advanceTimersByTimeAsync(10_000);
  answers[1]?.({ roots: [] });
  await Promise.all(asked);
  await vi.advanceTimersByTimeAsync(45);
  finish(textResult("done"));
  expect(await outcome).toEqual(textResult("done"));
});

it("goes on counting after the caller has answered", async () => {
  const { outcome, inner } = start(100, callRequest("a"), async () => ({ roots: [] }));
  await vi.advanceTimersByTimeAsync(50);
  await inner().ask({ method: "roots/list", params: {} });
  await vi.advanceTimersByTimeAsync(50);
  expect(await outcome).toMatchObject({ kind: "timeout" });
});

it("forwards the abort of the caller", async () => {
  const { caller, inner } = start(100);
  caller.abort("enough");
  expect(inner().signal.reason).toBe("enough");
});

it("does not limit subscriptions, nor methods that are not listed", async () => {
  const listen = start(100, { method: "subscriptions/listen", params: { notifications: {} } });
  const other = start({ totalMs: 100, methods: ["tools/call"] }, { method: "tools/list", params: {} });
  await vi.advanceTimersByTimeAsync(1_000);
  for (const { finish, outcome } of [listen, other]) {
    finish({ resultType: "complete" });
    expect(await outcome).toEqual({ resultType: "complete" });
  }
});
