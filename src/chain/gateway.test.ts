// The life of a gateway: how its ends stand, links that are replaced while requests run through them, and its end.

import { describe, expect, it, vi } from "vitest";
import { call, loneCaller, text } from "../../test/support/lone-caller.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Link } from "../core/handler.ts";
import { chain } from "./chain.ts";
import type { UpstreamStatus } from "./upstream/status.ts";
import { provide } from "./gateway.ts";
import { Replaceable } from "./replaceable.ts";

// Loaded before the clocks of these tests are stopped.
provide(Replaceable);

const echo: Handler = async (request) => text(String(request.params["name"]));

const marking = (name: string, close?: () => Promise<void>): Link => ({
  name,
  run: async (request, context, next) => ({ ...(await next(request, context)), by: name }),
  ...(close === undefined ? undefined : { close }),
});

/** An end whose answers wait for a word. */
function slow(): { end: Handler; answer: () => void } {
  let answer = (): void => undefined;
  const word = new Promise<void>((resolve) => {
    answer = resolve;
  });
  return { end: async (request, context) => word.then(() => echo(request, context)), answer };
}

describe("status and close", () => {
  const asleep: UpstreamStatus = { state: "asleep", target: "far", sessions: 0, pids: [], restarts: 0 };
  const far = (more: object = {}): Handler =>
    Object.defineProperties(async () => text(""), {
      status: { value: () => asleep },
      ...Object.fromEntries(Object.entries(more).map(([name, value]) => [name, { value: value as unknown }])),
    });

  it("tells how each end stands, also those of chains within", () => {
    const running = { state: "running", target: "in this process" };
    expect(chain().to(echo).status()).toMatchObject({ end: running });
    const inner = chain(marking("a")).to({ one: far(), two: echo }, { names: "always" });
    const outer = chain().to({ alone: chain().to(far()), many: inner, mine: echo });
    expect(outer.status()).toMatchObject({ alone: asleep, "many.one": asleep, "many.two": running, mine: running });
  });

  it("tells an end what it is called, also through a chain of its own", () => {
    const called = vi.fn();
    chain().to({ notes: far({ called }) });
    chain().to({ board: chain().to(far({ called })) });
    chain().to({ outer: chain().to({ inner: far({ called }) }) });
    expect(called.mock.calls).toEqual([["notes"], ["board"], ["inner"]]);
  });

  it("closes ends and links once, and answers nothing any more", async () => {
    const closeUpstream = vi.fn(async () => undefined);
    const closeMiddleware = vi.fn(async () => undefined);
    const gateway = chain(marking("a", closeMiddleware)).to({ notes: far({ close: closeUpstream }), mine: echo });
    await Promise.all([gateway.close(50), gateway.close()]);
    expect(closeUpstream.mock.calls).toEqual([[50]]);
    expect(closeMiddleware).toHaveBeenCalledTimes(1);
    await expect(gateway(call("x"), loneCaller().context)).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
    expect(() => gateway.replace("a", marking("b"))).toThrow(ConnectionError);
    expect(gateway.status()["mine"]?.state).toBe("closed");
  });

  it("waits no longer than the budget for what never closes, and tells what could not be closed", async () => {
    const never = chain().to(far({ close: () => new Promise(() => undefined) }));
    await never.close(5);
    const broken = chain(marking("a", () => Promise.reject(new Error("link")))).to(echo);
    await expect(broken.close()).rejects.toThrow("link");
    const both = chain(marking("a", () => Promise.reject(new Error("link")))).to(
      far({
        close: () => {
          throw new Error("end");
        },
      }),
    );
    await expect(both.close()).rejects.toBeInstanceOf(AggregateError);
  });

  it("closes a link that stands in two gateways when both have let go of it", async () => {
    const close = vi.fn(async () => undefined);
    const shared = chain(marking("a", close));
    const [one, two] = [shared.to(echo), shared.to(echo)];
    await one.close();
    expect(close).not.toHaveBeenCalled();
    await two.close();
    expect(close).toHaveBeenCalledTimes(1);
  });
});

describe("replace", () => {
  it("puts another link into the place, which keeps its name", async () => {
    const gateway = chain(marking("a"), marking("b")).to(echo);
    gateway.replace("a", marking("c"));
    expect(gateway.links.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await gateway(call("x"), loneCaller().context)).toMatchObject({ by: "c" });
    gateway.replace("a", (request, context, next) => next(request, context));
    expect(await gateway(call("x"), loneCaller().context)).toMatchObject({ by: "b" });
    expect(() => gateway.replace("d", marking("d"))).toThrow('There is no link "d" in the chain; there are a, b');
    expect(() => gateway.replace("a", 1 as never)).toThrow("replace() takes links");
    expect(() => chain().to(echo).replace("a", marking("a"))).toThrow("the chain has none");
  });

  it("lets a call go on with the links with which it began, and closes the old one after it", async () => {
    const { end, answer } = slow();
    const close = vi.fn(async () => undefined);
    const gateway = chain(marking("a", close), marking("b")).to(end);
    const before = gateway(call("x"), loneCaller().context);
    gateway.replace("a", marking("c"));
    // A second change: the first call holds its own links, whatever has changed since.
    gateway.replace("b", marking("d"));
    const after = gateway(call("x"), loneCaller().context);
    await Promise.resolve();
    expect(close).not.toHaveBeenCalled();
    answer();
    expect(await Promise.all([before, after])).toMatchObject([{ by: "a" }, { by: "c" }]);
    await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
    await gateway.close();
    expect(close).toHaveBeenCalledTimes(1);
  });

  it("closes an old link at once where nothing runs through it", async () => {
    const close = vi.fn(() => Promise.reject(new Error("nobody hears of it")));
    const gateway = chain(marking("a", close)).to(echo);
    await gateway(call("x"), loneCaller().context);
    gateway.replace("a", marking("c"));
    await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
  });

  it("does not wait for a link that never answers once its caller has left", async () => {
    const caller = loneCaller();
    const close = vi.fn(async () => undefined);
    const hanging: Link = { name: "hanging", run: () => new Promise(() => undefined), close };
    const gateway = chain(hanging).to(echo);
    void gateway(call("x"), caller.context);
    gateway.replace("hanging", marking("a"));
    await Promise.resolve();
    expect(close).not.toHaveBeenCalled();
    caller.leave();
    await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
  });

  it("closes what waits to be closed when the gateway is", async () => {
    const { end } = slow();
    const close = vi.fn(async () => undefined);
    const gateway = chain(marking("a", close)).to(end);
    void gateway(call("x"), loneCaller().context);
    gateway.replace("a", marking("c"));
    await gateway.close();
    expect(close).toHaveBeenCalledTimes(1);
  });
});
