// What is sent again after a failure on the way, how often, and what never.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler } from "../../core/handler.ts";
import { retrying } from "./retry.ts";
import type { ToolFacts } from "./tool-facts.ts";

const tools = { isSafe: (name: unknown) => name === "safe" } as unknown as ToolFacts;
const context = { signal: new AbortController().signal } as unknown as Context;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function tries(method: string, name: string | undefined, ...failures: Error[]): Promise<[number, unknown]> {
  let count = 0;
  const end: Handler = async () => {
    count += 1;
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return { done: true };
  };
  const params = name === undefined ? {} : { name };
  const outcome = retrying(end, tools)({ method, params }, context).catch((error: unknown) => error);
  await vi.runAllTimersAsync();
  return [count, await outcome];
}

const broken = new ConnectionError("closed", "broke");
const gateway = (status: number): ConnectionError => new ConnectionError("http", "gateway", { status });

test("a call that may have run is not sent again, unless the tool says that this does no harm", async () => {
  expect(await tries("tools/call", "writes", broken)).toEqual([1, broken]);
  expect(await tries("tools/call", "safe", broken)).toEqual([2, { done: true }]);
  const bad = gateway(502);
  expect(await tries("tools/call", "writes", bad)).toEqual([1, bad]);
});

test("what the end has surely not begun with is sent again, and what only reads too", async () => {
  const refused = new ConnectionError("refused", "nobody there", { mayHaveRun: false });
  expect(await tries("tools/call", "writes", refused)).toEqual([2, { done: true }]);
  expect(await tries("resources/read", undefined, broken, gateway(503))).toEqual([3, { done: true }]);
  expect(await tries("tasks/update", undefined, broken)).toEqual([2, { done: true }]);
  expect(await tries("tasks/cancel", undefined, gateway(502))).toEqual([2, { done: true }]);
});

test("where one of the tries may have run, the last failure does not say that none has", async () => {
  const refused = new ConnectionError("refused", "nobody there", { mayHaveRun: false });
  const [count, error] = await tries("tools/call", "safe", broken, refused, refused);
  expect(count).toBe(3);
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: true, message: "nobody there" });
});

test("three times, and no more; and only what may be over in a moment", async () => {
  expect(await tries("tools/list", undefined, broken, broken, broken)).toEqual([3, broken]);
  const timeout = new ConnectionError("timeout", "late");
  expect(await tries("tools/list", undefined, timeout)).toEqual([1, timeout]);
  const missing = gateway(404);
  expect(await tries("tools/list", undefined, missing)).toEqual([1, missing]);
  const other = new Error("ours");
  expect(await tries("tools/list", undefined, other)).toEqual([1, other]);
});
