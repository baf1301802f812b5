// Calls through merged ends: which end gets them, by which names, what comes back, and what a slow or absent end does
// to calls that belong to others.

import { afterEach, describe, expect, it, vi } from "vitest";
import { LinkError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { TASK_WANTED } from "../../protocol/tasks.ts";
import { desk } from "../../../test/support/desk.ts";
import { madeEnd, saying, tools } from "../../../test/support/made-end.ts";
import { merge } from "./merge.ts";

afterEach(() => {
  vi.useRealTimers();
});

const textOf = (result: Result): unknown => (result["content"] as { text: string }[])[0]?.text;
const lists = (end: ReturnType<typeof madeEnd>): number =>
  end.asked.filter(({ method }) => method === "tools/list").length;

function twoEnds(): { a: ReturnType<typeof madeEnd>; b: ReturnType<typeof madeEnd> } {
  return {
    a: madeEnd({ "tools/list": tools("both", "only-a"), "tools/call": saying("a") }),
    b: madeEnd({ "tools/list": tools("both", "only-b"), "tools/call": saying("b") }),
  };
}

describe("calls", () => {
  it("go to the end that has the tool, by its own name for it", async () => {
    const caller = desk(merge(twoEnds()));
    await caller.call("tools/list");
    expect(textOf(await caller.call("tools/call", { name: "only-b" }))).toBe("b: only-b");
    expect(textOf(await caller.call("tools/call", { name: "a.both" }))).toBe("a: both");
    // The end's name is allowed also where it is not needed.
    expect(textOf(await caller.call("tools/call", { name: "b.only-b" }))).toBe("b: only-b");
  });

  it("pass requests, contexts and results on as they are where nothing is renamed", async () => {
    const result = { content: [{ type: "text", text: "same" }] };
    let got: unknown;
    const a = madeEnd({
      "tools/list": tools("x"),
      "tools/call": (_params, context) => {
        got = context;
        return result;
      },
    });
    const caller = desk(merge({ a, b: madeEnd({ "tools/list": tools("y") }) }));
    const params = { name: "x", arguments: {} };
    expect(await caller.call("tools/call", params)).toBe(result);
    expect(a.asked.at(-1)?.params).toBe(params);
    expect(got).toBe(caller.context);
  });

  it("keep marks and fields where the name is changed", async () => {
    const { a, b } = twoEnds();
    const caller = desk(merge({ a, b }));
    await caller.call("tools/call", { name: "a.both", [TASK_WANTED]: true, later: 1 } as never);
    expect(a.asked.at(-1)?.params).toEqual({ name: "both", [TASK_WANTED]: true, later: 1 });
    expect(b.asked.map(({ method }) => method)).not.toContain("tools/call");
  });

  it("are refused where a name is that of several, with their names", async () => {
    const error = await desk(merge(twoEnds())).refused("tools/call", { name: "both" });
    expect(error.message).toBe("Several ends have a tool named both; say which one: a.both, b.both");
    expect(error.data).toEqual({ kind: "invalid_params", toolName: "both", candidates: ["a.both", "b.both"] });
  });

  it("are refused where no end has the tool, after all were asked once", async () => {
    const { a, b } = twoEnds();
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

  it("go to the only end that has tools, or is named, also where it does not list them", async () => {
    const { a } = twoEnds();
    const other = madeEnd({ "prompts/list": { prompts: [] } });
    expect(textOf(await desk(merge({ a, other })).call("tools/call", { name: "hidden" }))).toBe("a: hidden");
    expect(textOf(await desk(merge(twoEnds())).call("tools/call", { name: "b.hidden" }))).toBe("b: hidden");
  });

  it("need the end's name where that is the rule", async () => {
    const caller = desk(merge(twoEnds(), { names: "always" }));
    expect(textOf(await caller.call("tools/call", { name: "b.only-b" }))).toBe("b: only-b");
    const error = await caller.refused("tools/call", { name: "only-b" });
    expect(error.message).toBe("Tool not found: only-b; it is called b.only-b here");
  });

  it("find long names by what they were shown as", async () => {
    const long = "x".repeat(90);
    const make = (who: string): ReturnType<typeof madeEnd> =>
      madeEnd({ "tools/list": tools(long), "tools/call": saying(who) });
    const caller = desk(merge({ a: make("a"), b: make("b") }));
    const shown = ((await caller.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
    expect(textOf(await caller.call("tools/call", { name: shown[1] }))).toBe(`b: ${long}`);
    expect(textOf(await caller.call("tools/call", { name: `a.${long}` }))).toBe(`a: ${long}`);
  });

  it("take ends by names of any kind", async () => {
    const ends = Object.fromEntries(
      ["__proto__", "a.b", "ü 1", "constructor"].map((name) => [
        name,
        madeEnd({ "tools/list": tools("t"), "tools/call": saying(name) }),
      ]),
    );
    const caller = desk(merge(ends));
    const shown = ((await caller.call("tools/list"))["tools"] as { name: string }[]).map(({ name }) => name);
    expect(shown).toEqual(["__proto__.t", "a_b.t", "__1.t", "constructor.t"]);
    const said = await Promise.all(shown.map(async (name) => textOf(await caller.call("tools/call", { name }))));
    expect(said).toEqual(["__proto__: t", "a.b: t", "ü 1: t", "constructor: t"]);
    expect(textOf(await caller.call("tools/call", { name: "a.b.t" }))).toBe("a.b: t");
  });

  it("pass progress, logs and questions by the caller's own context", async () => {
    const a = madeEnd({
      "tools/list": tools("x"),
      "tools/call": async (_params, context) => {
        context.notify({ method: "notifications/progress", params: { progress: 1, progressToken: "t" } });
        return { content: [], answer: await context.ask({ method: "roots/list", params: {} }) };
      },
    });
    const caller = desk(merge({ a, b: madeEnd({}) }), { answer: () => ({ roots: [] }) });
    expect(await caller.call("tools/call", { name: "x" })).toEqual({ content: [], answer: { roots: [] } });
    expect(caller.told).toEqual([{ method: "notifications/progress", params: { progress: 1, progressToken: "t" } }]);
  });
});

describe("prompts and completions", () => {
  const make = (who: string): ReturnType<typeof madeEnd> =>
    madeEnd({
      "prompts/list": { prompts: [{ name: "p" }, { name: `${who}-own` }] },
      "prompts/get": ({ name }) => ({ messages: [], said: `${who}: ${String(name)}` }),
      "resources/list": { resources: [{ uri: `${who}:///x`, name: "x" }] },
      "resources/templates/list": { resourceTemplates: [{ uriTemplate: "file:///{+path}", name: "t" }] },
      "completion/complete": ({ ref }) => ({ completion: { values: [who, JSON.stringify(ref)] } }),
    });
  const argument = { name: "n", value: "" };
  const complete = (ref: object): [string, object] => ["completion/complete", { ref, argument }] as never;

  it("go to their ends by the ends' own names", async () => {
    const caller = desk(merge({ a: make("a"), b: make("b") }));
    expect(await caller.call("prompts/get", { name: "b.p" })).toEqual({ messages: [], said: "b: p" });
    expect(await caller.call("prompts/get", { name: "a-own" })).toEqual({ messages: [], said: "a: a-own" });
    expect((await caller.refused("prompts/get", { name: "p" })).message).toContain("a.p, b.p");
    const asked: [object, string[]][] = [
      [{ type: "ref/prompt", name: "a.p", title: "P" }, ["a", '{"type":"ref/prompt","name":"p","title":"P"}']],
      [{ type: "ref/resource", uri: "b.file:///{+path}" }, ["b", '{"type":"ref/resource","uri":"file:///{+path}"}']],
      [{ type: "ref/resource", uri: "b:///x" }, ["b", '{"type":"ref/resource","uri":"b:///x"}']],
    ];
    for (const [ref, values] of asked) {
      const [method, params] = complete(ref);
      expect(await caller.call(method, params as never)).toEqual({ completion: { values } });
    }
    const refused = await caller.refused("completion/complete", {
      ref: { type: "ref/resource", uri: "file:///{+path}" },
      argument,
    });
    expect(refused.data).toMatchObject({ candidates: ["a.file:///{+path}", "b.file:///{+path}"] });
    const unknown = await caller.refused("completion/complete", {
      ref: { type: "ref/resource", uri: "x:y" },
      argument,
    });
    expect(unknown.message).toBe("There is no resource and no template at x:y to complete");
  });
});

describe("calls and ends that are away", () => {
  it("fail with the end's name, and with what is known of the failure", async () => {
    const a = madeEnd({
      "tools/list": tools("x", "y", "z"),
      "tools/call": ({ name }) => {
        if (name === "x") throw new LinkError("closed", "the process has exited", { mayHaveRun: false });
        if (name === "y") throw invalidParams("y is for others", { hint: 1 });
        throw new TypeError("z is broken");
      },
    });
    const caller = desk(merge({ a, b: madeEnd({}) }));
    const lost: unknown = await caller.call("tools/call", { name: "x" }).catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(LinkError);
    expect(lost).toMatchObject({
      kind: "closed",
      mayHaveRun: false,
      message: "The end a failed: the process has exited",
    });
    // What an end answers is its own.
    expect((await caller.refused("tools/call", { name: "y" })).toBody()).toEqual(
      invalidParams("y is for others", { hint: 1 }).toBody(),
    );
    expect((await caller.refused("tools/call", { name: "z" })).message).toBe("The end a failed: z is broken");
  });

  it("say which end could not be asked for a name that nobody has", async () => {
    const away = async (): Promise<never> => {
      throw new McpError(-32603, "The end is asleep for good", { kind: "unreachable" });
    };
    const caller = desk(merge({ away, a: madeEnd({ "tools/list": tools("x"), "tools/call": saying("a") }) }));
    expect((await caller.refused("tools/call", { name: "y" })).message).toBe(
      "Tool not found: y; not every end could be asked: The end away is asleep for good",
    );
    expect(textOf(await caller.call("tools/call", { name: "x" }))).toBe("a: x");
    expect((await caller.refused("tools/call", { name: "away.y" })).data).toEqual({ kind: "unreachable", end: "away" });
  });

  it("are not held up by an end that says nothing", async () => {
    vi.useFakeTimers();
    const hung = madeEnd({ "server/discover": () => new Promise(() => undefined) });
    const a = madeEnd({ "tools/list": tools("x"), "tools/call": saying("a") });
    const caller = desk(merge({ hung, a }));
    // That the end is named is enough.
    expect(textOf(await caller.call("tools/call", { name: "a.x" }))).toBe("a: x");
    // What is known is used.
    expect(textOf(await caller.call("tools/call", { name: "x" }))).toBe("a: x");
    // Who knows nothing yet waits a second for others who might have the same name.
    const stranger = desk(merge({ hung, a }));
    const answer = stranger.call("tools/call", { name: "x" });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(textOf(await answer)).toBe("a: x");
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("wait no longer for an end that was slow, until it has answered", async () => {
    vi.useFakeTimers();
    let answer: (result: Result) => void = () => undefined;
    const slow = madeEnd({
      "server/discover": () => new Promise((resolve) => (answer = resolve)),
      "tools/list": tools("s"),
      "tools/call": saying("slow"),
    });
    const a = madeEnd({ "tools/list": tools("x") });
    const caller = desk(merge({ slow, a }));
    const list = async (ms: number): Promise<unknown> => {
      const listing = caller.call("tools/list");
      await vi.advanceTimersByTimeAsync(ms);
      return ((await listing)["tools"] as { name: string }[]).map(({ name }) => name);
    };
    expect(await list(8_000)).toEqual(["x"]);
    expect(await list(1_000)).toEqual(["x"]);
    answer({ capabilities: { tools: {} } });
    expect(await list(0)).toEqual(["s", "x"]);
    expect(slow.asked.filter(({ method }) => method === "server/discover")).toHaveLength(1);
  });

  it("end at once when the caller goes", async () => {
    const hung = madeEnd({ "server/discover": () => new Promise(() => undefined) });
    const caller = desk(merge({ hung }));
    const answer = caller.call("tools/call", { name: "x" });
    const listing = caller.call("tools/list");
    caller.abort(new Error("The caller has gone"));
    await expect(answer).rejects.toThrow("The caller has gone");
    await expect(listing).rejects.toThrow("The caller has gone");
  });
});

describe("names that change", () => {
  it("are read again when an end has said so, in the background for a name that is known", async () => {
    let list = tools("x");
    const a = madeEnd({
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
    const b = madeEnd({ "tools/list": tools("y"), "tools/call": saying("b") });
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
    const perCaller = madeEnd({
      "tools/list": (_params, { caller }) => tools(`of-${caller.principal ?? "nobody"}`),
      "tools/call": saying("a"),
    });
    const merged = merge({ perCaller, b: madeEnd({ "tools/list": tools("x") }) });
    const [ada, bob] = ["ada", "bob"].map((principal) => desk(merged, { caller: { principal } }));
    await ada?.call("tools/list");
    expect(textOf((await ada?.call("tools/call", { name: "of-ada" })) ?? {})).toBe("a: of-ada");
    expect((await bob?.refused("tools/call", { name: "of-ada" }))?.kind).toBe("tool_not_found");
  });
});

describe("other methods", () => {
  it("go to the first end that knows them", async () => {
    const b = madeEnd({ "x/far": ({ n }) => ({ n, by: "b" }) });
    const caller = desk(merge({ a: madeEnd({}), b, c: madeEnd({ "x/far": { by: "c" } }) }));
    expect(await caller.call("x/far", { n: 1 })).toEqual({ n: 1, by: "b" });
    expect((await caller.refused("x/near")).kind).toBe("method_not_found");
    const away = async (): Promise<never> => {
      throw new LinkError("closed", "gone");
    };
    await expect(desk(merge({ away, a: madeEnd({}) })).call("x/near")).rejects.toThrow("The end away failed: gone");
  });

  it("set the level of every end that logs", async () => {
    const a = madeEnd({ "logging/setLevel": {} }, { logging: {} });
    const b = madeEnd({ "logging/setLevel": {} });
    expect(await desk(merge({ a, b })).call("logging/setLevel", { level: "info" })).toEqual({ resultType: "complete" });
    expect(a.asked.at(-1)).toEqual({ method: "logging/setLevel", params: { level: "info" } });
    expect(b.asked.map(({ method }) => method)).toEqual(["server/discover"]);
  });

  it("are checked before anybody is asked", async () => {
    const a = madeEnd({ "tools/list": tools("x") });
    expect((await desk(merge({ a })).refused("tools/call", {})).kind).toBe("invalid_params");
    expect(a.asked).toEqual([]);
    expect(() => merge({ a: "no handler" as never })).toThrow("The end a is no handler");
  });
});
