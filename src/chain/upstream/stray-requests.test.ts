// Requests outside of any call: sent to a call that runs or comes soon, and refused after a while.

import { afterEach, expect, it, vi } from "vitest";
import type { Context, Result } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { StrayRequests } from "./client-requests.ts";

const QUESTION = { method: "roots/list", params: {} };

function context(ask: Context["ask"]): Context {
  return {
    revision: NEWEST.name,
    caller: fakeCaller({ capabilities: { roots: {} } }),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask,
  };
}

afterEach(() => vi.useRealTimers());

it("stray requests go to the running call", async () => {
  const requests = new StrayRequests();
  let finish = (): void => undefined;
  const call = requests.runCall(
    context(async ({ method }) => ({ roots: [], method })),
    () => new Promise<Result>((resolve) => (finish = () => resolve({}))),
  );
  expect(await requests.ask(QUESTION)).toEqual({ roots: [], method: "roots/list" });
  finish();
  await call;
});

it("stray requests wait for a call that comes soon", async () => {
  const requests = new StrayRequests();
  const answer = requests.ask(QUESTION);
  await requests.runCall(
    context(async () => ({ roots: ["mine"] })),
    async () => ({ saw: await answer }),
  );
  expect(await answer).toEqual({ roots: ["mine"] });
});

it("stray requests that wait are answered before a short call starts, and during a long one", async () => {
  const order: string[] = [];
  const slow = context(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push("answered");
    return {};
  });
  for (const isLong of [false, true]) {
    const requests = new StrayRequests();
    const answer = requests.ask(QUESTION);
    const call = async (): Promise<Result> => {
      order.push("called");
      return isLong ? answer : {};
    };
    await requests.runCall(slow, call, isLong);
    await answer;
  }
  expect(order).toEqual(["answered", "called", "called", "answered"]);
});

it("stray requests go to the next call if a call ends before its caller could answer", async () => {
  const requests = new StrayRequests();
  let over = (_error: Error): void => undefined;
  const first = requests.runCall(
    context(() => new Promise<Result>((_, reject) => (over = reject))),
    async () => ({}),
  );
  const answer = requests.ask(QUESTION);
  await first;
  over(new Error("The call is answered"));
  await requests.runCall(
    context(async () => ({ roots: ["second"] })),
    async () => ({ saw: await answer }),
  );
  expect(await answer).toEqual({ roots: ["second"] });
});

it("stray requests are refused if no call comes, and end with their signal", async () => {
  vi.useFakeTimers();
  const requests = new StrayRequests();
  const refused = expect(requests.ask(QUESTION)).rejects.toThrow(/No client can answer roots\/list/);
  const stop = new AbortController();
  const aborted = expect(requests.ask(QUESTION, { signal: stop.signal })).rejects.toThrow("enough");
  stop.abort(new Error("enough"));
  await aborted;
  await vi.advanceTimersByTimeAsync(10_000);
  await refused;
});
