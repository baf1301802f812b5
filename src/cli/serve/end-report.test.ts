// What is told of ends while they are served: each change once, in words, and nothing that a stranger wrote unlooked at.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { UpstreamStatus } from "../../chain/upstream/status.ts";
import { UpstreamReport, endTable } from "./end-report.ts";

let said: string[] = [];
beforeEach(() => {
  said = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const status = (state: UpstreamStatus["state"], more: Partial<UpstreamStatus> = {}): UpstreamStatus => ({
  state,
  target: "npx",
  sessions: 0,
  pids: [],
  restarts: 0,
  ...more,
});

describe("a report", () => {
  it("tells each change once", () => {
    const report = new UpstreamReport(true);
    const problem = "npx exited with code 3\nits last words";
    report.onState("notes", status("starting"));
    report.onState("notes", status("running", { pids: [7], revision: "R" }));
    report.onState("notes", status("running", { pids: [7], revision: "R", sessions: 2 }));
    report.onState("notes", status("waiting", { problem }));
    report.onState("notes", status("waiting", { problem }));
    report.onState("notes", status("waiting", { problem: "another reason" }));
    const known = { problem: "another reason" };
    report.onState("notes", status("starting", known));
    report.onState("notes", status("running", { pids: [8], ...known }));
    report.onState("notes", status("asleep", known));
    report.onState("notes", status("running", known));
    report.onState("notes", status("stopped", { problem }));
    report.onState("notes", status("closed", { problem }));
    expect(said).toEqual([
      "notes started (process 7, revision R)\n",
      "notes failed, and is started again in a while: npx exited with code 3\n",
      "notes failed, and is started again in a while: another reason\n",
      "notes restarted (process 8)\n",
      "notes went to sleep: nobody needs it\n",
      "notes started\n",
      "notes stopped: it has failed too often; the last time: npx exited with code 3\n",
    ]);
  });

  it("tells only what goes wrong, and that it is mended, where that is wanted", () => {
    const report = new UpstreamReport(false);
    for (const state of ["running", "asleep", "running"] as const) report.onState("notes", status(state));
    for (const state of ["waiting", "running"] as const) report.onState("notes", status(state, { problem: "gone" }));
    expect(said).toEqual(["notes failed, and is started again in a while: gone\n", "notes restarted\n"]);
  });

  it("tells once that an address does not answer, and that it does again", () => {
    const report = new UpstreamReport(true);
    const problem = "Nothing listens at 127.0.0.1:9";
    for (const again of [1, 2]) {
      report.onState("far", status("starting", again === 1 ? {} : { problem }));
      report.onState("far", status("starting", { problem }));
      report.onState("far", status("asleep", { problem }));
    }
    // Where each caller has a session of its own, nobody may know of it in between.
    report.onState("far", status("starting"));
    report.onState("far", status("starting", { problem }));
    report.onState("far", status("running", { revision: "R" }));
    report.onState("far", status("running", { revision: "R", problem }));
    report.onState("far", status("running", { revision: "R", problem }));
    report.onState("far", status("running", { revision: "R" }));
    report.onState("far", status("running", { revision: "R", sessions: 2 }));
    report.onState("far", status("asleep", { problem: "The session is forgotten" }));
    expect(said).toEqual([
      "far failed: Nothing listens at 127.0.0.1:9\n",
      "far answers again (revision R)\n",
      "far failed: Nothing listens at 127.0.0.1:9\n",
      "far answers again (revision R)\n",
      "far failed: The session is forgotten\n",
    ]);
  });

  it("announces no last words where none follow", () => {
    const problem = "node exited with code 1; the end of its stderr:\nno key";
    new UpstreamReport(false).onState("notes", status("waiting", { problem }));
    expect(said).toEqual(["notes failed, and is started again in a while: node exited with code 1\n"]);
  });

  it("shows a little of what is no message on a program's stdout", () => {
    const report = new UpstreamReport(false);
    for (const line of ["a", "b".repeat(300), "c", "d", "e", "f", "g"]) report.onNoise("notes", line);
    report.onNoise("other", "h");
    expect(said).toEqual([
      "notes: stdout, but no message: a\n",
      `notes: stdout, but no message: ${"b".repeat(200)} ...\n`,
      "notes: stdout, but no message: c\n",
      "notes: stdout, but no message: d\n",
      "notes: stdout, but no message: e (more of it is not shown)\n",
      "other: stdout, but no message: h\n",
    ]);
  });

  it("gives each line of a program's stderr the end's name", () => {
    const report = new UpstreamReport(false);
    report.onStderr("notes", "one\ntw");
    report.onStderr("other", "three\n");
    report.onStderr("notes", "o\nrest");
    report.onState("notes", status("waiting", { problem: "gone" }));
    expect(said.slice(0, 4)).toEqual(["notes: one\n", "other: three\n", "notes: two\n", "notes: rest\n"]);
  });

  it("begins with a table", () => {
    const ends = {
      notes: status("asleep"),
      weather: status("running", { target: "https://example.com/mcp", problem: "old" }),
      dead: status("stopped", { problem: "no key\nat all" }),
    };
    expect(endTable(ends)).toBe(
      [
        "  notes    npx                      asleep, starts when it is asked for something",
        "  weather  https://example.com/mcp  running",
        "  dead     npx                      has failed too often, is left alone: no key",
        "",
      ].join("\n"),
    );
  });
});
