// When calls are refused, when they may pass again, and what counts as a failure of which upstream.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { deferred } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { breaker, type BreakerOptions } from "./breaker.ts";
import { retry } from "./retry.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const gone = new ConnectionError("closed", "The upstream is gone");

function start(options: BreakerOptions, answer: () => Result | Promise<Result>) {
  let calls = 0;
  const gateway = chain(breaker(options)).to(async () => {
    calls += 1;
    return answer();
  });
  const send = (request: Request = callRequest("a")): Promise<unknown> =>
    gateway(request, fakeContext().context).catch((error: unknown) => error);
  return { send, calls: () => calls };
}

const fail = (): never => {
  throw gone;
};

const refused = (retryAfterMs: number) => ({ kind: "unreachable", data: { middlewareName: "breaker", retryAfterMs } });

it("refuses calls after some failures in a row, then lets one pass", async () => {
  let answer: () => Result = fail;
  const { send, calls } = start({ failures: 2, openMs: 1_000 }, () => answer());
  expect(await send()).toBe(gone);
  expect(await send({ method: "tools/list", params: {} })).toBe(gone);
  expect(await send()).toMatchObject({
    ...refused(1_000),
    message:
      "The middleware breaker refused tools/call: the upstream has failed several times in a row; try again in 1000 ms",
  });
  vi.advanceTimersByTime(999);
  expect(await send()).toMatchObject(refused(1));
  expect(calls()).toBe(2);
  vi.advanceTimersByTime(1);
  expect(await send()).toBe(gone);
  expect(await send()).toMatchObject(refused(1_000));
  vi.advanceTimersByTime(1_000);
  answer = () => textResult("back");
  expect(await send()).toEqual(textResult("back"));
  answer = fail;
  expect(await send()).toBe(gone);
  expect(await send()).toBe(gone);
  expect(await send()).toMatchObject(refused(1_000));
});

it("lets only one call pass as a test, and another one if that does not end", async () => {
  const test = deferred<Result>();
  let answer: () => Result | Promise<Result> = fail;
  const { send, calls } = start({ failures: 1, openMs: 100 }, () => answer());
  await send();
  vi.advanceTimersByTime(100);
  answer = () => test.promise;
  const testing = send();
  expect(await send()).toMatchObject(refused(100));
  expect(calls()).toBe(2);
  vi.advanceTimersByTime(100);
  const second = send();
  test.resolve(textResult("back"));
  expect(await Promise.all([testing, second])).toEqual(Array(2).fill(textResult("back")));
  expect(await send()).toEqual(textResult("back"));
});

it("does not count answers, cancelled calls, missing rights or errors of other middleware", async () => {
  const answers = [
    fail,
    () => textResult("works"),
    fail,
    () => {
      throw McpError.of("invalid_params", "An answer");
    },
    fail,
    () => ({ ...textResult("wrong"), isError: true }),
    () => {
      throw new ConnectionError("cancelled", "Cancelled");
    },
    () => {
      throw new ConnectionError("unauthorized", "No rights", { status: 401 });
    },
    () => {
      throw McpError.of("rate_limited", "Too many", { middlewareName: "rate-limit" });
    },
    fail,
  ];
  const all = answers.length;
  const { send, calls } = start({ failures: 2 }, () => (answers.shift() ?? fail)());
  for (let count = 0; count < all; count += 1) await send();
  expect(calls()).toBe(all);
  expect(await send()).toBe(gone);
  expect(await send()).toMatchObject(refused(30_000));
});

it("tests again at once if the test was cancelled", async () => {
  let answer: () => Result = fail;
  const { send } = start({ failures: 1, openMs: 100 }, () => answer());
  await send();
  vi.advanceTimersByTime(100);
  answer = () => {
    throw new ConnectionError("cancelled", "Cancelled");
  };
  expect(await send()).toMatchObject({ kind: "cancelled" });
  answer = () => textResult("back");
  expect(await send()).toEqual(textResult("back"));
});

it("counts for each upstream of a gateway", async () => {
  const good = createServer({ name: "good", version: "1" }).tool("one", {}, () => "works");
  const healthy = createServer({ name: "bad", version: "1" }).tool("two", {}, () => "works");
  const bad: Handler = async (request, context) =>
    request.method === "tools/call" ? fail() : healthy(request, context);
  const gateway = chain(breaker({ failures: 2 })).to({ good, bad, team: chain().to({ inner: bad, other: good }) });
  const { context } = fakeContext();
  await gateway({ method: "tools/list", params: {} }, context);
  const call = (name: string) => gateway(callRequest(name), context).catch((error: unknown) => error);
  for (const name of ["bad_two", "bad_two"]) expect(await call(name)).toMatchObject({ kind: "closed" });
  expect(await call("bad_two")).toMatchObject({
    kind: "unreachable",
    message: expect.stringContaining("the upstream bad has failed several times"),
  });
  expect(await call("good_one")).toMatchObject({ content: [{ text: "works" }] });
  for (const name of ["team_two", "team_two"]) expect(await call(name)).toMatchObject({ kind: "closed" });
  expect(await call("team_two")).toMatchObject({ kind: "unreachable", data: { middlewareName: "breaker" } });
  expect(await call("team_one")).toMatchObject({ content: [{ text: "works" }] });
  await gateway.close();
});

it("counts for each tool, also their errors if wanted", async () => {
  const { send } = start({ failures: 1, by: "tool", toolErrors: true }, () => ({ isError: true, content: [] }));
  expect(await send()).toMatchObject({ isError: true });
  expect(await send()).toMatchObject({ message: expect.stringContaining("the tool a has failed") });
  expect(await send(callRequest("b"))).toMatchObject({ isError: true });
  expect(await send({ method: "prompts/get", params: { name: "a" } })).toMatchObject({ isError: true });
});

it("counts all attempts that retry makes after it as one call, also while it tests", async () => {
  let hits = 0;
  const down: Handler = async ({ method }) => {
    if (method === "server/discover") return { capabilities: { tools: {} } };
    if (method === "tools/list") return { tools: [{ name: "a" }] };
    hits += 1;
    throw new ConnectionError("closed", "The upstream is gone", { mayHaveRun: false });
  };
  const other = createServer({ name: "other", version: "1" }).tool("b", {}, () => "b");
  const gateway = chain(breaker({ failures: 2, openMs: 1_000 }), retry({ attempts: 3, firstMs: 1, maxMs: 1 })).to({
    down,
    other,
  });
  const send = (): Promise<unknown> =>
    gateway(callRequest("a"), fakeContext().context).catch((error: unknown) => error);
  for (let round = 0; round < 2; round += 1) {
    hits = 0;
    for (let call = 0; call < 5; call += 1) await send();
    expect(hits).toBe(round === 0 ? 6 : 3);
    expect(await send()).toMatchObject(refused(1_000));
    vi.advanceTimersByTime(1_000);
  }
  await gateway.close();
});
