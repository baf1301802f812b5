// Calls through the router: which upstream gets them, by which name, and the results.

import { describe, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { TASK_REQUESTED } from "../../protocol/tasks.ts";
import { desk } from "../../../test/support/handlers/fake-client.ts";
import { madeServer, saying, tools } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

const textOf = (result: Result): unknown => (result["content"] as { text: string }[])[0]?.text;
const lists = (upstream: ReturnType<typeof madeServer>): number =>
  upstream.asked.filter(({ method }) => method === "tools/list").length;

function twoUpstreams(): { a: ReturnType<typeof madeServer>; b: ReturnType<typeof madeServer> } {
  return {
    a: madeServer({ "tools/list": tools("both", "only-a"), "tools/call": saying("a") }),
    b: madeServer({ "tools/list": tools("both", "only-b"), "tools/call": saying("b") }),
  };
}

describe("calls", () => {
  it("go to the upstream that has the tool, by its own name", async () => {
    const caller = desk(createRouter(twoUpstreams()));
    await caller.call("tools/list");
    expect(textOf(await caller.call("tools/call", { name: "only-b" }))).toBe("b: only-b");
    expect(textOf(await caller.call("tools/call", { name: "a.both" }))).toBe("a: both");
    // Only shown names lead anywhere, since middleware cannot know other names.
    const refused = await caller.refused("tools/call", { name: "b.only-b" });
    expect(refused.message).toBe("Tool not found: b.only-b; it is called only-b here");
  });

  it("pass requests, contexts and results unchanged if nothing is renamed", async () => {
    const result = { content: [{ type: "text", text: "same" }] };
    let got: unknown;
    const a = madeServer({
      "tools/list": tools("x"),
      "tools/call": (_params, context) => {
        got = context;
        return result;
      },
    });
    const caller = desk(createRouter({ a, b: madeServer({ "tools/list": tools("y") }) }));
    const params = { name: "x", arguments: {} };
    expect(await caller.call("tools/call", params)).toBe(result);
    expect(a.asked.at(-1)?.params).toBe(params);
    expect(got).toBe(caller.context);
  });

  it("keep symbols and fields if the name is changed", async () => {
    const { a, b } = twoUpstreams();
    const caller = desk(createRouter({ a, b }));
    await caller.call("tools/call", { name: "a.both", [TASK_REQUESTED]: true, later: 1 });
    expect(a.asked.at(-1)?.params).toEqual({ name: "both", [TASK_REQUESTED]: true, later: 1 });
    expect(b.asked.map(({ method }) => method)).not.toContain("tools/call");
  });

  it("are refused if several upstreams have the name, with the candidates", async () => {
    const error = await desk(createRouter(twoUpstreams())).refused("tools/call", { name: "both" });
    expect(error.message).toBe("Several upstreams have a tool named both; use one of a.both, b.both");
    expect(error.data).toEqual({ kind: "invalid_params", toolName: "both", candidates: ["a.both", "b.both"] });
  });

  it("are refused if no upstream has the tool, after all were listed once", async () => {
    const { a, b } = twoUpstreams();
    const caller = desk(createRouter({ a, b }));
    const error = await caller.refused("tools/call", { name: "nope" });
    expect(error.data).toEqual({ kind: "tool_not_found", toolName: "nope" });
    await caller.refused("tools/call", { name: "nope" });
    expect([lists(a), lists(b)]).toEqual([1, 1]);
    expect((await caller.refused("prompts/get", { name: "nope" })).data).toEqual({
      kind: "prompt_not_found",
      promptName: "nope",
    });
  });

  it("go to the only upstream with tools, even if it does not list the name", async () => {
    const { a } = twoUpstreams();
    const other = madeServer({ "prompts/list": { prompts: [] } });
    expect(textOf(await desk(createRouter({ a, other })).call("tools/call", { name: "hidden" }))).toBe("a: hidden");
    const refused = await desk(createRouter(twoUpstreams())).refused("tools/call", { name: "b.hidden" });
    expect(refused.data).toMatchObject({ kind: "tool_not_found" });
  });

  it("need the label with `names: always`", async () => {
    const caller = desk(createRouter(twoUpstreams(), { names: "always" }));
    expect(textOf(await caller.call("tools/call", { name: "b.only-b" }))).toBe("b: only-b");
    const error = await caller.refused("tools/call", { name: "only-b" });
    expect(error.message).toBe("Tool not found: only-b; it is called b.only-b here");
  });

  it("find long names by their shortened form", async () => {
    const long = "x".repeat(90);
    const make = (who: string): ReturnType<typeof madeServer> =>
      madeServer({ "tools/list": tools(long), "tools/call": saying(who) });
    const caller = desk(createRouter({ a: make("a"), b: make("b") }));
    const shown = ((await caller.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
    expect(textOf(await caller.call("tools/call", { name: shown[1] }))).toBe(`b: ${long}`);
    const said = await caller.refused("tools/call", { name: `a.${long}` });
    expect(said.data).toMatchObject({ candidates: [shown[0]] });
  });

  it("work with any names of upstreams", async () => {
    const upstreams = Object.fromEntries(
      ["__proto__", "a.b", "ü 1", "constructor"].map((name) => [
        name,
        madeServer({ "tools/list": tools("t"), "tools/call": saying(name) }),
      ]),
    );
    const caller = desk(createRouter(upstreams));
    const shown = ((await caller.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
    expect(shown).toEqual(["__proto__.t", "a_b.t", "__1.t", "constructor.t"]);
    const said = await Promise.all(shown.map(async (name) => textOf(await caller.call("tools/call", { name }))));
    expect(said).toEqual(["__proto__: t", "a.b: t", "ü 1: t", "constructor: t"]);
  });

  it("pass notifications and requests to the client through the caller's context", async () => {
    const a = madeServer({
      "tools/list": tools("x"),
      "tools/call": async (_params, context) => {
        context.notify({ method: "notifications/progress", params: { progress: 1, progressToken: "t" } });
        return { content: [], answer: await context.ask({ method: "roots/list", params: {} }) };
      },
    });
    const caller = desk(createRouter({ a, b: madeServer({}) }), { answer: () => ({ roots: [] }) });
    expect(await caller.call("tools/call", { name: "x" })).toEqual({ content: [], answer: { roots: [] } });
    expect(caller.told).toEqual([{ method: "notifications/progress", params: { progress: 1, progressToken: "t" } }]);
  });
});

describe("names that change", () => {
  it("are listed again after a change, in the background for a known name", async () => {
    let list = tools("x");
    const a = madeServer({
      "tools/list": () => list,
      "tools/call": saying("a"),
      "subscriptions/listen": async (_params, context) => {
        context.notify({
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: { toolsListChanged: true } },
        });
        context.notify({ method: "notifications/tools/list_changed" });
        return new Promise(() => undefined);
      },
    });
    const b = madeServer({ "tools/list": tools("y"), "tools/call": saying("b") });
    const caller = desk(createRouter({ a, b }));
    expect((await caller.refused("tools/call", { name: "new" })).kind).toBe("tool_not_found");
    list = tools("x", "new", "y");
    const listening = caller.call("subscriptions/listen", { notifications: { toolsListChanged: true } });
    await vi.waitFor(() =>
      expect(caller.told.map(({ method }) => method)).toContain("notifications/tools/list_changed"),
    );
    expect(textOf(await caller.call("tools/call", { name: "y" }))).toBe("b: y");
    await vi.waitFor(() => expect(lists(a)).toBe(2));
    expect(textOf(await caller.call("tools/call", { name: "new" }))).toBe("a: new");
    expect((await caller.refused("tools/call", { name: "y" })).data).toMatchObject({ candidates: ["a.y", "b.y"] });
    caller.abort();
    await listening;
  });

  it("belong to one kind of callers", async () => {
    const perCaller = madeServer({
      "tools/list": (_params, { caller }) => tools(`of-${caller.principal ?? "none"}`),
      "tools/call": saying("a"),
    });
    const router = createRouter({ perCaller, b: madeServer({ "tools/list": tools("x") }) });
    const [ada, bob] = ["ada", "bob"].map((principal) => desk(router, { caller: { principal } }));
    await ada?.call("tools/list");
    expect(textOf((await ada?.call("tools/call", { name: "of-ada" })) ?? {})).toBe("a: of-ada");
    expect((await bob?.refused("tools/call", { name: "of-ada" }))?.kind).toBe("tool_not_found");
  });
});

describe("other methods", () => {
  it("go to the first upstream that knows them", async () => {
    const b = madeServer({ "x/far": ({ n }) => ({ n, by: "b" }) });
    const caller = desk(createRouter({ a: madeServer({}), b, c: madeServer({ "x/far": { by: "c" } }) }));
    expect(await caller.call("x/far", { n: 1 })).toEqual({ n: 1, by: "b" });
    expect((await caller.refused("x/near")).kind).toBe("method_not_found");
    const away = async (): Promise<never> => {
      throw new ConnectionError("closed", "gone");
    };
    await expect(desk(createRouter({ away, a: madeServer({}) })).call("x/near")).rejects.toThrow(
      "The upstream away failed: gone",
    );
  });

  it("set the level of every upstream that logs", async () => {
    const a = madeServer({ "logging/setLevel": {} }, { logging: {} });
    const b = madeServer({ "logging/setLevel": {} });
    expect(await desk(createRouter({ a, b })).call("logging/setLevel", { level: "info" })).toEqual({
      resultType: "complete",
    });
    expect(a.asked.at(-1)).toEqual({ method: "logging/setLevel", params: { level: "info" } });
    expect(b.asked.map(({ method }) => method)).toEqual(["server/discover"]);
  });

  it("are checked before they are sent", async () => {
    const a = madeServer({ "tools/list": tools("x") });
    expect((await desk(createRouter({ a })).refused("tools/call", {})).kind).toBe("invalid_params");
    expect(a.asked).toEqual([]);
    expect(() => createRouter({ a: "no handler" as never })).toThrow("The upstream a is not a handler");
  });
});
