// Chains: what may be put together, what the gateway then is, and the life of its links: replaced while requests run,
// closed when nothing needs them any more.

import { describe, expect, it, vi } from "vitest";
import { call, loneCaller, text } from "../../test/support/lone-caller.ts";
import { connect } from "../client/connect.ts";
import { LinkError } from "../core/errors.ts";
import type { Handler, Link, Request } from "../core/handler.ts";
import { META } from "../protocol/model/index.ts";
import { createServer } from "../server/server.ts";
import { chain } from "./chain.ts";
import type { EndStatus } from "./end-status.ts";

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

const server = (name = "notes") =>
  createServer({ name, version: "1" }).tool(`${name}-echo`, { description: "Says it again" }, () => "hi");

describe("put together", () => {
  it("answers through its links, first outermost, and more by use", async () => {
    const { context } = loneCaller();
    const base = chain(marking("a"));
    const gateway = base.use(marking("b")).to(echo);
    expect(gateway.links.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await gateway(call("x"), context)).toEqual({ ...text("x"), by: "a" });
    expect(base.to(echo).links).toHaveLength(1);
  });

  it("gives each link a name of its own", () => {
    const bare = (): never => {
      throw new Error("not called");
    };
    const named = chain(marking("log"), marking("log"), bare, marking("log"), ...[(): never => bare()]).to(echo);
    expect(named.links.map(({ name }) => name)).toEqual(["log", "log-2", "bare", "log-3", "link"]);
  });

  it("calls a link of a class by its own object", async () => {
    class Counting implements Link {
      readonly name = "counting";
      count = 0;
      run: Link["run"] = (request, context, next) => next(request, context);
      async close(): Promise<void> {
        this.count = -1;
      }
    }
    const counting = new Counting();
    const through = vi.spyOn(counting, "run").mockImplementation(function (this: Counting, request, context, next) {
      this.count += 1;
      return next(request, context);
    });
    const gateway = chain(counting).to(echo);
    await gateway(call("x"), loneCaller().context);
    expect(through).toHaveBeenCalledTimes(1);
    expect(counting.count).toBe(1);
    await gateway.close();
    expect(counting.count).toBe(-1);
  });

  it("takes one end of a record as it is, and adds nothing to a call without links", async () => {
    const end = vi.fn(echo);
    const { context } = loneCaller();
    const request = call("x");
    for (const ends of [end, { notes: end }]) await chain().to(ends)(request, context);
    expect(end.mock.calls).toEqual([
      [request, context],
      [request, context],
    ]);
    expect(end.mock.calls[0]?.[1]).toBe(context);
  });

  it("makes one of several", async () => {
    const client = await connect(chain(marking("a")).to({ notes: server("notes"), board: server("board") }));
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["notes-echo", "board-echo"]);
    expect(await client.callTool("board-echo")).toMatchObject({ content: [{ text: "hi" }], by: "a" });
    await client.close();
  });

  it("says what it was told to say of itself", async () => {
    const info = { name: "gate", version: "9" };
    const { context } = loneCaller();
    const discover: Request = { method: "server/discover", params: {} };
    const said = await chain().to(server(), { info, instructions: "Knock first" })(discover, context);
    expect(said).toMatchObject({ instructions: "Knock first", _meta: { [META.serverInfo]: info } });
    expect(await chain().to(server())(discover, context)).toMatchObject({
      _meta: { [META.serverInfo]: { name: "notes" } },
    });
  });

  it("refuses what is no link, no end and no option, in words", () => {
    const to = (ends: unknown, options?: unknown) => () => chain().to(ends as never, options as never);
    expect(() => chain({} as never)).toThrow(/chain\(\) takes links .* not an object/);
    expect(() => chain("log" as never)).toThrow('not "log"');
    expect(() => chain({ name: "", run: echo })).toThrow("must have a `name`");
    expect(() => chain({ name: "a", run: echo, close: 1 } as never)).toThrow("`close` of the link a");
    expect(to({})).toThrow("the record that it was given is empty");
    expect(to({ " ": echo })).toThrow("must not be empty");
    expect(to({ notes: 3 })).toThrow('to(): the end "notes" must be a URL, a command');
    expect(to({ notes: { deep: echo } })).toThrow("not an object");
    for (const nothing of [undefined, null, 1, "", []]) expect(to(nothing)).toThrow("to() must be a URL");
    expect(to({ command: 5 })).toThrow("to() must be");
    expect(to(echo, { names: "never" })).toThrow('`names` must be "when-needed" or "always", not "never"');
    expect(to(echo, { names: "always" })).toThrow("needs an end with a name");
    expect(to(echo, { info: {} })).toThrow("`info` must have");
    expect(to(echo, { instructions: 1 })).toThrow("`instructions` must be a text");
  });

  it("tells a command, an address and a transport from a record of ends", () => {
    const target = (ends: Parameters<ReturnType<typeof chain>["to"]>[0]): string[] =>
      Object.values(chain().to(ends).status()).map((status) => status.target);
    expect(target({ command: "notes-mcp", args: ["secret"] })).toEqual(["notes-mcp"]);
    expect(target("http://127.0.0.1:1/mcp?token=1")).toEqual(["http://127.0.0.1:1/mcp"]);
    expect(target(new URL("http://127.0.0.1:1/mcp"))).toEqual(["http://127.0.0.1:1/mcp"]);
    const nothing = async (): Promise<void> => undefined;
    expect(target({ start: nothing, send: nothing, close: nothing })).toEqual(["a transport"]);
    expect(target({ command: { command: "notes-mcp" } })).toEqual(["notes-mcp"]);
    expect(target({ command: echo })).toEqual(["in this process"]);
  });
});

describe("status and close", () => {
  const asleep: EndStatus = { state: "asleep", target: "far", sessions: 0, pids: [], restarts: 0 };
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
    const closeEnd = vi.fn(async () => undefined);
    const closeLink = vi.fn(async () => undefined);
    const gateway = chain(marking("a", closeLink)).to({ notes: far({ close: closeEnd }), mine: echo });
    await Promise.all([gateway.close(50), gateway.close()]);
    expect(closeEnd.mock.calls).toEqual([[50]]);
    expect(closeLink).toHaveBeenCalledTimes(1);
    await expect(gateway(call("x"), loneCaller().context)).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
    expect(() => gateway.replace("a", marking("b"))).toThrow(LinkError);
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
