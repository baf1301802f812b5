// Which requests are retried after a failure, how often, and which never.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Context, Handler } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { retrying } from "./retry.ts";
import { ToolFacts } from "../../tools/facts.ts";

const tools = new ToolFacts();
tools.learn({ tools: [{ name: "safe", annotations: { idempotentHint: true } }] });
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

test("a call that may have run is not retried, unless the tool is idempotent", async () => {
  expect(await tries("tools/call", "writes", broken)).toEqual([1, broken]);
  expect(await tries("tools/call", "safe", broken)).toEqual([2, { done: true }]);
  const bad = gateway(502);
  expect(await tries("tools/call", "writes", bad)).toEqual([1, bad]);
});

test("a request that has not run is retried, and so are requests that only read", async () => {
  const refused = new ConnectionError("refused", "unreachable", { mayHaveRun: false });
  expect(await tries("tools/call", "writes", refused)).toEqual([2, { done: true }]);
  expect(await tries("resources/read", undefined, broken, gateway(503))).toEqual([3, { done: true }]);
  expect(await tries("tasks/update", undefined, broken)).toEqual([2, { done: true }]);
  expect(await tries("tasks/cancel", undefined, gateway(502))).toEqual([2, { done: true }]);
});

test("if an earlier attempt may have run, the last error says so", async () => {
  const refused = new ConnectionError("refused", "unreachable", { mayHaveRun: false });
  const [count, error] = await tries("tools/call", "safe", broken, refused, refused);
  expect(count).toBe(3);
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: true, message: "unreachable" });
});

test("requests are sent at most three times, and only after transient errors", async () => {
  expect(await tries("tools/list", undefined, broken, broken, broken)).toEqual([3, broken]);
  const timeout = new ConnectionError("timeout", "late");
  expect(await tries("tools/list", undefined, timeout)).toEqual([1, timeout]);
  const missing = gateway(404);
  expect(await tries("tools/list", undefined, missing)).toEqual([1, missing]);
  const other = new Error("ours");
  expect(await tries("tools/list", undefined, other)).toEqual([1, other]);
});
