// Calls through merged ends: which end gets them, by which names, and what comes back.

import { describe, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { TASK_WANTED } from "../../protocol/tasks.ts";
import { desk } from "../../../test/support/desk.ts";
import { madeServer, saying, tools } from "../../../test/support/made-end.ts";
import { merge } from "./merge.ts";

const textOf = (result: Result): unknown => (result["content"] as { text: string }[])[0]?.text;
const lists = (end: ReturnType<typeof madeServer>): number =>
  end.asked.filter(({ method }) => method === "tools/list").length;

function twoUpstreams(): { a: ReturnType<typeof madeServer>; b: ReturnType<typeof madeServer> } {
  return {
    a: madeServer({ "tools/list": tools("both", "only-a"), "tools/call": saying("a") }),
    b: madeServer({ "tools/list": tools("both", "only-b"), "tools/call": saying("b") }),
  };
}

describe("calls", () => {
  it("go to the end that has the tool, by its own name for it", async () => {
    const caller = desk(merge(twoUpstreams()));
    await caller.call("tools/list");
    expect(textOf(await caller.call("tools/call", { name: "only-b" }))).toBe("b: only-b");
    expect(textOf(await caller.call("tools/call", { name: "a.both" }))).toBe("a: both");
    // Only what is shown leads anywhere: a link in front cannot know other names for it.
    const refused = await caller.refused("tools/call", { name: "b.only-b" });
    expect(refused.message).toBe("Tool not found: b.only-b; it is called only-b here");
  });

  it("pass requests, contexts and results on as they are where nothing is renamed", async () => {
    const result = { content: [{ type: "text", text: "same" }] };
    let got: unknown;
    const a = madeServer({
      "tools/list": tools("x"),
      "tools/call": (_params, context) => {
        got = context;
        return result;
      },
    });
    const caller = desk(merge({ a, b: madeServer({ "tools/list": tools("y") }) }));
    const params = { name: "x", arguments: {} };
    expect(await caller.call("tools/call", params)).toBe(result);
    expect(a.asked.at(-1)?.params).toBe(params);
    expect(got).toBe(caller.context);
  });

  it("keep marks and fields where the name is changed", async () => {
    const { a, b } = twoUpstreams();
    const caller = desk(merge({ a, b }));
    await caller.call("tools/call", { name: "a.both", [TASK_WANTED]: true, later: 1 });
    expect(a.asked.at(-1)?.params).toEqual({ name: "both", [TASK_WANTED]: true, later: 1 });
    expect(b.asked.map(({ method }) => method)).not.toContain("tools/call");
  });

  it("are refused where a name is that of several, with their names", async () => {
    const error = await desk(merge(twoUpstreams())).refused("tools/call", { name: "both" });
    expect(error.message).toBe("Several ends have a tool named both; say which one: a.both, b.both");
    expect(error.data).toEqual({ kind: "invalid_params", toolName: "both", candidates: ["a.both", "b.both"] });
  });

  it("are refused where no end has the tool, after all were asked once", async () => {
    const { a, b } = twoUpstreams();
    const caller = desk(merge({ a, b }));
    const error = await caller.refused("tools/call", { name: "nope" });
    expect(error.data).toEqual({ kind: "tool_not_found", toolName: "nope" });
    await caller.refused("tools/call", { name: "nope" });
    expect([lists(a), lists(b)]).toEqual([1, 1]);
    expect((await caller.refused("prompts/get", { name: "nope" })).data).toEqual({
      kind: "prompt_not_found",
      promptName: "nope",
    });
  });

  it("go to the only end that has tools, also where it does not list them", async () => {
    const { a } = twoUpstreams();
    const other = madeServer({ "prompts/list": { prompts: [] } });
    expect(textOf(await desk(merge({ a, other })).call("tools/call", { name: "hidden" }))).toBe("a: hidden");
    const refused = await desk(merge(twoUpstreams())).refused("tools/call", { name: "b.hidden" });
    expect(refused.data).toMatchObject({ kind: "tool_not_found" });
  });

  it("need the end's name where that is the rule", async () => {
    const caller = desk(merge(twoUpstreams(), { names: "always" }));
    expect(textOf(await caller.call("tools/call", { name: "b.only-b" }))).toBe("b: only-b");
    const error = await caller.refused("tools/call", { name: "only-b" });
    expect(error.message).toBe("Tool not found: only-b; it is called b.only-b here");
  });

  it("find long names by what they were shown as", async () => {
    const long = "x".repeat(90);
    const make = (who: string): ReturnType<typeof madeServer> =>
      madeServer({ "tools/list": tools(long), "tools/call": saying(who) });
    const caller = desk(merge({ a: make("a"), b: make("b") }));
    const shown = ((await caller.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
    expect(textOf(await caller.call("tools/call", { name: shown[1] }))).toBe(`b: ${long}`);
    const said = await caller.refused("tools/call", { name: `a.${long}` });
    expect(said.data).toMatchObject({ candidates: [shown[0]] });
  });

  it("take ends by names of any kind", async () => {
    const ends = Object.fromEntries(
      ["__proto__", "a.b", "ü 1", "constructor"].map((name) => [
        name,
        madeServer({ "tools/list": tools("t"), "tools/call": saying(name) }),
      ]),
    );
    const caller = desk(merge(ends));
    const shown = ((await caller.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
    expect(shown).toEqual(["__proto__.t", "a_b.t", "__1.t", "constructor.t"]);
    const said = await Promise.all(shown.map(async (name) => textOf(await caller.call("tools/call", { name }))));
    expect(said).toEqual(["__proto__: t", "a.b: t", "ü 1: t", "constructor: t"]);
  });

  it("pass progress, logs and questions by the caller's own context", async () => {
    const a = madeServer({
      "tools/list": tools("x"),
      "tools/call": async (_params, context) => {
        context.notify({ method: "notifications/progress", params: { progress: 1, progressToken: "t" } });
        return { content: [], answer: await context.ask({ method: "roots/list", params: {} }) };
      },
    });
    const caller = desk(merge({ a, b: madeServer({}) }), { answer: () => ({ roots: [] }) });
    expect(await caller.call("tools/call", { name: "x" })).toEqual({ content: [], answer: { roots: [] } });
    expect(caller.told).toEqual([{ method: "notifications/progress", params: { progress: 1, progressToken: "t" } }]);
  });
});

describe("names that change", () => {
  it("are read again when an end has said so, in the background for a name that is known", async () => {
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
    const caller = desk(merge({ a, b }));
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

  it("belong to callers of one kind, and not to others", async () => {
    const perCaller = madeServer({
      "tools/list": (_params, { caller }) => tools(`of-${caller.principal ?? "nobody"}`),
      "tools/call": saying("a"),
    });
    const merged = merge({ perCaller, b: madeServer({ "tools/list": tools("x") }) });
    const [ada, bob] = ["ada", "bob"].map((principal) => desk(merged, { caller: { principal } }));
    await ada?.call("tools/list");
    expect(textOf((await ada?.call("tools/call", { name: "of-ada" })) ?? {})).toBe("a: of-ada");
    expect((await bob?.refused("tools/call", { name: "of-ada" }))?.kind).toBe("tool_not_found");
  });
});

describe("other methods", () => {
  it("go to the first end that knows them", async () => {
    const b = madeServer({ "x/far": ({ n }) => ({ n, by: "b" }) });
    const caller = desk(merge({ a: madeServer({}), b, c: madeServer({ "x/far": { by: "c" } }) }));
    expect(await caller.call("x/far", { n: 1 })).toEqual({ n: 1, by: "b" });
    expect((await caller.refused("x/near")).kind).toBe("method_not_found");
    const away = async (): Promise<never> => {
      throw new ConnectionError("closed", "gone");
    };
    await expect(desk(merge({ away, a: madeServer({}) })).call("x/near")).rejects.toThrow("The end away failed: gone");
  });

  it("set the level of every end that logs", async () => {
    const a = madeServer({ "logging/setLevel": {} }, { logging: {} });
    const b = madeServer({ "logging/setLevel": {} });
    expect(await desk(merge({ a, b })).call("logging/setLevel", { level: "info" })).toEqual({ resultType: "complete" });
    expect(a.asked.at(-1)).toEqual({ method: "logging/setLevel", params: { level: "info" } });
    expect(b.asked.map(({ method }) => method)).toEqual(["server/discover"]);
  });

  it("are checked before anybody is asked", async () => {
    const a = madeServer({ "tools/list": tools("x") });
    expect((await desk(merge({ a })).refused("tools/call", {})).kind).toBe("invalid_params");
    expect(a.asked).toEqual([]);
    expect(() => merge({ a: "no handler" as never })).toThrow("The end a is no handler");
  });
});
