// A gateway: the status of its upstreams, replacing middleware while requests run, and closing.

import { expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { callRequest, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Middleware } from "../core/handler.ts";
import { chain } from "./chain.ts";
import type { UpstreamStatus } from "./upstream/options.ts";

const echo: Handler = async (request) => textResult(String(request.params["name"]));

/** Middleware that marks results with its name. */
const marking = (name: string, close?: () => Promise<void>): Middleware => {
  const middleware: Middleware = async (request, context, next) => ({ ...(await next(request, context)), by: name });
  if (close !== undefined) middleware.close = close;
  return Object.defineProperty(middleware, "name", { value: name });
};

/** An upstream that answers when the test says so. */
function slow(): { upstream: Handler; answer: () => void } {
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  return { upstream: async (request, context) => answered.then(() => echo(request, context)), answer };
}

const idle: UpstreamStatus = { state: "idle", target: "far", sessions: 0, pids: [], restarts: 0 };
const far = (more: object = {}): Handler =>
  Object.defineProperties(async () => textResult(""), {
    status: { value: () => idle },
    ...Object.fromEntries(Object.entries(more).map(([name, value]) => [name, { value: value as unknown }])),
  });

it("status and close returns the status of each upstream, also of nested chains", () => {
  const running = { state: "running", target: "in this process" };
  expect(chain().to(echo).status()).toMatchObject({ upstream: running });
  const inner = chain(marking("a")).to({ one: far(), two: echo }, { names: "always" });
  const outer = chain().to({ alone: chain().to(far()), many: inner, mine: echo });
  expect(outer.status()).toMatchObject({ alone: idle, "many.one": idle, "many.two": running, mine: running });
});

it("status and close passes the name on to the upstream, also through a nested chain", () => {
  const called = vi.fn();
  chain().to({ notes: far({ called }) });
  chain().to({ board: chain().to(far({ called })) });
  chain().to({ outer: chain().to({ inner: far({ called }) }) });
  expect(called.mock.calls).toEqual([["notes"], ["board"], ["inner"]]);
});

it("status and close closes upstreams and middleware once, and refuses requests afterwards", async () => {
  const closeUpstream = vi.fn(async () => undefined);
  const closeMiddleware = vi.fn(async () => undefined);
  const gateway = chain(marking("a", closeMiddleware)).to({ notes: far({ close: closeUpstream }), mine: echo });
  await Promise.all([gateway.close(50), gateway.close()]);
  expect(closeUpstream.mock.calls).toEqual([[50]]);
  expect(closeMiddleware).toHaveBeenCalledTimes(1);
  await expect(gateway(callRequest("x"), fakeContext().context)).rejects.toMatchObject({
    kind: "closed",
    mayHaveRun: false,
  });
  expect(() => gateway.replace("a", marking("b"))).toThrow(ConnectionError);
  expect(gateway.status()["mine"]?.state).toBe("closed");
});

it("status and close waits at most the budget, and throws what could not be closed", async () => {
  const never = chain().to(far({ close: () => new Promise(() => undefined) }));
  await never.close(5);
  const broken = chain(marking("a", () => Promise.reject(new Error("middleware")))).to(echo);
  await expect(broken.close()).rejects.toThrow("middleware");
  const both = chain(marking("a", () => Promise.reject(new Error("middleware")))).to(
    far({
      close: () => {
        throw new Error("upstream");
      },
    }),
  );
  await expect(both.close()).rejects.toBeInstanceOf(AggregateError);
});

it("status and close closes middleware of two gateways when both are closed", async () => {
  const close = vi.fn(async () => undefined);
  const shared = chain(marking("a", close));
  const [one, two] = [shared.to(echo), shared.to(echo)];
  await one.close();
  expect(close).not.toHaveBeenCalled();
  await two.close();
  expect(close).toHaveBeenCalledTimes(1);
});

it("replace swaps the middleware and keeps its name", async () => {
  const gateway = chain(marking("a"), marking("b")).to(echo);
  gateway.replace("a", marking("c"));
  expect(gateway.middleware.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(await gateway(callRequest("x"), fakeContext().context)).toMatchObject({ by: "c" });
  gateway.replace("a", (request, context, next) => next(request, context));
  expect(await gateway(callRequest("x"), fakeContext().context)).toMatchObject({ by: "b" });
  expect(() => gateway.replace("d", marking("d"))).toThrow('The chain has no middleware "d"; it has a, b');
  expect(() => gateway.replace("a", 1 as never)).toThrow("replace() takes middleware");
  expect(() => chain().to(echo).replace("a", marking("a"))).toThrow("the chain has no middleware");
});

it("replace lets a call finish with the middleware it began with, and closes that afterwards", async () => {
  const { upstream, answer } = slow();
  const close = vi.fn(async () => undefined);
  const gateway = chain(marking("a", close), marking("b")).to(upstream);
  const before = gateway(callRequest("x"), fakeContext().context);
  gateway.replace("a", marking("c"));
  // After a second change, the first call still uses its own middleware.
  gateway.replace("b", marking("d"));
  const after = gateway(callRequest("x"), fakeContext().context);
  await Promise.resolve();
  expect(close).not.toHaveBeenCalled();
  answer();
  expect(await Promise.all([before, after])).toMatchObject([{ by: "a" }, { by: "c" }]);
  await eventually(() => expect(close).toHaveBeenCalledTimes(1));
  await gateway.close();
  expect(close).toHaveBeenCalledTimes(1);
});

it("replace closes replaced middleware at once if no request uses it", async () => {
  const close = vi.fn(() => Promise.reject(new Error("not reported")));
  const gateway = chain(marking("a", close)).to(echo);
  await gateway(callRequest("x"), fakeContext().context);
  gateway.replace("a", marking("c"));
  await eventually(() => expect(close).toHaveBeenCalledTimes(1));
});

it("replace does not wait for middleware that never answers once its caller has left", async () => {
  const caller = fakeContext();
  const close = vi.fn(async () => undefined);
  const hanging: Middleware = () => new Promise(() => undefined);
  hanging.close = close;
  const gateway = chain(hanging).to(echo);
  void gateway(callRequest("x"), caller.context);
  gateway.replace("hanging", marking("a"));
  await Promise.resolve();
  expect(close).not.toHaveBeenCalled();
  caller.abort();
  await eventually(() => expect(close).toHaveBeenCalledTimes(1));
});

it("replace closes replaced middleware that is still in use when the gateway closes", async () => {
  const { upstream } = slow();
  const close = vi.fn(async () => undefined);
  const gateway = chain(marking("a", close)).to(upstream);
  void gateway(callRequest("x"), fakeContext().context);
  gateway.replace("a", marking("c"));
  await gateway.close();
  expect(close).toHaveBeenCalledTimes(1);
});

const closing = (handler: Handler): { handler: Handler; closed: ReturnType<typeof vi.fn> } => {
  const closed = vi.fn(async () => undefined);
  const own: Handler = (request, context) => handler(request, context);
  return { handler: Object.defineProperty(own, "close", { value: closed }), closed };
};
const by =
  (text: string): Handler =>
  async () =>
    textResult(text);
const textOf = async (gateway: Handler): Promise<unknown> =>
  (await gateway(callRequest("x"), fakeContext().context))["content"];

it("update sends new requests to the new upstream, and closes the old one after its last request", async () => {
  const { upstream, answer } = slow();
  const old = closing(upstream);
  const gateway = chain().to({ one: old.handler });
  const running = gateway(callRequest("late"), fakeContext().context);
  const next = chain(marking("m")).to({ two: by("new") });
  const done = gateway.update(next);
  expect(await gateway(callRequest("x"), fakeContext().context)).toMatchObject({ ...textResult("new"), by: "m" });
  expect([...gateway.upstreams.keys()]).toEqual(["two"]);
  expect(gateway.middleware.map(({ name }) => name)).toEqual(["m"]);
  expect(Object.keys(gateway.status())).toEqual(["two"]);
  expect(old.closed).not.toHaveBeenCalled();
  answer();
  expect(await running).toMatchObject(textResult("late"));
  await done;
  expect(old.closed).toHaveBeenCalledTimes(1);
});

it("update keeps what both gateways have open, until the last of them is closed", async () => {
  const kept = closing(by("kept"));
  const gone = closing(by("gone"));
  const closed = vi.fn(async () => undefined);
  const middleware = marking("m", closed);
  const gateway = chain(middleware).to({ gone: gone.handler, kept: kept.handler });
  for (let count = 0; count < 3; count += 1) await gateway.update(chain(middleware).to({ kept: kept.handler }));
  expect(gone.closed).toHaveBeenCalledTimes(1);
  expect(kept.closed).not.toHaveBeenCalled();
  expect(closed).not.toHaveBeenCalled();
  expect(await textOf(gateway)).toEqual(textResult("kept")["content"]);
  await gateway.close();
  expect(kept.closed).toHaveBeenCalledTimes(1);
  expect(closed).toHaveBeenCalledTimes(1);
});

it("update closes an upstream that only running requests still use", async () => {
  const { upstream } = slow();
  const old = closing(upstream);
  const gateway = chain().to({ old: old.handler });
  gateway(callRequest("x"), fakeContext().context).catch(() => undefined);
  void gateway.update(chain().to({ other: by("other") }));
  await gateway.close();
  expect(old.closed).toHaveBeenCalledTimes(1);
});

it("update refuses what is not another gateway, and one that was taken over cannot be used", async () => {
  const gateway = chain().to(echo);
  expect(() => gateway.update(gateway)).toThrow("update() takes another gateway");
  expect(() => gateway.update(echo as never)).toThrow("update() takes another gateway");
  const next = chain().to(by("next"));
  await gateway.update(next);
  expect(() => gateway.update(next)).toThrow(ConnectionError);
  await gateway.close();
  expect(() => gateway.update(chain().to(echo))).toThrow(ConnectionError);
});
