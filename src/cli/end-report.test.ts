// What is told of ends while they are served: each change once, in words, and nothing that a stranger wrote unlooked at.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { EndStatus } from "../chain/end-status.ts";
import { EndReport, endTable } from "./end-report.ts";

let said: string[] = [];
beforeEach(() => {
  said = [];
  vi.spyOn(process.stderr, "write").mockImplementation((text) => said.push(String(text)) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const status = (state: EndStatus["state"], more: Partial<EndStatus> = {}): EndStatus => ({
  state,
  target: "npx",
  sessions: 0,
  pids: [],
  restarts: 0,
  ...more,
});

describe("a report", () => {
  it("tells each change once", () => {
    const report = new EndReport(true);
    const problem = "npx exited with code 3\nits last words";
    report.onState("notes", status("starting"));
    report.onState("notes", status("running", { pids: [7], revision: "R" }));
    report.onState("notes", status("running", { pids: [7], revision: "R", sessions: 2 }));
    report.onState("notes", status("waiting", { problem }));
    report.onState("notes", status("waiting", { problem }));
    report.onState("notes", status("waiting", { problem: "another reason" }));
    report.onState("notes", status("starting", { problem }));
    report.onState("notes", status("running", { pids: [8], problem }));
    report.onState("notes", status("asleep", { problem }));
    report.onState("notes", status("running", { problem }));
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
    const report = new EndReport(false);
    for (const state of ["running", "asleep", "running", "waiting", "running"] as const) {
      report.onState("notes", status(state, { problem: "gone" }));
    }
    expect(said).toEqual(["notes failed, and is started again in a while: gone\n", "notes restarted\n"]);
  });

  it("gives each line of a program's stderr the end's name", () => {
    const report = new EndReport(false);
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
