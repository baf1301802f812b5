// How many calls run at once, who shares a limit, how long calls wait, and when a slot is free again.

import { expect, it } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { deferred } from "../../core/async.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { chain } from "../chain.ts";
import { concurrency, type ConcurrencyOptions } from "./concurrency.ts";

/** A gateway whose calls run until `finish`. */
function start(options: number | ConcurrencyOptions) {
  const running: { readonly name: unknown; readonly context: Context; finish(result?: Result): void }[] = [];
  const gateway = chain(concurrency(options)).to(async ({ params }, context) => {
    const done = deferred<Result>();
    running.push({ name: params["name"], context, finish: (result = textResult("done")) => done.resolve(result) });
    return done.promise.finally(() =>
      running.splice(
        running.findIndex((one) => one.context === context),
        1,
      ),
    );
  });
  const send = (request: Request = callRequest("a"), context = fakeContext().context): Promise<unknown> =>
    gateway(request, context).catch((error: unknown) => error);
  return { running, send };
}

/** Lets all promises settle that can. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

it("runs some calls at once, and the others in the order in which they came", async () => {
  const { running, send } = start({ calls: 2, by: "all" });
  const sent = ["a", "b", "c", "d"].map((name) => send(callRequest(name)));
  await settle();
  expect(running.map(({ name }) => name)).toEqual(["a", "b"]);
  running[1]!.finish();
  await settle();
  expect(running.map(({ name }) => name)).toEqual(["a", "c"]);
  running[0]!.finish();
  running[1]!.finish();
  await settle();
  running[0]!.finish();
  expect(await Promise.all(sent)).toEqual(Array(4).fill(textResult("done")));
});

it("refuses a call if the queue is full, or it waits too long", async () => {
  const { running, send } = start({ calls: 1, queue: 1, waitMs: 20 });
  const first = send();
  const late = send();
  expect(await send()).toMatchObject({
    kind: "rate_limited",
    message: "The middleware concurrency refused tools/call: 1 calls run already, and 1 wait; try again later",
    data: { middlewareName: "concurrency" },
  });
  expect(await late).toMatchObject({ kind: "rate_limited", message: expect.stringContaining("none ended in 20 ms") });
  expect(running).toHaveLength(1);
  running[0]!.finish();
  expect(await first).toEqual(textResult("done"));
  const none = start({ calls: 1, queue: 0 });
  void none.send();
  expect(await none.send()).toMatchObject({ kind: "rate_limited" });
});

it("removes a call from the queue when it is cancelled", async () => {
  const { running, send } = start({ calls: 1, queue: 1 });
  void send(callRequest("a"));
  const { context, abort } = fakeContext();
  const cancelled = send(callRequest("b"), context);
  const reason = new Error("No longer wanted");
  abort(reason);
  expect(await cancelled).toBe(reason);
  const next = send(callRequest("c"));
  running[0]!.finish();
  await settle();
  expect(running.map(({ name }) => name)).toEqual(["c"]);
  running[0]!.finish();
  expect(await next).toEqual(textResult("done"));
});

it("has a limit for each authenticated caller, or for each tool", async () => {
  const callers = start(1);
  for (const principal of ["ada", "ada", "bea"])
    void callers.send(callRequest(principal), fakeContext({ principal }).context);
  await settle();
  expect(callers.running.map(({ name }) => name)).toEqual(["ada", "bea"]);
  const tools = start({ calls: 1, by: "tool" });
  for (const name of ["a", "a", "b"]) void tools.send(callRequest(name));
  void tools.send({ method: "prompts/get", params: { name: "a" } });
  await settle();
  expect(tools.running.map(({ name }) => name)).toEqual(["a", "b", "a"]);
});

it("counts calls and reads by default, or the given methods", async () => {
  const usual = start(1);
  void usual.send();
  void usual.send({ method: "tools/list", params: {} });
  void usual.send({ method: "resources/read", params: { uri: "a://b" } });
  await settle();
  expect(usual.running).toHaveLength(2);
  const lists = start({ calls: 1, methods: ["tools/list"] });
  for (let count = 0; count < 2; count += 1) void lists.send({ method: "tools/list", params: {} });
  void lists.send();
  await settle();
  expect(lists.running).toHaveLength(2);
  expect(() => concurrency({ calls: 1, methods: ["subscriptions/listen"] })).toThrow("subscriptions have no end");
});

it("does not count a call while its caller answers, and goes on when there is a slot", async () => {
  const answer = deferred<Result>();
  const { running, send } = start(1);
  const asking = send(callRequest("asks"), fakeContext({ answer: () => answer.promise }).context);
  const other = send(callRequest("other"));
  await settle();
  const [first] = running;
  const answered: unknown[] = [];
  void first!.context.ask({ method: "roots/list", params: {} }).then((result) => answered.push(result));
  await settle();
  expect(running.map(({ name }) => name)).toEqual(["asks", "other"]);
  answer.resolve({ roots: [] });
  await settle();
  expect(answered).toEqual([]);
  running[1]!.finish();
  await other;
  await settle();
  expect(answered).toEqual([{ roots: [] }]);
  const last = send(callRequest("last"));
  await settle();
  expect(running.map(({ name }) => name)).toEqual(["asks"]);
  first!.finish();
  await asking;
  await settle();
  expect(running.map(({ name }) => name)).toEqual(["last"]);
  running[0]!.finish();
  await last;
});

it("frees the slot of a call that ends while its caller is asked, or asks for input", async () => {
  const { running, send } = start(1);
  const { context, abort } = fakeContext({ answer: () => new Promise<never>(() => undefined) });
  const first = send(callRequest("a"), context);
  await settle();
  void running[0]!.context.ask({ method: "roots/list", params: {} });
  running[0]!.finish({ resultType: "input_required", inputRequests: {} });
  expect(await first).toMatchObject({ resultType: "input_required" });
  abort();
  for (let count = 0; count < 2; count += 1) {
    const next = send(callRequest("b"));
    await settle();
    expect(running).toHaveLength(1);
    running[0]!.finish();
    await next;
  }
});
