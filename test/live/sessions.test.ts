// Live sessions as callers have them: by name, apart from each other, in turn, watched, stopped, reset, closed, ended
// when they rest, with limits of their own. In JavaScript, which is always there; what sessions do is the same in all
// languages. Hostile code is tried elsewhere, and what is left running in leftovers.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { javascript } from "../../src/live/index.ts";
import { Stage } from "./stage.ts";

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open(javascript(), "js");
}, 60_000);
afterAll(() => stage?.close());

const opened: Stage[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function open(...options: Parameters<typeof javascript>): Promise<Stage> {
  const one = await Stage.open(javascript(...options), "js");
  opened.push(one);
  return one;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("a session", () => {
  it("is known by its name, and keeps what is its own", async () => {
    await stage.evaluate("const mine = 1", { session: "one" });
    await stage.evaluate("const mine = 2", { session: "two" });
    expect((await stage.evaluate("mine", { session: "one" })).values).toEqual(["1"]);
    expect((await stage.evaluate("mine", { session: "two" })).values).toEqual(["2"]);
    const elsewhere = await stage.evaluate("typeof mine");
    expect(elsewhere).toMatchObject({ session: "main", values: ["'undefined'"] });
    const pids = await Promise.all(["one", "two", "main"].map((session) => stage.evaluate("process.pid", { session })));
    expect(new Set([process.pid, ...pids.map(({ values }) => Number(values[0]))]).size).toBe(4);
  });

  it("has a name that can be one", async () => {
    for (const session of ["", "a b", "x".repeat(65), "../up"])
      expect(await stage.answer("1", { session })).toMatchObject({
        isError: true,
        content: [{ text: expect.stringContaining("The name of a session has 1 to 64") as string }],
      });
  });

  it("runs what it is asked in the order in which it came", async () => {
    const session = "one";
    await stage.evaluate("const order = []; const later = (ms) => new Promise((go) => setTimeout(go, ms))", {
      session,
    });
    const asked = [30, 20, 10, 0].map((ms) =>
      stage.evaluate(`await later(${ms}); order.push(${ms}); order.join(" ")`, { session }),
    );
    const values = (await Promise.all(asked)).map((evaluation) => evaluation.values[0]);
    expect(values).toEqual(["'30'", "'30 20'", "'30 20 10'", "'30 20 10 0'"]);
  });

  it("is taken by the tools that are about all of them, and passed over", async () => {
    expect(await stage.call("get-usage-guide", { session: "none" })).toContain("# JavaScript sessions");
    await stage.call("list-sessions", { session: "none" });
    expect(await stage.call("list-sessions")).not.toContain("none");
  });

  it("is refused once its server is closed, and nothing is started", async () => {
    const own = await open();
    const closed = { name: "ConnectionError", kind: "closed", mayHaveRun: false };
    expect(own.live.tool("mine", {}, () => "1")).toBe(own.live);
    expect(await own.call("mine")).toBe("1");
    await own.live.close();
    await own.live.close();
    await expect(own.evaluate("1")).rejects.toMatchObject(closed);
    await expect(own.call("list-sessions")).rejects.toMatchObject(closed);
  });

  it("is listed with what it does", async () => {
    const own = await open();
    expect(await own.call("list-sessions")).toBe("There are no sessions yet; the first evaluation begins one.");
    const { ended } = await stage.begun("await new Promise(() => {})", "two");
    const waiting = stage.evaluate("2", { session: "two" });
    await stage.evaluate("1", { session: "one" });
    const list = await stage.call("list-sessions");
    expect(list).toMatch(/^\d sessions:\n/);
    expect(list).toMatch(/^ {2}one: idle, \d+ evaluations, Node\S* v?\d/im);
    expect(list).toMatch(/^ {2}two: busy \(eval for \d+ ms\), 1 waiting, \d+ evaluations?/m);
    await stage.call("interrupt-session", { session: "two" });
    expect((await ended).status).toBe("interrupted");
    expect((await waiting).values).toEqual(["2"]);
  });

  it("is interrupted by another call, and keeps what it has", async () => {
    const { ended } = await stage.begun("const kept = 7; for (;;);", "one");
    expect(await stage.call("interrupt-session", { session: "one" })).toBe("Interrupted what ran in one.");
    expect(await ended).toMatchObject({ status: "interrupted", step: "interrupt", state: "kept", stdout: "begun\n" });
    expect((await stage.evaluate("kept", { session: "one" })).values).toEqual(["7"]);
    expect(await stage.call("interrupt-session", { session: "one" })).toBe("Nothing runs in one.");
    expect(await stage.call("interrupt-session", { session: "nobody" })).toBe("Nothing runs in nobody.");
  });

  it("is truly fresh when it was reset, and says nothing of what was wanted", async () => {
    await stage.evaluate("const gone = 1; globalThis.also = 2", { session: "one" });
    expect(await stage.call("reset-session", { session: "one" })).toBe("Session reset successfully.");
    const fresh = await stage.evaluate("[typeof gone, typeof also]", { session: "one" });
    expect(fresh).toMatchObject({ values: ["[ 'undefined', 'undefined' ]"], state: "kept" });
    expect(fresh.notice).toBeUndefined();
  });

  it("answers what runs, and serves who waits, when it is reset", async () => {
    const { ended } = await stage.begun("for (;;);", "one");
    const waiting = stage.evaluate("3", { session: "one" });
    await stage.call("reset-session", { session: "one" });
    expect(await ended).toMatchObject({ status: "lost", state: "lost", stdout: "begun\n" });
    expect(await waiting).toMatchObject({ status: "ok", values: ["3"] });
  });

  it("is closed with all that waits for it, and begins anew under its name", async () => {
    const { ended } = await stage.begun("const old = 1; for (;;);", "two");
    const waiting = stage.answer("4", { session: "two" });
    await expect.poll(() => stage.call("list-sessions")).toMatch(/^ {2}two: busy .*, 1 waiting/m);
    expect(await stage.call("close-session", { session: "two" })).toBe("Closed two.");
    expect((await ended).status).toBe("lost");
    expect(await waiting).toMatchObject({ isError: true, content: [{ text: "The session two was closed" }] });
    expect(await stage.call("list-sessions")).not.toContain("two:");
    expect(await stage.call("close-session", { session: "two" })).toBe("There is no session two.");
    expect(await stage.evaluate("typeof old", { session: "two" })).toMatchObject({ values: ["'undefined'"] });
  });

  it("says once that its process was lost, and what with it", async () => {
    const { values } = await stage.evaluate("function precious() {} const treasure = 1; process.pid", {
      session: "one",
    });
    process.kill(Number(values[0]), "SIGKILL");
    const told: (string | undefined)[] = [];
    // Until it is seen that the process is gone, it may be asked, and is lost with the question.
    await expect.poll(async () => told.push((await stage.evaluate("1", { session: "one" })).notice)).toBeGreaterThan(1);
    const notices = told.filter((notice) => notice !== undefined);
    expect(notices).toHaveLength(1);
    expect(notices[0]).toMatch(/^The state of the session one is lost: .*SIGKILL.*; defined were: .*treasure/);
    expect(notices[0]).toContain("precious");
    expect(told.at(-1)).toBeUndefined();
  });

  it("says it before the text of the next answer", async () => {
    const { values } = await stage.evaluate("const again = 1; process.pid", { session: "one" });
    process.kill(Number(values[0]), "SIGKILL");
    const asleep = expect.poll(() => stage.call("list-sessions"), { timeout: 10_000 });
    await asleep.toMatch(/^ {2}one: asleep/m);
    const { content, isError } = await stage.answer("1", { session: "one" });
    expect(isError).toBe(false);
    expect(content).toMatchObject([
      { text: expect.stringMatching(/^\[Notice\] The state of the session one is lost.*again\n=> 1$/) as string },
    ]);
  });
});

describe("too many", () => {
  it("are told so, and who sleeps makes room", async () => {
    const own = await open({ sessions: 2 });
    await own.evaluate("1", { session: "a" });
    await own.evaluate("1", { session: "b" });
    const refused = await own.answer("1", { session: "c" });
    expect(refused).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/2 sessions.*: a, b$/) }] });
    await own.call("reset-session", { session: "a" });
    expect((await own.evaluate("1", { session: "c" })).status).toBe("ok");
  });
});

