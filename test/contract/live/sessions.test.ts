// Sessions as clients use them: names, separation, order, listing, interrupt, reset, close, idle timeout, limits.
// Tested with JavaScript, which is always available; sessions work the same in all languages.

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { IS_LONG } from "../../support/thoroughness.ts";
import { javascript } from "../../../src/live/index.ts";
import { LiveFixture } from "./live-fixture.ts";

let fixture: LiveFixture;
beforeAll(async () => {
  fixture = await LiveFixture.open(javascript(), "js");
});
afterAll(() => fixture?.close());

const opened: LiveFixture[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

async function open(...options: Parameters<typeof javascript>): Promise<LiveFixture> {
  const one = await LiveFixture.open(javascript(...options), "js");
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

it("a session is found by its name and has its own state", async () => {
  await fixture.evaluate("const mine = 1", { session: "one" });
  await fixture.evaluate("const mine = 2", { session: "two" });
  expect((await fixture.evaluate("mine", { session: "one" })).values).toEqual(["1"]);
  expect((await fixture.evaluate("mine", { session: "two" })).values).toEqual(["2"]);
  const elsewhere = await fixture.evaluate("typeof mine");
  expect(elsewhere).toMatchObject({ session: "main", values: ["'undefined'"] });
  const pids = await Promise.all(["one", "two", "main"].map((session) => fixture.evaluate("process.pid", { session })));
  expect(new Set([process.pid, ...pids.map(({ values }) => Number(values[0]))]).size).toBe(4);
});

it("a session must have a valid name", async () => {
  for (const session of ["", "a b", "x".repeat(65), "../up"])
    expect(await fixture.answer("1", { session })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("A session name has 1 to 64") as string }],
    });
});

it("a session runs calls in order of arrival", async () => {
  const session = "one";
  await fixture.evaluate("const order = []; const later = (ms) => new Promise((go) => setTimeout(go, ms))", {
    session,
  });
  const asked = [30, 20, 10, 0].map((ms) =>
    fixture.evaluate(`await later(${ms}); order.push(${ms}); order.join(" ")`, { session }),
  );
  const values = (await Promise.all(asked)).map((evaluation) => evaluation.values[0]);
  expect(values).toEqual(["'30'", "'30 20'", "'30 20 10'", "'30 20 10 0'"]);
});

it("a session is ignored by tools that are about all sessions", async () => {
  expect(await fixture.call("get-usage-guide", { session: "none" })).toContain("# JavaScript sessions");
  await fixture.call("list-sessions", { session: "none" });
  expect(await fixture.call("list-sessions")).not.toContain("none");
});

it("a session is refused after its server is closed, and no process starts", async () => {
  const own = await open();
  const closed = { name: "ConnectionError", kind: "closed", mayHaveRun: false };
  expect(own.live.tool("mine", {}, () => "1")).toBe(own.live);
  expect(await own.call("mine")).toBe("1");
  await own.live.close();
  await own.live.close();
  await expect(own.evaluate("1")).rejects.toMatchObject(closed);
  await expect(own.call("list-sessions")).rejects.toMatchObject(closed);
});

it("a session is listed with its activity", async () => {
  const own = await open();
  expect(await own.call("list-sessions")).toBe("There are no sessions yet; the first evaluation creates one.");
  const { ended } = await fixture.begun("await new Promise(() => {})", "two");
  const waiting = fixture.evaluate("2", { session: "two" });
  await fixture.evaluate("1", { session: "one" });
  const list = await fixture.call("list-sessions");
  expect(list).toMatch(/^\d sessions:\n/);
  expect(list).toMatch(/^ {2}one: idle, \d+ evaluations, Node\S* v?\d/im);
  expect(list).toMatch(/^ {2}two: busy \(eval for \d+ ms\), 1 waiting, \d+ evaluations?/m);
  await fixture.call("interrupt-session", { session: "two" });
  expect((await ended).status).toBe("interrupted");
  expect((await waiting).values).toEqual(["2"]);
});

