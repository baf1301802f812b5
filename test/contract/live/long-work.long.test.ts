// Long work: a silent evaluation reports that it goes on, the programs that block a session are killed before the session
// is, and a checkpoint brings a session back after its process was killed.

import { mkdtempSync, rmSync, statSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { javascript, smalltalk } from "../../../src/live/index.ts";
import { LiveFixture } from "./live-fixture.ts";

let folder = "";
let fixture: LiveFixture;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-checkpoints-"));
  vi.stubEnv("XDG_STATE_HOME", folder);
  fixture = await LiveFixture.open(javascript(), "js");
});
afterEach(async () => {
  await fixture.close();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

it.runIf(process.platform === "linux")(
  "a program that blocks the session is killed, and the state is kept",
  async () => {
    await fixture.evaluate("let keep = 42");
    const blocked = await fixture.evaluate('require("node:child_process").execSync("sleep 300")', { timeout: 0.2 });
    expect(blocked).toMatchObject({ status: "timeout", step: "children", state: "kept" });
    expect(blocked.text).toContain("It waited for programs that it had started; they were killed");
    expect((await fixture.evaluate("keep")).values).toEqual(["42"]);
  },
);

it("a silent evaluation reports every few seconds that it goes on, and keeps its output", async () => {
  const messages: (string | undefined)[] = [];
  const code = 'console.log("a".repeat(3)); await new Promise((go) => setTimeout(go, 11_000)); console.log("b"); 1';
  const onProgress = ({ message }: { readonly message?: string }): unknown => messages.push(message);
  await fixture.evaluate(code, { timeout: 30 }, { onProgress });
  expect(messages.some((message) => /^Still running after \d+ s$/.test(message ?? ""))).toBe(true);
  expect(messages.join("")).toMatch(/aaa[^]*b\n/);
});

it("a checkpoint brings the session back after its process was killed, and is offered", async () => {
  await fixture.evaluate("const greet = (name) => `Hello, ${name}`");
  await fixture.evaluate("throw new Error('not again')");
  expect(await fixture.call("save-session")).toBe(
    "Saved session main as checkpoint main: the code of 1 evaluation, which restore-session runs again.",
  );
  const lost = await fixture.evaluate("process.kill(process.pid, 'SIGKILL'); await new Promise(() => {})");
  expect(lost.notice).toContain("restore-session brings back checkpoint main");
  expect((await fixture.evaluate("typeof greet")).values).toEqual(["'undefined'"]);
  expect(await fixture.call("restore-session")).toBe(
    "Restored session main from checkpoint main: the code of 1 evaluation was run again.",
  );
  expect((await fixture.evaluate("greet('Ada')")).values).toEqual(["'Hello, Ada'"]);
  const own = join(folder, "catenary/sessions/js/all");
  expect(readdirSync(own)).toEqual(["main.json"]);
  expect(statSync(join(own, "main.json")).mode & 0o777).toBe(0o600);
});

it("a checkpoint has what code defined before it failed, and does not report that it fails again", async () => {
  await fixture.evaluate("function half(n) { return n / 2 }\nhalf(missing)");
  await fixture.evaluate("let files = [half(4)]");
  await fixture.evaluate("files.push(missing)");
  expect(await fixture.call("save-session")).toContain("the code of 2 evaluations");
  await fixture.call("reset-session");
  expect(await fixture.call("restore-session")).toBe(
    "Restored session main from checkpoint main: the code of 2 evaluations was run again.",
  );
  expect((await fixture.evaluate("files.map(half)")).values).toEqual(["[ 1 ]"]);
  // The restored session can be saved too.
  expect(await fixture.call("save-session")).toContain("the code of 3 evaluations");
});

it("a checkpoint of Smalltalk on Amber has the classes and methods that tools defined", async () => {
  const amber = await LiveFixture.open(smalltalk(), "smalltalk");
  await amber.evaluate("total := 5");
  await amber.call("define-class", { name: "Foo", "instance-variables": "x", package: "P", comment: "It's me!" });
  await amber.call("compile-method", { class: "Foo", source: "shout\n\t^ 'hey!'", protocol: "noise" });
  await amber.call("compile-method", { class: "Foo class", source: "make ^ self new" });
  expect(await amber.call("save-session")).toContain("the code of 4 evaluations");
  await amber.call("reset-session");
  await amber.call("restore-session");
  const { values } = await amber.evaluate("{total. Foo make shout. Foo comment. (Foo >> #shout) protocol}");
  expect(values).toEqual(["an Array (5 'hey!' 'It''s me!' 'noise')"]);
  await amber.close();
});

it("a checkpoint that does not exist is refused with those that do, and so is a name that is a path", async () => {
  await fixture.evaluate("1");
  await fixture.call("save-session", { checkpoint: "one" });
  const [missing, path] = await Promise.all([
    fixture.client.callTool("restore-session", { checkpoint: "two" }),
    fixture.client.callTool("save-session", { checkpoint: "../../x" }),
  ]);
  expect(missing).toMatchObject({ isError: true, content: [{ text: "There is no checkpoint two; there are one" }] });
  expect(path).toMatchObject({ isError: true });
  for (let n = 0; n < 11; n += 1) await fixture.call("save-session", { checkpoint: `n${n}` });
  expect(readdirSync(join(folder, "catenary/sessions/js/all"))).toHaveLength(10);
});
