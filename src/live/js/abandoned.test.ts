// What an evaluation that was interrupted leaves behind in its guest: nothing that grows, and nothing that goes on.

import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { JavaScriptGuest } from "../../../test/support/javascript-guest.ts";

let guest: JavaScriptGuest;
beforeAll(async () => {
  guest = await JavaScriptGuest.start();
});
afterAll(() => guest.close());

async function begun(): Promise<void> {
  await vi.waitFor(() => expect(guest.printed).toContain("begun"), { interval: 5, timeout: 10_000 });
}

const BEGIN = "console.log('begun');";

it("holds nothing that it had, when what it waited for has come too late", async () => {
  await guest.value("let held; function hold() { const made = {}; held = new WeakRef(made); return made }");
  const code = `${BEGIN} [hold(), await new Promise((resolve) => { globalThis.wake = resolve })].length`;
  expect(await guest.evaluate(code, begun())).toMatchObject({ status: "interrupted" });
  await guest.value("wake(); wake = undefined; await new Promise((resolve) => setTimeout(resolve))");
  // One collection may find what another, begun before, has taken for alive.
  await vi.waitFor(async () => {
    await guest.tool("heap-report", { gc: true });
    expect(await guest.value("held.deref() === undefined")).toBe("true");
  });
});

/** The names of its threads, of which one is the profiler's while that samples. */
function threads(): string[] {
  const folder = `/proc/${guest.guest.pid}/task`;
  return readdirSync(folder).map((thread) => readFileSync(`${folder}/${thread}/comm`, "utf8").trim());
}

it.runIf(process.platform === "linux").each([
  ["runs", "for (;;);"],
  ["waits", "await new Promise(() => undefined)"],
])("is profiled no longer, where it %s", async (_how, code) => {
  await guest.value("1");
  const { id, reply } = guest.guest.ask("profile-code", { code: `${BEGIN} ${code}` });
  await begun();
  expect(threads()).toContain("v8:ProfEvntProc");
  await guest.guest.tell("interrupt", { target: id });
  expect(await reply).toEqual({ status: "interrupted" });
  await vi.waitFor(() => expect(threads()).not.toContain("v8:ProfEvntProc"));
  expect((await guest.tool("profile-code", { code: "6 * 7" })).text).toMatch(/=> 42$/);
});
