// What an end asks outside any call: it is put to a call that is under way or comes soon, and refused in the end.

import { afterEach, describe, expect, it, vi } from "vitest";
import type { Context } from "../../core/handler.ts";
import type { Result } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { HeldAsks } from "./held-asks.ts";

const QUESTION = { method: "roots/list", params: {} };

function context(ask: Context["ask"]): Context {
  return {
    revision: NEWEST.name,
    caller: { capabilities: { roots: {} } },
    signal: new AbortController().signal,
    notify: () => undefined,
    ask,
  };
}

afterEach(() => vi.useRealTimers());

describe("held asks", () => {
  it("go to the call that is under way", async () => {
    const held = new HeldAsks();
    let finish = (): void => undefined;
    const call = held.during(
      context(async ({ method }) => ({ roots: [], method })),
      () => new Promise<Result>((resolve) => (finish = () => resolve({}))),
    );
    expect(await held.ask(QUESTION)).toEqual({ roots: [], method: "roots/list" });
    finish();
    await call;
  });

  it("wait for one that comes soon", async () => {
    const held = new HeldAsks();
    const answer = held.ask(QUESTION);
    await held.during(
      context(async () => ({ roots: ["mine"] })),
      async () => ({ saw: await answer }),
    );
    expect(await answer).toEqual({ roots: ["mine"] });
  });

  it("that have waited are answered before a call begins, which may be over at once; a long one begins meanwhile", async () => {
    const order: string[] = [];
    const slow = context(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      order.push("answered");
      return {};
    });
    for (const isLong of [false, true]) {
      const held = new HeldAsks();
      const answer = held.ask(QUESTION);
      const call = async (): Promise<Result> => {
        order.push("called");
        return isLong ? answer : {};
      };
      await held.during(slow, call, isLong);
      await answer;
    }
    expect(order).toEqual(["answered", "called", "called", "answered"]);
  });

  it("go to the next where a call ends before its caller could answer", async () => {
    const held = new HeldAsks();
    let over = (_error: Error): void => undefined;
    const first = held.during(
      context(() => new Promise<Result>((_, reject) => (over = reject))),
      async () => ({}),
    );
    const answer = held.ask(QUESTION);
    await first;
    over(new Error("The call is answered"));
    await held.during(
      context(async () => ({ roots: ["second"] })),
      async () => ({ saw: await answer }),
    );
    expect(await answer).toEqual({ roots: ["second"] });
  });

  it("are refused by name when nobody comes, and given up with their signal", async () => {
    vi.useFakeTimers();
    const held = new HeldAsks();
    const refused = expect(held.ask(QUESTION)).rejects.toThrow(/Nobody is there to answer roots\/list/);
    const stop = new AbortController();
    const given = expect(held.ask(QUESTION, { signal: stop.signal })).rejects.toThrow("enough");
    stop.abort(new Error("enough"));
    await given;
    await vi.advanceTimersByTimeAsync(10_000);
    await refused;
  });
});
