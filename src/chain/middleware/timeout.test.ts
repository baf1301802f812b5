// Limits on time: in all, in silence, not while the caller is asked, and never on listens. By a clock of the test's own.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { call, loneCaller, text } from "../../../test/support/lone-caller.ts";
import type { Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { chain } from "../chain.ts";
import { timeout } from "./timeout.ts";
import { provide } from "../gateway.ts";
import { Replaceable } from "../replaceable.ts";

// Loaded before the clocks of these tests are stopped.
provide(Replaceable);

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
afterEach(() => void vi.useRealTimers());

/** An end that answers when it is told, and a call through the link. */
function stage(options: Parameters<typeof timeout>[0], request: Request = call("a"), answer?: () => Promise<Result>) {
  let context: Context | undefined;
  let finish: (result: Result) => void = () => undefined;
  const end: Handler = (_request, own) => {
    context = own;
    return new Promise((resolve) => {
      finish = resolve;
    });
  };
  const caller = loneCaller(answer === undefined ? {} : { answer });
  const outcome = chain(timeout(options))
    .to(end)(request, caller.context)
    .catch((error: unknown) => error);
  return { caller, outcome, inner: () => context!, finish: (result: Result) => finish(result) };
}

it("lets through what is done in time, and leaves no timer", async () => {
  const { outcome, finish } = stage(1_000);
  await vi.advanceTimersByTimeAsync(999);
  finish(text("done"));
  expect(await outcome).toEqual(text("done"));
  expect(vi.getTimerCount()).toBe(0);
});

it("aborts what takes longer, and says which link did it", async () => {
  const { outcome, inner } = stage(1_000);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await outcome).toMatchObject({
    kind: "timeout",
    mayHaveRun: true,
    message: "At the link timeout: tools/call was not finished within 1000 ms; a greater `ms` would let it go on",
  });
  expect(inner().signal.aborted).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

it("says so too where the end gives up as it is told", async () => {
  const gateway = chain(timeout(1_000)).to(
    (_request, { signal }) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  const outcome = gateway(call("a"), loneCaller().context).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await outcome).toMatchObject({
    kind: "timeout",
    message: expect.stringContaining("At the link timeout") as string,
  });
});

it("counts silence from the last progress", async () => {
  const { outcome, inner, caller } = stage({ idle: 100, ms: 1_000 });
  const progress = { method: "notifications/progress", params: { progressToken: 1, progress: 1 } };
  for (let count = 0; count < 5; count += 1) {
    await vi.advanceTimersByTimeAsync(90);
    inner().notify(progress);
    // A word in the log is no progress.
    await vi.advanceTimersByTimeAsync(5);
    inner().notify({ method: "notifications/message", params: { level: "info", data: "still here" } });
  }
  expect(caller.said).toHaveLength(10);
  await vi.advanceTimersByTimeAsync(95);
  expect(await outcome).toMatchObject({ kind: "timeout", message: expect.stringContaining("for 100 ms") as string });
});

it("does not let progress go on for ever where there is a limit on all", async () => {
  const { outcome, inner } = stage({ idle: 100, ms: 250 });
  for (let count = 0; count < 3; count += 1) {
    await vi.advanceTimersByTimeAsync(80);
    inner().notify({ method: "notifications/progress", params: { progress: count } });
  }
  await vi.advanceTimersByTimeAsync(10);
  expect(await outcome).toMatchObject({ kind: "timeout", message: expect.stringContaining("within 250 ms") as string });
});

it("stands still while the caller is asked, however many questions there are", async () => {
  const answers: ((answer: Result) => void)[] = [];
  const { outcome, inner, finish } = stage(
    { ms: 100, idle: 80 },
    call("a"),
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
  finish(text("done"));
  expect(await outcome).toEqual(text("done"));
});

it("goes on counting after a question", async () => {
  const { outcome, inner } = stage(100, call("a"), async () => ({ roots: [] }));
  await vi.advanceTimersByTimeAsync(50);
  await inner().ask({ method: "roots/list", params: {} });
  await vi.advanceTimersByTimeAsync(50);
  expect(await outcome).toMatchObject({ kind: "timeout" });
});

it("ends with its caller", async () => {
  const { caller, inner } = stage(100);
  caller.leave("enough");
  expect(inner().signal.reason).toBe("enough");
});

it("has no say over listens, nor over other methods than its own", async () => {
  const listen = stage(100, { method: "subscriptions/listen", params: { notifications: {} } });
  const other = stage({ ms: 100, methods: ["tools/call"] }, { method: "tools/list", params: {} });
  await vi.advanceTimersByTimeAsync(1_000);
  for (const { finish, outcome } of [listen, other]) {
    finish({ resultType: "complete" });
    expect(await outcome).toEqual({ resultType: "complete" });
  }
});