it("a session is interrupted by another call and keeps its state", async () => {
  const { ended } = await fixture.begun("const kept = 7; for (;;);", "one");
  expect(await fixture.call("interrupt-session", { session: "one" })).toBe("Interrupted session one.");
  expect(await ended).toMatchObject({ status: "interrupted", step: "interrupt", state: "kept", stdout: "begun" });
  expect((await fixture.evaluate("kept", { session: "one" })).values).toEqual(["7"]);
  expect(await fixture.call("interrupt-session", { session: "one" })).toBe("Nothing is running in session one.");
  expect(await fixture.call("interrupt-session", { session: "unknown" })).toBe(
    "Nothing is running in session unknown.",
  );
});

it.runIf(IS_LONG)("a session is fresh after a reset, without a notice", async () => {
  await fixture.evaluate("const gone = 1; globalThis.also = 2", { session: "one" });
  expect(await fixture.call("reset-session", { session: "one" })).toBe("Session reset successfully.");
  const fresh = await fixture.evaluate("[typeof gone, typeof also]", { session: "one" });
  expect(fresh).toMatchObject({ values: ["[ 'undefined', 'undefined' ]"], state: "kept" });
  expect(fresh.notice).toBeUndefined();
});

it("a session ends the running call and serves the waiting ones when it is reset", async () => {
  const { ended } = await fixture.begun("for (;;);", "one");
  const waiting = fixture.evaluate("3", { session: "one" });
  await fixture.call("reset-session", { session: "one" });
  expect(await ended).toMatchObject({ status: "lost", state: "lost", stdout: "begun" });
  expect(await waiting).toMatchObject({ status: "ok", values: ["3"] });
});

it.runIf(IS_LONG)("a session is closed with all waiting calls, and its name can be used again", async () => {
  const { ended } = await fixture.begun("const old = 1; for (;;);", "two");
  const waiting = fixture.answer("4", { session: "two" });
  await expect.poll(() => fixture.call("list-sessions")).toMatch(/^ {2}two: busy .*, 1 waiting/m);
  expect(await fixture.call("close-session", { session: "two" })).toBe("Closed session two.");
  expect((await ended).status).toBe("lost");
  expect(await waiting).toMatchObject({ isError: true, content: [{ text: "Session two was closed" }] });
  expect(await fixture.call("list-sessions")).not.toContain("two:");
  expect(await fixture.call("close-session", { session: "two" })).toBe("There is no session two.");
  expect(await fixture.evaluate("typeof old", { session: "two" })).toMatchObject({ values: ["'undefined'"] });
});

it("a session reports once that its process was lost, with the lost definitions", async () => {
  const { values } = await fixture.evaluate("function precious() {} const treasure = 1; process.pid", {
    session: "one",
  });
  process.kill(Number(values[0]), "SIGKILL");
  const notices: (string | undefined)[] = [];
  // Until the host notices the exit, an evaluation may still be sent, and is lost.
  await expect
    .poll(async () => notices.push((await fixture.evaluate("1", { session: "one" })).notice))
    .toBeGreaterThan(1);
  const shown = notices.filter((notice) => notice !== undefined);
  expect(shown).toHaveLength(1);
  expect(shown[0]).toMatch(/^The state of session one was lost: .*SIGKILL.*; lost definitions: .*treasure/);
  expect(shown[0]).toContain("precious");
  expect(notices.at(-1)).toBeUndefined();
});

it.runIf(IS_LONG)("a session shows the notice before the next result", async () => {
  const { values } = await fixture.evaluate("const again = 1; process.pid", { session: "one" });
  process.kill(Number(values[0]), "SIGKILL");
  const stopped = expect.poll(() => fixture.call("list-sessions"));
  await stopped.toMatch(/^ {2}one: stopped/m);
  const { content, isError } = await fixture.answer("1", { session: "one" });
  expect(isError).toBe(false);
  expect(content).toMatchObject([
    { text: expect.stringMatching(/^\[Notice\] The state of session one was lost.*again\n=> 1$/) as string },
  ]);
});

