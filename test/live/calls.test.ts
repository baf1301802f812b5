// The call that evaluates, while it runs: it tells what is printed, it can be cancelled, and it may be a task. In
// JavaScript, which is always there.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javascript } from "../../src/live/index.ts";
import { Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(javascript(), "js");
}, 60_000);
afterAll(() => stage?.close());

describe("who cancels a call", () => {
  it("stops its evaluation, and the session keeps what it has", async () => {
    const stop = new AbortController();
    const { ended } = await stage.begun("const saved = 8; for (;;);", "one", stop.signal);
    stop.abort(new Error("enough"));
    await expect(ended).rejects.toThrow("enough");
    expect(await stage.evaluate("saved", { session: "one" })).toMatchObject({ status: "ok", values: ["8"] });
  });

  it("never sees it run where it still waited", async () => {
    const { ended } = await stage.begun("globalThis.ran = 0; await new Promise(() => {})", "one");
    const stop = new AbortController();
    const waiting = stage.evaluate("ran = 1", { session: "one" }, { signal: stop.signal });
    stop.abort(new Error("enough"));
    await expect(waiting).rejects.toThrow("enough");
    await stage.call("interrupt-session", { session: "one" });
    await ended;
    expect((await stage.evaluate("ran", { session: "one" })).values).toEqual(["0"]);
  });
});

describe("what is printed", () => {
  it("comes as progress while it runs", async () => {
    const told: { readonly progress: number; readonly message?: string }[] = [];
    let isOver = false;
    const before: boolean[] = [];
    const evaluation = stage.evaluate(
      'for (let i = 0; i < 3; i++) { console.log("line", i); await new Promise((go) => setTimeout(go, 150)); }',
      { session: "one" },
      {
        onProgress: (progress) => {
          told.push(progress);
          before.push(isOver);
        },
      },
    );
    expect((await evaluation).stdout).toBe("line 0\nline 1\nline 2\n");
    isOver = true;
    expect(told.map(({ message }) => message).join("")).toBe("line 0\nline 1\nline 2\n");
    expect(told.length).toBeGreaterThan(1);
    expect(before).not.toContain(true);
    const counts = told.map(({ progress }) => progress);
    expect(counts).toEqual(counts.toSorted((a, b) => a - b));
    expect(counts.at(-1)).toBe(21);
  });
});

describe("a long evaluation", () => {
  it("runs as a task where the caller wants one", async () => {
    const task = await stage.client.startTool("evaluate-js", {
      code: "await new Promise((go) => setTimeout(go, 200)); 9",
      session: "one",
    });
    expect(task.id).not.toBe("");
    expect(task.status).toBe("working");
    const { structuredContent, isError } = await task.result();
    expect(isError).toBe(false);
    expect(structuredContent).toMatchObject({ status: "ok", values: ["9"] });
  });

  it("is stopped when its task is cancelled, and the session keeps what it has", async () => {
    const { client } = stage;
    const task = await client.startTool("evaluate-js", { code: "const far = 10; for (;;);", session: "one" });
    await expect.poll(() => stage.call("list-sessions")).toMatch(/^ {2}one: busy \(eval/m);
    await task.cancel();
    expect((await stage.evaluate("far", { session: "one" })).values).toEqual(["10"]);
    expect((await task.refresh()).status).toBe("cancelled");
  });
});
