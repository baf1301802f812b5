// Which requests are sent again, and which never are. With fake timers.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeContext, textResult, type FakeContext } from "../../../test/support/handlers/fake-client.ts";
import { ConnectionError, type ConnectionErrorKind } from "../../core/errors.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { chain } from "../chain.ts";
import { retry } from "./retry.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const lost = (kind: ConnectionErrorKind = "closed", status?: number): ConnectionError =>
  new ConnectionError(kind, "lost", status === undefined ? {} : { status });
const unsent = (kind: ConnectionErrorKind = "refused"): ConnectionError =>
  new ConnectionError(kind, "not sent", { mayHaveRun: false });

type Step = Result | Error | ((context: Context) => Promise<Result>);

/** What a gateway has seen of lists stays with it, so all requests with one middleware go through one gateway. */
const gateways = new WeakMap<Middleware, TestedGateway>();

class TestedGateway {
  steps: readonly Step[] = [];
  sent = 0;
  readonly run: Handler;

  constructor(middleware: Middleware) {
    this.run = chain(middleware).to(async (_request, context) => {
      const step = this.steps[this.sent++] ?? textResult("done");
      if (typeof step === "function") return step(context);
      if (step instanceof Error) throw step;
      return step;
    });
  }
}

/** Sends a request to an upstream that answers with one step for each attempt; returns the outcome and the attempts. */
async function send(
  request: Request,
  steps: readonly Step[],
  middleware: Middleware = retry(),
  caller: FakeContext = fakeContext(),
) {
  const gateway = gateways.get(middleware) ?? new TestedGateway(middleware);
  gateways.set(middleware, gateway);
  gateway.steps = steps;
  gateway.sent = 0;
  const answer = gateway.run(request, caller.context).catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(600_000);
  return { outcome: await answer, sent: gateway.sent };
}

/** Middleware that has seen a list of these tools. */
async function knowing(annotations: object, middleware: Middleware = retry()): Promise<Middleware> {
  const tools = [{ name: "a", annotations }, { name: "b" }, null, { name: 5 }];
  await send({ method: "tools/list", params: {} }, [{ resultType: "complete", tools }], middleware);
  return middleware;
}

it("retry sends again: a request that has surely not begun, up to three times in all", async () => {
  expect(await send(callRequest("a"), [unsent(), unsent()])).toEqual({ outcome: textResult("done"), sent: 3 });
  const failed = await send(callRequest("a"), [unsent(), unsent(), unsent()]);
  expect(failed).toMatchObject({ outcome: { kind: "refused", mayHaveRun: false }, sent: 3 });
  expect(
    await send(
      callRequest("a"),
      Array.from({ length: 4 }, () => unsent()),
      retry({ attempts: 5 }),
    ),
  ).toMatchObject({ sent: 5 });
  expect(await send(callRequest("a"), [unsent()], retry({ attempts: 1 }))).toMatchObject({ sent: 1 });
});

it("retry sends again: a request that only reads", async () => {
  for (const method of ["tools/list", "resources/read", "prompts/get", "server/discover", "tasks/get"]) {
    expect(await send({ method, params: {} }, [lost(), lost("timeout")])).toMatchObject({ sent: 3 });
  }
});

it("retry sends again: a call of a tool that is declared safe", async () => {
  for (const hints of [
    { readOnlyHint: true },
    { idempotentHint: true, destructiveHint: false },
    { idempotentHint: true },
  ]) {
    expect(await send(callRequest("a"), [lost()], await knowing(hints))).toMatchObject({
      outcome: textResult("done"),
      sent: 2,
    });
  }
});

it("retry sends again: a safe call after progress", async () => {
  const reporting = async (context: Context): Promise<Result> => {
    context.notify({ method: "notifications/progress", params: { progress: 1 } });
    throw lost();
  };
  expect(await send(callRequest("a"), [reporting], await knowing({ readOnlyHint: true }))).toMatchObject({ sent: 2 });
});

it("retry sends again after pauses that grow", async () => {
  const random = vi.spyOn(Math, "random").mockReturnValue(0.5);
  const times: number[] = [];
  let clock = 0;
  const gateway = chain(retry({ attempts: 4, firstMs: 100, maxMs: 200 })).to(async () => {
    times.push(clock);
    throw unsent();
  });
  const outcome = gateway(callRequest("a"), fakeContext().context).catch((error: unknown) => error);
  for (; clock < 600; clock += 10) await vi.advanceTimersByTimeAsync(10);
  await outcome;
  expect(times).toEqual([0, 90, 250, 450]);
  random.mockRestore();
});

