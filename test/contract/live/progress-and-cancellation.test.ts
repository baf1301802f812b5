// An evaluation while it runs: its output is reported as progress, it can be cancelled, and it may run as a task.
// Tested with JavaScript, which is always available.

import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { javascript } from "../../../src/live/index.ts";
import { LiveFixture, withText } from "./live-fixture.ts";

let fixture: LiveFixture;
beforeAll(async () => {
  fixture = await LiveFixture.open(javascript(), "js");
});
afterAll(() => fixture?.close());

it("cancelling a call stops the evaluation and keeps the session's state", async () => {
  const stop = new AbortController();
  const { ended } = await fixture.begun("const saved = 8; for (;;);", "one", stop.signal);
  stop.abort(new Error("enough"));
  await expect(ended).rejects.toThrow("enough");
  expect(await fixture.evaluate("saved", { session: "one" })).toMatchObject({ status: "ok", values: ["8"] });
});

it("cancelling a call keeps a waiting call from running", async () => {
  const { ended } = await fixture.begun("globalThis.ran = 0; await new Promise(() => {})", "one");
  const stop = new AbortController();
  const waiting = fixture.evaluate("ran = 1", { session: "one" }, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await fixture.call("interrupt-session", { session: "one" });
  await ended;
  expect((await fixture.evaluate("ran", { session: "one" })).values).toEqual(["0"]);
});

it("output is reported as progress while the code runs", async () => {
  const reports: { readonly progress: number; readonly message?: string }[] = [];
  let isOver = false;
  const before: boolean[] = [];
  const folder = mkdtempSync(join(tmpdir(), "catenary-progress-"));
  const file = join(folder, "reported");
  writeFileSync(file, "");
  // The code goes on when its line was reported.
  const isMissing = `!fs.readFileSync(${JSON.stringify(file)}, "utf8").includes("line " + i)`;
  const wait = `while (${isMissing}) await new Promise((go) => setTimeout(go, 10));`;
  const evaluation = fixture.evaluate(
    `for (let i = 0; i < 3; i++) { console.log("line", i); ${wait} }`,
    { session: "one" },
    {
      onProgress: (progress) => {
        reports.push(progress);
        appendFileSync(file, progress.message ?? "");
        before.push(isOver);
      },
    },
  );
  const { stdout } = await evaluation.finally(() => rmSync(folder, { recursive: true }));
  expect(stdout).toBe("line 0\nline 1\nline 2");
  isOver = true;
  expect(reports.map(({ message }) => message).join("")).toBe("line 0\nline 1\nline 2\n");
  expect(reports.length).toBeGreaterThan(1);
  expect(before).not.toContain(true);
  const counts = reports.map(({ progress }) => progress);
  expect(counts).toEqual(counts.toSorted((a, b) => a - b));
  expect(counts.at(-1)).toBe(21);
});

it("a long evaluation runs as a task on request", async () => {
  const task = await fixture.client.callToolAsTask("evaluate-js", {
    code: "await new Promise((go) => setTimeout(go, 200)); 9",
    session: "one",
  });
  expect(task.id).not.toBe("");
  expect(task.status).toBe("working");
  const result = await task.result();
  expect(result.isError).toBe(false);
  expect(withText(result)).toMatchObject({ status: "ok", values: ["9"] });
});

it("a long evaluation is stopped when its task is cancelled, and the session keeps its state", async () => {
  const { client } = fixture;
  await fixture.evaluate("const far = 10", { session: "one" });
  const task = await client.callToolAsTask("evaluate-js", { code: "for (;;);", session: "one" });
  await expect.poll(() => fixture.call("list-sessions")).toMatch(/^ {2}one: busy \(eval/m);
  await task.cancel();
  expect((await fixture.evaluate("far", { session: "one" })).values).toEqual(["10"]);
  expect((await task.refresh()).status).toBe("cancelled");
});
