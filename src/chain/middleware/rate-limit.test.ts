// Token buckets: how many calls pass, who shares a bucket, and the error for calls that come too soon.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import type { Request } from "../../core/handler.ts";
import { chain } from "../chain.ts";
import { Buckets, rateLimit, type RateLimitOptions } from "./rate-limit.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

function start(options: RateLimitOptions) {
  const gateway = chain(rateLimit(options)).to(async () => textResult("done"));
  return async (principal?: string, request: Request = callRequest("a")): Promise<unknown> => {
    const { context } = fakeContext(principal === undefined ? {} : { principal });
    return gateway(request, context).catch((error: unknown) => error);
  };
}

const refused = (retryAfterMs: number) => ({
  kind: "rate_limited",
  data: { middlewareName: "rate-limit", retryAfterMs },
});

it("refuses calls over the limit, says when to try again, and then lets them pass", async () => {
  const send = start({ calls: 2, per: "second" });
  expect(await send()).toEqual(textResult("done"));
  expect(await send()).toEqual(textResult("done"));
  expect(await send()).toMatchObject({
    ...refused(500),
    message: "The middleware rate-limit refused tools/call: the limit is 2 calls in 1000 ms; try again in 500 ms",
  });
  vi.advanceTimersByTime(499);
  expect(await send()).toMatchObject(refused(1));
  vi.advanceTimersByTime(1);
  expect(await send()).toEqual(textResult("done"));
  expect(await send()).toMatchObject(refused(500));
});

it("saves up the calls of one period at most", async () => {
  const send = start({ calls: 1, perMs: 100 });
  vi.advanceTimersByTime(10_000);
  expect(await send()).toEqual(textResult("done"));
  expect(await send()).toMatchObject(refused(100));
});

it("has a bucket for each authenticated caller, or one for all", async () => {
  const apart = start({ calls: 1, per: "minute" });
  for (const principal of ["ada", "bea", undefined]) expect(await apart(principal)).toEqual(textResult("done"));
  for (const principal of ["ada", "bea", undefined]) expect(await apart(principal)).toMatchObject(refused(60_000));
  const together = start({ calls: 1, per: "hour", by: "all" });
  expect(await together("ada")).toEqual(textResult("done"));
  expect(await together("bea")).toMatchObject(refused(3_600_000));
});

it("counts calls and reads by default, or the given methods", async () => {
  const usual = start({ calls: 1, per: "minute" });
  for (let count = 0; count < 3; count += 1) {
    expect(await usual(undefined, { method: "tools/list", params: {} })).toEqual(textResult("done"));
  }
  expect(await usual(undefined, { method: "resources/read", params: { uri: "a://b" } })).toEqual(textResult("done"));
  expect(await usual()).toMatchObject({ kind: "rate_limited" });
  const lists = start({ calls: 1, per: "minute", methods: ["tools/list"] });
  await lists(undefined, { method: "tools/list", params: {} });
  expect(await lists(undefined, { method: "tools/list", params: {} })).toMatchObject({ kind: "rate_limited" });
  expect(await lists()).toEqual(textResult("done"));
});

it("keeps a bounded number of buckets, and drops full ones first", () => {
  let now = 0;
  const buckets = new Buckets(1, 1_000, () => now);
  for (let count = 0; count < 20_000; count += 1) buckets.take(`many ${count}`);
  expect(buckets.size).toBe(10_000);
  expect([buckets.take("many 9999"), buckets.take("many 19999")]).toEqual([0, 1_000]);
  now = 2_000;
  expect(buckets.take("many 19999")).toBe(0);
});