it.runIf(IS_LONG)("too many sessions are refused until one is stopped", async () => {
  const own = await open({ maxSessions: 2 });
  await own.evaluate("1", { session: "a" });
  await own.evaluate("1", { session: "b" });
  const refused = await own.answer("1", { session: "c" });
  expect(refused).toMatchObject({
    isError: true,
    content: [{ text: expect.stringMatching(/limit of 2 running sessions.*: a, b$/) }],
  });
  await own.call("reset-session", { session: "a" });
  expect((await own.evaluate("1", { session: "c" })).status).toBe("ok");
});

it.runIf(IS_LONG)("an idle session is ended, which the next result says; a busy one is not", async () => {
  const own = await open({ idleMs: 300 });
  const { values } = await own.evaluate("const idled = 1; process.pid", { session: "rests" });
  const { ended } = await own.begun("const worked = 5; await new Promise(() => {})", "works");
  await expect.poll(() => own.call("list-sessions")).toContain("rests: stopped");
  await expect.poll(() => isRunning(Number(values[0]))).toBe(false);
  const next = await own.evaluate("typeof idled", { session: "rests" });
  expect(next.values).toEqual(["'undefined'"]);
  expect(next.notice).toMatch(/it was not used for 0\.3 s, so its process was ended; lost definitions: idled$/);
  await own.call("interrupt-session", { session: "works" });
  expect(await ended).toMatchObject({ status: "interrupted", state: "kept" });
  expect(await own.evaluate("worked", { session: "works" })).toMatchObject({ values: ["5"], state: "kept" });
});

it.runIf(IS_LONG)("limits are shown, and changed for one session within bounds", async () => {
  const shown = "Current limits:\n  timeout: 30 seconds\n  max-output: 10000 characters";
  expect(await fixture.call("configure-limits")).toContain(shown);
  const set = { session: "small", timeout: 0.3, "max-output": 30, "print-length": 2 };
  expect(await fixture.call("configure-limits", set)).toMatch(/timeout: 0\.3 seconds\n.*max-output: 30 .*\n.*\n.*: 2 /);
  expect(await fixture.call("configure-limits")).toContain(shown);
  const loud = await fixture.evaluate('process.stdout.write("x".repeat(45)); [1, 2, 3]', { session: "small" });
  expect(loud.text).toMatch(/^x{15}\n\[15 of 45 characters left out here; all are in live:.*\]\nx{15}\n=> /);
  expect(loud.truncated).toMatchObject({ stdout: { chars: 45 } });
  // A model that cannot read resources gets the rest by a tool.
  const [, rest = "{}"] = /inspect (\{.*\}) shows them/.exec(loud.text) ?? [];
  const page = { ...(JSON.parse(rest) as object), session: "small", count: 20 };
  expect(await fixture.call("inspect", page)).toBe(
    `${"x".repeat(20)}\n[Characters 15 to 35 of 45; the next ones: start 35]`,
  );
  const [none, other] = await Promise.all([
    fixture.client.callTool("inspect", {}),
    fixture.client.callTool("inspect", { output: 0, session: "small" }),
  ]);
  expect(none).toMatchObject({ isError: true });
  expect(other).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("has no long output 0; kept are") as string }],
  });
  expect(loud.values).toEqual(["[ 1, 2, ... 1 more item ]"]);
  expect(await fixture.evaluate("for (;;);", { session: "small" })).toMatchObject({
    status: "timeout",
    state: "kept",
  });
  const memory = await fixture.call("configure-limits", { session: "small", memory: 600 });
  expect(memory).toContain("memory: 600 MB from the next reset on; 512 MB until then");
  await fixture.call("reset-session", { session: "small" });
  expect(await fixture.call("configure-limits", { session: "small" })).toMatch(/memory: 600 MB$/);
  const refused = await fixture.client.callTool("configure-limits", { timeout: -1 });
  expect(refused).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("from 0 to") as string }],
  });
});
