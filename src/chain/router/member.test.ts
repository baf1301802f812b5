// Ends that fail, are away or take their time: what a call to them says, and that calls to others do not wait for them.

import { afterEach, describe, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { desk } from "../../../test/support/desk.ts";
import { madeServer, saying, tools } from "../../../test/support/made-end.ts";
import { merge } from "./merge.ts";

afterEach(() => {
  vi.useRealTimers();
});

const textOf = (result: Result): unknown => (result["content"] as { text: string }[])[0]?.text;

describe("calls and ends that are away", () => {
  it("fail with the end's name, and with what is known of the failure", async () => {
    const a = madeServer({
      "tools/list": tools("x", "y", "z"),
      "tools/call": ({ name }) => {
        if (name === "x") throw new ConnectionError("closed", "the process has exited", { mayHaveRun: false });
        if (name === "y") throw invalidParams("y is for others", { hint: 1 });
        throw new TypeError("z is broken");
      },
    });
    const caller = desk(merge({ a, b: madeServer({}) }));
    const lost: unknown = await caller.call("tools/call", { name: "x" }).catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(ConnectionError);
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
    const caller = desk(merge({ away, a: madeServer({ "tools/list": tools("x"), "tools/call": saying("a") }) }));
    expect((await caller.refused("tools/call", { name: "y" })).message).toBe(
      "Tool not found: y; not every end could be asked: The end away is asleep for good",
    );
    expect(textOf(await caller.call("tools/call", { name: "x" }))).toBe("a: x");
  });

  it("are not held up by an end that says nothing", async () => {
    vi.useFakeTimers();
    const hung = madeServer({ "server/discover": () => new Promise(() => undefined) });
    const a = madeServer({ "tools/list": tools("x"), "tools/call": saying("a") });
    const caller = desk(merge({ hung, a }));
    // Who knows nothing yet waits a second for others who might have the same name.
    const answer = caller.call("tools/call", { name: "x" });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(textOf(await answer)).toBe("a: x");
    // What is known is used.
    expect(textOf(await caller.call("tools/call", { name: "x" }))).toBe("a: x");
    // Where all names have a label, that the end is named is enough.
    const always = desk(merge({ hung, a }, { names: "always" }));
    expect(textOf(await always.call("tools/call", { name: "a.x" }))).toBe("a: x");
    expect(vi.getTimerCount()).toBeGreaterThan(0);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("wait no longer for an end that was slow, until it has answered", async () => {
    vi.useFakeTimers();
    let answer: (result: Result) => void = () => undefined;
    const slow = madeServer({
      "server/discover": () => new Promise((resolve) => (answer = resolve)),
      "tools/list": tools("s"),
      "tools/call": saying("slow"),
    });
    const a = madeServer({ "tools/list": tools("x") });
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

  it("ask an end again that has never answered, after a while", async () => {
    vi.useFakeTimers();
    let isDeaf = true;
    const deaf = madeServer({
      "server/discover": () => (isDeaf ? new Promise(() => undefined) : { capabilities: { tools: {} } }),
      "tools/list": tools("d"),
    });
    const caller = desk(merge({ deaf, a: madeServer({}) }));
    const late = caller.call("tools/list");
    await vi.advanceTimersByTimeAsync(8_000);
    expect((await late)["tools"]).toEqual([]);
    isDeaf = false;
    await vi.advanceTimersByTimeAsync(52_000);
    expect((await caller.call("tools/list"))["tools"]).toMatchObject([{ name: "d" }]);
  });

  it("end at once when the caller goes", async () => {
    const hung = madeServer({ "server/discover": () => new Promise(() => undefined) });
    const caller = desk(merge({ hung }));
    const answer = caller.call("tools/call", { name: "x" });
    const listing = caller.call("tools/list");
    caller.abort(new Error("The caller has gone"));
    await expect(answer).rejects.toThrow("The caller has gone");
    await expect(listing).rejects.toThrow("The caller has gone");
  });
});