describe("a session at rest", () => {
  it("is ended, which is said when it is next used; one that works is not", async () => {
    const own = await open({ idle: 300 });
    const { values } = await own.evaluate("const rested = 1; process.pid", { session: "rests" });
    const { ended } = await own.begun("const worked = 5; await new Promise(() => {})", "works");
    await expect.poll(() => own.call("list-sessions"), { timeout: 10_000 }).toContain("rests: asleep");
    await expect.poll(() => isRunning(Number(values[0])), { timeout: 10_000 }).toBe(false);
    const next = await own.evaluate("typeof rested", { session: "rests" });
    expect(next.values).toEqual(["'undefined'"]);
    expect(next.notice).toMatch(/it was not used for 0\.3 s, so its process was ended; defined were: rested$/);
    await own.call("interrupt-session", { session: "works" });
    expect(await ended).toMatchObject({ status: "interrupted", state: "kept" });
    expect(await own.evaluate("worked", { session: "works" })).toMatchObject({ values: ["5"], state: "kept" });
  });
});

describe("limits", () => {
  it("are shown, and set for one session within bounds", async () => {
    const shown = "Current limits:\n  timeout: 30 seconds\n  max-output: 100000 characters";
    expect(await stage.call("configure-limits")).toContain(shown);
    const set = { session: "small", timeout: 0.3, "max-output": 30, "print-length": 2 };
    expect(await stage.call("configure-limits", set)).toMatch(/timeout: 0\.3 seconds\n.*max-output: 30 .*\n.*: 2 /);
    expect(await stage.call("configure-limits")).toContain(shown);
    const loud = await stage.evaluate('process.stdout.write("x".repeat(45)); [1, 2, 3]', { session: "small" });
    expect(loud).toMatchObject({ stdout: "x".repeat(30), truncated: { stdout: 45, stderr: false } });
    expect(loud.values).toEqual(["[ 1, 2, ... 1 more item ]"]);
    expect(await stage.evaluate("for (;;);", { session: "small" })).toMatchObject({ status: "timeout", state: "kept" });
    const memory = await stage.call("configure-limits", { session: "small", memory: 600 });
    expect(memory).toContain("memory: 600 MB from the next reset on; 512 MB until then");
    await stage.call("reset-session", { session: "small" });
    expect(await stage.call("configure-limits", { session: "small" })).toMatch(/memory: 600 MB$/);
    const refused = await stage.client.callTool("configure-limits", { timeout: -1 });
    expect(refused).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("from 0 to") as string }],
    });
  });
});