it("retry sends again: a call only by what its own caller was told about the tool", async () => {
  const middleware = await knowing({ idempotentHint: true });
  const other = fakeContext({ name: "other" });
  expect(await send(callRequest("a"), [lost()], middleware)).toMatchObject({ sent: 2 });
  expect(await send(callRequest("a"), [lost()], middleware, other)).toMatchObject({ sent: 1 });
});

it("retry does not send again: a call that may have run", async () => {
  expect(await send(callRequest("a"), [lost()])).toMatchObject({ outcome: { kind: "closed" }, sent: 1 });
  expect(await send(callRequest("b"), [lost()], await knowing({ readOnlyHint: true }))).toMatchObject({ sent: 1 });
  for (const hints of [
    { idempotentHint: true, destructiveHint: true },
    { readOnlyHint: true, destructiveHint: true },
    {},
  ]) {
    expect(await send(callRequest("a"), [lost()], await knowing(hints))).toMatchObject({ sent: 1 });
  }
});

it("retry does not send again: a call of a tool that is no longer declared safe", async () => {
  const changed = await knowing({ readOnlyHint: true });
  await knowing({}, changed);
  expect(await send(callRequest("a"), [lost()], changed)).toMatchObject({ sent: 1 });
  const notified = await knowing({ readOnlyHint: true });
  const listen = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const change = async (context: Context): Promise<Result> => {
    context.notify({ method: "notifications/tools/list_changed" });
    return { resultType: "complete" };
  };
  await send(listen, [change], notified);
  expect(await send(callRequest("a"), [lost()], notified)).toMatchObject({ sent: 1 });
});

it("retry does not send again: a request that the upstream has answered", async () => {
  const answers = [
    McpError.of("internal_error", "no"),
    new Error("an accident"),
    { resultType: "input_required", inputRequests: {} },
    { resultType: "task", taskId: "1" },
    { ...textResult("no"), isError: true },
  ];
  for (const answer of answers) {
    expect(await send(callRequest("a"), [answer], await knowing({ readOnlyHint: true }))).toMatchObject({ sent: 1 });
  }
});

it("retry does not send again after a failure that is not temporary", async () => {
  for (const error of [lost("unauthorized"), lost("protocol"), lost("cancelled"), lost("http", 404)]) {
    expect(await send({ method: "tools/list", params: {} }, [error])).toMatchObject({ sent: 1 });
  }
});

it("retry does not send again after the caller was asked, or after progress of a call that is not safe", async () => {
  const asking = async (context: Context): Promise<Result> => {
    await context.ask({ method: "roots/list", params: {} });
    throw unsent();
  };
  const caller = fakeContext({ answer: () => ({ roots: [] }) });
  const safe = await knowing({ readOnlyHint: true });
  expect(await send(callRequest("a"), [asking], safe, caller)).toMatchObject({ sent: 1 });
  const reporting = async (context: Context): Promise<Result> => {
    context.notify({ method: "notifications/progress", params: { progress: 1 } });
    throw unsent();
  };
  expect(await send(callRequest("a"), [reporting])).toMatchObject({ sent: 1 });
});

it("retry does not send again: a subscription, a task, answers of the caller, or a method that is not listed", async () => {
  const safe = await knowing({ readOnlyHint: true });
  const plain = fakeContext();
  const wanting = { ...plain, context: { ...plain.context, task: { mode: "required" as const } } };
  expect(await send(callRequest("a"), [lost()], safe, wanting)).toMatchObject({ sent: 1 });
  const answering = { method: "tools/call", params: { name: "a", inputResponses: {} } };
  expect(await send(answering, [lost()], safe)).toMatchObject({ sent: 1 });
  const listen = { method: "subscriptions/listen", params: { notifications: {} } };
  expect(await send(listen, [unsent()])).toMatchObject({ sent: 1 });
  expect(await send(callRequest("a"), [unsent()], retry({ methods: ["tools/list"] }))).toMatchObject({ sent: 1 });
});

it("retry does not send again after the caller has left, before or during the pause", async () => {
  const gone = fakeContext();
  const leaving = async (): Promise<Result> => {
    gone.abort();
    throw unsent();
  };
  expect(await send(callRequest("a"), [leaving], retry(), gone)).toMatchObject({ sent: 1 });
  const going = fakeContext();
  let sent = 0;
  const outcome = chain(retry())
    .to(async () => {
      sent += 1;
      throw unsent();
    })(callRequest("a"), going.context)
    .catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(10);
  going.abort("enough");
  expect(await outcome).toBe("enough");
  expect(sent).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

it("reports mayHaveRun if one of the attempts may have run", async () => {
  const { outcome } = await send({ method: "tools/list", params: {} }, [lost(), unsent(), unsent()]);
  expect(outcome).toMatchObject({ kind: "refused", mayHaveRun: true });
});
