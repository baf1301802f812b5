// Tasks and states of one principal are refused to others; unknown ones are left to the upstream.

import { expect, it } from "vitest";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { Ownership } from "./ownership.ts";

const TASK: Result = { resultType: "task", taskId: "t1" };
const INPUT_REQUIRED: Result = { resultType: "input_required", inputRequests: {}, requestState: "s1" };
const REFUSED = { kind: "invalid_params" };

function by(principal?: string): Context {
  const caller = fakeCaller(principal === undefined ? {} : { principal });
  return {
    revision: NEWEST.name,
    caller,
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("unexpected")),
  };
}

/** Handles a request as the pool does. */
async function handle(owners: Ownership, request: Request, context: Context, next: Handler): Promise<Result> {
  const result = await next(owners.check(request, context.caller), context);
  owners.record(request, result, context.caller);
  return result;
}

/** An upstream that answers with this, and the requests that reached it. */
function upstreamWith(answer: Result): { readonly seen: Request[]; readonly next: Handler } {
  const seen: Request[] = [];
  return {
    seen,
    next: async (request) => {
      seen.push(request);
      return answer;
    },
  };
}

it.each(["tasks/get", "tasks/update", "tasks/cancel"])("lets only its owner use a task with %s", async (method) => {
  const owners = new Ownership();
  const { seen, next } = upstreamWith(TASK);
  await handle(owners, { method: "tools/call", params: { name: "job" } }, by("ada"), next);
  const request = { method, params: { taskId: "t1" } };
  await expect(handle(owners, request, by("bob"), next)).rejects.toMatchObject(REFUSED);
  await expect(handle(owners, request, by(), next)).rejects.toMatchObject(REFUSED);
  expect(seen).toHaveLength(1);
  await handle(owners, request, by("ada"), next);
  await handle(owners, { method, params: { taskId: "t2" } }, by("bob"), next);
  expect(seen).toHaveLength(3);
});

it("lets all who were given the same id use it, and no one else", async () => {
  const owners = new Ownership();
  const { seen, next } = upstreamWith(TASK);
  for (const principal of ["ada", "bob"]) {
    await handle(owners, { method: "tools/call", params: { name: "job" } }, by(principal), next);
  }
  const request = { method: "tasks/get", params: { taskId: "t1" } };
  for (const principal of ["ada", "bob"]) await handle(owners, request, by(principal), next);
  await expect(handle(owners, request, by("cyd"), next)).rejects.toMatchObject(REFUSED);
  expect(seen).toHaveLength(4);
});

it("removes the tasks of others from a subscription", async () => {
  const owners = new Ownership();
  const { seen, next } = upstreamWith(TASK);
  await handle(owners, { method: "tools/call", params: { name: "job" } }, by("ada"), next);
  const request = { method: "subscriptions/listen", params: { notifications: { taskIds: ["t1", "t2"], other: true } } };
  await handle(owners, request, by("bob"), next);
  expect(seen.at(-1)?.params["notifications"]).toEqual({ taskIds: ["t2"], other: true });
  await handle(owners, request, by("ada"), next);
  expect(seen.at(-1)).toBe(request);
});

it("lets only the caller that was asked continue a call", async () => {
  const owners = new Ownership();
  const { seen, next } = upstreamWith(INPUT_REQUIRED);
  await handle(owners, { method: "tools/call", params: { name: "ask" } }, by(), next);
  const retry = { method: "tools/call", params: { name: "ask", requestState: "s1", inputResponses: {} } };
  await expect(handle(owners, retry, by("bob"), next)).rejects.toMatchObject(REFUSED);
  expect(seen).toHaveLength(1);
  await handle(owners, retry, by(), next);
  expect(seen.at(-1)).toBe(retry);
});
