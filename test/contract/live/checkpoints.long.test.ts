// Checkpoints that fail: damaged files, restores that are stopped, and sessions that save under one name at once. None of
// them may cost a session its state.

import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { javascript, lisp } from "../../../src/live/index.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { LiveFixture } from "./live-fixture.ts";

let state = "";
let fixture: LiveFixture;
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), "catenary-checkpoints-"));
  vi.stubEnv("XDG_STATE_HOME", state);
});
afterEach(async () => {
  await fixture.close();
  vi.unstubAllEnvs();
  rmSync(state, { recursive: true, force: true });
});
const folder = (language: string): string => join(state, "catenary/sessions", language, "all");

describe("a checkpoint of code", () => {
  beforeEach(async () => {
    fixture = await LiveFixture.open(javascript(), "js");
    await fixture.evaluate("globalThis.kept = 1");
    await fixture.call("save-session");
  });

  it.each(["", "garbage", "null", "[]", '{"sources":5}', '{"sources":["1",5]}', '{"version":99}'])(
    "a checkpoint of code with the content %j is refused, and the session keeps its state",
    async (content) => {
      writeFileSync(join(folder("js"), "bad.json"), content, { mode: 0o600 });
      expect(await fixture.call("restore-session", { checkpoint: "bad" })).toMatch(
        /^Checkpoint bad is damaged: .*bad\.json does not have the code of a session\. Save it again$/,
      );
      expect((await fixture.evaluate("kept")).values).toEqual(["1"]);
    },
  );

  it("a checkpoint of code is saved by several sessions at once under one name", async () => {
    const sessions = ["main", "other", "main", "third"];
    for (const session of sessions) await fixture.evaluate("globalThis.kept = 1", { session });
    const saved = await Promise.all(
      sessions.map((session) => fixture.call("save-session", { session, checkpoint: "same" })),
    );
    for (const text of saved) expect(text).toMatch(/^Saved session \w+ as checkpoint same: /);
    expect(readdirSync(folder("js")).toSorted()).toEqual(["main.json", "same.json"]);
  });

  it("a checkpoint of code is no longer run again after an interrupt", async () => {
    const sources = ["await new Promise(() => {})", "globalThis.after = 1"];
    writeFileSync(join(folder("js"), "endless.json"), JSON.stringify({ sources }), { mode: 0o600 });
    const restored = fixture.call("restore-session", { checkpoint: "endless" });
    await vi.waitUntil(async () => /main: busy \(eval/.test(await fixture.call("list-sessions")), 20_000);
    await fixture.call("interrupt-session");
    expect(await restored).toContain("1 more were not run.");
    expect((await fixture.evaluate("typeof after")).values).toEqual(["'undefined'"]);
  });

  it("a checkpoint of code leaves no drafts of processes that were killed", async () => {
    const draft = join(folder("js"), "main.json.0.new");
    writeFileSync(draft, "{}");
    utimesSync(draft, new Date(0), new Date(0));
    await fixture.call("save-session");
    expect(readdirSync(folder("js"))).toEqual(["main.json"]);
  });
});

describe.skipIf(!hasSbcl())("a checkpoint with an image (needs SBCL)", () => {
  beforeEach(async () => {
    fixture = await LiveFixture.open(lisp(), "lisp");
    await fixture.evaluate("(defvar *kept* 1)");
    await fixture.call("save-session", { checkpoint: "good" });
    await fixture.evaluate("(setf *kept* 2)");
  });
  const kept = async (): Promise<readonly string[]> => (await fixture.evaluate("*kept*")).values;

  it("a checkpoint with an image that does not start leaves the session as it was", async () => {
    writeFileSync(join(folder("lisp"), "bad.image"), "garbage", { mode: 0o600 });
    expect(await fixture.call("restore-session", { checkpoint: "bad" })).toMatch(
      /^Session main is as it was, since checkpoint bad could not be restored: A lisp session could not be started/,
    );
    expect(await kept()).toEqual(["2"]);
  });

  it.each(["interrupt-session", "reset-session", "close-session"])(
    "a checkpoint with an image is not restored after %s",
    async (tool) => {
      const restored = fixture.call("restore-session", { checkpoint: "good" });
      // The restore looks for its file first.
      await new Promise((resolve) => setTimeout(resolve, 5));
      await fixture.call(tool);
      const answer = await restored;
      const isStopped = /interrupted|Session main was closed/.test(answer);
      // The interrupt may come before or after the restore; whatever comes last holds, and the next call runs.
      if (tool === "interrupt-session") expect(await kept()).toEqual([isStopped ? "2" : "1"]);
      else expect((await fixture.evaluate("(boundp '*kept*)")).status).toBe("ok");
    },
  );

  it("a checkpoint with an image ends what runs, and calls that wait run in the restored state", async () => {
    const endless = fixture.evaluate("(loop)", { timeout: 60 });
    await vi.waitUntil(async () => /main: busy/.test(await fixture.call("list-sessions")), 20_000);
    const waiting = fixture.evaluate("*kept*");
    await vi.waitUntil(async () => /1 waiting/.test(await fixture.call("list-sessions")), 20_000);
    expect(await fixture.call("restore-session", { checkpoint: "good" })).toBe(
      "Restored session main from checkpoint good.",
    );
    expect(await endless).toMatchObject({ status: "lost" });
    expect((await waiting).values).toEqual(["1"]);
  });

  it("a checkpoint with an image is saved by several sessions at once under one name", async () => {
    await fixture.evaluate("(defvar *kept* 3)", { session: "other" });
    const saved = await Promise.all(
      ["main", "other", "main"].map((session) => fixture.call("save-session", { session, checkpoint: "same" })),
    );
    for (const text of saved) expect(text).toMatch(/^Saved session \w+ as checkpoint same: an image/);
    expect(readdirSync(folder("lisp")).toSorted()).toEqual(["good.image", "same.image"]);
  });
});
